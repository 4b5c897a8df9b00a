"""Failures in the protocol's own words: one table from exceptions to status, type and code."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import to_json
from starlette.responses import Response

from engine.errors import (
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


_TYPES = {
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
                "type": _TYPES.get(known.status, "invalid_request_error"),
                "param": known.param,
                "code": known.code,
            }
        }
    )


def openai_response(error: Exception) -> Response:
    """The OpenAI error reply."""
    known = failure(error)
    return Response(
        openai_body(known), known.status, headers=known.headers, media_type="application/json"
    )


RESPONSES = {"openai": openai_response}
"""The error reply of each protocol, by the envelope that the route table names."""
