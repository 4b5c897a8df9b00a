"""The installed clients, and the servers that their scenarios share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import profiles
from conformance.clients import claude_code, codex
from conformance.clients.agent import Agent, scripted
from conformance.clients.codex_agent import CodexAgent
from conformance.server import Server


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


@pytest.fixture(scope="session")
def codex_program() -> Path:
    found = codex.find()
    if found is None:
        pytest.skip(
            "Codex is not installed: nox -s clients installs it, "
            f"{codex.VARIABLE} names one that is"
        )
    return found


@pytest.fixture(scope="session")
def codex_agent(
    codex_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CodexAgent]:
    folder = tmp_path_factory.mktemp("codex")
    made = CodexAgent(codex_program, folder)
    with scripted(folder, made.replies()) as server:
        made.url = server.url
        yield made


@pytest.fixture(scope="session")
def real() -> Iterator[Server]:
    """The embedded model."""
    with Server(*profiles.MODEL) as server:
        yield server
