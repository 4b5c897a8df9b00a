"""The one table from exceptions to HTTP, and each protocol's form of its rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from adapters.envelope import (
    RESPONSES,
    HttpError,
    anthropic_body,
    failure,
    openai_body,
    openai_response,
)
from engine.errors import (
    ContextOverflow,
    EngineUnavailable,
    GenerationFailed,
    Overloaded,
    RequestError,
)
from generated.routes import ROUTES
from generated.shared import AnthropicError, ErrorEnvelope

PLAIN = Request({"type": "http", "headers": [], "request_id": "req_1"})
VERSIONED = Request(
    {"type": "http", "headers": [(b"anthropic-version", b"")], "request_id": "req_1"}
)


def told(error: Exception) -> dict[str, Any]:
    """The Anthropic error object, whose envelope is checked on the way."""
    body = json.loads(anthropic_body(error, "req_1"))
    AnthropicError.model_validate(body, strict=True)
    assert body["request_id"] == "req_1"
    found: dict[str, Any] = body["error"]
    return found


TABLE = [
    (RequestError("m", "p", "c"), 400, "invalid_request_error", "p", "c"),
    (RequestError("m"), 400, "invalid_request_error", None, None),
    (RequestError("m", "model", "model_not_found"), 404, "invalid_request_error", "model",
     "model_not_found"),
    (ContextOverflow("m", "messages", 9, 8), 400, "invalid_request_error", "messages",
     "context_length_exceeded"),
    (HttpError(401, "m", code="invalid_api_key"), 401, "authentication_error", None,
     "invalid_api_key"),
    (HttpError(404, "m"), 404, "invalid_request_error", None, None),
    (HttpError(405, "m"), 405, "invalid_request_error", None, None),
    (HttpError(413, "m"), 413, "request_too_large", None, None),
    (HttpError(415, "m"), 415, "invalid_request_error", None, None),
    (Overloaded("m"), 429, "rate_limit_error", None, "rate_limit_exceeded"),
    (EngineUnavailable("m"), 503, "server_error", None, "engine_unavailable"),
    (GenerationFailed("m"), 500, "server_error", None, "generation_failed"),
    (ValueError("m"), 500, "server_error", None, "internal_error"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "status", "kind", "param", "code"), TABLE, ids=lambda value: type(value).__name__
)
def test_every_failure_has_its_status_type_and_code(
    error: Exception, status: int, kind: str, param: str | None, code: str | None
) -> None:
    response = openai_response(error, PLAIN)
    assert response.status_code == status
    assert response.media_type == "application/json"
    body = json.loads(bytes(response.body))
    ErrorEnvelope.model_validate(body, strict=True)
    assert body["error"]["type"] == kind
    assert (body["error"]["param"], body["error"]["code"]) == (param, code)
    assert bytes(response.body) == openai_body(error)


def test_an_unknown_exception_says_nothing_of_itself() -> None:
    assert b"secret" not in openai_body(RuntimeError("secret path"))
    assert b"secret" not in openai_body(KeyError("secret"))


@pytest.mark.parametrize("envelope", RESPONSES)
@pytest.mark.parametrize("error", [Overloaded("m", 7), EngineUnavailable("m", 7)])
def test_try_again_later_says_when(error: Exception, envelope: str) -> None:
    assert RESPONSES[envelope](error, PLAIN).headers["retry-after"] == "7"


@pytest.mark.parametrize("envelope", RESPONSES)
def test_the_headers_of_an_http_error_are_sent(envelope: str) -> None:
    error = HttpError(405, "m", headers={"Allow": "POST"})
    assert failure(error) is error
    assert RESPONSES[envelope](error, PLAIN).headers["allow"] == "POST"


def test_every_route_names_an_envelope_that_exists() -> None:
    assert {route.envelope for route in ROUTES} <= set(RESPONSES)


ANTHROPICS = [
    (RequestError("m"), 400, "invalid_request_error"),
    (RequestError("m", "model", "model_not_found"), 404, "not_found_error"),
    (ContextOverflow("m", "messages", 9, 8), 400, "invalid_request_error"),
    (HttpError(401, "m"), 401, "authentication_error"),
    (HttpError(403, "m"), 403, "permission_error"),
    (HttpError(404, "m"), 404, "not_found_error"),
    (HttpError(405, "m"), 405, "invalid_request_error"),
    (HttpError(413, "m"), 413, "request_too_large"),
    (HttpError(415, "m"), 415, "invalid_request_error"),
    (HttpError(429, "m"), 429, "rate_limit_error"),
    (Overloaded("m"), 529, "overloaded_error"),
    (EngineUnavailable("m"), 503, "api_error"),
    (GenerationFailed("m"), 500, "api_error"),
    (ValueError("m"), 500, "api_error"),
]


@pytest.mark.parametrize(
    ("error", "status", "kind"), ANTHROPICS, ids=lambda value: type(value).__name__
)
def test_every_failure_has_its_status_and_type_in_anthropics_words(
    error: Exception, status: int, kind: str
) -> None:
    response = RESPONSES["anthropic"](error, PLAIN)
    assert (response.status_code, response.media_type) == (status, "application/json")
    assert bytes(response.body) == anthropic_body(error, "req_1")
    assert told(error)["type"] == kind
    assert "details" not in told(error)


def test_an_unknown_exception_says_nothing_of_itself_to_anthropics_clients() -> None:
    assert b"secret" not in anthropic_body(RuntimeError("secret path"), "req_1")


@pytest.mark.parametrize(
    ("message", "param", "shown"),
    [
        ("must be less than 5", "top_k", "top_k: must be less than 5"),
        ("`top_k` must be less than 5", "top_k", "`top_k` must be less than 5"),
        ("top_k must be less than 5", "top_k", "top_k must be less than 5"),
        ("no such thing", "n", "n: no such thing"),
        ("the json is not valid", "n", "n: the json is not valid"),
        ("top_k2 is unknown", "top_k", "top_k: top_k2 is unknown"),
        ("the name is empty", "tools[1].name", "the name is empty"),
        ("it is empty", "tools[1].name", "tools[1].name: it is empty"),
        ("messages is empty", "messages[0]", "messages[0]: messages is empty"),
        ("messages[0] is empty", "messages[0]", "messages[0] is empty"),
        ("it is empty", "", "it is empty"),
        ("it is empty", None, "it is empty"),
    ],
)
def test_the_message_names_the_field(message: str, param: str | None, shown: str) -> None:
    assert told(RequestError(message, param))["message"] == shown


@pytest.mark.parametrize(("prompt", "maximum"), [(600, 512), (513, 512), (512, 511), (3, 2)])
def test_an_overflow_is_said_in_the_words_that_clients_look_for(prompt: int, maximum: int) -> None:
    error = ContextOverflow("something else", "max_tokens", prompt, 512)
    expected = f"prompt is too long: {prompt} tokens > {maximum} maximum"
    assert told(error)["message"] == expected
    assert json.loads(openai_body(error))["error"]["message"] == "something else"


@pytest.mark.parametrize(
    ("param", "code", "details"),
    [
        ("thread", "unsupported_parameter",
         {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}),
        ("thread", None, None),
        ("container", "unsupported_parameter", None),
    ],
)  # fmt: skip
def test_a_thread_is_refused_in_words_that_programs_understand(
    param: str, code: str | None, details: dict[str, object] | None
) -> None:
    assert told(RequestError("m", param, code)).get("details") == details


def test_a_shared_route_answers_in_the_shape_that_the_client_looks_for() -> None:
    def shown(response: Response) -> tuple[int, bytes]:
        return response.status_code, bytes(response.body)

    for error in (Overloaded("m"), RequestError("m", "model", "model_not_found")):
        answer = RESPONSES["by_version"]
        assert shown(answer(error, PLAIN)) == shown(RESPONSES["openai"](error, PLAIN))
        assert shown(answer(error, VERSIONED)) == shown(RESPONSES["anthropic"](error, PLAIN))
