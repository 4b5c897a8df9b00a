"""HTTP itself: paths, methods, media types, malformed bodies, ids, metrics and documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from conformance.profiles import Pool
from conformance.replies import PATHS, send
from conformance.reply import anthropic_error_of, error_of, failure_of
from conformance.server import Server

_GOOD = '{"messages": [{"role": "user", "content": "hello"}]}'
_MESSAGE = '{"max_tokens": 64, "messages": [{"role": "user", "content": "hello"}]}'
_RESPONSE = '{"model": "m", "input": "hello"}'
_NOT_JSON = [
    b"", b" ", b"{", b"[]", b"null", b'"text"', b"{}{}", b"\xff\xfe", b"\x00",
    b"{'a': 1}", b"[" * 100_000,
    b'{"messages": NaN}', b'{"messages": Infinity}', b'{"seed": 1e999}', b'{"messages": "\\ud800"}',
    b'{"messages": [{"role": "user", "content": "\xff"}]}', _GOOD.encode("utf-16"),
    b'{"a": ' * 50_000 + b"1" + b"}" * 50_000,
    b'{"seed": ' + b"9" * 10_000 + b', "messages": [{"role": "user", "content": "x"}]}',
]  # fmt: skip


def malformed_bodies(pool: Pool, _: Callable[..., Server]) -> None:
    """What is not a JSON object that the spec describes is 400 in the envelope, whatever it is."""
    client = pool.get("scripted").http
    for path in PATHS.values():
        for content in _NOT_JSON:
            headers = {"content-type": "application/json"}
            response = client.post(path, content=content, headers=headers)
            assert response.status_code == 400, f"{content[:60]!r}: {response.text[:200]}"
            assert failure_of(response)["type"] == "invalid_request_error"
    assert client.get("/health").json() == {"status": "ok"}


def media_types(pool: Pool, _: Callable[..., Server]) -> None:
    """JSON under any of its names, with parameters or without a name; anything else is 415."""
    client = pool.get("scripted").http
    for name, status in {
        "application/json": 200,
        "application/json; charset=utf-8": 200,
        "Application/JSON": 200,
        "application/vnd.api+json": 200,
        None: 200,
        "text/plain": 415,
        "application/x-www-form-urlencoded": 415,
        "multipart/form-data; boundary=x": 415,
    }.items():
        headers = {} if name is None else {"content-type": name}
        for route, good in (
            ("chat", _GOOD),
            ("messages", _MESSAGE),
            ("count", _MESSAGE),
            ("responses", _RESPONSE),
            ("input_tokens", _RESPONSE),
        ):
            response = client.post(PATHS[route], content=good.encode(), headers=headers)
            assert response.status_code == status, f"{name}: {response.text}"
            if status == 415:
                assert failure_of(response)["type"] == "invalid_request_error"


def paths_and_methods(pool: Pool, _: Callable[..., Server]) -> None:
    """404 and 405 come in the envelope, 405 with Allow, and every reply has a request id."""
    client = pool.get("scripted").http
    seen = set()
    for path in ("/", "/v1", "/v1/nothing", "/v1/chat/completions/", "/v1/chat", "//v1/models"):
        response = client.get(path)
        assert response.status_code == 404, f"{path}: {response.status_code}"
        assert failure_of(response)["type"] == "invalid_request_error"
        seen.add(response.headers["x-request-id"])
    for path in ("/v1/messages/", "/v1/messages/nothing", "/v1/messages/batches"):
        response = client.post(path, json={})
        assert response.status_code == 404, f"{path}: {response.status_code}"
        assert failure_of(response)["type"] == "not_found_error"
        seen.add(response.headers["x-request-id"])
    for method, path, allowed in (
        ("GET", PATHS["chat"], "POST"),
        ("DELETE", PATHS["completions"], "POST"),
        ("GET", PATHS["messages"], "POST"),
        ("DELETE", PATHS["count"], "POST"),
        ("PUT", "/v1/models", "GET"),
        ("POST", "/v1/models/solar", "GET"),
        ("POST", "/health", "GET"),
        ("PATCH", "/metrics", "GET"),
    ):
        response = client.request(method, path)
        assert response.status_code == 405, f"{method} {path}: {response.status_code}"
        assert allowed in response.headers["allow"].split(", ")
        assert failure_of(response)["type"] == "invalid_request_error"
        seen.add(response.headers["x-request-id"])
    for method, path, status, kind in (
        ("GET", "/v1/nothing", 404, "not_found_error"),
        ("POST", "/v1/models", 405, "invalid_request_error"),
    ):
        headers = {"anthropic-version": "2023-06-01"}
        response = client.request(method, path, headers=headers)
        assert response.status_code == status, f"{method} {path}: {response.status_code}"
        assert anthropic_error_of(response.json(), response.headers)["type"] == kind
        seen.add(response.headers["x-request-id"])
    assert len(seen) == 19, "a request id came twice"


def upgrade_offers(pool: Pool, _: Callable[..., Server]) -> None:
    """An offer of HTTP/2 (Java's HttpClient makes it) is passed over, and the body is read."""
    client = pool.get("scripted").http
    for offer in ("h2c", "websocket"):
        headers = {
            "content-type": "application/json",
            "connection": "Upgrade, HTTP2-Settings",
            "upgrade": offer,
            "http2-settings": "AAMAAABkAARAAAAAAAIAAAAA",
        }
        for route, good in (("chat", _GOOD), ("messages", _MESSAGE), ("responses", _RESPONSE)):
            response = client.post(PATHS[route], content=good.encode(), headers=headers)
            assert response.status_code == 200, f"{offer}: {response.text}"


def bounds(pool: Pool, _: Callable[..., Server]) -> None:
    """Each bound of the specs that is too large for the fuzzer, at its value and one above."""
    client = pool.get("scripted").http
    message = {"role": "user", "content": ""}
    part = {"type": "text", "text": ""}
    short = {"max_tokens": 1}
    for route, most, above in (
        ("chat", [message] * 16_384, [message] * 16_385),
        ("chat", [{"role": "user", "content": [part] * 16_384}], None),
        ("chat", None, [{"role": "user", "content": [part] * 16_385}]),
    ):
        if most is not None:
            reply = send(client, route, {"messages": most, **short})
            full = reply.error and reply.error["code"] == "context_length_exceeded"
            assert reply.status == 200 or full, reply.error
        if above is not None:
            reply = send(client, route, {"messages": above, **short})
            assert reply.status == 400 and reply.error
            assert (reply.error["param"] or "").startswith("messages"), reply.error
    tools = [{"type": "function", "function": {"name": f"f{n}"}} for n in range(1025)]
    reply = send(client, "chat", {"messages": [message], "tools": tools[:1024], **short})
    full = reply.error and reply.error["code"] == "context_length_exceeded"
    assert reply.status == 200 or full, reply.error
    reply = send(client, "chat", {"messages": [message], "tools": tools, **short})
    assert reply.status == 400 and reply.error and reply.error["param"] == "tools"
    many = {str(token): 0.5 for token in range(4097)}
    reply = send(client, "chat", {"messages": [message], "logit_bias": many, **short})
    assert reply.status == 400 and reply.error and reply.error["param"] == "logit_bias"
    many.popitem()
    reply = send(client, "chat", {"messages": [message], "logit_bias": many, **short})
    assert reply.status == 200, reply.error
    for prompts, status in ((["x"] * 200, 200), (["x"] * 1025, 400), ([[1]] * 1025, 400)):
        reply = send(client, "completions", {"prompt": prompts, "max_tokens": 1})
        assert reply.status == status, reply.error
        assert not reply.error or (reply.error["param"] or "").startswith("prompt")
    reply = send(client, "completions", {"prompt": "x", "n": 129})
    assert reply.status == 400 and reply.error and reply.error["param"] == "n"
    _bounds_of_messages(client)


def _bounds_of_messages(client: httpx2.Client) -> None:
    turn, block = {"role": "user", "content": ""}, {"type": "text", "text": ""}
    result = {"type": "tool_result", "tool_use_id": "x", "content": [block]}
    tools = [{"name": f"f{number}", "input_schema": {"type": "object"}} for number in range(1025)]
    edit = {"type": "clear_thinking_20251015", "keep": "all"}

    def said(*blocks: object) -> list[dict[str, Any]]:
        return [{"role": "user", "content": list(blocks)}]

    bounds: tuple[tuple[str, Any, Any], ...] = (
        ("messages", [turn] * 16_384, [turn] * 16_385),
        ("messages", said(*[block] * 16_384), said(*[block] * 16_385)),
        ("messages", said(result), said({**result, "content": [block] * 16_385})),
        ("system", [block] * 16_384, [block] * 16_385),
        ("tools", tools[:1024], tools),
        ("context_management", {"edits": [edit] * 16}, {"edits": [edit] * 17}),
        ("stop_sequences", ["x"] * 4, ["x"] * 5),
        ("stop_sequences", ["x" * 4096], ["x" * 4097]),
    )
    for name, most, above in bounds:
        body = {"messages": [turn], "max_tokens": 1}
        reply = send(client, "messages", {**body, name: most})
        full = reply.error and reply.error["message"].startswith("prompt is too long")
        assert reply.status == 200 or full, f"{name}: {reply.error}"
        for route in ("messages", "count") if name != "stop_sequences" else ("messages",):
            reply = send(client, route, {**body, name: above})
            assert reply.status == 400 and reply.error, f"{route} {name}: {reply.status}"
            assert name in reply.error["message"], reply.error


def health_and_metrics(pool: Pool, _: Callable[..., Server]) -> None:
    """Both forms of the metrics agree; the form follows the query, then the Accept header."""
    server = pool.get("scripted")
    client = server.http
    send(client, "chat", {"messages": [{"role": "user", "content": "hello"}]})
    numbers = server.until_idle()
    text = client.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text.text)
        for sample in family.samples
    }
    assert all(name.startswith("flare_") for name in samples), samples
    for key, name in {
        "prefill_tokens": "flare_prefill_tokens_total",
        "generated_tokens": "flare_generated_tokens_total",
        "active": "flare_active_requests",
        "free_pages": "flare_free_kv_pages",
    }.items():
        assert samples[name] == numbers[key], name
    for accept, form in {
        "*/*": "text/plain",
        "application/json": "application/json",
        "text/plain, application/json": "text/plain",
        "application/json, text/plain": "application/json",
        "text/plain;q=0.4, application/json;q=0.5": "application/json",
        "application/json;q=0.5, text/plain": "text/plain",
        "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.5": "text/plain",
    }.items():
        response = client.get("/metrics", headers={"accept": accept})
        assert response.headers["content-type"].startswith(form), accept
    response = client.get("/metrics?format=prometheus", headers={"accept": "application/json"})
    assert response.headers["content-type"].startswith("text/plain")
    response = client.get("/metrics?format=xml")
    assert response.status_code == 400 and error_of(response.json())["param"] == "format"


