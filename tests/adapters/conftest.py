"""Databases for the tests of the store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.postgres import PostgresServer, binaries
from tests.adapters.stores import Place

_SCHEMAS = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that starts at its first use."""
    folder = binaries()
    if folder is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with PostgresServer(folder) as server:
        yield server


@pytest.fixture
def file_place(tmp_path: Path) -> Place:
    """A file in a state folder that is not there yet."""
    return Place("file", "sqlite", tmp_path / "state")


@pytest.fixture
def postgres_place(postgres: PostgresServer, tmp_path: Path) -> Place:
    """A schema of its own in the PostgreSQL server."""
    schema = f"place_{next(_SCHEMAS)}"
    postgres.make_schema(schema)
    return Place("postgres", postgres.url(schema), tmp_path)


@pytest.fixture
def private_place(tmp_path: Path) -> Place:
    """No place: a state folder that cannot be made."""
    (tmp_path / "file").touch()
    return Place("private", "sqlite", tmp_path / "file" / "state")


@pytest.fixture(params=["file", "postgres"])
def lasting(request: pytest.FixtureRequest) -> Place:
    """Each place that outlives a store."""
    place: Place = request.getfixturevalue(f"{request.param}_place")
    return place


@pytest.fixture(params=["file", "private", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """Each place that a store may have."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found
