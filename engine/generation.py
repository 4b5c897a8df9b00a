"""The running choices of one group of requests, and what becomes of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from engine.choice import BROKEN, Choice
from engine.client import EngineClient, TokenStream
from engine.counters import Counters
from engine.events import FinishCause, SemanticEvent, TextDelta

Batch = list[tuple[int, SemanticEvent]]


@dataclass(frozen=True, slots=True)
class Admission:
    """The places that a group holds; `release` gives them back, once."""

    counters: Counters
    release: Callable[[], None]


class Generation(ABC):
    """Choices that were admitted together; close it whatever happens.

    `prompts` are the token ids of each request's prompt.
    """

    def __init__(
        self, admission: Admission, prompts: list[tuple[int, ...]], opened: float, num_choices: int
    ) -> None:
        self.num_choices = num_choices
        self.prompts = prompts
        self._admission = admission
        self._opened = opened
        self._open_choices = num_choices
        self._closed = False
        self._answered = False
        admission.counters.started += num_choices

    async def batches(self) -> AsyncIterator[Batch]:
        """Everything that happened since the last batch, until every choice has finished.

        Text of one choice that arrived in one go is one delta.
        """
        async for batch in self._run():
            if not self._answered and any(isinstance(event, TextDelta) for _, event in batch):
                self._answered = True
                waited = time.monotonic() - self._opened
                self._admission.counters.first_response.record(waited)
            yield batch

    def close(self) -> None:
        """Cancel what still runs and give the places back."""
        if self._closed:
            return
        self._closed = True
        self._cancel()
        self._admission.counters.cancelled += self._open_choices
        self._open_choices = 0
        self._admission.release()

    def _ended(self, *, failed: bool) -> None:
        """Count a choice that came to its end."""
        self._open_choices -= 1
        if failed:
            self._admission.counters.failed += 1
        else:
            self._admission.counters.completed += 1

    @abstractmethod
    def _run(self) -> AsyncIterator[Batch]:
        """The batches as they come."""

    @abstractmethod
    def _cancel(self) -> None:
        """Stop what the engine still does for this group."""


class SampledGeneration(Generation):
    """One sequence of the engine per choice; a choice without one generates nothing."""

    def __init__(
        self,
        admission: Admission,
        prompts: list[tuple[int, ...]],
        opened: float,
        client: EngineClient,
        stream: TokenStream,
        choices: dict[int, Choice],
        running: set[int],
    ) -> None:
        super().__init__(admission, prompts, opened, len(choices))
        self._client = client
        self._stream = stream
        self._choices = choices
        self._running = running

    async def _run(self) -> AsyncIterator[Batch]:
        nothing = [c for key, c in self._choices.items() if key not in self._running]
        if nothing:
            yield [(choice.index, event) for choice in nothing for event in choice.without_output()]
            for _ in nothing:
                self._ended(failed=False)
        while self._running:
            batch: dict[int, list[SemanticEvent]] = {}
            for happened in await self._stream.next():
                if happened.key not in self._running:  # a stop ended it while the engine ran ahead
                    continue
                choice = self._choices[happened.key]
                choice.take(happened, batch.setdefault(choice.index, []))
                if choice.finished:
                    self._admission.counters.malformed_calls += choice.malformed_calls
                    self._finish(happened.key, happened.cause)
            merged = [(index, event) for index, events in batch.items() for event in events]
            if merged:
                yield merged

    def _cancel(self) -> None:
        for key in self._running:
            self._client.cancel(key)
        self._running = set()

    def _finish(self, key: int, cause: FinishCause | None) -> None:
        self._running.discard(key)
        if cause is None:  # a stop string: the engine does not know yet
            self._client.cancel(key)
        self._ended(failed=cause in BROKEN)
