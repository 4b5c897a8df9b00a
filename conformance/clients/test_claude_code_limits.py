"""Claude Code where a server has no more room, and on the real model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from conformance import profiles
from conformance.clients import claude_code
from conformance.clients.agent import scripted, turns
from conformance.clients.claude_code import Run, Workplace
from conformance.clients.scenarios import BIG_CALLS, DONE, overflow, reply
from conformance.server import Server

WINDOW = 20_000
SLOW = {"match": "^Wait", "text": "Waiting. " * 50, "delay_ms": 200}


@pytest.fixture(scope="module")
def small(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a small window and two places, which pings soon."""
    late = reply("^busy: ", DONE) | {"prefill_delay_ms": 1000}
    replies = [SLOW, late, *overflow("much")]
    narrow = ("--max-context", str(WINDOW), "--max-concurrency", "1", "--max-queue", "1",
              "--heartbeat-seconds", "0.2")  # fmt: skip
    with scripted(tmp_path_factory.mktemp("small"), replies, *narrow) as server:
        yield server


def run(
    program: Path, server: Server, folder: Path, mark: str, *options: str, **kwargs: Any
) -> Run:
    """A run, none of whose requests does without a stream."""
    work = Workplace(folder / mark)
    work.make()
    ran = claude_code.run(program, server.url, work, f"{mark}: go on.", *options, **kwargs)
    assert all(one.body["stream"] is True for one in ran.exchanges)
    return ran


def test_too_long(program: Path, small: Server, tmp_path: Path) -> None:
    """A first request that does not fit is understood, and not sent again."""
    ran = run(program, small, tmp_path, "long")
    (only,) = ran.exchanges
    assert only.status == 400
    message = json.loads(only.answer)["error"]["message"]
    assert message.startswith("prompt is too long: ") and message.endswith(f"> {WINDOW} maximum")
    assert ran.status == 1 and ran.result["terminal_reason"] == "prompt_too_long"
    assert f"limit {WINDOW}" in ran.result["result"], "it has not read the numbers"


def test_compaction(program: Path, small: Server, tmp_path: Path) -> None:
    """A conversation that outgrows the window is summed up, and goes on."""
    ran = run(program, small, tmp_path, "much", "--bare")
    statuses = [one.status for one in ran.exchanges]
    assert statuses == [200] * BIG_CALLS + [400, 200, 200], statuses
    assert ran.status == 0 and ran.result["result"] == DONE
    summary = ran.exchanges[-1].body["messages"][0]["content"]
    assert "There was much." in str(summary)


def test_busy(program: Path, small: Server, tmp_path: Path) -> None:
    """With no place free it comes again when it is told to; a late answer is worth waiting for."""
    refused = small.metrics()["refused"]

    def hold() -> None:
        body = {"messages": [{"role": "user", "content": "Wait."}], "n": 2, "stream": True}
        with (
            httpx2.Client(base_url=small.url, timeout=120, trust_env=False) as client,
            client.stream("POST", "/v1/chat/completions", json=body),
        ):
            small.until(lambda now: now["refused"] > refused, "a request is refused", 60)

    holder = threading.Thread(target=hold)
    holder.start()
    small.until(lambda now: now["active"] + now["pending"] == 2, "no place is free")
    ran = run(program, small, tmp_path, "busy", "--bare")
    holder.join()
    first, *rest = ran.exchanges
    assert first.status == 529 and [one.status for one in rest] == [200]
    assert rest[0].at - first.at >= int(first.answer_headers["retry-after"])
    assert "ping" in [event["type"] for event in rest[0].events]
    assert ran.status == 0 and ran.result["result"] == DONE


@pytest.fixture(scope="module")
def real(program: Path) -> Iterator[Server]:
    """The embedded model."""
    if not profiles.has_torch():
        pytest.skip("torch is not installed")
    with Server(*profiles.MODEL) as server:
        yield server


def test_embedded(program: Path, real: Server, tmp_path: Path) -> None:
    """A turn with the real model, which says something up to a full stop.

    Up to there, since a cut answer makes Claude Code ask for the rest; with a system text of its
    own, since the usual one has the date and the folder in it, and every run should be the same.
    """
    variables = {
        "CLAUDE_CODE_EXTRA_BODY": json.dumps({"temperature": 0, "stop_sequences": ["."]}),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "200",
    }
    system = ("--system-prompt", "You are a helpful assistant.")
    ran = run(program, real, tmp_path, "hello", "--bare", *system, variables=variables)
    (only,) = turns(ran, 1)
    assert only.prompt_tokens > 500
    assert only.text and ran.result["result"] == only.text
