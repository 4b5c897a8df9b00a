"""The key of seals, which outlives a server: one file, made once, never replaced."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.seal import KEY_FILE, Seal

ROOT = Path(__file__).parent.parent.parent
KEY = bytes(range(32))
GOOD = KEY.hex()

Warnings = Callable[[], list[str]]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Warnings:
    """The lines of the log so far, all of which must be warnings."""
    caplog.set_level(logging.DEBUG)

    def lines() -> list[str]:
        assert all(record.levelno == logging.WARNING for record in caplog.records)
        return [record.getMessage() for record in caplog.records]

    return lines


def test_the_first_start_makes_the_key_and_later_ones_keep_it(
    tmp_path: Path, warnings: Warnings
) -> None:
    folder = tmp_path / "deep" / "state"
    first = Seal.load(folder)
    kept = (folder / KEY_FILE).read_bytes()
    second = Seal.load(folder)
    assert second.unseal(first.seal("thoughts", "t", "m"), "t", "m") == "thoughts"
    assert second.check(first.sign("thoughts"), "thoughts", "t", "m") == "ours"
    assert (folder / KEY_FILE).read_bytes() == kept
    assert len(bytes.fromhex(kept.decode())) == 32
    assert [path.name for path in folder.iterdir()] == [KEY_FILE]
    assert warnings() == []


def test_folders_have_keys_of_their_own(tmp_path: Path) -> None:
    assert Seal.load(tmp_path / "a").key_id != Seal.load(tmp_path / "b").key_id


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nobody_else_may_read_the_key(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        Seal.load(tmp_path / "state")
    finally:
        os.umask(before)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "state" / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Seal.load(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_key_of_the_operator_is_used_as_it_is(tmp_path: Path, warnings: Warnings) -> None:
    """Written by hand, on a volume that the server may only read."""
    path = tmp_path / KEY_FILE
    path.write_text(f"  {GOOD.upper()}\n\n")
    assert Seal.load(tmp_path).key_id == Seal(KEY).key_id
    assert path.read_text().startswith("  ")
    assert warnings() == []


def test_the_server_that_comes_second_takes_the_first_ones_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: Warnings
) -> None:
    """Both have seen that there is no key; the other one puts its own there first."""
    link, winners = os.link, []

    def overtaken(source: str, target: Path) -> None:
        monkeypatch.setattr("adapters.seal.os.link", link)
        winners.append(Seal.load(tmp_path).key_id)
        link(source, target)

    monkeypatch.setattr("adapters.seal.os.link", overtaken)
    loser = Seal.load(tmp_path)
    assert [loser.key_id] == winners == [Seal.load(tmp_path).key_id]
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]
    assert warnings() == []


def test_threads_that_start_at_once_have_one_key(tmp_path: Path) -> None:
    count = 8
    for turn in range(20):
        folder, found = tmp_path / str(turn), list[str]()
        barrier = threading.Barrier(count)

        def start(
            folder: Path = folder, found: list[str] = found, barrier: threading.Barrier = barrier
        ) -> None:
            barrier.wait()
            found.append(Seal.load(folder).key_id)

        threads = [threading.Thread(target=start) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [Seal.load(folder).key_id] * count
        assert [path.name for path in folder.iterdir()] == [KEY_FILE]


def test_processes_that_start_at_once_have_one_key(tmp_path: Path) -> None:
    state, go = tmp_path / "state", tmp_path / "go"
    code = (
        "import sys, pathlib; from adapters.seal import Seal; print('here', flush=True)\n"
        "while not pathlib.Path(sys.argv[2]).exists(): pass\n"
        "print(Seal.load(pathlib.Path(sys.argv[1])).key_id)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(state), str(go)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
    go.touch()
    found = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert found == [Seal.load(state).key_id] * 4


def fallen_back(folder: Path, warnings: Warnings) -> str:
    """Load twice where no key can be kept: two keys that work. The first one's warning."""
    one, two = Seal.load(folder), Seal.load(folder)
    assert one.key_id != two.key_id
    assert one.unseal(one.seal("thoughts", "t", "m"), "t", "m") == "thoughts"
    first, _ = warnings()
    assert "\n" not in first
    return first


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, warnings: Warnings) -> None:
    (tmp_path / "file").write_text("x")
    folder = tmp_path / "file" / "state"
    warning = fallen_back(folder, warnings)
    assert str(folder / KEY_FILE) in warning and "Not a directory" in warning


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: Warnings
) -> None:
    """Root may write everywhere, so the refusal is made up."""

    def refused(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("adapters.seal.tempfile.mkstemp", refused)
    warning = fallen_back(tmp_path, warnings)
    assert str(tmp_path / KEY_FILE) in warning and "(Permission denied)" in warning
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_disk_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: Warnings, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"adapters.seal.os.{step}", full)
    assert "(No space left on device)" in fallen_back(tmp_path, warnings)
    assert list(tmp_path.iterdir()) == []


