"""The native library in each variant that this machine runs; AVX-512 emulated where it is not."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

import pytest

from engine.backend.native import build, compiler
from engine.backend.native.compiler import find_compilers
from engine.backend.native.library import Library
from tests.engine.backend.native.stand_in import STAND_IN

EMULATION = Path(__file__).parent  # emulated.h, over Debian's libsimde-dev
SIMDE = Path("/usr/include/simde")
SANITIZED = os.environ.get("HELIOGRAPH_NATIVE_SANITIZE") == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under the sanitizers, which are slow, only what calls the library runs."""
    if SANITIZED:
        items[:] = [item for item in items if "library" in getattr(item, "fixturenames", ())]


@cache
def _load() -> Library | None:
    flags = Path("/proc/cpuinfo")
    has_avx512 = flags.exists() and "avx512_bf16" in flags.read_text().split()
    # gcc takes many minutes over sanitizers in emulated code.
    emulated = SIMDE.exists() and not has_avx512 and not SANITIZED
    return Library.load(lambda _: None, emulation=EMULATION if emulated else None)


@pytest.fixture(params=["portable", "avx2", "avx512"])
def library(request: pytest.FixtureRequest) -> Library:
    """The library with one variant chosen; skips those that this machine cannot run."""
    loaded = _load()
    if loaded is None:
        if find_compilers(os.environ)[0]:
            pytest.fail("the native operations cannot be built: see the log")
        pytest.skip("there is no C compiler")
    if request.param not in loaded.variants:
        pytest.skip(f"this machine has no {request.param}")
    return Library(loaded.functions, request.param)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small sources, an empty cache and an empty folder for temporary files."""
    folder = tmp_path / "sources"
    for name in ("sources", "temporary"):
        (tmp_path / name).mkdir()
    for name, text in STAND_IN.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(build, "SOURCES", folder)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("CC", "HELIOGRAPH_NATIVE_SANITIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(compiler, "find_spec", lambda _: None)
    return folder
