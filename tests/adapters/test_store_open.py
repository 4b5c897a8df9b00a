"""Opening the store: tables that are old, or too new, several servers at once, PostgreSQL."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.engine.interfaces import ReflectedColumn

from adapters import store_database, store_schema
from adapters.store_database import FILE
from adapters.store_schema import METADATA, MIGRATIONS
from tests.adapters.postgres import PostgresServer
from tests.adapters.stores import Place, audit, inside, refusal, stored, turn

ROOT = Path(__file__).parent.parent.parent


def run_in(place: Place, postgres: PostgresServer | None, *statements: str) -> None:
    """Change a database behind the back of any store."""
    if place.kind == "file":
        with closing(sqlite3.connect(place.folder / FILE)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
    else:
        assert postgres is not None
        schema = place.where.rpartition("%3D")[2]
        for statement in statements:
            postgres.execute(statement.replace("heliograph_", f"{schema}.heliograph_"))


@pytest.fixture
def server(lasting: Place, request: pytest.FixtureRequest) -> PostgresServer | None:
    """The PostgreSQL server of the place, if it has one."""
    if lasting.kind == "file":
        return None
    found: PostgresServer = request.getfixturevalue("postgres")
    return found


# migrations

VERSION_1 = """
CREATE TABLE heliograph_schema_version (version INTEGER NOT NULL, applied_at BIGINT NOT NULL,
    PRIMARY KEY (version));
CREATE TABLE heliograph_turns (number INTEGER PRIMARY KEY AUTOINCREMENT,
    parent BIGINT REFERENCES heliograph_turns (number), chain_bytes BIGINT NOT NULL,
    content BLOB NOT NULL);
CREATE INDEX heliograph_turns_parent ON heliograph_turns (parent);
CREATE TABLE heliograph_responses (number INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL,
    id TEXT NOT NULL, created_at BIGINT NOT NULL, previous TEXT,
    turn BIGINT NOT NULL UNIQUE REFERENCES heliograph_turns (number), used BIGINT NOT NULL,
    reply BLOB NOT NULL, UNIQUE (tenant, id));
CREATE INDEX heliograph_responses_created_at ON heliograph_responses (created_at);
CREATE INDEX heliograph_responses_used ON heliograph_responses (used);
CREATE TABLE heliograph_totals (responses BIGINT NOT NULL, bytes BIGINT NOT NULL,
    uses BIGINT NOT NULL);
