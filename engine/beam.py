"""Beam search over the engine: one-token requests, ranked by the raw distribution.

Sampling transforms play no part: a beam's score is the sum of its tokens' log probabilities over
its length to the power of the length penalty (Wu et al. 2016, as in transformers and vLLM). Every
step asks for the continuations of all beams at once; the prefix cache holds what they share.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass

from engine.choice import Choice
from engine.client import EngineClient, TokenEvent
from engine.errors import GenerationFailed
from engine.events import FinishCause, SemanticEvent, TokenScore
from engine.generation import Admission, Batch, Generation
from engine.messages import TokenRequest
from engine.prepare import Prepared
from engine.types import BeamOptions, LogprobOptions, Sampling


@dataclass(frozen=True, slots=True)
class Beam:
    """A continuation. `cause` is set when it has ended, by its last token or by the limit."""

    scores: tuple[TokenScore, ...] = ()
    total: float = 0.0
    cause: FinishCause | None = None

    @property
    def token_ids(self) -> tuple[int, ...]:
        return tuple(score.token for score in self.scores)

    def rank(self, options: BeamOptions) -> float:
        """Higher is better; the end token does not count as length."""
        length = len(self.scores) - (self.cause in _BY_TOKEN)
        return self.total / math.pow(max(length, 1), options.length_penalty)


_BY_TOKEN = (FinishCause.END, FinishCause.STOP_TOKEN)


class BeamSearch:
    """The search of one prompt; `cancel` ends it between two steps."""

    def __init__(self, client: EngineClient, item: Prepared, eos_ids: tuple[int, ...]) -> None:
        assert item.request.beams is not None
        self._client = client
        self._item = item
        self._options: BeamOptions = item.request.beams
        self._ends = {} if item.sampling.ignore_eos else dict.fromkeys(eos_ids, FinishCause.END)
        self._ends |= dict.fromkeys(item.request.stops.token_ids, FinishCause.STOP_TOKEN)
        self._running: set[int] = set()
        self.cached = 0

    async def run(self) -> list[Beam]:
        """The best beams, best first. Raises GenerationFailed."""
        width = self._options.width
        active, done = [Beam()], list[Beam]()
        for length in range(1, self._item.max_tokens + 1):
            grown = await self._grow(active)
            candidates = heapq.nlargest(2 * width, grown, key=lambda beam: beam.total)
            done += [beam for beam in candidates if beam.cause is not None]
            active = [beam for beam in candidates if beam.cause is None][:width]
            if self._is_settled(active, done, length):
                active = []  # enough have ended: what has not is no answer
            if not active:
                break
        limited = [Beam(beam.scores, beam.total, FinishCause.LIMIT) for beam in active]
        return heapq.nlargest(width, done + limited, key=lambda beam: beam.rank(self._options))

    def cancel(self) -> None:
        for key in self._running:
            self._client.cancel(key)
        self._running = set()

    def _is_settled(self, active: list[Beam], done: list[Beam], length: int) -> bool:
        """Whether enough beams have ended, and, unless stopping early, none can overtake them."""
        if len(done) < self._options.width:
            return False
        if self._options.early_stopping:
            return True
        if not active:
            return True
        ranks = heapq.nlargest(self._options.width, (b.rank(self._options) for b in done))
        best = max(beam.total for beam in active)
        # The total only falls; a longer answer divides it by more where the penalty is positive.
        longest = self._item.max_tokens if self._options.length_penalty > 0 else length
        return best / math.pow(longest, self._options.length_penalty) <= ranks[-1]

    async def _grow(self, active: list[Beam]) -> list[Beam]:
        """Every continuation of the active beams by one of their likeliest tokens."""
        beams = {self._client.next_key(): beam for beam in active}
        self._running = set(beams)
        stream = self._client.submit([self._request(key, b) for key, b in beams.items()])
        grown: list[Beam] = []
        while self._running:
            for event in await stream.next():
                grown += self._continuations(beams[event.key], event)
                if event.cause is not None:
                    self._running.discard(event.key)
        return grown

    def _continuations(self, beam: Beam, event: TokenEvent) -> list[Beam]:
        if event.cause is FinishCause.FAILED:
            raise GenerationFailed(event.reason or "the beam search failed")
        if event.score is None:
            return []
        if event.cached is not None and not beam.scores:
            self.cached = event.cached
        top = event.score.top
        shown = top[: self._item.request.logprobs.top] if self._item.request.logprobs else ()
        grown = []
        for rank, (token, logprob) in enumerate(top, 1):
            cause = self._ends.get(token)
            if cause is not None and len(beam.scores) < self._item.sampling.min_tokens:
                continue
            score = TokenScore(token, logprob, rank, shown)
            grown.append(Beam((*beam.scores, score), beam.total + logprob, cause))
        return grown

    def _request(self, key: int, beam: Beam) -> TokenRequest:
        request = self._item.request
        return TokenRequest(
            key=key,
            token_ids=(*self._item.prompt.token_ids, *beam.token_ids),
            max_tokens=1,
            sampling=Sampling(temperature=0.0, ignore_eos=True),
            seed=0,
            eos_ids=(),
            cache_scope=f"{request.tenant}\0{request.cache_salt}",
            priority=request.priority,
            logprobs=LogprobOptions(2 * self._options.width),
        )


class BeamGeneration(Generation):
    """Beam searches, one per prompt; the choices of a prompt come when its search is done."""

    def __init__(
        self,
        admission: Admission,
        prompts: list[tuple[int, ...]],
        opened: float,
        searches: list[BeamSearch],
        choices: list[list[Choice]],
    ) -> None:
        super().__init__(admission, prompts, opened, sum(map(len, choices)))
        self._searches = searches
        self._choices = choices

    async def _run(self) -> AsyncIterator[Batch]:
        for search, group in zip(self._searches, self._choices, strict=True):
            beams = await search.run()
            batch: Batch = []
            for choice, beam in zip(group, beams, strict=False):
                batch += [(choice.index, event) for event in _replay(choice, beam, search.cached)]
                self._ended(failed=False)
            yield batch

    def _cancel(self) -> None:
        for search in self._searches:
            search.cancel()


def _replay(choice: Choice, beam: Beam, cached: int) -> list[SemanticEvent]:
    """The events of a choice whose tokens are all known."""
    if not beam.scores:
        return choice.without_output()
    events: list[SemanticEvent] = []
    last = len(beam.scores) - 1
    for place, score in enumerate(beam.scores):
        cause = beam.cause if place == last else None
        first = cached if place == 0 else None
        if not choice.finished:
            choice.take(TokenEvent(0, score.token, first, cause, None, score), events)
    return events
