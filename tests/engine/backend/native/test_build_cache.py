"""Built libraries are kept where nobody else can write, whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from engine.backend.native.cache import ABANDONED, UNUSED, Cache, CacheUnusable
from tests.engine.backend.native.stand_in import fake, kept, load, needs_compiler, the_line

ROOT = Path(__file__).parents[4]


@needs_compiler
@pytest.mark.parametrize("damage", ["cut", "changed", "rubbish", "empty"])
def test_a_damaged_library_is_built_again_once(
    sources: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    load()
    (place,) = kept(tmp_path)
    whole = place.read_bytes()
    middle = len(whole) // 2
    place.unlink()  # this process has it mapped
    place.write_bytes(
        {
            "cut": whole[:middle],
            "changed": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "rubbish": b"rubbish",
            "empty": b"",
        }[damage]
    )
    progress: list[str] = []
    assert load(progress) is not None and load(progress) is not None
    assert len(progress) == 1 and caplog.records == []
    (again,) = kept(tmp_path)
    assert len(again.read_bytes()) == len(whole)


@needs_compiler
def test_an_intact_library_that_does_not_load_here_is_built_again_once(
    sources: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load()
    (place,) = kept(tmp_path)
    cache = Cache(place.parent)
    place.unlink()
    other = place.parent / "other"
    other.write_bytes(b"for another system")
    cache.keep(place.name.split("-")[0], other)
    progress: list[str] = []
    assert load(progress) is not None and load(progress) is not None
    assert len(progress) == 1 and caplog.records == []
    assert len(kept(tmp_path)) == 1


@needs_compiler
def test_processes_that_build_at_once_all_load_a_whole_library(
    sources: Path, tmp_path: Path
) -> None:
    code = (
        "import sys, pathlib, time\n"
        "from engine.backend.native import build\n"
        f"build.SOURCES = pathlib.Path({str(sources)!r})\n"
        "library = build.load(lambda line: print('built'))\n"
        "print(library.kernel_portable())\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    outputs = [process.communicate(timeout=300) for process in running]
    assert all(output[0].split()[-1:] == ["42"] for output in outputs), outputs
    assert all(output[1] == "" for output in outputs), outputs
    places = kept(tmp_path)
    assert places and all(Cache(path.parent).find(path.name[:32]) for path in places)


@needs_compiler
def test_what_a_killed_build_left_goes_with_a_later_build(sources: Path, tmp_path: Path) -> None:
    load()
    (place,) = kept(tmp_path)
    names = ("build-old", "build-new", "old.so", "new.so")
    old_folder, new_folder, old, new = (place.parent / name for name in names)
    for folder in (old_folder, new_folder):
        folder.mkdir()
        (folder / "pool.o").touch()
    for path in (old, new):
        path.touch()
    os.utime(old_folder, (0, time.time() - ABANDONED - 60))
    os.utime(old, (0, time.time() - UNUSED - 60))
    (sources / "pool.c").write_text("int pool2;\n")
    load()
    assert not old_folder.exists() and not old.exists()
    assert new_folder.exists() and new.exists() and place.exists()


def unusable(folder: Path, how: str) -> None:
    """Make the cache folder one that cannot be used."""
    folder.parent.parent.mkdir()
    if how == "a file":
        folder.parent.write_text("in its place")
        return
    folder.mkdir(parents=True)
    if how == "others may write":
        folder.chmod(0o1777)
    elif how == "a group may write":
        folder.chmod(0o770)
    elif how == "others may write above":
        folder.parent.parent.chmod(0o777)
    elif how == "a group may write above":
        os.chown(folder.parent.parent, -1, 12345)
        folder.parent.parent.chmod(0o770)
    else:
        os.chown(folder if how == "another owner" else folder.parent, 12345, -1)


WAYS = {
    "a file": "heliograph",
    "others may write": "others may write",
    "a group may write": "others may write",
    "others may write above": "above",
    "a group may write above": "above",
    "another owner": "another user",
    "another owner above": "another user",
}


@needs_compiler
@pytest.mark.parametrize("how", WAYS)
def test_a_cache_that_cannot_be_used_is_replaced_for_this_process(
    sources: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    folder = tmp_path / "cache" / "heliograph" / "native"
    try:
        unusable(folder, how)
    except PermissionError:
        pytest.skip("only root gives files away")
    if folder.is_dir():
        (folder / "planted.so").write_bytes(b"planted")
    progress: list[str] = []
    library = load(progress)
    assert library is not None and library.kernel_portable() == 42 and len(progress) == 1
    line = the_line(caplog)
    assert WAYS[how] in line and "XDG_CACHE_HOME" in line
    assert list((tmp_path / "temporary").iterdir()) == []
    if folder.is_dir():
        assert [path.name for path in folder.iterdir()] == ["planted.so"]


@needs_compiler
@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_cache_that_cannot_be_written_is_replaced_for_this_process(
    sources: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: int,
) -> None:
    make = tempfile.mkdtemp

    def refuse(
        suffix: str | None = None, prefix: str | None = None, dir: Path | None = None
    ) -> str:
        if dir is not None:
            raise OSError(code, os.strerror(code), str(dir))
        return make(suffix, prefix)

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    assert load() is not None
    assert os.strerror(code) in the_line(caplog)
    assert kept(tmp_path) == []


def test_no_place_at_all(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory")

    fake(tmp_path, monkeypatch, "exit 1")
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    assert load() is None
    assert "temporary" in the_line(caplog)


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ({}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "relative"}):
        assert Cache.open(value).folder == tmp_path / ".cache" / "heliograph" / "native"
    chosen = tmp_path / "chosen"
    found = Cache.open({"XDG_CACHE_HOME": str(chosen)}).folder
    assert found == chosen / "heliograph" / "native"
    link = tmp_path / "link"
    link.symlink_to(chosen)
    assert Cache.open({"XDG_CACHE_HOME": str(link)}).folder == found


def test_a_link_into_a_folder_that_others_write_is_not_trusted(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (tmp_path / "link").symlink_to(shared)
    with pytest.raises(CacheUnusable, match="shared"):
        Cache.open({"XDG_CACHE_HOME": str(tmp_path / "link")})


def test_a_sticky_folder_above_is_trusted(tmp_path: Path) -> None:
    sticky = tmp_path / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    assert Cache.open({"XDG_CACHE_HOME": str(sticky)}).folder.is_dir()


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", refuse)
    with pytest.raises(CacheUnusable, match="home"):
        Cache.open({})