INSERT INTO heliograph_schema_version VALUES (1, 1796002614);
INSERT INTO heliograph_turns VALUES (1, NULL, 49, X'28b52ffd2429250100f0000000105b7b22696e70757422
3a202261227d5d000000115b7b226f75740100a2319d4323d3f1');
INSERT INTO heliograph_turns VALUES (2, 1, 98, X'28b52ffd2429250100f0000000105b7b22696e707574223a20
2262227d5d000000115b7b226f75740100a2319d6f47c294');
INSERT INTO heliograph_turns VALUES (3, 2, 147, X'28b52ffd2429250100f0000000105b7b22696e707574223a
202263227d5d000000115b7b226f75740100a2319d0a110b9c');
INSERT INTO heliograph_responses VALUES (2, 't', 'b', 1800000000, 'a', 2, 2,
    X'28b52ffd247625020004030
00000217b226964223a202262222c20226f626a656374726573706f6e7365227d000000177b226576656e30666231320700
8013609f4f644585241517cf6025984d052d5373');
INSERT INTO heliograph_responses VALUES (3, 't', 'c', 1800000000, 'b', 3, 3,
    X'28b52ffd247625020004030
00000217b226964223a202263222c20226f626a656374726573706f6e7365227d000000177b226576656e30666331320700
8013609f4f644585241517cf6025984d3e246600');
INSERT INTO heliograph_totals VALUES (2, 309, 3);
"""
"""What the first version of the program has left: three turns, whose first response was deleted."""

ONE_MORE = (*MIGRATIONS, ("ALTER TABLE heliograph_responses ADD COLUMN note {bytes}",))
A_BAD_ONE = (
    *MIGRATIONS,
    ("CREATE TABLE heliograph_notes (number {number})", "ALTER TABLE nothing ADD COLUMN x TEXT"),
)


async def test_what_the_first_version_has_written_can_be_read(file_place: Place) -> None:
    """A change here loses the conversations of every running server."""
    file_place.folder.mkdir()
    with closing(sqlite3.connect(file_place.folder / FILE)) as connection:
        connection.executescript(unbroken(VERSION_1))
    async with file_place.opened() as store:
        assert [await store.load("t", id) for id in "abc"] == [
            None, stored("b", "a"), stored("c", "b"),
        ]  # fmt: skip
        assert await store.turns("t", "c") == [turn("a"), turn("b"), turn("c")]
        await store.save(stored("d", "c"))
        assert await store.turns("t", "d") == [turn(id) for id in "abcd"]


def unbroken(script: str) -> str:
    """The script with each literal of bytes on one line."""
    parts = script.split("'")
    parts[1::2] = [part.replace("\n", "") for part in parts[1::2]]
    return "'".join(parts)


async def test_an_older_database_is_brought_up_to_date(
    lasting: Place, server: PostgresServer | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lasting.opened() as store:
        await store.save(stored("a"))
    monkeypatch.setattr(store_schema, "MIGRATIONS", ONE_MORE)
    for _ in range(2):
        async with lasting.opened() as store:
            assert await store.load("t", "a") == stored("a")
            columns = inside(store, lambda open: inspect(open).get_columns("heliograph_responses"))
            assert columns[-1]["name"] == "note"
            versions = inside(
                store, lambda open: open.exec_driver_sql(
                    "SELECT version FROM heliograph_schema_version ORDER BY version"
                ).scalars().all(),
            )  # fmt: skip
            assert versions == [1, 2]
    monkeypatch.undo()
    message = refusal(lasting)
    assert "newer" in message and "schema is 2" in message and "knows 1" in message
    assert ("--state-dir" if server is None else "--store") in message


async def test_a_migration_that_fails_changes_nothing(
    lasting: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lasting.opened() as store:
        await store.save(stored("a"))
    monkeypatch.setattr(store_schema, "MIGRATIONS", A_BAD_ONE)
    assert "nothing" in refusal(lasting)
    monkeypatch.undo()
    async with lasting.opened() as store:
        assert await store.load("t", "a") == stored("a")
        assert not inside(store, lambda open: inspect(open).has_table("heliograph_notes"))


async def test_the_tables_are_those_that_queries_name(lasting: Place) -> None:
    async with lasting.opened() as store:
        for table in METADATA.tables.values():

            def look(open: Connection, name: str = table.name) -> list[ReflectedColumn]:
                return inspect(open).get_columns(name)

            made = inside(store, look)
            shown = [(column["name"], column["nullable"] or False) for column in made]
            # SQLite calls a primary key nullable, which it is not.
            keys = {column.name for column in table.primary_key}
            assert [(name, null and name not in keys) for name, null in shown] == [
                (column.name, bool(column.nullable)) for column in table.columns
            ]


async def test_a_database_of_a_much_newer_version_is_left_alone(
    lasting: Place, server: PostgresServer | None
) -> None:
    async with lasting.opened() as store:
        await store.save(stored("a"))
    run_in(lasting, server, "INSERT INTO heliograph_schema_version VALUES (99, 0)")
    assert "schema is 99" in refusal(lasting)
    run_in(lasting, server, "DELETE FROM heliograph_schema_version WHERE version = 99")
    async with lasting.opened() as store:
        assert await store.load("t", "a") == stored("a")


# several at once


def test_threads_that_open_at_once(lasting: Place) -> None:
    barrier, opened = threading.Barrier(6), list[Engine]()

    def start() -> None:
        barrier.wait()
        if lasting.kind == "file":
            opened.append(store_database.open_file(lasting.folder))
        else:
            opened.append(store_database.open_postgresql(lasting.where))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for engine in opened:
        engine.dispose()
    assert len(opened) == 6


def test_processes_that_open_at_once(tmp_path: Path, lasting: Place) -> None:
    go = tmp_path / "go"
    code = (
        "import asyncio, os, pathlib, sys, time\n"
        "from tests.adapters.stores import Place, stored\n"
        "async def main():\n"
        "    store = Place('', sys.argv[1], pathlib.Path(sys.argv[2])).open()\n"
        "    await store.save(stored(str(os.getpid())))\n"
        "    await store.close()\n"
        "print('here', flush=True)\n"
        "while not pathlib.Path(sys.argv[3]).exists(): time.sleep(0.001)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", code, lasting.where, str(lasting.folder), str(go)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
    go.touch()
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    for process in processes:
        process.communicate()
    engine = (
        store_database.open_file(lasting.folder)
        if lasting.kind == "file"
        else store_database.open_postgresql(lasting.where)
    )
    with engine.connect() as connection:
        ids = connection.exec_driver_sql("SELECT id FROM heliograph_responses").scalars().all()
    engine.dispose()
    assert sorted(ids) == sorted(str(process.pid) for process in processes)


# PostgreSQL


def test_a_server_that_is_not_there_is_named_without_the_password(tmp_path: Path) -> None:
    where = "postgresql://user:se%40cret@127.0.0.1:1/base?application_name=secret"
    message = refusal(Place("postgres", where, tmp_path))
    assert "postgresql+psycopg://user:***@127.0.0.1:1/base" in message
    assert "refused" in message and "secret" not in message and "se@cret" not in message


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://user:secret@host:port/base",
        "postgresql://user:secret@[::1/base",
        "postgresql://user:sec/ret@host/base",
    ],
)
def test_a_url_that_is_none_is_told_without_its_content(where: str, tmp_path: Path) -> None:
    message = refusal(Place("postgres", where, tmp_path))
    assert "secret" not in message and "sec/ret" not in message and "--store" in message


def test_a_database_that_is_not_there_is_named(postgres: PostgresServer, tmp_path: Path) -> None:
    where = postgres.url("public").replace("/postgres?", "/elsewhere?")
    message = refusal(Place("postgres", where, tmp_path))
    assert '"elsewhere" does not exist' in message


def test_a_user_who_may_not_make_tables_is_told(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.execute("DROP ROLE IF EXISTS reader")
    postgres.execute("CREATE ROLE reader LOGIN")
    where = postgres.url("public").replace("tests@", "reader@")
    message = refusal(Place("postgres", where, tmp_path))
    assert "permission denied" in message and "create tables" in message


async def test_a_user_of_tables_that_are_there_needs_no_more(
    postgres: PostgresServer, postgres_place: Place, tmp_path: Path
) -> None:
    async with postgres_place.opened() as store:
        await store.save(stored("a"))
    schema = postgres_place.where.rpartition("%3D")[2]
    postgres.execute("DROP ROLE IF EXISTS writer")
    postgres.execute("CREATE ROLE writer LOGIN")
    postgres.execute(f"GRANT USAGE ON SCHEMA {schema} TO writer")
    postgres.execute(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO writer"
    )
    where = postgres_place.where.replace("tests@", "writer@")
    async with Place("postgres", where, tmp_path).opened() as store:
        await store.save(stored("b", "a"))
        assert await store.turns("t", "b") == [turn("a"), turn("b")]
        await store.delete("t", "a")
    postgres.execute("DROP OWNED BY writer")


async def test_the_schemes_that_people_write(
    postgres: PostgresServer, postgres_place: Place, tmp_path: Path
) -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        where = postgres_place.where.replace("postgresql:", f"{scheme}:", 1)
        async with Place("postgres", where, tmp_path).opened() as store:
            await store.save(stored(scheme))
            assert audit(store).responses > 0


async def test_a_database_without_an_encoding(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    where = postgres.url("public").replace("/postgres?", "/plain?")
    made = stored("ü", tenant="Größe")
    async with Place("postgres", where, tmp_path).opened() as store:
        await store.save(made)
        assert await store.load("Größe", "ü") == made


def test_a_missing_driver_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = refusal(Place("postgres", "postgresql://host/base", tmp_path))
    assert "pip install" in message and "psycopg" in message
