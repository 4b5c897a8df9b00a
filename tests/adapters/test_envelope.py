"""The one table from exceptions to HTTP, and the OpenAI form of its rows."""

from __future__ import annotations

import json

import pytest

from adapters.envelope import RESPONSES, HttpError, failure, openai_body, openai_response
from engine.errors import (
    ContextOverflow,
    EngineUnavailable,
    GenerationFailed,
    Overloaded,
    RequestError,
)
from generated.routes import ROUTES
from generated.shared import ErrorEnvelope

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
    response = openai_response(error)
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


@pytest.mark.parametrize("error", [Overloaded("m", 7), EngineUnavailable("m", 7)])
def test_try_again_later_says_when(error: Exception) -> None:
    assert openai_response(error).headers["retry-after"] == "7"


def test_the_headers_of_an_http_error_are_sent() -> None:
    error = HttpError(405, "m", headers={"Allow": "POST"})
    assert failure(error) is error
    assert openai_response(error).headers["allow"] == "POST"


def test_every_route_names_an_envelope_that_exists() -> None:
    assert {route.envelope for route in ROUTES} <= set(RESPONSES)
