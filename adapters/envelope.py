"""Failures in the protocol's own words: one table from exceptions to status, type and code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pydantic_core import to_json
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from engine.errors import (
    ContextOverflow,
    EngineUnavailable,
    GenerationFailed,
    Overloaded,
    RequestError,
)


class HttpError(Exception):
    """A failure of HTTP itself: no such route, a bad key, a body too large or unreadable."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.headers = dict(headers or {})


_OPENAI_TYPES = {
    401: "authentication_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}
_NOT_FOUND = ("model_not_found",)


def failure(error: Exception) -> HttpError:
    """What an exception means in HTTP; anything unknown is the server's fault."""
    match error:
        case HttpError():
            return error
        case RequestError():
            status = 404 if error.code in _NOT_FOUND else 400
            return HttpError(status, error.message, code=error.code, param=error.param)
        case Overloaded():
            headers = {"Retry-After": str(error.retry_after)}
            return HttpError(429, error.message, code="rate_limit_exceeded", headers=headers)
        case EngineUnavailable():
            headers = {"Retry-After": str(error.retry_after)}
            return HttpError(503, error.message, code="engine_unavailable", headers=headers)
        case GenerationFailed():
            return HttpError(500, error.message, code="generation_failed")
        case _:
            return HttpError(500, "the server failed to handle the request", code="internal_error")


def openai_body(error: Exception) -> bytes:
    """The OpenAI error object, as a body and as the data of a mid-stream event."""
    known = failure(error)
    return to_json(
        {
            "error": {
                "message": known.message,
                "type": _OPENAI_TYPES.get(known.status, "invalid_request_error"),
                "param": known.param,
                "code": known.code,
            }
        }
    )


def openai_response(error: Exception, request: Request) -> Response:
    """The OpenAI error reply."""
    known = failure(error)
    return _reply(openai_body(known), known.status, known.headers)


def speaks_anthropic(client: HTTPConnection) -> bool:
    """Whether the client is one of Anthropic's, whose requests all name a version of its API."""
    return "anthropic-version" in client.headers


_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}


def anthropic_body(error: Exception, request_id: str) -> bytes:
    """The Anthropic error object, as a body and as the data of a mid-stream event."""
    known = failure(error)
    detail: dict[str, object] = {
        "type": _ANTHROPIC_TYPES.get(_anthropic_status(error), "invalid_request_error"),
        "message": _anthropic_message(error),
    }
    if (known.param, known.code) == ("thread", "unsupported_parameter"):
        # The SDKs' word for: send the whole conversation instead.
        detail["details"] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    return to_json({"type": "error", "error": detail, "request_id": request_id})


def anthropic_response(error: Exception, request: Request) -> Response:
    """The Anthropic error reply."""
    body = anthropic_body(error, request.scope["request_id"])
    return _reply(body, _anthropic_status(error), failure(error).headers)


def _anthropic_status(error: Exception) -> int:
    return 529 if isinstance(error, Overloaded) else failure(error).status


def _anthropic_message(error: Exception) -> str:
    """The sentence, which names the field because the object has no other place for it."""
    if isinstance(error, ContextOverflow):
        # Clients look for these words and compact by the numbers. Where the prompt fits but leaves
        # no room for the answer, a maximum that it exceeds keeps the sentence true.
        maximum = min(error.max_context, error.prompt_tokens - 1)
        return f"prompt is too long: {error.prompt_tokens} tokens > {maximum} maximum"
    known = failure(error)
    if not known.param or _mentions(known.message, known.param.rpartition(".")[2]):
        return known.message
    return f"{known.param}: {known.message}"


def _mentions(message: str, name: str) -> bool:
    """Whether a name is in a sentence as a word of its own: `n` is not in "no such thing"."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) is not None


def by_version_response(error: Exception, request: Request) -> Response:
    """The error reply of a route that several protocols share."""
    answer = anthropic_response if speaks_anthropic(request) else openai_response
    return answer(error, request)


def _reply(body: bytes, status: int, headers: Mapping[str, str]) -> Response:
    return Response(body, status, headers=headers, media_type="application/json")


RESPONSES: Mapping[str, Callable[[Exception, Request], Response]] = {
    "openai": openai_response,
    "anthropic": anthropic_response,
    "by_version": by_version_response,
}
"""The error reply of each protocol, by the envelope that the route table names."""
