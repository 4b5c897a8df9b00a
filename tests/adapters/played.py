"""Generations whose events the test lists, for the encoders."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

from engine.service import Generation
from engine.types import FinishCause, Finished, SemanticEvent, Started, TextDelta, Usage

Batch = list[tuple[int, SemanticEvent]]


class Played:
    """Stands in for a `Generation`."""

    def __init__(self, *batches: Batch) -> None:
        self._batches = batches

    async def batches(self) -> AsyncIterator[Batch]:
        for batch in self._batches:
            yield batch


def played(*batches: Batch) -> Generation:
    return cast(Generation, Played(*batches))


def started(index: int = 0) -> tuple[int, SemanticEvent]:
    return index, Started(Usage(5, 0, 1))


def text(content: str, index: int = 0, output: int = 2) -> tuple[int, SemanticEvent]:
    return index, TextDelta(content, Usage(5, 0, output))


def finished(
    cause: FinishCause = FinishCause.END, index: int = 0, stop: str | int | None = None
) -> tuple[int, SemanticEvent]:
    return index, Finished(cause, Usage(5, 0, 3), stop)


async def payloads(stream: AsyncGenerator[bytes, None]) -> list[Any]:
    """The data of every event; each item must be exactly one."""
    found: list[Any] = []
    async for item in stream:
        assert item.startswith(b"data: ") and item.endswith(b"\n\n")
        data = item[6:-2]
        assert b"\n" not in data
        found.append("[DONE]" if data == b"[DONE]" else json.loads(data))
    return found
