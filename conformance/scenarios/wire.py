"""HTTP itself: paths, methods, media types, malformed bodies, ids, metrics and documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from conformance import spec
from conformance.profiles import Pool
from conformance.replies import PATHS, send
from conformance.reply import anthropic_error_of, error_of, failure_of
from conformance.server import Server

_GOOD = '{"messages": [{"role": "user", "content": "hello"}]}'
_RESPONSE = '{"model": "m", "input": "hello"}'
_GOODS = {
    "chat": _GOOD,
    "completions": '{"prompt": "hello"}',
    "messages": '{"max_tokens": 64, "messages": [{"role": "user", "content": "hello"}]}',
    "count": _GOOD,
    "responses": _RESPONSE,
    "input_tokens": _RESPONSE,
    "compact": _RESPONSE,
}
"""A good body for each route."""
_VERSION = {"anthropic-version": "2023-06-01"}
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
_NAMES = {"model": "solar", "response_id": "resp_0"}
"""What stands for the parameters of paths."""
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
        for route, path in PATHS.items():
            response = client.post(path, content=_GOODS[route].encode(), headers=headers)
            assert response.status_code == status, f"{route} {name}: {response.text}"
            if status == 415:
                assert failure_of(response)["type"] == "invalid_request_error"


def paths_and_methods(pool: Pool, _: Callable[..., Server]) -> None:
    """404 and 405 come in the envelope, 405 with Allow, and every reply has a request id."""
    client = pool.get("scripted").http
    seen = [*_unknown_paths(client), *_unknown_methods(client)]
    assert len(set(seen)) == len(seen), "a request id came twice"


def _unknown_paths(client: httpx2.Client) -> Iterator[str]:
    """Ask for paths that are none; the ids of the replies."""
    for path in ("/", "/v1", "/v1/nothing", "/v1/chat/completions/", "/v1/chat", "//v1/models"):
        response = client.get(path)
        assert response.status_code == 404, f"{path}: {response.status_code}"
        assert failure_of(response)["type"] == "invalid_request_error"
        yield response.headers["x-request-id"]
    for path in ("/v1/messages/", "/v1/messages/nothing", "/v1/messages/batches"):
        response = client.post(path, json={})
        assert response.status_code == 404, f"{path}: {response.status_code}"
        assert failure_of(response)["type"] == "not_found_error"
        yield response.headers["x-request-id"]
    response = client.get("/v1/nothing", headers=_VERSION)
    assert response.status_code == 404, response.text
    assert anthropic_error_of(response.json(), response.headers)["type"] == "not_found_error"
    yield response.headers["x-request-id"]


def _unknown_methods(client: httpx2.Client) -> Iterator[str]:
    """Ask each path of the specs by every method that it does not have; the ids of the replies."""
    for path, operations in spec.operations().items():
        allowed = {*operations, "HEAD"} if "GET" in operations else {*operations}
        (envelope,) = {operation["x-envelope"] for operation in operations.values()}
        for method in sorted(_METHODS - allowed):
            for headers in ({}, _VERSION):
                response = client.request(method, path.format(**_NAMES), headers=headers)
                assert response.status_code == 405, f"{method} {path}: {response.status_code}"
                assert set(response.headers["allow"].split(", ")) == allowed, f"{method} {path}"
                if method == "HEAD":
                    assert not response.content, f"{method} {path}: {response.text}"
                else:
                    error = _in_envelope(response, envelope)
                    assert error["type"] == "invalid_request_error", f"{method} {path}: {error}"
                    assert method in error["message"], f"{method} {path}: {error}"
                yield response.headers["x-request-id"]


def _in_envelope(response: httpx2.Response, envelope: str) -> dict[str, Any]:
    """The error of a failure in the envelope that the spec names for the path."""
    versioned = envelope == "by_version" and "anthropic-version" in response.request.headers
    if versioned or envelope == "anthropic":
        return anthropic_error_of(response.json(), response.headers)
    return error_of(response.json())


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
        for route, path in PATHS.items():
            response = client.post(path, content=_GOODS[route].encode(), headers=headers)
            assert response.status_code == 200, f"{route} {offer}: {response.text}"


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
    assert set(document["paths"]) == set(spec.operations())
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
    health_and_metrics,
    documents,
    stable_card,
)
