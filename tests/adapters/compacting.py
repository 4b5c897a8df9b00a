"""Calls whose generations the test writes, for compaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from starlette.requests import Request
from starlette.types import Message as Received

from adapters.call import Call
from adapters.response_compaction import Compacted, compact
from engine.client import TokenEvent, TokenStream
from engine.config import Config
from engine.conversation import Message, Reasoning, Text, ToolCall, ToolResult
from engine.events import FinishCause
from engine.messages import TokenRequest
from engine.service import Service
from tests.adapters.asgi import SEAL
from tests.serving import PlayedClient, facts, ids, service_over, tokenizer

TENANT = "tenant"
WINDOW = 8192
Pass = str | tuple[str, FinishCause]


class Passes(PlayedClient):
    """Answers each request with the next of some texts; one without a cause ends by itself."""

    def __init__(self, *passes: Pass) -> None:
        super().__init__()
        self.passes = list(passes)

    def submit(self, requests: Sequence[TokenRequest]) -> TokenStream:
        stream = super().submit(requests)
        text, cause = _with_cause(self.passes.pop(0))
        if text:
            self.say(text, cause, place=-1)
        if not text or cause is None:
            end = tokenizer().eos_ids[0]
            self.push(TokenEvent(requests[0].key, end, cause=cause or FinishCause.END))
        return stream

    @property
    def prompts(self) -> list[str]:
        return [tokenizer().decode(request.token_ids) for request in self.requests]


def _with_cause(one: Pass) -> tuple[str, FinishCause | None]:
    return (one, None) if isinstance(one, str) else one


def service_of(*passes: Pass, window: int = WINDOW) -> tuple[Service, Passes]:
    client = Passes(*passes)
    return service_over(client, facts(window)), client


def call_over(service: Service, tenant: str = TENANT, *, gone: bool = False) -> Call:
    """A call whose client waits, or has gone."""

    async def receive() -> Received:
        if not gone:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    request = Request({"type": "http", "request_id": "req_1", "headers": []}, receive)
    return Call(request, service, Config(), SEAL, None, tenant, None)


def said(role: str, text: str) -> Message:
    return Message(cast("object", role), (Text(text),))  # type: ignore[arg-type]


USER = said("user", "Move the parser to src/parse.py, and keep Python 3.11.")
SESSION = (
    said("system", "You are a careful engineer."),
    USER,
    Message(
        "assistant",
        (
            Reasoning("secret thoughts"),
            Text("I look first."),
            ToolCall("c1", "shell", '{"cmd": "ls src"}'),
        ),
    ),
    Message("tool", (ToolResult("c1", ("main.py", "util.py")),)),
    said("assistant", "Moved. The tests remain."),
    said("user", "Go on with the tests."),
)
NOTE = "Demands\n- parser in src/parse.py, Python 3.11\n\nNext step\n- write tests/test_parse.py"


async def run(
    *passes: Pass,
    messages: Sequence[Message] = SESSION,
    max_tokens: int | None = None,
    instructions: str | None = None,
    window: int = WINDOW,
) -> tuple[Compacted, Passes]:
    service, client = service_of(*passes, window=window)
    made = await compact(call_over(service), messages, instructions, max_tokens)
    assert service.held == 0 and not client.passes
    return made, client


def size(text: str) -> int:
    return len(ids(text))
