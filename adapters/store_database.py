"""Opening the database of the store: a file of SQLite, a private one, or a PostgreSQL server."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    QueuePool,
    StaticPool,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from adapters import store_schema
from adapters.store_types import StoreFailed
from engine.errors import StartupError

FILE = "responses.sqlite3"
READERS = 4
"""Threads that read; each has a connection, and the writer another one."""

_PATIENCE = 30  # seconds that a statement waits for another server's write
_CONNECT_SECONDS = 5
_SILENCE_MS = 15_000  # unanswered for so long, a connection to PostgreSQL is dead
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_UNWRITABLE = (
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
)  # fmt: skip
_WRITES = "heliograph_writes"


class Unwritable(Exception):
    """The folder cannot keep a database; the message is the reason."""


def for_writing(engine: Engine) -> Engine:
    """The same connections, for transactions that write."""
    return engine.execution_options(**{_WRITES: True})


@contextmanager
def failing_as_store() -> Iterator[None]:
    """Turn what the database raises into StoreFailed, without any of the data in its message."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreFailed(f"the response store failed: {reason(error)}") from error


def reason(error: Exception) -> str:
    """What the driver says, in one line; SQLAlchemy's own text would show statements."""
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
    return said.partition("\n")[0].strip() or type(error).__name__


def open_file(folder: Path) -> Engine:
    """The database in a state folder, made where there is none; its user's alone.

    Raises Unwritable where the folder cannot keep one, and StartupError for a file that is damaged,
    locked for long, or newer than this program.
    """
    path = folder / FILE
    try:
        path = path.expanduser()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise Unwritable(error.strerror or str(error)) from None
    except (ValueError, RuntimeError) as error:  # a NUL in the path; nobody's home
        raise Unwritable(str(error)) from None
    try:
        _use_wal(path)
        engine = _sqlite(str(path), poolclass=QueuePool, pool_size=READERS + 1, max_overflow=0)
        _migrate(engine, str(path), "update the server, or give another --state-dir")
    except (sqlite3.Error, DBAPIError) as error:
        raise _told(error, path) from None
    return engine


def open_private() -> Engine:
    """A database of this process alone, on one connection. SQLite keeps it in memory, what grows
    beyond its cache in a file that has no name and goes with the process, however that ends."""
    engine = _sqlite("", poolclass=StaticPool)
    _migrate(engine, "a private database", "")
    return engine


def open_postgresql(given: str) -> Engine:
    """A database on a PostgreSQL server. Raises StartupError, whose message has no password."""
    url = _postgresql_url(given)
    shown = url.set(query={}).render_as_string()  # which hides the password
    settings = {
        "connect_timeout": _CONNECT_SECONDS,
        "tcp_user_timeout": _SILENCE_MS,
        "client_encoding": "utf8",  # a database without an encoding would give bytes for texts
    }
    arguments = {name: value for name, value in settings.items() if name not in url.query}
    try:
        engine = create_engine(
            url,
            connect_args=arguments,
            pool_size=READERS + 1,
            max_overflow=0,
            pool_pre_ping=True,  # the server may have restarted since
            isolation_level="READ COMMITTED",  # what follows a lock has to be seen
            hide_parameters=True,
        )
    except ImportError:
        raise StartupError(
            "--store with PostgreSQL needs its driver: pip install 'psycopg[binary]'"
        ) from None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if _WRITES in connection.get_execution_options():
            # A server that hangs in the middle of a write must not hang all others.
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_PATIENCE}s'")

    try:
        _migrate(engine, shown, "update the server, or name another database in --store")
    except SQLAlchemyError as error:
        raise StartupError(
            f"cannot open the response store {shown}: {reason(error)}; "
            "check the URL of --store, and that the server runs and lets this user create tables"
        ) from None
    return engine


def _postgresql_url(given: str) -> URL:
    try:
        url = make_url(given.replace("postgres://", "postgresql://", 1))
    except (ArgumentError, ValueError):  # which may quote a part of the password
        raise StartupError(
            "the URL of --store cannot be read; it has the form postgresql://USER:PASSWORD@HOST/"
            "DATABASE, with %-escapes for special characters in the password"
        ) from None
    return url.set(drivername="postgresql+psycopg")


def _migrate(engine: Engine, where: str, advice: str) -> None:
    try:
        with for_writing(engine).begin() as connection:
            store_schema.migrate(connection, store_schema.MIGRATIONS)
    except store_schema.NewerSchema as error:
        engine.dispose()
        message = f"the response store {where} is of a newer Heliograph: {error}; {advice}"
        raise StartupError(message) from None
    except BaseException:
        engine.dispose()
        raise


def _told(error: sqlite3.Error | DBAPIError, path: Path) -> StartupError | Unwritable:
    """Why a file could not be opened, and what to do."""
    code = _code(error)
    if code in _UNWRITABLE:
        return Unwritable(reason(error))
    advice = "give another --state-dir, or serve with --store off"
    if code in _DAMAGED:
        advice = "move the file away to start with an empty store, or serve with --store off"
    elif code == sqlite3.SQLITE_BUSY:
        advice = "another program holds it: end that, or give another --state-dir"
    return StartupError(f"cannot open the response store {path}: {reason(error)}; {advice}")


def _code(error: sqlite3.Error | DBAPIError) -> int:
    """SQLite's primary result code; 0 for what Python's module raises by itself."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return getattr(cause, "sqlite_errorcode", 0) & 0xFF


def _sqlite(name: str, **pool: Any) -> Engine:
    engine = create_engine(
        "sqlite://", creator=lambda: _connect(name), hide_parameters=True, **pool
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later fails at once if another has written.
        writes = _WRITES in connection.get_execution_options()
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        name,
        timeout=_PATIENCE,
        isolation_level=None,  # transactions begin as `_sqlite` says, not at Python's discretion
        check_same_thread=False,  # the pool gives it to one thread at a time
    )
    connection.execute("PRAGMA foreign_keys = ON")
    # In WAL mode, NORMAL would already survive the end of the process. FULL syncs the log at each
    # commit and so survives that of the machine too; writes that wait together share one sync.
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _use_wal(path: Path) -> None:
    """Let readers and the writer work side by side; the file remembers it. Raises sqlite3.Error.

    Where another server does the same, SQLite may refuse at once instead of waiting.
    """
    deadline = time.monotonic() + _PATIENCE
    with closing(_connect(str(path))) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
