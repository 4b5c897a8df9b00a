"""Request ids: one a request, in the headers where each protocol's clients look for it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.types import ASGIApp

from tests.adapters.asgi import app_of, app_serving, call
from tests.serving import PlayedClient, facts, service_over

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8}
VERSION = {"anthropic-version": "2023-06-01"}


def idle_app() -> ASGIApp:
    return app_of(service_over(PlayedClient(), facts()))


async def test_every_reply_has_an_id_of_its_own() -> None:
    app = idle_app()
    asked = [("GET", "/health"), ("GET", "/nothing"), ("DELETE", CHAT), ("POST", CHAT)]
    answers = [await call(app, method, path) for method, path in asked * 2]
    found = {answer.headers["x-request-id"] for answer in answers}
    assert len(found) == len(answers)
    assert all(re.fullmatch(r"req_[0-9a-f]{24}", name) for name in found)
    async with app_serving("ok") as (app, _):
        stream = await call(app, "POST", CHAT, {**ASK, "stream": True})
    assert stream.headers["x-request-id"] not in found


ANTHROPICS: list[tuple[str, str, dict[str, str]]] = [
    ("POST", MESSAGES, {}),
    ("POST", f"{MESSAGES}/count_tokens", {}),
    ("GET", f"{MESSAGES}/batches", {}),
    ("DELETE", MESSAGES, {}),
    ("GET", "/v1/models", VERSION),
    ("GET", "/v1/models/first", VERSION),
    ("GET", "/v1/models/third", {"anthropic-version": ""}),
    ("GET", "/nothing", VERSION),
]
OTHERS = [("POST", CHAT), ("GET", "/v1/models"), ("GET", "/nothing"), ("GET", "/health")]


@pytest.mark.parametrize(("method", "path", "headers"), ANTHROPICS)
async def test_anthropics_clients_find_the_id_where_they_look_for_it(
    method: str, path: str, headers: dict[str, str]
) -> None:
    answer = await call(idle_app(), method, path, b"", headers)
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    if answer.status != 200:
        assert answer.json["request_id"] == answer.headers["request-id"]


@pytest.mark.parametrize(("method", "path"), OTHERS)
async def test_other_replies_have_one_id_header(method: str, path: str) -> None:
    assert "request-id" not in (await call(idle_app(), method, path)).headers


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_and_streams_of_messages_have_the_id(stream: bool) -> None:
    async with app_serving("ok") as (app, _):
        answer = await call(app, "POST", MESSAGES, {**ASK, "stream": stream})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream") is stream
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
