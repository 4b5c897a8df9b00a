"""Issue 2: sixteen streams are each the solo greedy text, at three times the speed of one."""

from __future__ import annotations

import statistics

import pytest

from conformance.bench.measure import aggregate, prompt_of, table, timed, together
from conformance.server import Server

TEXTS = [
    "The history of {} begins",
    "My favourite {} is",
    "Once upon a time, a {}",
    "A recipe for {}:",
]
THINGS = ["bread", "iron", "rivers", "chess"]
PROMPTS = [text.format(thing) for text in TEXTS for thing in THINGS]


@pytest.mark.bars
def test_sixteen_streams(embedded: Server) -> None:
    """All texts are equal, and the total is at least three times the single stream's rate."""
    client = embedded.http
    timed(client, "warm up", 8)
    alone = [timed(client, prompt, 64, cache_salt="alone") for prompt in PROMPTS]
    once = together(client, PROMPTS, 64, cache_salt="together")
    again = together(client, PROMPTS, 64, cache_salt="together")
    single = statistics.median(stream.rate for stream in alone)
    total = max(aggregate(once), aggregate(again))
    equal = [a.text == b.text == c.text for a, b, c in zip(alone, once, again, strict=True)]
    rows = [
        ("texts equal to the solo run", f"{sum(equal)} of {len(equal)}"),
        ("single stream", f"{single:.1f} tok/s"),
        ("sixteen streams", f"{total:.1f} tok/s"),
        ("ratio (bar: 3)", f"{total / single:.2f}"),
    ]
    print("\n16 concurrent streams\n" + table(rows))
    assert all(equal)
    assert total >= 3 * single


@pytest.mark.bars
def test_repeated_prompt(embedded: Server) -> None:
    """A repeated prompt of 1,000 tokens: over 900 cached, and TTFT falls at least five times."""
    colds, warms, cached = [], [], []
    for seed in range(3):
        prompt = prompt_of(1000, seed)
        cold = timed(embedded.http, prompt, 2, cache_salt="bar")
        warm = timed(embedded.http, prompt, 2, cache_salt="bar")
        assert cold.text == warm.text and cold.cached == 0
        colds.append(cold.ttft)
        warms.append(warm.ttft)
        cached.append(warm.cached)
    fall = statistics.median(colds) / statistics.median(warms)
    rows = [
        ("cached tokens (bar: over 900)", str(min(cached))),
        ("TTFT cold", f"{1000 * statistics.median(colds):.0f} ms"),
        ("TTFT warm", f"{1000 * statistics.median(warms):.0f} ms"),
        ("fall (bar: 5)", f"{fall:.1f}x"),
    ]
    print("\na repeated prompt of 1,000 tokens\n" + table(rows))
    assert min(cached) > 900
    assert fall >= 5


def test_subset(embedded: Server) -> None:
    """The same at a size for the gate, without times: three streams, 200 tokens of prompt."""
    alone = [timed(embedded.http, prompt, 6, cache_salt="alone") for prompt in PROMPTS[:3]]
    streams = together(embedded.http, PROMPTS[:3], 6, cache_salt="together")
    assert [stream.text for stream in streams] == [stream.text for stream in alone]
    prompt = prompt_of(200, 7)
    cold = timed(embedded.http, prompt, 2)
    warm = timed(embedded.http, prompt, 2)
    assert (cold.cached, warm.cached) == (0, 192)
    assert cold.text == warm.text
