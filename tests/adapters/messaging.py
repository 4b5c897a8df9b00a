"""Bodies of Messages and the calls that bring them; messages put together from their events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic_core import from_json
from starlette.requests import Request

from adapters.call import Call
from adapters.messages import Decoded, create_message, decode
from adapters.validation import validate
from engine.config import Config
from engine.conversation import Conversation, Message, Reasoning, Text, ToolCall, ToolResult
from engine.counters import Counters
from engine.errors import RequestError
from engine.generation import Generation
from engine.service import Service
from engine.types import GenerationRequest
from generated.messages import MessageEvent, MessageReply, MessagesRequest, PromptFields
from generated.shared import AnthropicError
from tests.adapters.asgi import SEAL
from tests.serving import facts, model_info

TENANT = "tenant"
MODEL = model_info(facts()).checkpoint
T = TypeVar("T")
USER: dict[str, Any] = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
_EVENT: TypeAdapter[MessageEvent] = TypeAdapter(MessageEvent)


class Opened(Exception):
    """What a handler opened is told; nothing is generated."""


class CountingService:
    """Stands in for a `Service`. A token of a prompt is a character that a client sent in it."""

    def __init__(self) -> None:
        self.info = model_info(facts())
        self.counters = Counters()
        self.counted: list[GenerationRequest] = []
        self.opened: list[GenerationRequest] = []

    async def offload(self, work: Callable[[], T]) -> T:
        return work()

    async def open(self, requests: Sequence[GenerationRequest]) -> Generation:
        self.opened += requests
        raise Opened

    async def count(self, request: GenerationRequest) -> int:
        self.counted.append(request)
        messages = cast(Conversation, request.prompt).messages
        return sum(len(text) for message in messages for text in texts(message))


def texts(message: Message) -> Iterator[str]:
    """All text of a message, whoever said it."""
    for part in message.parts:
        match part:
            case Text() | Reasoning():
                yield part.text
            case ToolCall():
                yield part.arguments
            case ToolResult():
                yield from part.texts


def call_of(
    service: CountingService | None = None, tenant: str = TENANT, body: BaseModel | None = None
) -> Call:
    """A call as the handlers get it, without an application around it."""
    request = Request({"type": "http", "request_id": "req_1", "headers": []}, _silence)
    return Call(
        request, cast(Service, service or CountingService()), Config(), SEAL, None, tenant, body
    )


async def _silence() -> Any:
    await asyncio.Event().wait()


async def opened(**fields: Any) -> GenerationRequest:
    """What the route's handler has generated for a body. Raises RequestError."""
    service = CountingService()
    with contextlib.suppress(Opened):
        await create_message(call_of(service, body=body_of(**fields)))
    [request] = service.opened
    return request


def body_of(*messages: dict[str, Any], **fields: Any) -> MessagesRequest:
    """A body that the spec allows."""
    body = {"max_tokens": 64, "messages": list(messages or [USER]), **fields}
    return validate(MessagesRequest, body)


def read(body: PromptFields, service: CountingService | None = None) -> Decoded:
    return decode(body, call_of(service))


def conversation(*messages: dict[str, Any], **fields: Any) -> Conversation:
    return cast(Conversation, read(body_of(*messages, **fields)).request.prompt)


def refused(*messages: dict[str, Any], **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        conversation(*messages, **fields)
    return caught.value


# Blocks


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def thinking(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, **more}


def used(call_id: str, name: str = "f", arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}, **more}


def answered(call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def found(*names: str) -> list[dict[str, Any]]:
    """The content of a result of a search for tools."""
    return [{"type": "tool_reference", "tool_name": name} for name in names]


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **more}


# Replies


def whole_of(data: bytes) -> dict[str, Any]:
    """A buffered message, as the spec has it."""
    body = json.loads(data)
    MessageReply.model_validate(body, strict=True)
    return cast(dict[str, Any], body)


def events_of(items: Iterable[bytes]) -> list[dict[str, Any]]:
    """The data of every event; each item must be exactly one, as the spec has it."""
    found = []
    for item in items:
        name, data, *end = item.split(b"\n")
        assert name.startswith(b"event: ") and data.startswith(b"data: ") and end == [b"", b""]
        event = json.loads(data[6:])
        if name == b"event: error":
            AnthropicError.model_validate(event, strict=True)
        else:
            _EVENT.validate_python(event, strict=True)
        assert event["type"] == name[7:].decode()
        found.append(event)
    return found


_MEMBERS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""The kind of block that a delta belongs to, and the member that has its text."""


def rebuilt(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that a client puts together. Fails where the grammar of events is broken."""
    start, *middle, end, stop = events
    assert start["type"] == "message_start" and stop == {"type": "message_stop"}
    message, content = start["message"], start["message"]["content"]
    assert content == [] and message["stop_reason"] is None and message["stop_sequence"] is None
    pieces: list[str] | None = None  # of the open block
    for event in middle:
        if event["type"] == "content_block_start":
            assert pieces is None and event["index"] == len(content)
            pieces = []
            content.append(event["content_block"])
            continue
        assert pieces is not None and event["index"] == len(content) - 1
        block = content[-1]
        if event["type"] == "content_block_delta":
            kind, member = _MEMBERS[event["delta"]["type"]]
            assert kind == block["type"] and event["delta"][member]
            assert not block.get("signature"), "a delta behind the signature"
            pieces.append(event["delta"][member])
            if member == "partial_json":
                block["input"] = _input("".join(pieces))
            else:
                block[member] += event["delta"][member]
        else:
            assert event["type"] == "content_block_stop"
            assert block["type"] != "thinking" or block["signature"]
            pieces = None
    assert end["type"] == "message_delta" and pieces is None
    edits = {key: end[key] for key in ("context_management",) if key in end}
    return {**message, **end["delta"], **edits, "usage": end["usage"]}


def _input(text: str) -> Any:
    """What can be read of arguments: all of them, or those before the cut."""
    try:
        value = from_json(text, allow_partial=True, allow_inf_nan=False)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
