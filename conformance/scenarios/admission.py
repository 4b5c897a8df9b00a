"""Places: who waits, who is refused, and who gives a place back by leaving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from conformance import sse
from conformance.profiles import Pool
from conformance.replies import PATHS, opened, send
from conformance.server import Server


def _chat(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "stream": True, **fields}


def leaving_the_queue(pool: Pool, _: Callable[..., Server]) -> None:
    """D037: one place; A runs, B waits and goes; B is never computed, and A is not disturbed."""
    server = pool.get("narrow")
    before = server.until_idle()
    with opened(server.http, "chat", _chat("D037")) as first:
        stream = sse.events(first.iter_raw())
        next(stream)
        computed = server.until(lambda m: m["active"] == 1, "A runs")["prefill_tokens"]
        with opened(server.http, "chat", _chat("D037 and words of its own " * 20)):
            server.until(lambda m: m["pending"] == 1, "B waits")
        after = server.until(lambda m: m["pending"] == 0, "B has left the queue")
        assert after["active"] == 1, "A ended before B left; the case proves nothing"
        assert list(stream)[-1].data == sse.DONE
    moved = server.until_idle_since(before)
    assert (moved["completed"], moved["cancelled"]) == (1, 1), moved
    assert moved["prefill_tokens"] == computed - before["prefill_tokens"], "B was computed"


def leaving_with_children(pool: Pool, _: Callable[..., Server]) -> None:
    """D039: a stream of three choices is dropped after its first chunk; all three stop."""
    server = pool.get("scripted")
    before = server.until_idle()
    body = {"prompt": "D039", "n": 3, "stream": True, "max_tokens": 80}
    with opened(server.http, "completions", body) as response:
        stream = sse.events(response.iter_raw())
        next(stream)
        server.until(lambda m: (m["held"], m["active"]) == (3, 3), "all three run")
    moved = server.until_idle_since(before)
    assert (moved["started"], moved["cancelled"]) == (3, 3), moved
    assert moved["generated_tokens"] < 3 * 80, "the children ran to their end"


def leaving_buffered(pool: Pool, _: Callable[..., Server]) -> None:
    """D039: a client that gives up on a buffered reply stops its generation too."""
    server = pool.get("scripted")
    before = server.until_idle()
    body = _chat("D039-BUFFERED", stream=False, n=2)
    with pytest.raises(httpx2.TimeoutException):
        server.http.post(PATHS["chat"], json=body, timeout=0.4)
    moved = server.until_idle_since(before)
    assert (moved["started"], moved["cancelled"]) == (2, 2), moved


def full(pool: Pool, _: Callable[..., Server]) -> None:
    """D040: with every place taken a request is refused at once, and the running ones go on."""
    server = pool.get("narrow")
    before = server.until_idle()
    with (
        opened(server.http, "chat", _chat("D040")) as first,
        opened(server.http, "chat", _chat("D040 too")) as second,
    ):
        server.until(lambda m: m["held"] == 2, "both places are taken")
        for route, body in (
            ("chat", _chat("hello")),
            ("chat", _chat("hello", stream=False)),
            ("completions", {"prompt": "hello"}),
        ):
            reply = send(server.http, route, body)
            assert reply.status == 429, reply
            assert reply.error and reply.error["type"] == "rate_limit_error"
            assert int(reply.headers["retry-after"]) >= 1
        for response in (first, second):
            assert list(sse.events(response.iter_raw()))[-1].data == sse.DONE
    moved = server.until_idle_since(before)
    assert (moved["refused"], moved["completed"]) == (3, 2), moved
    too_many = send(server.http, "chat", _chat("hello", stream=False, n=3))
    assert too_many.status == 400 and too_many.error and too_many.error["param"] == "n"
    assert send(server.http, "chat", _chat("hello")).finish == "stop"


SCENARIOS = (leaving_the_queue, leaving_with_children, leaving_buffered, full)
