"""Generations whose events the test lists, for the encoders."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, cast

from adapters.generation import Reply
from engine.accumulate import Accumulator
from engine.events import (
    CallDelta,
    CallEnd,
    CallStart,
    FinishCause,
    Finished,
    Output,
    PromptScored,
    ReasoningDelta,
    SemanticEvent,
    Started,
    TextDelta,
    TokenRecord,
    TokenScore,
    Usage,
)
from engine.generation import Generation

Batch = list[tuple[int, SemanticEvent]]


class Played:
    """Stands in for a `Generation`."""

    def __init__(self, batches: Sequence[Batch], prompts: list[tuple[int, ...]]) -> None:
        self._batches = batches
        self.prompts = prompts

    async def batches(self) -> AsyncIterator[Batch]:
        for batch in self._batches:
            yield batch


def played(*batches: Batch, prompts: Sequence[tuple[int, ...]] = ()) -> Generation:
    return cast(Generation, Played(batches, list(prompts)))


def reply_of(
    kind: str, n: int = 1, *, reasoning: bool = False, ids: bool = False, times: bool = False
) -> Reply:
    head: dict[str, object] = {
        "id": "id-1", "object": kind, "created": 1, "model": "first", "system_fingerprint": "fp_1",
    }  # fmt: skip
    return Reply(head, n, reasoning, shows_ids=ids, shows_times=times)


def started(index: int = 0) -> tuple[int, SemanticEvent]:
    return index, Started(Usage(5, 0, 1))


def text(
    content: str,
    index: int = 0,
    output: int = 2,
    records: Sequence[TokenRecord] = (),
    echoed: int = 0,
) -> tuple[int, SemanticEvent]:
    return index, TextDelta(content, Usage(5, 0, output), tuple(records), echoed)


def thought(
    content: str, index: int = 0, records: Sequence[TokenRecord] = ()
) -> tuple[int, SemanticEvent]:
    return index, ReasoningDelta(content, Usage(5, 0, 2, 1), tuple(records))


def called(
    name: str,
    *pieces: str,
    call: int = 0,
    index: int = 0,
    custom: bool = False,
    whole: bool = True,
    records: Sequence[TokenRecord] = (),
) -> Batch:
    """The events of one call; the records come with its start."""
    usage = Usage(5, 0, 2)
    events: list[SemanticEvent] = [
        CallStart(call, f"call_{index}{call}", name, custom, usage, tuple(records)),
        *(CallDelta(call, piece, usage) for piece in pieces),
    ]
    if whole:
        events.append(CallEnd(call, usage))
    return [(index, event) for event in events]


def accumulated(*batches: Batch, n: int = 1) -> list[Output]:
    choices = [Accumulator() for _ in range(n)]
    for index, event in (pair for batch in batches for pair in batch):
        choices[index].add(event)
    return [choice.output() for choice in choices]


def scored(*scores: TokenScore | None, index: int = 0) -> tuple[int, SemanticEvent]:
    return index, PromptScored(scores, Usage(5, 0, 0))


def finished(
    cause: FinishCause = FinishCause.END, index: int = 0, stop: str | int | None = None
) -> tuple[int, SemanticEvent]:
    return index, ended(cause, stop, Usage(5, 0, 3))


def ended(cause: FinishCause, stop: str | int | None, usage: Usage) -> Finished:
    return Finished(cause, usage, stop, first_token=0.25, decode=0.5)


async def payloads(stream: AsyncGenerator[bytes, None]) -> list[Any]:
    """The data of every event; each item must be exactly one."""
    found: list[Any] = []
    async for item in stream:
        assert item.startswith(b"data: ") and item.endswith(b"\n\n")
        data = item[6:-2]
        assert b"\n" not in data
        found.append("[DONE]" if data == b"[DONE]" else json.loads(data))
    return found
