"""The application under load and in trouble: full, draining, broken, left by its client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters import models
from engine.client import TokenEvent
from engine.events import FinishCause
from tests.adapters.asgi import app_of, app_serving, call, exchange
from tests.adapters.test_app import (
    ASK,
    BODIES,
    CHAT,
    MESSAGES,
    RESPONSE,
    RESPONSES,
    STREAM,
    VERSION,
    idle_app,
)
from tests.serving import PlayedClient, facts, reply, service_over


async def test_full_places_answer_429_or_529_and_free_ones_200() -> None:
    client = PlayedClient()
    held = service_over(client, facts(4096), max_queue=1)  # five places
    app = app_of(held)
    first = exchange(app, "POST", CHAT, {**STREAM, "n": 5})
    task = asyncio.create_task(first.run())
    await client.submitted.wait()
    refused = await call(app, "POST", CHAT, ASK)
    assert (refused.status, refused.error["code"]) == (429, "rate_limit_exceeded")
    assert int(refused.headers["retry-after"]) >= 1
    told = await call(app, "POST", MESSAGES, BODIES["create_message"])
    assert (told.status, told.anthropic_error["type"]) == (529, "overloaded_error")
    assert int(told.headers["retry-after"]) >= 1
    for path in (RESPONSES, f"{RESPONSES}/compact"):
        refused = await call(app, "POST", path, RESPONSE)
        assert (refused.status, refused.error["code"]) == (429, "rate_limit_exceeded")
        assert int(refused.headers["retry-after"]) >= 1
    counted = await call(app, "POST", f"{RESPONSES}/input_tokens", RESPONSE)
    assert counted.status == 200  # which takes no place
    first.gone.set()
    await task
    assert held.held == 0 and held.idle.is_set()
    assert held.counters.refused == 4


async def test_a_draining_server_takes_no_requests_but_ends_those_it_has() -> None:
    client = PlayedClient()
    service = service_over(client, facts())
    app = app_of(service)
    running = exchange(app, "POST", CHAT, STREAM)
    task = asyncio.create_task(running.run())
    await client.submitted.wait()
    service.draining = True
    refused = await call(app, "POST", CHAT, ASK)
    assert (refused.status, refused.error["code"]) == (503, "engine_unavailable")
    assert int(refused.headers["retry-after"]) >= 1
    told = await call(app, "POST", MESSAGES, BODIES["create_message"])
    assert (told.status, told.anthropic_error["type"]) == (503, "api_error")
    assert int(told.headers["retry-after"]) >= 1
    for path in (RESPONSES, f"{RESPONSES}/input_tokens", f"{RESPONSES}/compact"):
        refused = await call(app, "POST", path, RESPONSE)
        assert (refused.status, refused.error["code"]) == (503, "engine_unavailable")
        assert int(refused.headers["retry-after"]) >= 1
    assert (await call(app, "GET", "/v1/models")).status == 200
    assert (await call(app, "GET", "/api/tags")).status == 200
    key = client.requests[0].key
    client.push(TokenEvent(key, 65, 0))
    client.push(TokenEvent(key, client.requests[0].eos_ids[0], cause=FinishCause.END))
    await task
    assert running.events[-1] == "[DONE]" and service.idle.is_set()


async def test_a_dead_engine_answers_503() -> None:
    client = PlayedClient()
    client.failure = "the engine process has died"
    service = service_over(client, facts())
    for body in (ASK, STREAM):
        answer = await call(app_of(service), "POST", CHAT, body)
        assert (answer.status, answer.error["code"]) == (503, "engine_unavailable")
        assert "retry-after" in answer.headers
    told = await call(app_of(service), "POST", MESSAGES, BODIES["create_message"])
    assert (told.status, told.anthropic_error["type"]) == (503, "api_error")
    assert "retry-after" in told.headers
    for body in (RESPONSE, {**RESPONSE, "stream": True}):
        answer = await call(app_of(service), "POST", RESPONSES, body)
        assert (answer.status, answer.error["code"]) == (503, "engine_unavailable")
        assert "retry-after" in answer.headers
    assert service.held == 0


async def test_an_unknown_exception_is_a_500_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(info: object) -> object:
        raise KeyError("secret of the server")

    monkeypatch.setattr(models, "encode_card", broken)
    answer = await call(idle_app(), "GET", "/v1/models")
    assert (answer.status, answer.error["code"]) == (500, "internal_error")
    assert b"secret" not in answer.content
    assert "secret of the server" in caplog.text  # for the operator
    caplog.clear()
    monkeypatch.setattr(models, "encode_model", broken)
    answer = await call(idle_app(), "GET", "/v1/models", b"", VERSION)
    assert (answer.status, answer.anthropic_error["type"]) == (500, "api_error")
    assert b"secret" not in answer.content
    assert "secret of the server" in caplog.text


async def test_an_unknown_exception_mid_stream_is_logged_for_the_operator(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> bytes:
        raise KeyError("secret of the server")

    monkeypatch.setattr("adapters.chunks.ChunkEncoder._finish", broken)
    async with app_serving("ok") as (app, _):
        answer = await call(app, "POST", CHAT, STREAM)
    assert answer.events[-1]["error"]["code"] == "internal_error"
    assert b"secret" not in answer.content
    assert "secret of the server" in caplog.text


async def test_a_client_error_is_not_logged_as_ours(caplog: pytest.LogCaptureFixture) -> None:
    await call(idle_app(), "POST", CHAT, b"{")
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("fail_after", [0, 2])
async def test_a_generation_that_breaks_is_500_or_a_last_event(fail_after: int) -> None:
    async with app_serving(reply("abcdef", fail_after=fail_after)) as (app, service):
        whole = await call(app, "POST", CHAT, ASK)
        assert (whole.status, whole.error["code"]) == (500, "generation_failed")
        streamed = await call(app, "POST", CHAT, STREAM)
        assert streamed.status == 200
        assert streamed.events[-1]["error"]["type"] == "server_error"
        deltas = [event["choices"][0]["delta"] for event in streamed.events[:-1]]
        assert "".join(delta["content"] for delta in deltas) == "abcdef"[:fail_after]
        assert sum("role" in delta for delta in deltas) == min(fail_after, 1)
        assert (service.held, service.counters.failed) == (0, 2)


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
@pytest.mark.parametrize(
    ("path", "body", "choices"), [(CHAT, {**ASK, "n": 2}, 2), (RESPONSES, RESPONSE, 1)]
)
async def test_a_client_that_leaves_stops_the_engine(
    path: str, body: dict[str, Any], choices: int, stream: bool
) -> None:
    client = PlayedClient()
    service = service_over(client, facts())
    asked = exchange(app_of(service), "POST", path, {**body, "stream": stream})
    task = asyncio.create_task(asked.run())
    await client.submitted.wait()
    asked.gone.set()
    await task
    assert sorted(client.cancelled) == [request.key for request in client.requests]
    assert (service.held, service.counters.cancelled) == (0, choices)
    assert len(asyncio.all_tasks()) == 1
