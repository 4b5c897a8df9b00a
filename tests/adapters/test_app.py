"""The application: routes of the table, envelopes of every refusal, admission, ids."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from starlette.types import ASGIApp

from adapters.app import build_app
from adapters.auth import Keys
from engine.config import Config
from generated.routes import ROUTES, Route
from tests.adapters import responding
from tests.adapters.asgi import SEAL, Exchange, app_of, app_serving, call
from tests.serving import PlayedClient, facts, service_over, serving

CHAT = "/v1/chat/completions"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
STREAM = {**ASK, "stream": True}
MESSAGES = "/v1/messages"
VERSION = {"anthropic-version": "2023-06-01"}
BODIES: dict[str, dict[str, Any]] = {
    "create_chat_completion": ASK,
    "create_completion": {"prompt": "hi"},
    "create_message": {**ASK, "max_tokens": 8},
    "count_message_tokens": ASK,
    "create_response": {"model": "first", "input": "hi"},
    "count_input_tokens": {"model": "first", "input": "hi"},
    "compact_response": {"model": "first", "input": "hi"},
}
RESPONSES = "/v1/responses"
RESPONSE = BODIES["create_response"]
REFUSED = {"refuse_upgrade": 405, "cancel_response": 400}
"""The routes that exist to refuse, and with what."""


def idle_app(**options: Any) -> ASGIApp:
    return app_of(service_over(PlayedClient(), facts()), **options)


@asynccontextmanager
async def app_storing(folder: Path) -> AsyncIterator[ASGIApp]:
    """The application over the scripted engine, with a store."""
    async with serving("ok") as service, responding.app_of(service, folder) as app:
        yield app


def path_of(route: Route, name: str = "first") -> str:
    return re.sub(r"\{.*?\}", name, route.path)


def refusal(answer: Exchange, route: Route) -> dict[str, Any]:
    """The error object in the form of the route's protocol, to a client that names no version."""
    return answer.anthropic_error if route.envelope == "anthropic" else answer.error


