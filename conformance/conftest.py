"""The servers of a session, and the marker that keeps the full bars out of the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from conformance import cases, profiles
from conformance.server import Server


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "bars: a bar at full size, minutes long; run with -m bars")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the full bars out, unless the command line has a marker expression."""
    if config.option.markexpr:
        return
    full = [item for item in items if item.get_closest_marker("bars")]
    config.hook.pytest_deselected(items=full)
    items[:] = [item for item in items if not item.get_closest_marker("bars")]


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[profiles.Pool]:
    """The shared servers; each starts at its first use."""
    servers = profiles.Pool(tmp_path_factory.mktemp("servers"), cases.scripts(cases.load()))
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def scripted(pool: profiles.Pool) -> Server:
    """The server whose replies are those of the case files."""
    return pool.get("scripted")


@pytest.fixture(scope="session")
def embedded(pool: profiles.Pool) -> Server:
    """The server with the real model, in the precision of its file."""
    return pool.get("embedded")


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start a scripted server of one's own: replies, then options. It stops with the test."""
    with ExitStack() as running:

        def started(replies: list[dict[str, Any]], *options: str) -> Server:
            path = tmp_path_factory.mktemp("script") / "script.json"
            script = profiles.write_script(path, replies)
            return running.enter_context(Server("--scripted", str(script), *options))

        yield started
