"""The middle of the path: a request becomes tokens, the engine's tokens become semantic events."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from engine.beam import BeamGeneration, BeamSearch
from engine.choice import Choice, ChoiceOptions
from engine.client import EngineClient
from engine.conversation import Conversation, Text, ToolResult
from engine.counters import Counters
from engine.errors import Overloaded, RequestError
from engine.generation import Admission, Generation, SampledGeneration
from engine.messages import TokenRequest
from engine.prepare import Prepared, Preparer
from engine.text.detokenizer import Detokenizer
from engine.types import GenerationRequest, ModelInfo

T = TypeVar("T")


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
        places = sum(request.beams.width if request.beams else request.n for request in requests)
        admission = self._admit(places)
        try:
            prepare = self._preparer.prepare
            prepared = await self.offload(lambda: [prepare(request) for request in requests])
            if any(request.beams for request in requests):
                return self._search(prepared, admission, opened)
            return self._submit(prepared, admission, opened)
        except BaseException:
            admission.release()
            raise

    async def count(self, request: GenerationRequest) -> int:
        """The tokens of the request's prompt, whether or not there is a place, room or an engine.

        Raises RequestError for what the client got wrong about the prompt.
        """
        return await self.offload(lambda: self._preparer.count(request))

    def close(self) -> None:
        self._frontend.shutdown(wait=False, cancel_futures=True)

    def _admit(self, places: int) -> Admission:
        limit = self.limits.max_concurrency + self.limits.max_queue
        if places > limit:
            raise RequestError(
                f"the request asks for {places} choices; the server holds {limit} at a time", "n"
            )
        if self.held + places > limit:
            self.counters.refused += places
            raise Overloaded(f"all {limit} places are taken; try again later")
        self.held += places
        self.idle.clear()
        return Admission(self.counters, lambda: self._release(places))

    def _release(self, places: int) -> None:
        self.held -= places
        if not self.held:
            self.idle.set()

    def _submit(
        self, prepared: list[Prepared], admission: Admission, opened: float
    ) -> SampledGeneration:
        choices: dict[int, Choice] = {}
        token_requests: list[TokenRequest] = []
        for item in prepared:
            seed = secrets.randbits(63) if item.sampling.seed is None else item.sampling.seed
            for choice in self._choices(item, len(choices), opened):
                key = self.client.next_key()
                choices[key] = choice
                if item.needs_engine:
                    seed_of_choice = seed + choice.index
                    token_requests.append(self._token_request(key, seed_of_choice, item, opened))
        stream = self.client.submit(token_requests)
        running = {request.key for request in token_requests}
        prompts = [item.prompt.token_ids for item in prepared]
        return SampledGeneration(admission, prompts, opened, self.client, stream, choices, running)

    def _search(
        self, prepared: list[Prepared], admission: Admission, opened: float
    ) -> BeamGeneration:
        searches, choices = [], list[list[Choice]]()
        for item in prepared:
            searches.append(BeamSearch(self.client, item, self.info.eos_ids))
            choices.append(self._choices(item, sum(map(len, choices)), opened))
        prompts = [item.prompt.token_ids for item in prepared]
        return BeamGeneration(admission, prompts, opened, searches, choices)

    def _choices(self, item: Prepared, first: int, opened: float) -> list[Choice]:
        options = _choice_options(item, opened)
        return [
            Choice(index, Detokenizer(self.tokenizer, skip_control=True), options)
            for index in range(first, first + item.request.n)
        ]

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
            keep_tokens=item.prompt.keep,
            priority=request.priority,
            deadline=None if request.max_time is None else opened + request.max_time,
            grammar=item.plan.grammar,
            repetition=request.repetition or self.info.repetition,
            thinking=item.plan.thinking,
            logprobs=request.logprobs,
            prompt_top=request.prompt_top,
            hint=_last_text(request),
            prediction=item.prediction,
            drafts=request.drafts,
        )


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
        records_end=request.echo and request.logprobs is not None,
        scores_prompt=request.prompt_top is not None,
        reading=item.plan.reading,
    )


def _last_text(request: GenerationRequest) -> str:
    """What a scripted reply is matched against: the last message, or the raw prompt."""
    if isinstance(request.prompt, Conversation):
        parts = request.prompt.messages[-1].parts if request.prompt.messages else ()
        results = [text for part in parts if isinstance(part, ToolResult) for text in part.texts]
        return "".join([part.text for part in parts if isinstance(part, Text)] + results)
    return request.prompt.content if isinstance(request.prompt.content, str) else ""
