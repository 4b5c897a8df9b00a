"""Calls whose generations the test writes, for compaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from starlette.requests import Request
from starlette.types import Message as Received

from adapters.call import Call
from engine.client import TokenEvent, TokenStream
from engine.config import Config
from engine.conversation import Message, Text
from engine.events import FinishCause
from engine.messages import TokenRequest
from engine.service import Service
from tests.adapters.asgi import SEAL
from tests.serving import PlayedClient, facts, service_over, tokenizer

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
