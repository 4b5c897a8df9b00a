"""Codex where a server has no more room."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.clients import codex
from conformance.clients.agent import full, scripted
from conformance.clients.codex import Run
from conformance.clients.scenarios import DONE, SLOW, reply
from conformance.clients.workplace import Workplace
from conformance.server import Server

WINDOW = 50_000
"""More than Codex's first prompt, less than that with a long question."""


@pytest.fixture(scope="module")
def small(codex_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a small window and two places."""
    narrow = ("--max-context", str(WINDOW), "--max-concurrency", "1", "--max-queue", "1",
              "--prefill-chunk", "16384", "--max-batch-tokens", "32768")  # fmt: skip
    replies = [SLOW, reply("^busy: ", DONE)]
    with scripted(tmp_path_factory.mktemp("small"), replies, *narrow) as server:
        yield server


def run(program: Path, server: Server, folder: Path, mark: str, prompt: str = "go on.") -> Run:
    work = Workplace(folder / mark)
    work.make()
    return codex.run(program, server.url, work, ["-m", "any", f"{mark}: {prompt}"])


def test_too_long(codex_program: Path, small: Server, tmp_path: Path) -> None:
    """A first request that does not fit is understood, and not sent again."""
    ran = run(codex_program, small, tmp_path, "long", "much " * 10_000)
    (only,) = ran.exchanges
    assert only.status == 400
    assert json.loads(only.answer)["error"]["code"] == "context_length_exceeded"
    assert ran.status == 1 and ran.events[-1]["type"] == "turn.failed"
    assert "context window" in ran.events[-1]["error"]["message"]


def test_busy(codex_program: Path, small: Server, tmp_path: Path) -> None:
    """With no place free it waits as long as it is told to, and comes again."""
    with full(small):
        ran = run(codex_program, small, tmp_path, "busy")
    first, *rest = ran.exchanges
    assert first.status == 429 and [one.status for one in rest] == [200]
    assert rest[0].at - first.at >= int(first.answer_headers["retry-after"])
    assert ran.status == 0 and ran.said == DONE
