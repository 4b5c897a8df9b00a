"""Event streams over a recorded ASGI connection: framing, silence, disconnects, failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from adapters import sse
from tests.adapters.asgi import Exchange


class Source:
    """A generator whose events the test hands out one by one; None ends it."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.finalised = asyncio.Event()

    async def events(self) -> AsyncGenerator[bytes, None]:
        try:
            while (item := await self.queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.finalised.set()


class Stream:
    """An `EventStream` that runs as a task."""

    def __init__(
        self, silence: float = 0, heartbeat: Callable[[], bytes] = lambda: sse.COMMENT
    ) -> None:
        self.source = Source()
        self.closed = 0
        response = sse.EventStream(
            self.source.events(), heartbeat=heartbeat, silence=silence, close=self._close
        )
        self.exchange = Exchange(response, {"type": "http"}, b"")
        self.task = asyncio.create_task(self.exchange.run())

    def _close(self) -> None:
        self.closed += 1

    async def push(self, item: bytes | Exception | None) -> None:
        await self.source.queue.put(item)


def test_data_is_one_event() -> None:
    assert sse.data(b'{"a":1}') == b'data: {"a":1}\n\n'


async def test_each_item_is_one_write_and_the_end_is_announced() -> None:
    stream = Stream()
    for item in (b"data: 1\n\n", b"data: 2\n\n", None):
        await stream.push(item)
    exchange = await stream.task
    assert exchange.parts == [b"data: 1\n\n", b"data: 2\n\n"]
    assert (exchange.status, exchange.ended, stream.closed) == (200, True, 1)
    assert exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert exchange.headers["cache-control"] == "no-cache"
    assert "content-length" not in exchange.headers


async def test_the_headers_do_not_wait_for_the_first_event() -> None:
    stream = Stream()
    await stream.exchange.began()
    assert stream.exchange.parts == []
    await stream.push(None)
    await stream.task


async def test_silence_is_broken_by_heartbeats_until_the_next_event() -> None:
    stream = Stream(silence=0.01)
    await stream.exchange.until(2)
    assert set(stream.exchange.parts) == {sse.COMMENT}
    await stream.push(b"data: 1\n\n")
    await stream.push(None)
    await stream.task
    assert stream.exchange.parts[-1] == b"data: 1\n\n"


async def test_each_heartbeat_is_made_anew() -> None:
    numbers = iter(range(100))
    stream = Stream(silence=0.01, heartbeat=lambda: b"%d" % next(numbers))
    await stream.exchange.until(2)
    await stream.push(None)
    await stream.task
    assert stream.exchange.parts[:2] == [b"0", b"1"]


async def test_an_empty_heartbeat_is_none() -> None:
    asked = asyncio.Event()

    def nothing() -> bytes:
        asked.set()
        return b""

    stream = Stream(silence=0.01, heartbeat=nothing)
    await asked.wait()
    await stream.push(b"x")
    await stream.push(None)
    await stream.task
    assert stream.exchange.parts == [b"x"]


async def test_no_heartbeat_is_made_while_the_client_does_not_read() -> None:
    """It would be numbered behind events that are made before it is written."""
    made = 0

    def heartbeat() -> bytes:
        nonlocal made
        made += 1
        return b"beat"

    stream = Stream(silence=0.005, heartbeat=heartbeat)
    await stream.exchange.until(1)
    stream.exchange.gate.clear()
    await stream.push(b"x")
    await asyncio.sleep(0.01)
    before = made
    await asyncio.sleep(0.03)
    assert made == before
    stream.exchange.gate.set()
    await stream.push(None)
    await stream.task
    assert stream.exchange.parts == [b"beat"] * made + [b"x"]


async def test_a_stream_that_speaks_needs_no_heartbeat() -> None:
    stream = Stream(silence=30)
    for _ in range(5):
        await stream.push(b"x")
    await stream.push(None)
    await stream.task
    assert stream.exchange.parts == [b"x"] * 5


@pytest.mark.parametrize("silence", [0, 30])
async def test_a_disconnect_cancels_a_generator_that_waits(silence: float) -> None:
    stream = Stream(silence)
    await stream.push(b"x")
    await stream.exchange.until(1)
    stream.exchange.gone.set()
    await stream.task
    assert stream.source.finalised.is_set()
    assert (stream.closed, stream.exchange.ended) == (1, False)
    assert len(asyncio.all_tasks()) == 1


async def test_a_disconnect_ends_a_stream_whose_client_does_not_read() -> None:
    stream = Stream()
    await stream.push(b"x")
    await stream.exchange.until(1)
    stream.exchange.gate.clear()
    await stream.push(b"y")
    stream.exchange.gone.set()
    await stream.task
    assert stream.closed == 1 and stream.source.finalised.is_set()


async def test_a_slow_client_loses_nothing() -> None:
    stream = Stream()
    items = [b"%d" % number for number in range(50)]
    await stream.push(items[0])
    await stream.exchange.until(1)
    stream.exchange.gate.clear()
    for item in [*items[1:], None]:
        await stream.push(item)
    await asyncio.sleep(0)
    assert stream.exchange.parts == items[:1]
    stream.exchange.gate.set()
    await stream.task
    assert stream.exchange.parts == items


async def test_an_error_of_the_generator_closes_and_is_raised() -> None:
    stream = Stream(silence=30)
    await stream.push(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await stream.task
    assert stream.closed == 1 and stream.source.finalised.is_set()
    assert len(asyncio.all_tasks()) == 1


async def test_a_request_that_the_server_cancels_stays_cancelled() -> None:
    """Swallowing it would let a server that is told to stop go on."""
    stream = Stream()
    await stream.push(b"x")
    await stream.exchange.until(1)
    stream.task.cancel()
    await asyncio.wait({stream.task})
    assert stream.closed == 1 and stream.source.finalised.is_set()
    assert stream.task.cancelled()


async def test_a_client_that_is_gone_before_the_start_is_noticed() -> None:
    stream = Stream()
    stream.exchange.gone.set()
    await stream.task
    assert stream.closed == 1
