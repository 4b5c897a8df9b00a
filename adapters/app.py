"""The application: one handler per route of the generated table, one path through each request."""

from __future__ import annotations

import importlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters import body as bodies
from adapters.auth import Keys
from adapters.call import Call, ClientGone
from adapters.envelope import RESPONSES, HttpError, speaks_anthropic
from adapters.seal import Seal
from adapters.validation import validate
from engine.config import Config
from engine.errors import EngineUnavailable
from engine.service import Service
from generated.routes import ROUTES, Route

log = logging.getLogger("heliograph.api")


class _AnyPath(PathConvertor):
    """The rest of a path, line breaks included: a model's name may hold anything."""

    regex = r"[\s\S]*"


register_url_convertor("path", _AnyPath())

Handler = Callable[[Call], Awaitable[Response]]


def build_app(
    service: Service,
    config: Config,
    keys: Keys,
    seal: Seal,
    *,
    on_start: Callable[[], None] = lambda: None,
) -> ASGIApp:
    """Register the generated routes. `on_start` runs on the event loop before the first request."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        on_start()
        yield
        await service.client.close()
        service.close()

    app = FastAPI(
        openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan
    )
    envelopes: dict[object, str] = {}
    for route in ROUTES:
        handler: Handler = getattr(
            importlib.import_module(f"adapters.{route.stem}"), route.operation
        )
        endpoint = _endpoint(route, handler, service, config, keys, seal)
        app.add_route(route.path, endpoint, [route.method])
        envelopes[endpoint] = route.envelope
    app.add_exception_handler(HTTPException, _on_http_exception(envelopes))
    return RequestIds(app)


def _endpoint(
    route: Route, handler: Handler, service: Service, config: Config, keys: Keys, seal: Seal
) -> Callable[[Request], Awaitable[Response]]:
    """Authenticate, read, validate, handle; any failure becomes the protocol's envelope."""
    answer = RESPONSES[route.envelope]

    async def endpoint(request: Request) -> Response:
        try:
            tenant = keys.identify(request.headers) if route.authenticated else ""
            if route.request is not None and service.draining:
                raise EngineUnavailable("the server is stopping")
            body = await _read(route, request, service, config) if route.request else None
            return await handler(Call(request, service, config, seal, tenant, body))
        except ClientGone:
            return Response(status_code=499)
        except Exception as error:
            response = answer(error, request)
            if response.status_code == 500:
                log.exception("%s failed", route.operation)
            return response

    return endpoint


async def _read(route: Route, request: Request, service: Service, config: Config) -> BaseModel:
    raw = await bodies.read(request, config.max_body_bytes)
    encodings = request.headers.get("content-encoding", "")
    model = route.request
    assert model is not None

    def validated() -> BaseModel:
        content = bodies.decompress(raw, encodings, config.max_body_bytes)
        return validate(model, bodies.parse(content))

    if encodings or len(raw) > _INLINE_BYTES:
        return await service.offload(validated)
    return validated()


_INLINE_BYTES = 16 * 1024
"""Bodies up to here are parsed on the event loop: about 0.1 ms, less than a thread's round trip."""


def _on_http_exception(
    envelopes: Mapping[object, str],
) -> Callable[[Request, Exception], Awaitable[Response]]:
    """No such route, or not with this method; `envelopes` are those of the routes' endpoints."""

    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path, method = request.url.path, request.method
        message = f"there is no route {path}"
        if error.status_code == 405:
            message = f"{path} does not take {method}"
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code)
        known = HttpError(error.status_code, message, code=code, headers=error.headers)
        elsewhere = "anthropic" if _below_messages(request) else "by_version"
        envelope = envelopes.get(request.scope.get("endpoint"), elsewhere)
        return RESPONSES[envelope](known, request)

    return answer


def _below_messages(client: HTTPConnection) -> bool:
    """Whether the path is one that only Anthropic's clients know."""
    return f"{client.scope['path']}/".startswith("/v1/messages/")


class RequestIds:
    """Gives every request an id, `scope["request_id"]`, and every reply the header that names it.

    Anthropic's clients look for it in a header of another name, and get both.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = f"req_{secrets.token_hex(12)}"
        client = HTTPConnection(scope)
        named = [(b"x-request-id", request_id.encode())]
        if _below_messages(client) or speaks_anthropic(client):
            named.append((b"request-id", request_id.encode()))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *named]
            await send(message)

        await self._app({**scope, "request_id": request_id}, receive, send_with_id)
