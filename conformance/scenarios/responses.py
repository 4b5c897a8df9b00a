"""Responses on the wire: places, encodings, frames, signs of life, and the refused WebSocket."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

from openai import OpenAI

from conformance import sse
from conformance.profiles import ALIASES, KEYS, SMALL_BODY, Pool
from conformance.replies import PATHS, opened, send
from conformance.reply import RESPONSES, error_of
from conformance.server import Server

PATH = PATHS["responses"]


def asked(text: Any, **fields: Any) -> dict[str, Any]:
    """A body with an input."""
    return {"model": ALIASES[0], "input": text, **fields}


def full_for_responses(pool: Pool, _: Callable[..., Server]) -> None:
    """D040: with every place taken a response is refused at once; the running ones go on, and
    counting needs no place."""
    server = pool.get("narrow")
    before = server.until_idle()
    with (
        opened(server.http, "responses", asked("D040-RESPONSES", stream=True)) as first,
        opened(server.http, "responses", asked("D040-RESPONSES too", stream=True)) as second,
    ):
        server.until(lambda m: m["held"] == 2, "both places are taken")
        for streams in (True, False):
            reply = send(server.http, "responses", asked("hello", stream=streams))
            assert reply.status == 429, reply
            assert reply.error and reply.error["type"] == "rate_limit_error"
            assert int(reply.headers["retry-after"]) >= 1
        assert send(server.http, "compact", asked("hello")).status == 429
        assert send(server.http, "input_tokens", asked("hello")).status == 200
        for response in (first, second):
            last = list(sse.events(response.iter_raw()))[-1]
            assert last.name == "response.completed", last
    moved = server.until_idle_since(before)
    assert (moved["refused"], moved["completed"]) == (3, 2), moved
    assert send(server.http, "responses", asked("hello")).finish == "completed"


def response_heartbeats(pool: Pool, _: Callable[..., Server]) -> None:
    """D034: in silence response.in_progress comes again, and the SDK reads on."""
    server = pool.get("narrow")
    with opened(server.http, "responses", asked("D034-RESPONSES", stream=True)) as response:
        names = [event.name for event in sse.events(response.iter_raw())]
    begun = names.index("response.output_item.added")
    assert names[:2] == ["response.created", "response.in_progress"], names
    assert names[2:begun].count("response.in_progress") >= 3, f"few signs of life: {names}"
    assert "response.in_progress" not in names[begun:], names
    reply = send(server.http, "responses", asked("D034-RESPONSES", stream=True))
    assert reply.text == "at last" and reply.comments >= 3, reply
    slow = send(server.http, "responses", asked("D034-RESPONSES slow", stream=True))
    assert slow.text == "one two three" and slow.comments >= 2, slow.chunks
    client = OpenAI(base_url=f"{server.url}/v1", api_key="x", _strict_response_validation=True)
    with client.responses.stream(model="m", input="D034-RESPONSES") as stream:
        assert stream.get_final_response().output_text == "at last"


def response_frames(pool: Pool, _: Callable[..., Server]) -> None:
    """Every frame is an event line, a data line and a blank one; there is no [DONE]."""
    server = pool.get("thinker")
    response = server.http.post(PATH, json=asked("D004", stream=True))
    assert response.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    raw = response.content
    assert b"[DONE]" not in raw and b"\r" not in raw and raw.endswith(b"\n\n")
    for number, frame in enumerate(raw[:-2].split(b"\n\n")):
        event, data = frame.split(b"\n")
        assert event.startswith(b"event: ") and data.startswith(b"data: "), frame
        found = json.loads(data.removeprefix(b"data: "))
        assert found["type"] == event.removeprefix(b"event: ").decode(), frame
        assert found["sequence_number"] == number, frame
    assert found["type"] == "response.completed", found


def refused_websocket(pool: Pool, _: Callable[..., Server]) -> None:
    """An upgrade is refused at once so that Codex speaks HTTP; anything else is no method."""
    client = pool.get("scripted").http
    upgrade = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "openai-beta": "responses_websockets=2026-02-06",
    }
    refused = client.get(PATH, headers=upgrade)
    assert refused.status_code == 426, refused.text
    assert error_of(refused.json())["code"] == "upgrade_required"
    assert refused.headers["x-request-id"].startswith("req_")
    plain = client.get(PATH)
    assert plain.status_code == 405 and "POST" in plain.headers["allow"], plain.headers
    assert error_of(plain.json())["type"] == "invalid_request_error"
    cancelled = client.post(f"{PATH}/resp_none/cancel")
    assert cancelled.status_code == 404, cancelled.text
    kept = send(pool.get("scripted").http, "responses", asked("hello"))
    cancelled = client.post(f"{PATH}/{kept.body['id']}/cancel")
    assert cancelled.status_code == 400, cancelled.text
    assert error_of(cancelled.json())["type"] == "invalid_request_error"


def response_encodings(pool: Pool, _: Callable[..., Server]) -> None:
    """D031: compressed bodies on the routes of Responses."""
    server = pool.get("guarded")
    body = json.dumps(asked("hello")).encode()
    large = json.dumps(asked("a" * SMALL_BODY)).encode()
    for route in RESPONSES:
        for content, encoding, status in (
            (gzip.compress(body), "gzip", 200),
            (body, "identity", 200),
            (b"\x00corrupt\xff", "gzip", 400),
            (b"\x00corrupt\xff", "zstd", 400),
            (body, "snappy", 415),
            (gzip.compress(large), "gzip", 413),
            (large, "identity", 413),
        ):
            headers = {
                "authorization": f"Bearer {KEYS['ops']}",
                "content-type": "application/json",
                "content-encoding": encoding,
            }
            response = server.http.post(PATHS[route], content=content, headers=headers)
            assert response.status_code == status, f"{encoding}: {response.text[:300]}"
            if status != 200:
                assert error_of(response.json())["message"], response.text


SCENARIOS = (
    full_for_responses, response_heartbeats, response_frames, refused_websocket,
    response_encodings,
)  # fmt: skip
