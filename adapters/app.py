"""The application: one handler per route of the generated table, one path through each request."""

from __future__ import annotations

import importlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters import body as bodies
from adapters.auth import Keys
from adapters.call import Call, ClientGone
from adapters.envelope import RESPONSES, HttpError, speaks_anthropic
from adapters.seal import Seal
from adapters.store import ResponseStore
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
Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(
    service: Service,
    config: Config,
    keys: Keys,
    seal: Seal,
    store: ResponseStore | None = None,
    *,
    on_start: Callable[[], None] = lambda: None,
) -> ASGIApp:
    """Register the generated routes. `on_start` runs on the event loop before the first request.

    What the application is given, it closes when it ends: the service and the store.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        on_start()
        yield
        await service.client.close()
        service.close()
        if store is not None:
            await store.close()

    app = FastAPI(
        openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan
    )
    paths: dict[str, PathMethods] = {}
    for route in ROUTES:
        adapter = importlib.import_module(f"adapters.{route.stem}")
        complete = getattr(adapter, "complete_body", None)
        handler: Handler = getattr(adapter, route.operation)
        read = partial(_read, route, complete)
        endpoint = _endpoint(route, handler, read, service, config, keys, seal, store)
        paths.setdefault(route.path, PathMethods(route.envelope)).add(route.method, endpoint)
    # OpenAPI: a path without parameters comes before one whose parameter it would match.
    for path in sorted(paths, key=lambda path: "{" in path):
        app.router.routes.append(StarletteRoute(path, paths[path]))
    app.add_exception_handler(HTTPException, _not_found)
    return RequestIds(app)


class PathMethods:
    """The endpoints of one path, by their methods; any other is refused in the path's envelope."""

    def __init__(self, envelope: str) -> None:
        self._answer = RESPONSES[envelope]
        self._endpoints: dict[str, Endpoint] = {}

    def add(self, method: str, endpoint: Endpoint) -> None:
        self._endpoints[method] = endpoint
        if method == "GET":
            self._endpoints["HEAD"] = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        endpoint = self._endpoints.get(request.method)
        response = await endpoint(request) if endpoint else self._refused(request)
        await response(scope, receive, send)

    def _refused(self, request: Request) -> Response:
        message = f"{request.url.path} does not take {request.method}"
        allowed = {"Allow": ", ".join(sorted(self._endpoints))}
        error = HttpError(405, message, code="method_not_allowed", headers=allowed)
        return self._answer(error, request)


def _endpoint(
    route: Route,
    handler: Handler,
    read: Callable[[Request, Service, Config], Awaitable[BaseModel]],
    service: Service,
    config: Config,
    keys: Keys,
    seal: Seal,
    store: ResponseStore | None,
) -> Endpoint:
    """Authenticate, read, validate, handle; any failure becomes the protocol's envelope."""
    answer = RESPONSES[route.envelope]

    async def endpoint(request: Request) -> Response:
        try:
            tenant = keys.identify(request.headers) if route.authenticated else ""
            if route.request is not None and service.draining:
                raise EngineUnavailable("the server is stopping")
            body = await read(request, service, config) if route.request else None
            return await handler(Call(request, service, config, seal, store, tenant, body))
        except ClientGone:
            return Response(status_code=499)
        except Exception as error:
            response = answer(error, request)
            if response.status_code == 500:
                log.exception("%s failed", route.operation)
            return response

    return endpoint


async def _read(
    route: Route,
    complete: Callable[[object], None] | None,
    request: Request,
    service: Service,
    config: Config,
) -> BaseModel:
    """The body as the route's model; `complete` adds what the protocol lets it leave out."""
    raw = await bodies.read(request, config.max_body_bytes)
    encodings = request.headers.get("content-encoding", "")
    model = route.request
    assert model is not None

    def validated() -> BaseModel:
        value = bodies.parse(bodies.decompress(raw, encodings, config.max_body_bytes))
        if complete is not None:
            complete(value)
        return validate(model, value)

    if encodings or len(raw) > _INLINE_BYTES:
        return await service.offload(validated)
    return validated()


_INLINE_BYTES = 16 * 1024
"""Bodies up to here are parsed on the event loop: about 0.1 ms, less than a thread's round trip."""


async def _not_found(request: Request, _: Exception) -> Response:
    """There is no such route."""
    error = HttpError(404, f"there is no route {request.url.path}", code="not_found")
    envelope = "anthropic" if _below_messages(request) else "by_version"
    return RESPONSES[envelope](error, request)


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
