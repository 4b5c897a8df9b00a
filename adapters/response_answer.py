"""How a response is answered: at once, after a compaction, or by one alone."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_core import to_json

from adapters.call import Call
from adapters.decode import given
from adapters.response_compaction import Compacted, compact, replaced
from adapters.response_events import ResponseDraft, response_events
from adapters.response_object import ResponseHead
from adapters.response_tools import ResponseTools
from adapters.response_transcript import is_note
from engine.conversation import Conversation, Message
from engine.errors import RequestError
from engine.events import FinishCause, Finished
from engine.generation import Generation
from engine.types import GenerationRequest, ModelInfo
from generated.responses import ResponseRequest


@dataclass(frozen=True, slots=True)
class Asked:
    """A body as the engine takes it, with what the answer needs besides.

    `items` are the request's own, without references; the conversation has those before them too.
    `triggers`: a compaction is asked for, and no answer.
    """

    request: GenerationRequest
    tools: ResponseTools
    items: list[Any]
    triggers: bool


_ECHOED = (
    "instructions", "previous_response_id", "tools", "tool_choice", "max_tool_calls",
    "max_output_tokens", "text", "reasoning", "top_logprobs", "metadata", "safety_identifier",
    "prompt_cache_key", "prompt_cache_retention", "user",
)  # fmt: skip
_RANGED = ("temperature", "top_p", "presence_penalty", "frequency_penalty")


def head_of(
    body: ResponseRequest,
    response_id: str,
    dropped_tools: Sequence[str],
    info: ModelInfo,
    *,
    keeps: bool,
) -> ResponseHead:
    """What the response says of its request. Raises RequestError for what cannot be repeated."""
    told: dict[str, Any] = {name: _applied(body, name, info) for name in _RANGED}
    told |= {name: value for name in _ECHOED if (value := _sent(body, name)) is not None}
    return ResponseHead(
        id=response_id,
        created_at=int(time.time()),
        model=info.id,
        parallel_tool_calls=given(body.parallel_tool_calls, True),
        store=keeps,
        dropped_tools=dropped_tools,
        **told,
    )


def _sent(body: ResponseRequest, name: str) -> Any:
    """A field as JSON; None where it is absent."""
    try:
        value = body.model_dump(mode="json", by_alias=True, include={name}).get(name)
        to_json([{name: value}])
    except ValueError:  # nested more deeply than a response is written
        raise RequestError(f"{name} is nested too deeply", name) from None
    return value


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
            request = replace(self._request, prompt=_shorter(conversation, made.note))
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


def _shorter(conversation: Conversation, note: str) -> Conversation:
    """The conversation with a note for its past. What told of tools is gone: all are listed."""
    messages = replaced(list(_without_done_work(conversation.messages)), note)
    tools = tuple(replace(tool, listed=True) for tool in conversation.tools)
    return replace(conversation, messages=messages, tools=tools)


def _without_done_work(messages: Sequence[Message]) -> Iterator[Message]:
    """All but the model's turns before the last one, with what they called, and earlier notes.

    Where an agent works, the user speaks once, and everything else follows.
    """
    last_answer = max((at for at, one in enumerate(messages) if one.role == "assistant"), default=0)
    for at, one in enumerate(messages):
        is_done = at < last_answer and one.role in ("assistant", "tool")
        if not is_done and not is_note(one):
            yield one
