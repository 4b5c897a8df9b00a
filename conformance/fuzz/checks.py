"""What every reply of the server must satisfy, besides Schemathesis's own checks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import httpx2
import jsonschema_rs
import schemathesis
from schemathesis import Case, CheckContext, GenerationMode, Response

from conformance import message_replies, response_replies, sse
from conformance.fuzz.bundle import bundle
from conformance.fuzz.semantics import explanation, is_explained
from conformance.reply import Reply, anthropic_error_of, error_of

_EITHER = {401: "authentication_error", 413: "request_too_large", 429: "rate_limit_error"}
STATUS_TYPES = {
    "openai": {**_EITHER, 500: "server_error", 503: "server_error"},
    "anthropic": {
        **_EITHER,
        404: "not_found_error",
        500: "api_error",
        503: "api_error",
        529: "overloaded_error",
    },
}
"""Of each protocol; the other statuses are invalid_request_error."""
_STORED = "/v1/responses/{response_id}"
_STREAMS = {
    "/v1/chat/completions": ("chat_completions", "post", 2),
    "/v1/completions": ("completions", "post", 2),
    "/v1/messages": ("messages", "post", 2),
    "/v1/responses": ("responses", "post", 1),
    _STORED: ("responses", "get", 1),
}
"""The spec of a route that streams, its method, and the kinds of payload."""


def _protocol(response: Response, case: Case[Any]) -> str:
    """Whose envelope the failure has: by the path, and on shared paths by Anthropic's header."""
    path = case.operation.path
    shared = path.startswith("/v1/models") and "anthropic-version" in response.request.headers
    return "anthropic" if path.startswith("/v1/messages") or shared else "openai"


def _headers(response: Response) -> httpx2.Headers:
    return httpx2.Headers([(name, value) for name, [value, *_] in response.headers.items()])


def _error(response: Response, case: Case[Any]) -> dict[str, Any]:
    body = sse.strict_json(response.content)
    if _protocol(response, case) == "anthropic":
        return anthropic_error_of(body, _headers(response))
    return error_of(body)


def _media_type(response: Response) -> str:
    return response.headers.get("content-type", [""])[0].partition(";")[0]


@schemathesis.check
def envelope(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """A failure has exactly the keys of the envelope, the type of its status, and an id."""
    assert response.headers["x-request-id"][0].startswith("req_")
    if response.status_code >= 400 and case.method != "HEAD":
        error = _error(response, case)
        types = STATUS_TYPES[_protocol(response, case)]
        expected = types.get(response.status_code, "invalid_request_error")
        assert error["type"] == expected, f"{response.status_code}: {error}"


@schemathesis.check
def explained(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """A body that the schema allows is refused only for a reason of semantics.py."""
    meta = case.meta
    if meta is None or meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if response.status_code != 200:
        error = _error(response, case)
        known = is_explained(error) if "code" not in error else explanation(error)
        assert _is_nothing(response, case) or (response.status_code == 400 and known), (
            f"a valid request is refused without a reason: {response.status_code} {error}"
        )


def _is_nothing(response: Response, case: Case[Any]) -> bool:
    """Whether what the path names is not there; a route for WebSockets is there for those only."""
    path: str = case.operation.path
    if response.status_code == 404:
        return path.endswith(("/{model}", _STORED, f"{_STORED}/cancel", f"{_STORED}/input_items"))
    return (case.method, path, response.status_code) == ("GET", "/v1/responses", 405)


@schemathesis.check
def stream(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """Payloads match the item schema; a stream ends with [DONE] or, without it, with an error.

    A stream of a message or a response keeps the whole grammar of its protocol.
    """
    if _media_type(response) != "text/event-stream":
        return
    events = [event for event in sse.parse(response.content) if event.comment is None]
    path = case.operation.path
    assert events or path == _STORED, "an empty stream"  # a replay from the last event on
    if path.startswith("/v1/messages"):
        _check_grammar(response, events, message_replies.take)
    elif path == "/v1/responses":
        _check_grammar(response, events, response_replies.take)
    validators = payloads(path)
    for event in events:
        if event.data != sse.DONE:
            problems = [list(v.iter_errors(event.data)) for v in validators]
            assert not all(problems), f"{problems[0][0].message}: {event.data}"
    if path.endswith("completions"):
        last = events[-1].data
        assert last == sse.DONE or "error" in last, f"the stream ends with {last}"
        assert [event.data for event in events].count(sse.DONE) <= 1


def _check_grammar(
    response: Response, events: list[sse.Event], take: Callable[[Reply, sse.Event], None]
) -> None:
    reply = Reply(response.status_code, _headers(response))
    for event in events:
        take(reply, event)
    assert reply.done or reply.error, f"the stream ends with {events[-1]}"


@cache
def payloads(path: str) -> list[jsonschema_rs.Draft202012Validator]:
    """Validators of a route's events and, where that has a form of its own, of the last error."""
    file, method, count = _STREAMS[path]
    document = bundle(file)
    content = document["paths"][path][method]["responses"]["200"]["content"]
    choices = content["text/event-stream"]["itemSchema"]["properties"]["data"]["anyOf"]
    schemas = [choice["contentSchema"] for choice in choices if "contentSchema" in choice]
    assert len(schemas) == count, "the item schema has changed; so must this check"
    return [
        jsonschema_rs.Draft202012Validator(
            {**schema, "components": document["components"]}, validate_formats=True
        )
        for schema in schemas
    ]