@pytest.mark.parametrize("version", [{}, VERSION], ids=["", "version"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
async def test_every_route_of_the_table_answers(
    route: Route, version: dict[str, str], tmp_path: Path
) -> None:
    async with app_storing(tmp_path) as app:
        name = "first"
        if "{response_id}" in route.path:
            name = (await call(app, "POST", RESPONSES, RESPONSE)).json["id"]
        body = BODIES[route.operation] if route.request else b""
        headers = {"accept": "application/json", **version}
        answer = await call(app, route.method, path_of(route, name), body, headers)
    assert answer.status == REFUSED.get(route.operation, 200)
    if route.response is not None:
        TypeAdapter(route.response).validate_json(answer.content, strict=True)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
async def test_another_method_is_refused_with_those_allowed(route: Route) -> None:
    answer = await call(idle_app(), "PATCH", path_of(route))
    assert answer.status == 405
    error = refusal(answer, route)
    assert error["type"] == "invalid_request_error"
    assert error.get("code", "method_not_allowed") == "method_not_allowed"
    taken = {other.method for other in ROUTES if other.path == route.path} - {"GET"}
    allowed = set(answer.headers["allow"].split(", "))
    assert allowed - {"GET", "HEAD"} == taken
    assert route.method in allowed or route.operation in REFUSED
    assert "PATCH" in error["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("path", ["input_tokens", "compact"])
async def test_a_path_of_its_own_is_no_id(path: str, method: str) -> None:
    answer = await call(idle_app(), method, f"{RESPONSES}/{path}")
    assert (answer.status, answer.headers.get("allow")) == (405, "POST")
    assert answer.error["code"] == "method_not_allowed" and method in answer.error["message"]


async def test_a_websocket_is_told_to_speak_http() -> None:
    upgrade = {"connection": "Upgrade", "upgrade": "websocket"}
    answer = await call(idle_app(), "GET", RESPONSES, b"", upgrade)
    assert (answer.status, answer.error["code"]) == (426, "upgrade_required")
    plain = await call(idle_app(), "GET", RESPONSES)
    assert (plain.status, plain.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
async def test_a_version_changes_the_envelope_only_of_the_routes_that_say_so(route: Route) -> None:
    answer = await call(idle_app(), "PATCH", path_of(route), headers=VERSION)
    assert (answer.json.get("type") == "error") is (route.envelope != "openai")


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/nothing", "/v1/chat/completions/x", "/docs/x", "/v1/responses/a/b", "/api/x"],
)
async def test_an_unknown_route_is_not_found(path: str) -> None:
    answer = await call(idle_app(), "POST", path, b"{}")
    assert (answer.status, answer.error["code"]) == (404, "not_found")
    assert path in answer.error["message"]
    told = await call(idle_app(), "POST", path, b"{}", VERSION)
    assert (told.status, told.anthropic_error["type"]) == (404, "not_found_error")
    assert path in told.anthropic_error["message"]


@pytest.mark.parametrize("path", ["/batches", "/batches/x/results", "/nothing", "/", "/a%0Ab"])
async def test_below_messages_everything_is_anthropics(path: str) -> None:
    answer = await call(idle_app(), "POST", f"/v1/messages{path}", b"{}")
    assert (answer.status, answer.anthropic_error["type"]) == (404, "not_found_error")
    assert f"/v1/messages{path}" in answer.anthropic_error["message"]


async def test_what_only_begins_like_messages_is_not_anthropics() -> None:
    answer = await call(idle_app(), "POST", "/v1/messages_of_mine", b"{}")
    assert (answer.status, answer.error["code"]) == (404, "not_found")


@pytest.mark.parametrize("version", [{}, VERSION], ids=["", "version"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
async def test_a_key_is_needed_where_the_spec_says_so(
    route: Route, version: dict[str, str]
) -> None:
    app = app_of(service_over(PlayedClient(), facts()), {"key": ""})
    body = b"{" if route.request else b""
    answer = await call(app, route.method, path_of(route), body, version)
    assert (answer.status == 401) is route.authenticated
    if route.authenticated:
        shared = version and route.envelope == "by_version"
        error = answer.anthropic_error if shared else refusal(answer, route)
        assert error["type"] == "authentication_error"
        assert answer.headers["www-authenticate"] == "Bearer"
        given = {"authorization": b"Bearer \xff"}
        assert (await call(app, route.method, path_of(route), b"", given)).status == 401


def test_only_health_metrics_and_documents_are_open() -> None:
    opened = {route.path for route in ROUTES if not route.authenticated}
    assert opened == {"/health", "/metrics", "/openapi.json", "/docs"}


BAD_BODIES: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"{", {}, 400, "invalid_json"),
    (b"", {}, 400, "invalid_json"),
    (b"[]", {}, 400, "invalid_json"),
    (b"{}", {}, 400, "missing_required_parameter"),
    (b'{"messages":[{"role":"user","content":"\xed\xa0\x80"}]}', {}, 400, "invalid_json"),
    (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
    (b"{}", {"content-encoding": "compress"}, 415, "unsupported_content_encoding"),
    (b"{}", {"content-encoding": "gzip"}, 400, "invalid_body"),
    (b" " * 70_000, {}, 413, "request_too_large"),
    (gzip.compress(b" " * 70_000), {"content-encoding": "gzip"}, 413, "request_too_large"),
]


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"), BAD_BODIES, ids=lambda value: str(value)[:30]
)
async def test_every_refused_body_has_the_envelope(
    body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    app = idle_app(max_body_bytes=65_536)
    answer = await call(app, "POST", CHAT, body, headers)
    assert (answer.status, answer.error["code"]) == (status, code)
    kind = "request_too_large" if status == 413 else "invalid_request_error"
    for path in (MESSAGES, f"{MESSAGES}/count_tokens"):
        other = await call(app, "POST", path, body, headers)
        assert (other.status, other.anthropic_error["type"]) == (status, kind)
        if body != b"{}" or headers:
            assert other.anthropic_error["message"] == answer.error["message"]
    paths = [f"{RESPONSES}/compact"]
    if body != b"{}" or headers:  # all fields of these are optional
        paths += [RESPONSES, f"{RESPONSES}/input_tokens"]
    for path in paths:
        same = await call(app, "POST", path, body, headers)
        assert (same.status, same.error["code"], same.error["type"]) == (status, code, kind)


@pytest.mark.parametrize("path", ["", "/input_tokens", "/compact"])
async def test_where_names_are_known_a_response_needs_one(path: str) -> None:
    app = idle_app(model_names="known")
    for body, status, code in (
        ({"input": "hi"}, 400, "missing_required_parameter"),
        ({"input": "hi", "model": ""}, 400, "missing_required_parameter"),
        ({"input": "hi", "model": "nobody"}, 404, "model_not_found"),
    ):
        answer = await call(app, "POST", f"{RESPONSES}{path}", body)
        error = answer.error
        assert (answer.status, error["code"], error["param"]) == (status, code, "model")


async def test_large_and_compressed_bodies_are_served() -> None:
    body = json.dumps({**ASK, "metadata": None, "padding": "x" * 50_000}).encode()
    async with app_serving("ok") as (app, _):
        assert (await call(app, "POST", CHAT, body)).status == 200
        headers = {"content-encoding": "gzip"}
        assert (await call(app, "POST", CHAT, gzip.compress(body), headers)).status == 200
        body = json.dumps({**RESPONSE, "padding": "x" * 50_000}).encode()
        assert (await call(app, "POST", RESPONSES, body)).status == 200
        assert (await call(app, "POST", RESPONSES, gzip.compress(body), headers)).status == 200


async def test_the_start_hook_runs_before_and_the_engine_ends_after() -> None:
    class Closed(PlayedClient):
        closed = False

        async def close(self) -> None:
            self.closed = True

    client = Closed()
    seen: list[str] = []
    app = build_app(
        service_over(client, facts()),
        Config(),
        Keys({}),
        SEAL,
        on_start=lambda: seen.append("start"),
    )
    inbox: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    outbox: asyncio.Queue[str] = asyncio.Queue()

    async def send(message: Any) -> None:
        await outbox.put(message["type"])

    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}

    async def lifespan() -> None:
        await app(scope, inbox.get, send)

    task = asyncio.create_task(lifespan())
    await inbox.put({"type": "lifespan.startup"})
    assert await outbox.get() == "lifespan.startup.complete"
    assert seen == ["start"] and not client.closed
    await inbox.put({"type": "lifespan.shutdown"})
    assert await outbox.get() == "lifespan.shutdown.complete"
    await task
    assert client.closed


async def test_params_reach_the_envelope() -> None:
    answer = await call(idle_app(), "POST", CHAT, {**ASK, "temperature": "hot"})
    assert (answer.status, answer.error["param"]) == (400, "temperature")
    body = {**BODIES["create_message"], "temperature": "hot"}
    told = await call(idle_app(), "POST", MESSAGES, body)
    assert told.status == 400 and "temperature" in told.anthropic_error["message"]
    response = await call(idle_app(), "POST", RESPONSES, {**RESPONSE, "temperature": "hot"})
    assert (response.status, response.error["param"]) == (400, "temperature")


async def test_a_thread_is_refused_in_words_that_programs_understand() -> None:
    body = {**BODIES["create_message"], "thread": {"type": "create"}}
    answer = await call(idle_app(), "POST", MESSAGES, body)
    assert (answer.status, answer.anthropic_error["type"]) == (400, "invalid_request_error")
    assert answer.anthropic_error["details"]["error_code"] == "thread_unsupported_request"
