"""The rows of the table: what is asked for, of which server, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from conformance.bench import prompts
from conformance.bench.figures import By, Sample, sample_of
from conformance.bench.process import ProcessTree, Watch
from conformance.bench.prompts import Request
from conformance.bench.stream import Stream, streamed

SHORT = 16
"""Prompt tokens of the rows without context."""
FIRST = 8
"""Output tokens of rows about the first one: enough for some text whatever the tokens are."""


@dataclass(frozen=True)
class Sizes:
    """Output tokens of each stream, by the kind of row."""

    decode: int = 128
    streams: int = 64
    constrained: int = 128
    copied: int = 160


FULL, QUICK, WARM_UP = Sizes(), Sizes(32, 16, 32, 64), Sizes(4, 4, 4, 4)


@dataclass(frozen=True)
class Target:
    """A running server. `weights_bytes` is what it reads of its weights for one token, if known.

    `ours` is whether it has our metrics.
    """

    name: str
    url: str
    model: str
    client: httpx2.Client
    tree: ProcessTree | None = None
    weights_bytes: int | None = None
    ours: bool = False


@dataclass(frozen=True)
class Row:
    """`requests` are sent together. `warm` sends them once before, unmeasured.

    `drafts` says which of our servers is asked: the one with speculation as configured, or the one
    without. `reads_weights` is whether each token takes one pass over the weights.
    """

    name: str
    title: str
    by: By
    requests: Callable[[Sizes, int], list[Request]]
    drafts: bool = True
    warm: bool = False
    reads_weights: bool = False


def _decode(context: int) -> Row:
    title = f"decode, {context:,} tokens of context" if context else "decode, short prompt"
    return Row(
        f"decode-{context}" if context else "decode",
        title,
        "rate",
        lambda sizes, seed: [prompts.continuation(context or SHORT, sizes.decode, seed)],
        drafts=False,
        reads_weights=True,
    )


def _streams(count: int) -> Row:
    return Row(
        f"streams-{count}",
        f"{count} streams, total",
        "rate",
        lambda sizes, seed: [
            prompts.continuation(SHORT, sizes.streams, seed + number) for number in range(count)
        ],
        drafts=False,
    )


def _prefill(length: int, warm: bool = False) -> Row:
    return Row(
        f"warm-{length}" if warm else f"prefill-{length}",
        f"{'warm prefix' if warm else 'prefill'}, {length:,} tokens",
        "ttft",
        lambda sizes, seed: [prompts.continuation(length, FIRST, seed)],
        warm=warm,
    )


def _copying(name: str, title: str, drafts: bool) -> Row:
    return Row(
        name,
        title,
        "rate",
        lambda sizes, seed: [prompts.copying(sizes.copied, seed)],
        drafts=drafts,
        reads_weights=not drafts,
    )


COPY_PLAIN = "copy-plain"
ROWS = (
    _decode(0),
    _decode(256),
    _decode(2048),
    _streams(8),
    _streams(16),
    _prefill(512),
    _prefill(2048),
    _prefill(512, warm=True),
    Row(
        "constrained",
        "JSON schema, short prompt",
        "rate",
        lambda sizes, seed: [prompts.constrained(sizes.constrained, seed)],
    ),
    _copying("copy", "copying, drafts as configured", drafts=True),
    _copying(COPY_PLAIN, "copying, no drafts", drafts=False),
)


def select(names: str) -> tuple[Row, ...]:
    """Rows by their names, separated by commas, in the order of the table.

    Raises ValueError for a name that no row has.
    """
    wanted = {name.strip() for name in names.split(",")}
    if unknown := sorted(wanted - {row.name for row in ROWS}):
        known = ", ".join(row.name for row in ROWS)
        raise ValueError(f"no row is called {', '.join(unknown)}; there are {known}")
    return tuple(row for row in ROWS if row.name in wanted)


def measured(row: Row, target: Target, sizes: Sizes, seed: int) -> Sample:
    """One round of a row on a server."""
    requests = row.requests(sizes, seed)
    if row.warm:
        _together(target, requests)
    before = _counters(target)
    with Watch(target.tree) as watch:
        streams = _together(target, requests)
    sample = sample_of(streams, row.by, watch, [request.source for request in requests])
    after = _counters(target)
    moved = {name: after[name] - count for name, count in before.items()}
    if moved:  # the usage of completions, unlike that of chats, does not tell
        sample = replace(sample, accepted=moved["accepted_drafts"])
    if moved.get("kernel_ns"):
        sample = replace(sample, overhead=1 - moved["kernel_ns"] / moved["step_ns"])
    # Tokens that a cache had are not computed, whether the server counts them or not.
    return replace(sample, rate=None) if row.warm else sample


def _counters(target: Target) -> dict[str, int]:
    """Totals since the start, of a server of ours."""
    if not target.ours:
        return {}
    found = metrics_of(target.client)
    return {name: found[name] for name in ("accepted_drafts", "step_ns", "kernel_ns")}


def metrics_of(client: httpx2.Client) -> dict[str, Any]:
    """The counters of a server of ours. Raises httpx2.HTTPError."""
    reply = client.get("/metrics", params={"format": "json"}).raise_for_status()
    numbers: dict[str, Any] = reply.json()
    return numbers


def _together(target: Target, requests: Sequence[Request]) -> list[Stream]:
    def send(request: Request) -> Stream:
        body = request.of(target.model)
        return streamed(target.client, request.path, body, request.tokens)

    with ThreadPoolExecutor(len(requests)) as threads:
        return list(threads.map(send, requests))
