"""Calls an ASGI application and records every message that it sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Scope

from adapters.app import build_app
from adapters.auth import Keys
from adapters.seal import Seal
from engine.config import Config
from engine.service import Service
from tests.serving import serving

SEAL = Seal(bytes(range(32)))
"""The seal of every application here."""


@dataclass
class Exchange:
    """One request and the reply to it, as it grows. `gate` holds every send back while unset."""

    app: ASGIApp
    scope: Scope
    body: bytes
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    ended: bool = False

    def __post_init__(self) -> None:
        self.gone = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.wrote = asyncio.Condition()
        self._sent = False

    async def run(self) -> Exchange:
        await self.app(self.scope, self._receive, self._send)
        return self

    async def until(self, count: int) -> None:
        """Wait for a number of body parts."""
        async with self.wrote:
            await self.wrote.wait_for(lambda: len(self.parts) >= count)

    async def began(self) -> None:
        """Wait for status and headers."""
        async with self.wrote:
            await self.wrote.wait_for(lambda: self.status != 0)

    async def _receive(self) -> Message:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self.gate.wait()
        async with self.wrote:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            elif message.get("body"):
                self.parts.append(message["body"])
            self.ended |= message["type"] == "http.response.body" and not message.get("more_body")
            self.wrote.notify_all()

    @property
    def content(self) -> bytes:
        return b"".join(self.parts)

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> dict[str, Any]:
        """The error object, whose envelope is checked on the way."""
        assert set(self.json) == {"error"}
        assert set(self.json["error"]) == {"message", "type", "param", "code"}
        assert self.headers["content-type"] == "application/json"
        found: dict[str, Any] = self.json["error"]
        return found

    @property
    def anthropic_error(self) -> dict[str, Any]:
        """The same of an Anthropic reply, which names its request in body and headers."""
        assert set(self.json) == {"type", "error", "request_id"}
        assert self.json["type"] == "error"
        assert set(self.json["error"]) - {"details"} == {"type", "message"}
        assert self.headers["content-type"] == "application/json"
        ids = {self.headers[name] for name in ("request-id", "x-request-id")}
        assert ids == {self.json["request_id"]}
        found: dict[str, Any] = self.json["error"]
        return found

    @property
    def events(self) -> list[Any]:
        """The data of each event; comments are left out, `[DONE]` is a string."""
        assert self.headers["content-type"].startswith("text/event-stream")
        texts = [part.decode() for part in self.parts if not part.startswith(b":")]
        assert all(text.startswith("data: ") and text.endswith("\n\n") for text in texts)
        payloads = [text[6:-2] for text in texts]
        return [payload if payload == "[DONE]" else json.loads(payload) for payload in payloads]


def exchange(
    app: ASGIApp,
    method: str,
    path: str,
    body: object = b"",
    headers: Mapping[str, str | bytes] | None = None,
) -> Exchange:
    """A request that is not yet run; anything but bytes becomes a JSON body."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    path, _, query = path.partition("?")
    given = {"content-type": "application/json"} if raw else {}
    pairs = [
        (name.lower().encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in {**given, **(headers or {})}.items()
    ]
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": pairs,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    return Exchange(app, scope, raw)


async def call(
    app: ASGIApp,
    method: str,
    path: str,
    body: object = b"",
    headers: Mapping[str, str | bytes] | None = None,
) -> Exchange:
    return await exchange(app, method, path, body, headers).run()


def app_of(service: Service, keys: Mapping[str, str] | None = None, **options: Any) -> ASGIApp:
    return build_app(service, Config(**options), Keys(keys or {}), SEAL)


@asynccontextmanager
async def app_serving(
    *replies: Any, keys: Mapping[str, str] | None = None, config: Any = None, **changes: Any
) -> AsyncIterator[tuple[ASGIApp, Service]]:
    """The whole application over the scripted engine."""
    async with serving(*replies, **changes) as service:
        yield app_of(service, keys, **(config or {})), service
