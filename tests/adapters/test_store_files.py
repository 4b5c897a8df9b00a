"""The file of the store: who may read it, and what happens where it is damaged or cannot be."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from adapters import store_database
from adapters.store_database import FILE
from tests.adapters.stores import Place, audit, refusal, stored, turn


@pytest.mark.parametrize("umask", [0o000, 0o022])
async def test_nobody_else_may_read_the_file(file_place: Place, umask: int) -> None:
    before = os.umask(umask)
    try:
        async with file_place.opened() as store:
            await store.save(stored("a"))
            names = {path.name: path.stat().st_mode & 0o777 for path in file_place.folder.iterdir()}
    finally:
        os.umask(before)
    assert names == {FILE: 0o600, f"{FILE}-wal": 0o600, f"{FILE}-shm": 0o600}
    assert file_place.folder.stat().st_mode & 0o777 == 0o700


async def test_a_closed_store_is_one_file(file_place: Place) -> None:
    async with file_place.opened() as store:
        await store.save(stored("a"))
    assert [path.name for path in file_place.folder.iterdir()] == [FILE]


async def test_the_folder_may_begin_with_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with Place("file", "sqlite", Path("~/state")).opened():
        assert (tmp_path / "state" / FILE).exists()


DAMAGED = {
    "text": b"this is no database, though long enough to be one" * 100,
    "only a header": b"SQLite format 3\0",
    "a header and noise": b"SQLite format 3\0" + b"\x07" * 10_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_named_and_left_as_it_is(file_place: Place, content: bytes) -> None:
    file_place.folder.mkdir()
    path = file_place.folder / FILE
    path.write_bytes(content)
    message = refusal(file_place)
    assert str(path) in message and "move the file away" in message
    assert path.read_bytes() == content


async def test_a_file_whose_tables_are_damaged_is_named(file_place: Place) -> None:
    async with file_place.opened() as store:
        for number in range(50):
            await store.save(stored(f"r{number}"))
    path = file_place.folder / FILE
    content = bytearray(path.read_bytes())
    page = 4096
    content[100:page] = os.urandom(page - 100)  # the schema's own page, below the header
    path.write_bytes(content)
    message = refusal(file_place)
    assert str(path) in message and "move the file away" in message


def test_a_file_that_another_program_holds_is_named(
    file_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_database, "_PATIENCE", 0.2)
    file_place.folder.mkdir()
    with closing(sqlite3.connect(file_place.folder / FILE)) as other:
        other.execute("BEGIN EXCLUSIVE")
        message = refusal(file_place)
    assert "locked" in message and "another program" in message


def test_a_file_that_another_server_is_just_making_is_waited_for(file_place: Place) -> None:
    """SQLite itself would not wait here, whatever its timeout."""
    file_place.folder.mkdir()
    path = file_place.folder / FILE
    with closing(sqlite3.connect(path, check_same_thread=False)) as other:
        other.execute("CREATE TABLE made_before_the_mode_was_set (x)")
        other.execute("BEGIN IMMEDIATE")
        end = threading.Timer(0.3, other.commit)
        end.start()
        store_database.open_file(file_place.folder).dispose()
        end.join()


# no folder to keep it in


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "heliograph")
    return caplog


async def falls_back(place: Place, warnings: pytest.LogCaptureFixture) -> str:
    """Whether a store works where none can be kept; the one warning."""
    async with place.opened() as store:
        await store.save(stored("a"))
        await store.save(stored("b", "a"))
        assert await store.turns("t", "b") == [turn("a"), turn("b")]
        assert audit(store).responses == 2
    (record,) = warnings.records
    assert record.levelno == logging.WARNING
    assert "\n" not in record.getMessage()
    return record.getMessage()


async def test_a_folder_that_cannot_be_made(
    private_place: Place, warnings: pytest.LogCaptureFixture
) -> None:
    warning = await falls_back(private_place, warnings)
    assert str(private_place.folder / FILE) in warning and "(Not a directory)" in warning


async def test_a_folder_that_cannot_be_written(
    file_place: Place, monkeypatch: pytest.MonkeyPatch, warnings: pytest.LogCaptureFixture
) -> None:
    """Root may write everywhere, so the refusal is made up."""

    def refused(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("adapters.store_database.os.open", refused)
    assert "(Permission denied)" in await falls_back(file_place, warnings)


@pytest.mark.parametrize(
    "code",
    [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_CANTOPEN,
     sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_FULL],
)  # fmt: skip
async def test_a_disk_that_sqlite_cannot_write(
    file_place: Place, monkeypatch: pytest.MonkeyPatch, warnings: pytest.LogCaptureFixture,
    code: int,
) -> None:  # fmt: skip
    def refused(_: Path) -> None:
        error = sqlite3.OperationalError("it is not possible")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(store_database, "_use_wal", refused)
    assert "(it is not possible)" in await falls_back(file_place, warnings)


@pytest.mark.parametrize("folder", ["a\0b", "~nobody-of-this-name/x"])
async def test_a_path_that_is_none(folder: str, warnings: pytest.LogCaptureFixture) -> None:
    await falls_back(Place("private", "sqlite", Path(folder)), warnings)


async def test_a_folder_in_place_of_the_file(
    file_place: Place, warnings: pytest.LogCaptureFixture
) -> None:
    (file_place.folder / FILE).mkdir(parents=True)
    assert "(Is a directory)" in await falls_back(file_place, warnings)
