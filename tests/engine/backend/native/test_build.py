"""The library is built once for each machine, and whatever fails costs one line of the log."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.backend.native import compiler
from engine.backend.native.build import Recipe, build_key
from engine.backend.native.compiler import Compiler
from tests.engine.backend.native.stand_in import fake, kept, load, needs_compiler, the_line


@needs_compiler
def test_it_is_built_once_with_a_line_of_progress(
    sources: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    progress: list[str] = []
    library = load(progress)
    assert library is not None and library.kernel_portable() == 42
    (line,) = progress
    assert line.startswith("building the native operations with ") and "once" in line
    (place,) = kept(tmp_path)
    assert place.stat().st_mode & 0o077 == 0
    assert place.parent.stat().st_mode & 0o077 == 0
    before = place.stat().st_ino
    assert load(progress) is not None and len(progress) == 1
    assert kept(tmp_path) == [place] and place.stat().st_ino == before
    assert caplog.records == []


@needs_compiler
def test_any_change_of_a_source_builds_again(sources: Path, tmp_path: Path) -> None:
    load()
    header = sources / "native.h"
    header.write_text(header.read_text().replace("42", "43"))
    changed = load()
    assert changed is not None and changed.kernel_portable() == 43
    assert len(kept(tmp_path)) == 2


def test_the_key_names_all_that_a_library_is_built_from(sources: Path, tmp_path: Path) -> None:
    cc, recipe = Compiler(("/bin/cc",), "cc 1.0"), Recipe("x86_64")
    first = build_key(cc, recipe)
    assert build_key(cc, recipe) == first
    others = [
        build_key(replace(cc, version="cc 1.1"), recipe),
        build_key(replace(cc, command=("/usr/bin/cc",)), recipe),
        build_key(replace(cc, command=("/bin/cc", "-m32")), recipe),
        build_key(cc, replace(recipe, machine="aarch64")),
        build_key(cc, replace(recipe, sanitize=True)),
        build_key(cc, replace(recipe, emulation=tmp_path)),
    ]
    (sources / "new.h").touch()
    others.append(build_key(cc, recipe))
    (sources / "new.h").rename(sources / "newer.h")
    others.append(build_key(cc, recipe))
    assert len({first, *others}) == 1 + len(others)


def test_no_compiler(
    sources: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", "")
    assert load() is None
    line = the_line(caplog)
    assert "no C compiler" in line and "torch" in line and "ziglang" in line


@pytest.mark.parametrize("chosen", ["/missing/cc", "missing-cc -O2", "'open quote"])
def test_a_chosen_compiler_that_is_not_there_is_named(
    sources: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, chosen: str
) -> None:
    monkeypatch.setenv("CC", chosen)
    assert load() is None
    assert chosen.split(" -", maxsplit=1)[0].strip("'") in the_line(caplog)


def test_a_compiler_that_cannot_be_run(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    script = fake(tmp_path, monkeypatch, "")
    script.write_bytes(b"\x7fELF rubbish")
    assert load() is None
    assert "fake" in the_line(caplog)


BROKEN = {
    "fails": ("echo hm; echo 'x.c:1: fatal error: no stdio.h\x1b[0m' >&2; exit 1", "no stdio.h"),
    "fails in silence": ("exit 3", "exit 3"),
    "says rubbish": ("printf '\\377\\376\\n\\n'; exit 1", "failed"),
    "is killed": ("kill -9 $$", "exit -9"),
    "writes nothing": ("exit 0", "does not load"),
    "writes rubbish": ("for last; do :; done; echo rubbish > $last", "does not load"),
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_compiler(
    sources: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    body, said = BROKEN[how]
    fake(tmp_path, monkeypatch, body)
    assert load() is None
    assert said in the_line(caplog) and "fake 9.1.0" in the_line(caplog)
    assert kept(tmp_path) == []


def test_a_compiler_that_hangs_is_ended_with_all_that_it_started(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    child = tmp_path / "child"
    fake(tmp_path, monkeypatch, f"sleep 1000 & echo $! > {child}; wait")
    monkeypatch.setattr(compiler, "PATIENCE", 1.0)
    start = time.monotonic()
    assert load() is None
    assert time.monotonic() - start < 30
    assert "did not end within" in the_line(caplog)
    deadline = time.monotonic() + 10
    while is_running(int(child.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(int(child.read_text()))
    assert kept(tmp_path) == []


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().split()[2]
    except OSError:
        return False
    return state != "Z"


def test_a_compiler_whose_version_hangs(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake(tmp_path, monkeypatch, "").write_text("#!/bin/sh\nsleep 1000\n")
    monkeypatch.setattr(compiler, "VERSION_PATIENCE", 0.5)
    assert load() is None
    assert "did not end" in the_line(caplog)


@needs_compiler
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("int other;\n", "heliograph_abi"),
        (
            "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }\n",
            "exit -6",
        ),
        ("int missing(void);\nint heliograph_abi(void) { return missing(); }\n", "missing"),
    ],
)
def test_a_library_that_does_not_load_is_not_kept(
    sources: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, program: str, said: str
) -> None:
    (sources / "program.c").write_text(program)
    assert load() is None
    assert said in the_line(caplog) and "does not load" in the_line(caplog)
    assert kept(tmp_path) == []


@needs_compiler
def test_a_second_compiler_is_tried(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = fake(tmp_path, monkeypatch, "exit 1")
    commands = [[str(broken)], [str(shutil.which("cc"))]]
    monkeypatch.setattr(compiler, "_commands", lambda _: commands)
    progress: list[str] = []
    assert load(progress) is not None and len(progress) == 2
    assert load(progress) is not None and len(progress) == 2
    assert caplog.records == []


@needs_compiler
def test_flags_that_a_compiler_does_not_know_cost_their_variant(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = shutil.which("cc")
    fake(
        tmp_path,
        monkeypatch,
        'case "$*" in *-mavx512bf16*) echo "unrecognized option -mavx512bf16"; exit 1;; esac\n'
        f'exec {real} "$@"',
    )
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    library = load()
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        assert library is not None and library.kernel_avx2() == 42 and hasattr(library, "have_avx2")
        assert not hasattr(library, "kernel_avx512") and not hasattr(library, "have_avx512")
    else:  # neither variant's flags are known
        assert library is not None and not hasattr(library, "have_avx2")
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