def documents(pool: Pool, _: Callable[..., Server]) -> None:
    """The OpenAPI document names every route; the page loads nothing from elsewhere."""
    client = pool.get("scripted").http
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.2")
    wanted = {*PATHS.values(), "/v1/models", "/v1/models/{model}", "/health", "/metrics"}
    assert wanted <= set(document["paths"])
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for outside in ('src="http', 'href="http', "@import", "url(http"):
        assert outside not in page.text, outside


def stable_card(pool: Pool, _: Callable[..., Server]) -> None:
    """The card is whole, equal on both routes, and stays the same (Helios, first section)."""
    client = pool.get("scripted").http
    listed: dict[str, Any] = client.get("/v1/models").json()
    card = client.get("/v1/models/solar").json()
    assert listed["data"] == [card]
    (permission,) = card["permission"]
    assert permission["id"].startswith("modelperm-")
    assert permission["object"] == "model_permission"
    assert permission["allow_sampling"] and permission["allow_view"]
    for name in ("allow_fine_tuning", "allow_create_engine", "allow_search_indices"):
        assert permission[name] is False, name
    assert permission["allow_logprobs"] is (card["flare"]["max_top_logprobs"] > 0)
    assert permission["organization"] == "*"
    assert set(card["flare"]["sampling_defaults"]) == {
        "seed", "temperature", "top_p", "top_k", "min_p", "repetition_penalty",
        "presence_penalty", "frequency_penalty",
    }  # fmt: skip
    (summary,) = listed["models"]
    assert summary["name"] == card["id"]
    assert json.dumps(client.get("/v1/models").json()) == json.dumps(listed)


SCENARIOS = (
    malformed_bodies,
    media_types,
    paths_and_methods,
    upgrade_offers,
    bounds,
    health_and_metrics,
    documents,
    stable_card,
)
