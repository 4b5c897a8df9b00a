"""Server-sent events: one write per event, signs of life in silence, an end with the client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

COMMENT = b": keep-alive\n\n"
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


def data(payload: bytes) -> bytes:
    """An event without a name."""
    return b"data: " + payload + b"\n\n"


def event(name: bytes, payload: bytes) -> bytes:
    """An event with a name."""
    return b"event: " + name + b"\ndata: " + payload + b"\n\n"


class EventStream(Response):
    """Sends what a generator yields, each item as one event.

    After `silence` seconds without an event, `heartbeat()` is sent (0: never). When the client
    disconnects, the generator is cancelled wherever it waits. `close` runs at the end in any case.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        heartbeat: Callable[[], bytes],
        silence: float,
        close: Callable[[], None],
    ) -> None:
        self.status_code = 200
        self.background = None
        self.raw_headers = list(_HEADERS)  # Response.init_headers would declare a length of 0
        self._events = events
        self._heartbeat = heartbeat
        self._silence = silence
        self._close = close
        self._last = time.monotonic()
        self._gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        sender = asyncio.create_task(self._send_all(send))
        watchers = [asyncio.create_task(self._wait_for_disconnect(receive, sender))]
        if self._silence > 0:
            watchers.append(asyncio.create_task(self._beat(send)))
        try:
            await sender
        except asyncio.CancelledError:
            if not self._gone:  # the server stops this request, not the client
                sender.cancel()
                raise
        finally:
            for watcher in watchers:
                watcher.cancel()
            await self._events.aclose()
            self._close()

    async def _send_all(self, send: Send) -> None:
        async for event in self._events:
            await self._write(event, send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, event: bytes, send: Send) -> None:
        self._last = time.monotonic()
        await send({"type": "http.response.body", "body": event, "more_body": True})

    async def _beat(self, send: Send) -> None:
        while True:
            quiet = time.monotonic() - self._last
            if quiet >= self._silence:
                await self._write(self._heartbeat(), send)
                quiet = 0.0
            await asyncio.sleep(self._silence - quiet)

    async def _wait_for_disconnect(self, receive: Receive, sender: asyncio.Task[None]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        sender.cancel()
