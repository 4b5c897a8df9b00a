"""A PostgreSQL server of the tests' own, from the binaries that Debian installs."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

START_SECONDS = 60


def binaries() -> Path | None:
    """The folder of the newest version that is installed."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in found), key=_version, default=None)


def _version(folder: Path) -> float:
    return float(folder.parent.name)


class PostgresServer:
    """A server on a free loopback port, as a context manager; its data go with it.

    PostgreSQL refuses to run as root, so that root runs it as another user.
    """

    def __init__(self, folder: Path) -> None:
        self._binaries = folder
        self._user = _unprivileged()

    def __enter__(self) -> PostgresServer:
        self._folder = Path(tempfile.mkdtemp(prefix="heliograph-postgres-"))
        try:
            if self._user:
                shutil.chown(self._folder, self._user)
            data = str(self._folder / "data")
            subprocess.run(
                [
                    self._binaries / "initdb", "--pgdata", data, "--username", "tests",
                    "--auth", "trust", "--no-sync", "--encoding", "UTF8",
                ],
                check=True, stdout=subprocess.DEVNULL, **self._as_user(),
            )  # fmt: skip
            self._port = _free_port()
            settings = {
                "listen_addresses": "127.0.0.1",
                "port": str(self._port),
                "unix_socket_directories": "",
                "fsync": "off",  # its own crashes are not what is tested
            }
            options = [part for pair in settings.items() for part in ("-c", "=".join(pair))]
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", data, *options],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._as_user(),
            )  # fmt: skip
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.send_signal(signal.SIGINT)  # a fast shutdown: it ends its clients
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self._folder)

    def url(self, schema: str) -> str:
        """The URL of a schema, which has to be made first."""
        return (
            f"postgresql://tests@127.0.0.1:{self._port}/postgres?options=-csearch_path%3D{schema}"
        )

    def make_schema(self, schema: str) -> None:
        self.execute(f"CREATE SCHEMA {schema}")

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement by itself, with its rows if it has any."""
        with psycopg.connect(
            host="127.0.0.1", port=self._port, user="tests", dbname="postgres", autocommit=True
        ) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, "PostgreSQL ended"
                assert time.monotonic() < deadline, "PostgreSQL does not answer"
                time.sleep(0.05)

    def _as_user(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "cwd": self._folder,
            "env": {"LC_ALL": "C", "PATH": os.environ["PATH"]},
            # A Ctrl-C in the terminal is for the tests, which then end the server.
            "start_new_session": True,
        }
        if self._user:
            settings |= {"user": self._user, "group": _group(self._user), "extra_groups": []}
        return settings


def _unprivileged() -> str | None:
    """Whom to run it as; None for the tests' own user."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _group(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
