"""Semantic events become an `Output`: the one accumulator for every buffered reply."""

from __future__ import annotations

from collections.abc import AsyncIterator

from engine.errors import GenerationFailed, RequestError
from engine.events import (
    Block,
    CallBlock,
    CallDelta,
    CallStart,
    Delta,
    FinishCause,
    Finished,
    Output,
    PromptScored,
    ReasoningBlock,
    ReasoningDelta,
    SemanticEvent,
    Started,
    TextBlock,
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


class _OpenCall:
    """A call whose arguments still come."""

    def __init__(self, start: CallStart) -> None:
        self.start = start
        self.arguments: list[str] = []

    def block(self, *, complete: bool) -> CallBlock:
        start = self.start
        return CallBlock(start.id, start.name, "".join(self.arguments), start.custom, complete)


class Accumulator:
    """Collects one choice's events."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._texts: list[str] = []  # of the open text or thought
        self._kind: type[TextBlock] | type[ReasoningBlock] = TextBlock
        self._call: _OpenCall | None = None
        self._records: list[TokenRecord] = []
        self._echoed = 0
        self._prompt_scores: list[TokenScore | None] = []
        self._finished: Finished | None = None

    def add(self, event: SemanticEvent) -> None:
        """Take the next event. Raises GenerationFailed when it reports a failure."""
        if isinstance(event, Finished):
            check_end(event)
            self._finished = event
        elif isinstance(event, PromptScored):
            self._prompt_scores += event.scores
        elif not isinstance(event, Started):
            self._records += event.records
            self._take(event)

    def _take(self, event: Delta) -> None:
        if isinstance(event, TextDelta):
            self._echoed += event.echoed
            self._take_text(TextBlock, event.text)
        elif isinstance(event, ReasoningDelta):
            self._take_text(ReasoningBlock, event.text)
        elif isinstance(event, CallStart):
            self._close()
            self._call = _OpenCall(event)
        elif isinstance(event, CallDelta):
            assert self._call is not None
            self._call.arguments.append(event.arguments)
        else:
            assert self._call is not None
            self._blocks.append(self._call.block(complete=True))
            self._call = None

    def _take_text(self, kind: type[TextBlock] | type[ReasoningBlock], text: str) -> None:
        if not text:
            return
        if kind is not self._kind or self._call is not None:
            self._close()
            self._kind = kind
        self._texts.append(text)

    def _close(self) -> None:
        """End the open block."""
        text = "".join(self._texts)
        self._texts = []
        if text:
            self._blocks.append(self._kind(text))
        if self._call is not None:
            self._blocks.append(self._call.block(complete=False))
            self._call = None

    def output(self) -> Output:
        """The finished choice. Raises GenerationFailed when no end was seen."""
        if self._finished is None:
            raise GenerationFailed("the generation ended without a finish")
        self._close()
        records, scores = tuple(self._records), tuple(self._prompt_scores)
        return Output(tuple(self._blocks), self._finished, self._echoed, records, scores)


async def accumulate(
    batches: AsyncIterator[list[tuple[int, SemanticEvent]]], num_choices: int
) -> list[Output]:
    """Wait for all choices of a generation; outputs in choice order."""
    choices = [Accumulator() for _ in range(num_choices)]
    async for batch in batches:
        for index, event in batch:
            choices[index].add(event)
    return [choice.output() for choice in choices]
