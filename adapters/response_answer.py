"""How a response is answered: at once, after a compaction, or by one alone."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from adapters.call import Call
from adapters.decode import given
from adapters.response_compaction import Compacted, compact, replaced
from adapters.response_events import ResponseDraft, response_events
from adapters.response_object import ResponseHead
from adapters.response_tools import ResponseTools
from engine.conversation import Conversation
from engine.events import FinishCause, Finished
from engine.generation import Generation
from engine.types import GenerationRequest, ModelInfo
from generated.responses import ResponseRequest


@dataclass(frozen=True, slots=True)
class Asked:
    """A body as the engine takes it, with what the answer needs besides.

    `items` are the request's own; the conversation has those before them too. `triggers`: a
    compaction is asked for, and no answer.
    """

    request: GenerationRequest
    tools: ResponseTools
    items: list[Any]
    triggers: bool


def head_of(
    body: ResponseRequest,
    response_id: str,
    dropped_tools: Sequence[str],
    info: ModelInfo,
    *,
    keeps: bool,
) -> ResponseHead:
    """What the response says of its request."""
    sent = body.model_dump(mode="json", by_alias=True)
    applied = {name: _applied(body, name, info) for name in ("temperature", "top_p")}
    applied |= {
        name: _applied(body, name, info) for name in ("presence_penalty", "frequency_penalty")
    }
    return ResponseHead(
        id=response_id,
        created_at=int(time.time()),
        model=info.id,
        **applied,
        instructions=sent.get("instructions"),
        previous_response_id=sent.get("previous_response_id"),
        tools=sent.get("tools") or (),
        tool_choice=sent.get("tool_choice") or "auto",
        parallel_tool_calls=given(body.parallel_tool_calls, True),
        max_tool_calls=sent.get("max_tool_calls"),
        max_output_tokens=sent.get("max_output_tokens"),
        text=sent.get("text"),
        reasoning=sent.get("reasoning"),
        top_logprobs=sent.get("top_logprobs") or 0,
        metadata=sent.get("metadata") or {},
        store=keeps,
        safety_identifier=sent.get("safety_identifier"),
        prompt_cache_key=sent.get("prompt_cache_key"),
        prompt_cache_retention=sent.get("prompt_cache_retention"),
        user=sent.get("user"),
        dropped_tools=dropped_tools,
    )


def _applied(body: ResponseRequest, name: str, info: ModelInfo) -> float:
    """The value of a sampling field that the engine uses."""
    value: float = given(getattr(body, name), getattr(info.defaults, name))
    low, high = info.sampling_ranges.get(name, (value, value))
    return min(max(value, low), high)


class Answering:
    """One response on its way. Where a compaction comes first, the generation is opened behind it.

    `save` keeps the finished draft; `threshold` are the prompt tokens from which on the
    conversation is compacted, None for never.
    """

    def __init__(
        self,
        call: Call,
        asked: Asked,
        request: GenerationRequest,
        draft: ResponseDraft,
        save: Callable[[], Awaitable[None]],
        threshold: int | None,
    ) -> None:
        self._call = call
        self._asked = asked
        self._request = request
        self._draft = draft
        self._save = save
        self._threshold = threshold
        self._generation: Generation | None = None

    async def open(self) -> None:
        """Begin to generate, unless a compaction comes first. Raises what opening one does."""
        call = self._call
        if self._threshold is not None and not self._asked.triggers:
            size = await call.service.count(self._request)
            self._threshold = self._threshold if size >= self._threshold else None
        if self._threshold is None and not self._asked.triggers:
            self._generation = await call.unless_gone(call.service.open([self._request]))

    def close(self) -> None:
        if self._generation is not None:
            self._generation.close()

    async def events(self) -> AsyncGenerator[bytes, None]:
        """All events of the response."""
        draft = self._draft
        for event in draft.begin():
            yield event
        if self._generation is None:
            made = await self._compact()
            for event in draft.compacted(cast(str, made.item["encrypted_content"])):
                yield event
            if self._asked.triggers:
                for event in draft.take(Finished(FinishCause.END, made.usage)):
                    yield event
                last = draft.end()
                await self._save()
                yield last
                return
            conversation = cast(Conversation, self._request.prompt)
            shorter = replace(conversation, messages=replaced(conversation.messages, made.note))
            request = replace(self._request, prompt=shorter)
            self._generation = await self._call.service.open([request])
        async for event in response_events(draft, self._generation, self._save):
            yield event

    async def whole(self) -> bytes:
        """The response as one object."""
        async for _ in self.events():
            pass
        return self._draft.final

    async def _compact(self) -> Compacted:
        conversation = cast(Conversation, self._request.prompt)
        return await compact(self._call, conversation.messages, None, None)
