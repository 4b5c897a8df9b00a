"""The middle of the path: a request becomes tokens, the engine's tokens become semantic events."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from engine.choice import Choice
from engine.client import EngineClient, TokenStream
from engine.counters import Counters
from engine.errors import ContextOverflow, Overloaded, RequestError
from engine.text.detokenizer import Detokenizer
from engine.text.stops import StopMatcher
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.types import (
    Conversation,
    FinishCause,
    GenerationRequest,
    ModelInfo,
    Prompt,
    RawPrompt,
    Sampling,
    SamplingOverride,
    SemanticEvent,
    Text,
    TextDelta,
    TokenRequest,
)

T = TypeVar("T")
Batch = list[tuple[int, SemanticEvent]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of admission and output; see the options of the same names."""

    max_concurrency: int
    max_queue: int
    frontend_threads: int
    clamp_max_tokens: bool


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request that is validated against the model, ready for the engine."""

    request: GenerationRequest
    prompt: Prompt
    sampling: Sampling
    max_tokens: int
    limit_cause: FinishCause
    echo: str


class Service:
    """Admits requests, prepares them off the event loop, and opens their generations."""

    def __init__(
        self,
        info: ModelInfo,
        client: EngineClient,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        limits: Limits,
    ) -> None:
        self.info = info
        self.client = client
        self.tokenizer = tokenizer
        self.template = template
        self.limits = limits
        self.counters = Counters()
        self.draining = False
        self.held = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self._frontend = ThreadPoolExecutor(limits.frontend_threads, "frontend")

    async def offload(self, work: Callable[[], T]) -> T:
        """Run what may take long (parsing, templates, tokenising) on a frontend thread."""
        return await asyncio.get_running_loop().run_in_executor(self._frontend, work)

    async def open(self, requests: Sequence[GenerationRequest]) -> Generation:
        """Start a group of requests, all or none.

        Choice i of request r has the index r * n + i. Raises RequestError for what the client got
        wrong, Overloaded when every place is taken, EngineUnavailable when there is no engine.
        """
        num_choices = sum(request.n for request in requests)
        self._admit(num_choices)
        try:
            prepared = await self.offload(lambda: [self._prepare(request) for request in requests])
            return self._submit(prepared, num_choices)
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

    def _prepare(self, request: GenerationRequest) -> _Prepared:
        sampling = self._sampling(request.sampling)
        self._check_ids(sampling.logit_bias, "logit_bias")
        self._check_ids(request.stops.token_ids, "stop_token_ids")
        prompt = self._render(request)
        max_tokens, limit_cause = self._output_limit(request, len(prompt.token_ids))
        if sampling.min_tokens > max_tokens:
            raise RequestError(
                f"min_tokens {sampling.min_tokens} is more than the output limit of {max_tokens}",
                "min_tokens",
            )
        echo = self._echo(request, prompt)
        return _Prepared(request, prompt, sampling, max_tokens, limit_cause, echo)

    def _sampling(self, override: SamplingOverride) -> Sampling:
        defaults = self.info.defaults

        def chosen(name: str) -> float:
            value = getattr(override, name)
            return getattr(defaults, name) if value is None else value  # type: ignore[no-any-return]

        return Sampling(
            temperature=chosen("temperature"),
            top_p=chosen("top_p"),
            top_k=min(max(int(chosen("top_k")), 0), self.info.engine.vocab_size),
            min_p=chosen("min_p"),
            repetition_penalty=chosen("repetition_penalty"),
            presence_penalty=chosen("presence_penalty"),
            frequency_penalty=chosen("frequency_penalty"),
            logit_bias=override.logit_bias,
            seed=override.seed if override.seed is not None else defaults.seed,
            min_tokens=override.min_tokens,
            ignore_eos=override.ignore_eos,
        )

    def _check_ids(self, ids: object, param: str) -> None:
        vocab_size = self.info.engine.vocab_size
        for token in ids:  # type: ignore[attr-defined]
            if not 0 <= token < vocab_size:
                raise RequestError(
                    f"token id {token} is outside the vocabulary of {vocab_size}", param
                )

    def _render(self, request: GenerationRequest) -> Prompt:
        if isinstance(request.prompt, Conversation):
            return Prompt(self.template.render(request.prompt))
        raw: RawPrompt = request.prompt
        if isinstance(raw.content, str):
            ids = self.tokenizer.encode(raw.content, add_special_tokens=raw.add_special_tokens)
            if not ids and self.info.bos_id is not None:
                ids = [self.info.bos_id]
        else:
            ids = list(raw.content)
            self._check_ids(ids, request.prompt_param)
        if not ids:
            raise RequestError("the prompt is empty", request.prompt_param)
        return Prompt(tuple(ids))

    def _output_limit(self, request: GenerationRequest, prompt: int) -> tuple[int, FinishCause]:
        """The output limit, and whether reaching it means the request's limit or a full window."""
        window = self.info.engine.max_context
        wanted = request.max_tokens
        if prompt + min(1 if wanted is None else wanted, 1) > window:
            raise ContextOverflow(
                f"This model's maximum context length is {window} tokens, "
                f"but the prompt alone has {prompt} tokens. Shorten the {request.prompt_param}.",
                request.prompt_param,
                prompt,
                window,
            )
        remaining = window - prompt
        if wanted is None:
            wanted = self.info.default_max_tokens or remaining
        elif wanted > remaining and not self.limits.clamp_max_tokens:
            raise ContextOverflow(
                f"This model's maximum context length is {window} tokens, but {prompt + wanted} "
                f"were requested: {prompt} in the {request.prompt_param} and {wanted} as "
                f"{request.max_tokens_param}. Shorten one of them.",
                request.max_tokens_param,
                prompt,
                window,
            )
        if wanted >= remaining:
            full = wanted > remaining or request.max_tokens is None
            return remaining, FinishCause.CONTEXT_FULL if full else FinishCause.LIMIT
        return wanted, FinishCause.LIMIT

    def _echo(self, request: GenerationRequest, prompt: Prompt) -> str:
        if not request.echo or isinstance(request.prompt, Conversation):
            return ""
        content = request.prompt.content
        return content if isinstance(content, str) else self.tokenizer.decode(prompt.token_ids)

    def _submit(self, prepared: list[_Prepared], num_choices: int) -> Generation:
        choices: dict[int, Choice] = {}
        token_requests: list[TokenRequest] = []
        for item in prepared:
            seed = secrets.randbits(63) if item.sampling.seed is None else item.sampling.seed
            for _ in range(item.request.n):
                index = len(choices)
                key = self.client.next_key()
                choices[key] = self._choice(index, item)
                if item.max_tokens:
                    token_requests.append(self._token_request(key, seed + index, item))
        stream = self.client.submit(token_requests)
        self.counters.started += num_choices
        return Generation(self, stream, choices, {request.key for request in token_requests})

    def _choice(self, index: int, item: _Prepared) -> Choice:
        return Choice(
            index,
            detokenizer=Detokenizer(self.tokenizer, skip_control=True),
            stops=StopMatcher(item.request.stops.strings),
            prompt_tokens=len(item.prompt.token_ids),
            min_tokens=item.sampling.min_tokens,
            limit_cause=item.limit_cause,
            echo=item.echo,
        )

    def _token_request(self, key: int, seed: int, item: _Prepared) -> TokenRequest:
        return TokenRequest(
            key=key,
            token_ids=item.prompt.token_ids,
            max_tokens=item.max_tokens,
            sampling=item.sampling,
            seed=seed % 2**64,
            eos_ids=self.info.eos_ids,
            stop_ids=item.request.stops.token_ids,
            cache_scope=f"{item.request.tenant}\0{item.request.cache_salt}",
            hint=_last_text(item.request),
        )


class Generation:
    """The running choices of one group; close it whatever happens."""

    def __init__(
        self, service: Service, stream: TokenStream, choices: dict[int, Choice], running: set[int]
    ) -> None:
        self.num_choices = len(choices)
        self._service = service
        self._stream = stream
        self._choices = choices
        self._running = running
        self._closed = False
        self._opened = time.monotonic()
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
            for key, token, cached, cause, reason in await self._stream.next():
                if key not in self._running:  # a stop string ended it while the engine ran ahead
                    continue
                choice = self._choices[key]
                events = batch.setdefault(choice.index, [])
                if token is not None:
                    choice.take(token, cached, cause, events)
                elif cause is not None:
                    choice.fail(cause, reason, events)
                if choice.finished or cause is FinishCause.FAILED:
                    self._end(key, ended=cause)
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


def _last_text(request: GenerationRequest) -> str:
    """What a scripted reply is matched against: the last message, or the raw prompt."""
    if isinstance(request.prompt, Conversation):
        parts = request.prompt.messages[-1].parts if request.prompt.messages else ()
        return "".join(part.text for part in parts if isinstance(part, Text))
    return request.prompt.content if isinstance(request.prompt.content, str) else ""
