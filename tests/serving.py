"""Services over the scripted engine, or over a client that the test plays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from engine.backend.scripted import Reply, Script
from engine.client import EngineClient, ThreadClient, TokenEvent, TokenStream
from engine.core.runner import EngineSettings
from engine.errors import EngineUnavailable
from engine.events import FinishCause
from engine.messages import EngineStats, TokenizerFacts, TokenRequest
from engine.outputs import OutputPlanner
from engine.prepare import Preparer
from engine.service import Limits, Service
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.types import EngineFacts, ModelInfo, Sampling
from tests.engine.text.vocabularies import small

DEFAULTS = Sampling(temperature=0.7, top_p=0.9, top_k=40)
NAMES = frozenset({"org/tiny", "first", "second"})


@cache
def tokenizer() -> Tokenizer:
    """One token per byte, `<|im_end|>` ends."""
    return small()


@cache
def tokenizer_facts() -> TokenizerFacts:
    return TokenizerFacts(tokenizer().vocabulary_json, tokenizer().eos_ids)


@cache
def template() -> ChatTemplate:
    return ChatTemplate(None, tokenizer())


def ids(text: str) -> tuple[int, ...]:
    return tuple(tokenizer().encode_rendered(text))


def reply(text: str, **details: object) -> Reply:
    return Reply(ids(text), **details)  # type: ignore[arg-type]


def settings(*replies: Reply, max_context: int = 512, max_concurrency: int = 4) -> EngineSettings:
    script = Script(replies, tokenizer().vocab_size, tokenizer().eos_ids[0])
    return EngineSettings(
        path=Path("unused"),
        dtype="auto",
        max_context=max_context,
        max_concurrency=max_concurrency,
        prefill_chunk=32,
        max_batch_tokens=64,
        kv_tokens=None,
        log_level="error",
        script=script,
    )


def facts(max_context: int = 512) -> EngineFacts:
    return EngineFacts("fake", "none", tokenizer().vocab_size, max_context, 4, 32, 16, 64)


def model_info(engine: EngineFacts, **changes: object) -> ModelInfo:
    values: dict[str, object] = {
        "id": "first",
        "checkpoint": "org/tiny",
        "names": NAMES,
        "created": 1_790_000_000,
        "eos_ids": tokenizer().eos_ids,
        "bos_id": tokenizer().bos_id,
        "defaults": DEFAULTS,
        "default_max_tokens": None,
        "engine": engine,
    }
    return ModelInfo(**(values | changes))  # type: ignore[arg-type]


def preparer_over(engine: EngineFacts, *, clamp: bool = False, **info: object) -> Preparer:
    info_ = model_info(engine, **info)
    planner = OutputPlanner(template(), tokenizer())
    return Preparer(info_, tokenizer(), template(), planner, clamp_max_tokens=clamp)


def service_over(
    client: EngineClient,
    engine: EngineFacts,
    *,
    max_queue: int = 4,
    clamp: bool = False,
    **info: object,
) -> Service:
    limits = Limits(engine.max_concurrency, max_queue, 2)
    return Service(preparer_over(engine, clamp=clamp, **info), client, limits)


@asynccontextmanager
async def serving(
    *replies: Reply | str,
    max_context: int = 512,
    max_concurrency: int = 4,
    max_queue: int = 4,
    **info: Any,
) -> AsyncIterator[Service]:
    """The real scheduler on a thread, over scripted replies."""
    script = [item if isinstance(item, Reply) else reply(item) for item in replies]
    client = ThreadClient(
        settings(*script, max_context=max_context, max_concurrency=max_concurrency),
        tokenizer_facts(),
    )
    client.attach()
    service = service_over(client, client.facts, max_queue=max_queue, **info)
    try:
        yield service
    finally:
        await client.close()
        service.close()


class PlayedClient:
    """An engine client whose events the test makes up; it records what it was told."""

    def __init__(self) -> None:
        self.stats = EngineStats()
        self.failure: str | None = None
        self.requests: list[TokenRequest] = []
        self.cancelled: list[int] = []
        self.stream = TokenStream()
        self.submitted = asyncio.Event()
        self._key = 0

    def next_key(self) -> int:
        self._key += 1
        return self._key

    def submit(self, requests: Sequence[TokenRequest]) -> TokenStream:
        if self.failure is not None:
            raise EngineUnavailable(self.failure)
        self.requests += requests
        self.submitted.set()
        return self.stream

    def cancel(self, key: int) -> None:
        self.cancelled.append(key)

    def abort(self, reason: str) -> None:
        self.failure = reason

    async def close(self) -> None:
        pass

    def say(self, text: str, cause: FinishCause | None = None, *, place: int = 0) -> None:
        """Stream a text's tokens as those of a submitted choice, the cause with the last."""
        tokens = ids(text)
        key = self.requests[place].key
        for number, token in enumerate(tokens):
            last = number == len(tokens) - 1
            self.push(TokenEvent(key, token, cause=cause if last else None))

    def push(self, event: TokenEvent) -> None:
        self.stream.push(event)