def test_a_crash_half_way_leaves_no_half_key(tmp_path: Path) -> None:
    """The process ends, without any clean-up, when the draft is written and not yet in place."""
    code = (
        "import os, sys, pathlib; from adapters import seal\n"
        "seal.os.link = lambda *_: os._exit(9)\n"
        "seal.Seal.load(pathlib.Path(sys.argv[1]))"
    )
    crashed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False, timeout=60
    )
    assert crashed.returncode == 9
    assert not (tmp_path / KEY_FILE).exists()
    assert Seal.load(tmp_path).key_id == Seal.load(tmp_path).key_id


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"00", GOOD[:-1].encode(), GOOD[:-2].encode(), (GOOD + "00").encode(),
     GOOD.replace("0", "g").encode(), KEY, b"\xff" * 64, GOOD.encode("utf-16"),
     GOOD.encode() * 10_000, GOOD.replace("1", "١").encode()],
    ids=lambda content: repr(content[:12]),
)  # fmt: skip
def test_a_file_that_holds_no_key_is_named_and_left_alone(
    tmp_path: Path, content: bytes, warnings: Warnings
) -> None:
    path = tmp_path / KEY_FILE
    path.write_bytes(content)
    warning = fallen_back(tmp_path, warnings)
    assert str(path) in warning and "64 hexadecimal digits" in warning and "remove" in warning
    assert path.read_bytes() == content
    assert GOOD[:16] not in warning


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path, warnings: Warnings) -> None:
    (tmp_path / KEY_FILE).mkdir()
    assert "(Is a directory)" in fallen_back(tmp_path, warnings)


def test_a_link_to_nowhere_is_named(tmp_path: Path, warnings: Warnings) -> None:
    (tmp_path / KEY_FILE).symlink_to(tmp_path / "gone" / "key")
    assert "(No such file or directory)" in fallen_back(tmp_path, warnings)
    assert not (tmp_path / "gone").exists()


def test_a_path_that_no_system_takes_is_no_failed_start(tmp_path: Path, warnings: Warnings) -> None:
    fallen_back(tmp_path / "a\0b", warnings)


# where it is without an option


@pytest.mark.parametrize(
    ("xdg", "place"),
    [
        ("{tmp}/xdg", "xdg/heliograph"),
        (None, "home/.local/state/heliograph"),
        ("", "home/.local/state/heliograph"),
        ("relative", "home/.local/state/heliograph"),  # the specification: ignore it
    ],
)
def test_the_users_folder_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xdg: str | None, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    if xdg is not None:
        monkeypatch.setenv("XDG_STATE_HOME", xdg.format(tmp=tmp_path))
    Seal.load(None)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / place / KEY_FILE]


def test_an_option_may_begin_with_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a TOML file does, which no shell reads."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    Seal.load(Path("~/state"))
    assert (tmp_path / "home" / "state" / KEY_FILE).exists()


def test_a_user_without_a_home_gets_a_warning(tmp_path: Path, warnings: Warnings) -> None:
    assert "~nobody-of-this-name" in fallen_back(Path("~nobody-of-this-name"), warnings)


def test_neither_the_seal_nor_the_log_shows_the_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seal = Seal.load(tmp_path)
    key = (tmp_path / KEY_FILE).read_text().strip()
    assert key not in repr(seal) + str(vars(seal)) + caplog.text
