"""The real sources, by every compiler that is here."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine.backend.native import build
from engine.backend.native.build import FLAGS, SOURCES, Recipe
from engine.backend.native.compiler import BuildFailed, Compiler, find_compilers
from engine.backend.native.library import Library
from tests.engine.backend.native.stand_in import fake


@pytest.mark.parametrize(
    ("version", "title"),
    [
        ("cc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation", "gcc 12.2.0"),
        ("Debian clang version 14.0.6\nTarget: x", "clang 14.0.6"),
        ("no numbers", "cc"),
    ],
)
def test_compilers_are_named_with_their_versions(version: str, title: str) -> None:
    assert Compiler(("/usr/bin/cc",), version).title == title


def test_a_chosen_compiler_may_have_arguments_or_blanks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "with blanks"
    place.mkdir()
    script = fake(place, monkeypatch, "")
    (found,), failures = find_compilers({"CC": str(script)})
    assert found.command == (str(script),) and failures == []
    (found,), failures = find_compilers({"CC": f"'{script}' -m32"})
    assert found.command == (str(script), "-m32") and failures == []


def real_compilers() -> list[list[str]]:
    found = [[name] for name in ("gcc", "clang") if shutil.which(name)]
    if find_spec("ziglang"):
        found.append([sys.executable, "-m", "ziglang", "cc"])
    return found


@pytest.mark.parametrize("command", [["gcc"], ["clang"]], ids=lambda command: command[-1])
@pytest.mark.parametrize("flags", [(), ("-mavx2", "-mfma", "-mf16c", "-DVARIANT_AVX2")])
def test_the_sources_give_no_warning(
    tmp_path: Path, command: list[str], flags: tuple[str, ...]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    if flags and os.uname().machine != "x86_64":
        pytest.skip("AVX2 is of x86-64")
    cc = Compiler.identify(command)
    strict = ("-Wall", "-Wextra", "-Werror", "-fsyntax-only")
    for source in ("variant.c", "pool.c", "draw_check.c", "program.c"):
        cc.run([*FLAGS, *flags, *strict, str(SOURCES / source)], tmp_path)


@pytest.mark.parametrize("command", real_compilers(), ids=lambda command: command[-1])
def test_each_compiler_builds_the_sources(command: list[str], tmp_path: Path) -> None:
    library = build.build(Compiler.identify(command), Recipe(os.uname().machine), tmp_path)
    found = Library(ctypes.CDLL(str(library))).variants
    assert found[-1] == "portable"
    cpu = Path("/proc/cpuinfo")
    if cpu.exists() and "avx2" in cpu.read_text().split():
        assert "avx2" in found


@pytest.mark.skipif(not find_spec("ziglang"), reason="the ziglang wheel is not installed")
def test_the_sources_build_for_arm(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu"]
    cross = Compiler.identify(command)
    library = build.build(cross, Recipe("aarch64"), tmp_path).read_bytes()
    assert library[:4] == b"\x7fELF" and library[18] == 183  # EM_AARCH64
    cross.run(["-shared", "-nostdlib", "-Wl,-z,defs", "portable.o", "program.o", "pool.o",
               "draw_check.o", "-lc", "-lm", "-lpthread", "-o", "whole.so"], tmp_path)  # fmt: skip


def test_a_failure_carries_what_helps() -> None:
    assert "gcc" in BuildFailed("why").remedy
