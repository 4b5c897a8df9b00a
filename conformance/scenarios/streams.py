"""Streams in time: the first text, heartbeats, and failures in the middle."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from openai import OpenAI

from conformance import sse
from conformance.profiles import Pool
from conformance.replies import Reply, opened, send, take
from conformance.server import Server


def _chat(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "stream": True, **fields}


def first_text_at_once(pool: Pool, _: Callable[..., Server]) -> None:
    """D035: twenty tokens, 50 ms apart, arrive one by one from the first on."""
    server = pool.get("scripted")
    words = " ".join(["one two three four five six seven eight nine ten"] * 2)
    for route, body in {
        "chat": _chat("D035"),
        "completions": {"prompt": "D035", "stream": True, "max_tokens": 20},
    }.items():
        arrivals = []
        begun = time.monotonic()
        with opened(server.http, route, body) as response:
            headers_after = time.monotonic() - begun
            assert response.headers["content-type"].startswith("text/event-stream")
            assert response.headers["cache-control"] == "no-cache"
            assert response.headers["x-accel-buffering"] == "no"
            reply = Reply(200, response.headers)
            for event in sse.events(response.iter_raw()):
                take(reply, event, route, body)
                arrivals.append((time.monotonic() - begun, reply.choices[0].text))
        first = next(at for at, text in arrivals if text)
        last = arrivals[-1][0]
        assert reply.text == words
        assert last >= 0.9, f"twenty tokens in {last} s"
        assert headers_after < last / 2 and first < last / 2, f"{first} of {last} s"
        assert len(reply.choices[0].deltas) >= 15, "tokens were held back"


def heartbeats(pool: Pool, _: Callable[..., Server]) -> None:
    """D034: headers before the first token, comments in silence, and SDKs see none of them."""
    server = pool.get("narrow")
    begun = time.monotonic()
    with opened(server.http, "chat", _chat("D034")) as response:
        assert time.monotonic() - begun < 1.2, "headers waited for the first token"
        kinds = []
        for event in sse.events(response.iter_raw()):
            kinds.append("comment" if event.comment is not None else "data")
    assert kinds.index("data") >= 3, f"few signs of life: {kinds}"
    assert "comment" not in kinds[kinds.index("data") :], kinds
    client = OpenAI(base_url=f"{server.url}/v1", api_key="x", _strict_response_validation=True)
    chunks = list(
        client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "D034"}], stream=True
        )
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "at last"


def failure_in_a_stream(pool: Pool, _: Callable[..., Server]) -> None:
    """Helios: before the first token an error and no role; later an error; never [DONE]."""
    server = pool.get("scripted")
    before = server.until_idle()
    early = send(server.http, "chat", _chat("FAILURE early"))
    assert early.status == 200 and early.error and not early.chunks and not early.done
    late = send(server.http, "chat", _chat("FAILURE late"))
    assert late.error and late.error["type"] == "server_error" and not late.done
    assert late.choices[0].text == "one two" and late.choices[0].finish is None
    raw = send(server.http, "completions", {"prompt": "FAILURE late", "stream": True})
    assert raw.error and raw.choices[0].text == "one two"
    for text in ("FAILURE early", "FAILURE late"):
        buffered = send(server.http, "chat", _chat(text, stream=False))
        assert buffered.status == 500
        assert buffered.error and buffered.error["type"] == "server_error"
    moved = server.until_idle_since(before)
    assert (moved["failed"], moved["completed"]) == (5, 0), moved
    assert send(server.http, "chat", _chat("fine")).finish == "stop"


SCENARIOS = (first_text_at_once, heartbeats, failure_in_a_stream)
