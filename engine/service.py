"""The middle of the path: a request becomes tokens, the engine's tokens become semantic events."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from engine.choice import Choice, ChoiceOptions
from engine.client import EngineClient, TokenStream
from engine.counters import Counters
from engine.errors import Overloaded, RequestError
from engine.messages import TokenRequest
from engine.prepare import Prepared, Preparer
from engine.text.detokenizer import Detokenizer
from engine.types import (
    Conversation,
    FinishCause,
    GenerationRequest,
    ModelInfo,
    SemanticEvent,
    Text,
    TextDelta,
)

T = TypeVar("T")
Batch = list[tuple[int, SemanticEvent]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of admission; see the options of the same names."""

    max_concurrency: int
    max_queue: int
    frontend_threads: int


class Service:
    """Admits requests, prepares them off the event loop, and opens their generations."""

    def __init__(self, preparer: Preparer, client: EngineClient, limits: Limits) -> None:
        self.info: ModelInfo = preparer.info
        self.tokenizer = preparer.tokenizer
        self.client = client
        self.limits = limits
        self.counters = Counters()
        self.draining = False
        self.held = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self._preparer = preparer
        self._frontend = ThreadPoolExecutor(limits.frontend_threads, "frontend")

    async def offload(self, work: Callable[[], T]) -> T:
        """Run what may take long (parsing, templates, tokenising) on a frontend thread."""
        return await asyncio.get_running_loop().run_in_executor(self._frontend, work)

    async def open(self, requests: Sequence[GenerationRequest]) -> Generation:
        """Start a group of requests, all or none.

        Choice i of request r has the index r * n + i. Raises RequestError for what the client got
        wrong, Overloaded when every place is taken, EngineUnavailable when there is no engine.
        """
        opened = time.monotonic()
        num_choices = sum(request.n for request in requests)
        self._admit(num_choices)
        try:
            prepare = self._preparer.prepare
            prepared = await self.offload(lambda: [prepare(request) for request in requests])
            return self._submit(prepared, num_choices, opened)
        except BaseException:
            self.release(num_choices)
            raise

    def release(self, num_choices: int) -> None:
        """Give places back once a reply is delivered or dropped."""
        self.held -= num_choices
        if not self.held:
            self.idle.set()

    def close(self) -> None:
        self._frontend.shutdown(wait=False, cancel_futures=True)

    def _admit(self, num_choices: int) -> None:
        places = self.limits.max_concurrency + self.limits.max_queue
        if num_choices > places:
            raise RequestError(
                f"the request asks for {num_choices} choices; the server holds {places} at a time",
                "n",
            )
        if self.held + num_choices > places:
            self.counters.refused += num_choices
            raise Overloaded(f"all {places} places are taken; try again later")
        self.held += num_choices
        self.idle.clear()

    def _submit(self, prepared: list[Prepared], num_choices: int, opened: float) -> Generation:
        choices: dict[int, Choice] = {}
        token_requests: list[TokenRequest] = []
        for item in prepared:
            options = _choice_options(item, opened)
            seed = secrets.randbits(63) if item.sampling.seed is None else item.sampling.seed
            for _ in range(item.request.n):
                index = len(choices)
                key = self.client.next_key()
                detokenizer = Detokenizer(self.tokenizer, skip_control=True)
                choices[key] = Choice(index, detokenizer, options)
                if item.needs_engine:
                    token_requests.append(self._token_request(key, seed + index, item, opened))
        stream = self.client.submit(token_requests)
        self.counters.started += num_choices
        running = {request.key for request in token_requests}
        return Generation(self, stream, choices, running, opened, prepared)

    def _token_request(self, key: int, seed: int, item: Prepared, opened: float) -> TokenRequest:
        request = item.request
        return TokenRequest(
            key=key,
            token_ids=item.prompt.token_ids,
            max_tokens=item.max_tokens,
            sampling=item.sampling,
            seed=seed % 2**64,
            eos_ids=self.info.eos_ids,
            stop_ids=request.stops.token_ids,
            cache_scope=f"{request.tenant}\0{request.cache_salt}",
            priority=request.priority,
            deadline=None if request.max_time is None else opened + request.max_time,
            grammar=item.grammar,
            repetition=request.repetition or self.info.repetition,
            logprobs=request.logprobs,
            prompt_top=request.prompt_top,
            hint=_last_text(request),
        )


class Generation:
    """The running choices of one group; close it whatever happens."""

    def __init__(
        self,
        service: Service,
        stream: TokenStream,
        choices: dict[int, Choice],
        running: set[int],
        opened: float,
        prepared: list[Prepared],
    ) -> None:
        self.num_choices = len(choices)
        self.prompts = [item.prompt.token_ids for item in prepared]
        self._service = service
        self._stream = stream
        self._choices = choices
        self._running = running
        self._opened = opened
        self._closed = False
        self._answered = False

    async def batches(self) -> AsyncIterator[Batch]:
        """Everything that happened since the last batch, until every choice has finished.

        Text of one choice that arrived in one go is one delta.
        """
        nothing = [c for key, c in self._choices.items() if key not in self._running]
        if nothing:
            yield [(choice.index, event) for choice in nothing for event in choice.without_output()]
            self._service.counters.completed += len(nothing)
        while self._running:
            batch: dict[int, list[SemanticEvent]] = {}
            for happened in await self._stream.next():
                if happened.key not in self._running:  # a stop ended it while the engine ran ahead
                    continue
                choice = self._choices[happened.key]
                choice.take(happened, batch.setdefault(choice.index, []))
                if choice.finished:
                    self._end(happened.key, ended=happened.cause)
            merged = [(index, event) for index, events in batch.items() for event in events]
            if merged:
                self._note_first_text(merged)
                yield merged

    def close(self) -> None:
        """Cancel what still runs and give the places back."""
        if self._closed:
            return
        self._closed = True
        for key in self._running:
            self._service.client.cancel(key)
        self._service.counters.cancelled += len(self._running)
        self._running = set()
        self._service.release(self.num_choices)

    def _note_first_text(self, batch: Batch) -> None:
        if not self._answered and any(isinstance(event, TextDelta) for _, event in batch):
            self._answered = True
            self._service.counters.first_response.record(time.monotonic() - self._opened)

    def _end(self, key: int, ended: FinishCause | None) -> None:
        self._running.discard(key)
        if ended is None:  # a stop string: the engine does not know yet
            self._service.client.cancel(key)
        if ended is FinishCause.FAILED:
            self._service.counters.failed += 1
        else:
            self._service.counters.completed += 1


def _choice_options(item: Prepared, opened: float) -> ChoiceOptions:
    request = item.request
    return ChoiceOptions(
        prompt_tokens=len(item.prompt.token_ids),
        stops=request.stops,
        min_tokens=item.sampling.min_tokens,
        limit_cause=item.limit_cause,
        opened=opened,
        echo=item.echo,
        records=request.records or request.logprobs is not None,
    )


def _last_text(request: GenerationRequest) -> str:
    """What a scripted reply is matched against: the last message, or the raw prompt."""
    if isinstance(request.prompt, Conversation):
        parts = request.prompt.messages[-1].parts if request.prompt.messages else ()
        return "".join(part.text for part in parts if isinstance(part, Text))
    return request.prompt.content if isinstance(request.prompt.content, str) else ""
