"""Small sources in place of the real ones, compilers that fail, and what a build left behind."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from engine.backend.native import build

STAND_IN = {
    "variant.c": '#include "native.h"\nint NAMED(kernel)(void) { return ANSWER; }\n',
    "native.h": "#if defined(VARIANT_AVX512)\n#define NAMED(x) x##_avx512\n"
    "#elif defined(VARIANT_AVX2)\n#define NAMED(x) x##_avx2\n"
    "#else\n#define NAMED(x) x##_portable\n#endif\n#define ANSWER 42\n",
    "pool.c": "int pool;\n",
    "draw_check.c": "int draw_check;\n",
    "program.c": "int heliograph_abi(void) { return 1; }\n"
    "#ifdef HAVE_AVX2\nint have_avx2 = 1;\n#endif\n"
    "#ifdef HAVE_AVX512\nint have_avx512 = 1;\n#endif\n",
}
HAS_COMPILER = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="there is no C compiler")


def kept(tmp_path: Path) -> list[Path]:
    """What is in the cache; nothing but libraries may be."""
    found = sorted((tmp_path / "cache" / "heliograph" / "native").glob("*"))
    assert all(path.suffix == ".so" and path.is_file() for path in found)
    assert list((tmp_path / "temporary").iterdir()) == []
    return found


def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Path:
    """Set $CC to a script that tells a version and otherwise does as it is written."""
    script = tmp_path / "fake"
    script.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo "fake 9.1.0"; exit 0; fi\n' + body
    )
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    return script


def load(progress: list[str] | None = None) -> ctypes.CDLL | None:
    return build.load((progress if progress is not None else []).append)


def the_line(caplog: pytest.LogCaptureFixture) -> str:
    """The one warning that there was, on one line."""
    (record,) = caplog.records
    assert record.levelname == "WARNING" and "\n" not in record.getMessage()
    return record.getMessage()
