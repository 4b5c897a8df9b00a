"""Timed streams: when the first and the last token came, and how many there were."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx2

from conformance import sse
from conformance.replies import Reply, opened, take

FIRST_ID, LAST_ID = 1000, 40_000
"""Token ids of ordinary words; random prompts are made of them."""


@dataclass(frozen=True)
class Timed:
    """One streamed completion. Times are of the monotonic clock."""

    text: str
    begun: float
    first: float
    ended: float
    tokens: int
    cached: int

    @property
    def ttft(self) -> float:
        """Seconds to the first text."""
        return self.first - self.begun

    @property
    def rate(self) -> float:
        """Tokens a second after the first one."""
        return (self.tokens - 1) / (self.ended - self.first)


def prompt_of(length: int, seed: int) -> list[int]:
    """A prompt of exactly so many tokens that no other seed shares a prefix with."""
    draw = random.Random(seed)
    return [draw.randint(FIRST_ID, LAST_ID) for _ in range(length)]


def timed(client: httpx2.Client, prompt: Any, tokens: int, **fields: Any) -> Timed:
    """Stream a greedy completion of exactly so many tokens."""
    body = {
        "prompt": prompt,
        "max_tokens": tokens,
        "min_tokens": tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **fields,
    }
    begun = time.monotonic()
    first = 0.0
    with opened(client, "completions", body) as response:
        assert response.status_code == 200, response.read()
        reply = Reply(200, response.headers)
        for event in sse.events(response.iter_raw()):
            take(reply, event, "completions", body)
            first = first or time.monotonic()
    ended = time.monotonic()
    assert reply.usage and reply.done, reply.error
    assert reply.usage["completion_tokens"] == tokens
    cached = reply.usage["prompt_tokens_details"]["cached_tokens"]
    return Timed(reply.text, begun, first, ended, tokens, cached)


def together(
    client: httpx2.Client, prompts: Sequence[Any], tokens: int, **fields: Any
) -> list[Timed]:
    """The same for several prompts at once."""
    with ThreadPoolExecutor(len(prompts)) as threads:
        return list(threads.map(lambda prompt: timed(client, prompt, tokens, **fields), prompts))


def aggregate(streams: Sequence[Timed]) -> float:
    """Decoded tokens a second over all streams, from the last stream's first token on.

    Earlier tokens are left out with their time, so that prefill is not part of the figure.
    """
    begun = max(stream.first for stream in streams)
    ended = max(stream.ended for stream in streams)
    # Tokens come evenly once all streams run, so each stream's share is that of its time.
    decoded = sum(
        stream.rate * max(0.0, stream.ended - max(stream.first, begun)) for stream in streams
    )
    return decoded / (ended - begun)


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns of text."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)
