"""Semantic events become an `Output`: the one accumulator for every buffered reply."""

from __future__ import annotations

from collections.abc import AsyncIterator

from engine.errors import GenerationFailed, RequestError
from engine.events import (
    FinishCause,
    Finished,
    Output,
    PromptScored,
    SemanticEvent,
    TextDelta,
    TokenRecord,
    TokenScore,
)


def check_end(end: Finished) -> None:
    """Raises GenerationFailed when a choice broke, RequestError when by the client's fault."""
    if end.cause is FinishCause.DEAD_END:
        raise RequestError(
            f"{end.error}: the fields contradict each other", code="no_token_allowed"
        )
    if end.cause in (FinishCause.FAILED, FinishCause.CANCELLED):
        raise GenerationFailed(end.error or "the generation was cancelled")


class Accumulator:
    """Collects one choice's events."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._records: list[TokenRecord] = []
        self._echoed = 0
        self._prompt_scores: list[TokenScore | None] = []
        self._finished: Finished | None = None

    def add(self, event: SemanticEvent) -> None:
        """Take the next event. Raises GenerationFailed when it reports a failure."""
        if isinstance(event, TextDelta):
            self._text.append(event.text)
            self._records += event.records
            self._echoed += event.echoed
        elif isinstance(event, PromptScored):
            self._prompt_scores += event.scores
        elif isinstance(event, Finished):
            check_end(event)
            self._finished = event

    def output(self) -> Output:
        """The finished choice. Raises GenerationFailed when no end was seen."""
        if self._finished is None:
            raise GenerationFailed("the generation ended without a finish")
        text = "".join(self._text)
        records, scores = tuple(self._records), tuple(self._prompt_scores)
        return Output(text, self._finished, self._echoed, records, scores)


async def accumulate(
    batches: AsyncIterator[list[tuple[int, SemanticEvent]]], num_choices: int
) -> list[Output]:
    """Wait for all choices of a generation; outputs in choice order."""
    choices = [Accumulator() for _ in range(num_choices)]
    async for batch in batches:
        for index, event in batch:
            choices[index].add(event)
    return [choice.output() for choice in choices]
