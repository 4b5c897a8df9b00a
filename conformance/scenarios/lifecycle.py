"""The end of things: SIGTERM, the deadline of a drain, and the death of the engine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import httpx2

from conformance import sse
from conformance.profiles import Pool
from conformance.replies import Reply, error_of, opened, send, take
from conformance.server import Server

_FAILURES = {"chat": "server_error", "messages": "api_error"}
"""The type of what is the server's fault, on routes of both protocols."""
_LONG = {"match": "^long", "text": "one two three four five six seven " * 6, "delay_ms": 30}


def _chat(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "stream": True, **fields}


def drain(_: Pool, start: Callable[..., Server]) -> None:
    """D041: after SIGTERM a running stream ends well, a new request is refused, then exit 0."""
    for route, finish in (("chat", "stop"), ("messages", "end_turn")):
        server = start([_LONG], "--drain-seconds", "30")
        body = _chat("long", max_tokens=100)
        with opened(server.http, route, body) as response:
            reply = Reply(200, response.headers)
            stream = sse.events(response.iter_raw())
            take(reply, next(stream), route, body)
            server.terminate()
            _expect_refusal(server, route)
            for event in stream:
                take(reply, event, route, body)
        assert reply.done and reply.text == _LONG["text"] and reply.finish == finish
        assert server.wait(20) == 0


def drain_deadline(_: Pool, start: Callable[..., Server]) -> None:
    """D041: a stream that still runs at the deadline ends with an error event; exit 0."""
    for route, kind in _FAILURES.items():
        server = start([_LONG], "--drain-seconds", "0.3")
        body = _chat("long", max_tokens=100)
        with opened(server.http, route, body) as response:
            reply = Reply(200, response.headers)
            stream = sse.events(response.iter_raw())
            take(reply, next(stream), route, body)
            server.terminate()
            for event in stream:
                take(reply, event, route, body)
        assert reply.error and reply.error["type"] == kind and not reply.done
        assert server.wait(20) == 0


def _expect_refusal(server: Server, route: str) -> None:
    """A new request meets 503 with Retry-After, or no listener at all; it never hangs."""
    for _ in range(200):
        try:
            health = httpx2.get(f"{server.url}/health", timeout=5)
        except httpx2.ConnectError:
            return
        if health.status_code == 503:
            break
    else:
        raise AssertionError("the server does not notice SIGTERM")
    assert int(health.headers["retry-after"]) >= 1
    with httpx2.Client(base_url=server.url, timeout=5) as client:
        reply = send(client, route, _chat("hello", stream=False, max_tokens=8))
    assert reply.status == 503 and reply.error and reply.error["type"] == _FAILURES[route]
    assert int(reply.headers["retry-after"]) >= 1


def engine_death(_: Pool, start: Callable[..., Server]) -> None:
    """D042: the engine dies; open streams end with an error, health and requests say 503."""
    server = start([_LONG, {"match": "^crash", "text": "a b c d e", "crash_after": 2}])
    body = _chat("long", max_tokens=100)
    with (
        opened(server.http, "chat", body) as response,
        opened(server.http, "messages", body) as message,
    ):
        replies = {"chat": Reply(200, response.headers), "messages": Reply(200, message.headers)}
        streams = {
            "chat": sse.events(response.iter_raw()),
            "messages": sse.events(message.iter_raw()),
        }
        for route, stream in streams.items():
            take(replies[route], next(stream), route, body)
        crashed = send(server.http, "chat", _chat("crash", stream=False))
        assert crashed.status in (500, 503) and crashed.error
        for route, stream in streams.items():
            for event in stream:
                take(replies[route], event, route, body)
    for route, reply in replies.items():
        assert reply.error and reply.error["type"] == _FAILURES[route] and not reply.done
    health = server.http.get("/health")
    assert health.status_code == 503 and error_of(health.json())["type"] == "server_error"
    assert int(health.headers["retry-after"]) >= 1
    for route, streamed in product(_FAILURES, (True, False)):
        later = send(server.http, route, _chat("hello", stream=streamed, max_tokens=8))
        assert later.error and later.error["type"] == _FAILURES[route]
        assert later.status == 503 and int(later.headers["retry-after"]) >= 1
    server.until(lambda m: m["held"] == 0, "every place is free again", 5)


def half_a_request(pool: Pool, _: Callable[..., Server]) -> None:
    """Connections that die in the middle of a request leave nothing behind."""
    server = pool.get("scripted")
    address = urlsplit(server.url)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    for sent in (
        b"",
        b"GET /hea",
        head,
        head + b"content-length: 1000\r\n\r\n{",
        head + b"transfer-encoding: chunked\r\n\r\n5\r\n{",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
    ):
        with socket.create_connection((address.hostname, address.port), timeout=10) as raw:
            raw.sendall(sent)
    server.until_idle()
    assert server.http.get("/health").status_code == 200


SCENARIOS = (drain, drain_deadline, engine_death, half_a_request)
