"""Issue 2: requests of random lengths, many of them dropped, leave nothing behind."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from conformance import profiles, sse
from conformance.bench.measure import prompt_of, table
from conformance.replies import PATHS, opened
from conformance.server import Server

PARALLEL = 24
GROWTH = 1.03
SLACK = 4 * 1024 * 1024
"""Resident memory may be 3 % and 4 MiB larger after the last quarter than after the second."""


@pytest.mark.bars
def test_scripted(tmp_path: Path) -> None:
    """500 requests at a few milliseconds a step."""
    script = profiles.write_script(
        tmp_path / "script.json", [{"match": "", "text": " word" * 90, "delay_ms": 2}]
    )
    _storm("scripted", 500, 120, 90, "--scripted", str(script), "--max-context", "4096",
           "--kv-tokens", "8192")  # fmt: skip


@pytest.mark.bars
def test_embedded() -> None:
    """500 requests to the model, short ones."""
    _storm(
        "embedded", 500, 60, 8, "--deterministic", "--max-context", "1024", "--kv-tokens", "2048"
    )


def test_subset(tmp_path: Path) -> None:
    """60 requests, scripted, in the gate."""
    script = profiles.write_script(
        tmp_path / "script.json", [{"match": "", "text": " word" * 40, "delay_ms": 1}]
    )
    _storm("subset", 60, 60, 40, "--scripted", str(script), "--max-context", "4096")


def _storm(name: str, count: int, prompt: int, output: int, *options: str) -> None:
    """Send the requests in four quarters; then every page, place and counter is accounted for."""
    draw = random.Random(20261129)
    asks = [_ask(draw, number, prompt, output) for number in range(count)]
    with Server(*options, "--max-concurrency", "8", "--max-queue", "64") as server:
        sizes = []
        outcomes: dict[str, int] = {}
        begun = time.monotonic()
        with ThreadPoolExecutor(PARALLEL) as threads:
            _touch_every_page(server)
            for quarter in range(4):
                part = asks[count * quarter // 4 : count * (quarter + 1) // 4]
                for outcome in threads.map(lambda ask: _send(server, *ask), part):
                    outcomes[outcome] = outcomes.get(outcome, 0) + 1
                numbers = server.until_idle(60)
                sizes.append(server.resident())
        seconds = time.monotonic() - begun
        answer = server.http.post(PATHS["completions"], json={"prompt": "x", "max_tokens": 1})
        assert answer.status_code == 200
        stopping = time.monotonic()
        assert server.stop(15) == 0
        stopped = time.monotonic() - stopping
    ends = {key: numbers[key] for key in ("started", "completed", "failed", "cancelled", "refused")}
    rows = [
        ("requests", f"{count} in {seconds:.0f} s: {outcomes}"),
        ("choices", str(ends)),
        ("pages free", f"{numbers['free_pages']} of {numbers['total_pages']}"),
        ("preemptions", str(numbers["preemptions"])),
        *(
            (f"resident {who}", " -> ".join(f"{size[who] / 2**20:.1f} MiB" for size in sizes))
            for who in sizes[0]
        ),
        ("SIGTERM to exit 0", f"{stopped:.1f} s"),
    ]
    print(f"\nrandom disconnects, {name}\n" + table(rows))
    assert numbers["failed"] == 0 and "error" not in outcomes, outcomes
    assert outcomes["whole"] >= count // 10 and outcomes["dropped"] >= count // 10, outcomes
    if count >= 500:
        for who in sizes[0]:
            assert sizes[3][who] <= sizes[1][who] * GROWTH + SLACK, f"{who} grows: {sizes}"


def _touch_every_page(server: Server) -> None:
    """Fill the cache once, since memory of pages that were never used is not resident yet."""
    pages = server.metrics()
    tokens = pages["total_pages"] * pages["page_tokens"]
    for number in range(tokens // 900 + 1):
        body = {"prompt": prompt_of(900, 10_000 + number), "max_tokens": 1}
        assert server.http.post(PATHS["completions"], json=body).status_code == 200


def _ask(
    draw: random.Random, number: int, prompt: int, output: int
) -> tuple[dict[str, Any], float | None, int | None]:
    """A request, with the second or the event at which its client leaves, if it does."""
    body: dict[str, Any] = {
        "prompt": prompt_of(draw.randint(1, prompt), draw.choice([number, number % 5])),
        "max_tokens": draw.randint(1, output),
        "ignore_eos": draw.random() < 0.5,
        "n": draw.choice([1, 1, 1, 2, 3]),
        "stream": draw.random() < 0.6,
    }
    if draw.random() < 0.5:
        return body, None, None
    if body["stream"] and draw.random() < 0.7:
        return body, None, draw.randint(0, 6)
    return body, draw.uniform(0.001, 0.2), None


def _send(server: Server, body: dict[str, Any], seconds: float | None, events: int | None) -> str:
    """Send it and leave when it is time to: whole, dropped, full or error."""
    with httpx2.Client(base_url=server.url, timeout=seconds or 120, trust_env=False) as client:
        try:
            with opened(client, "completions", body) as response:
                if response.status_code != 200:
                    return "full" if response.status_code == 429 else "error"
                return _read(response, body["stream"], events)
        except httpx2.TimeoutException:
            return "dropped"


def _read(response: httpx2.Response, stream: bool, events: int | None) -> str:
    if not stream:
        response.read()
        return "whole"
    end = "error"
    for number, event in enumerate(sse.events(response.iter_raw())):
        if number == events:
            return "dropped"
        if event.data == sse.DONE:
            end = "whole"
    return end
