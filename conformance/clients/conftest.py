"""The installed Claude Code, and the server that its scenarios share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.clients import claude_code
from conformance.clients.agent import Agent, scripted


@pytest.fixture(scope="session")
def program() -> Path:
    found = claude_code.find()
    if found is None:
        pytest.skip(
            "Claude Code is not installed: nox -s clients installs it, "
            f"{claude_code.VARIABLE} names one that is"
        )
    return found


@pytest.fixture(scope="session")
def agent(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("claude")
    made = Agent(program, folder)
    with scripted(folder, made.replies()) as server:
        made.url = server.url
        yield made
