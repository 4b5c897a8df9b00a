"""Stored responses: read, replayed, listed, continued and deleted."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence
from typing import Any, TypeVar

from pydantic_core import from_json, to_json
from starlette.responses import Response

from adapters import sse
from adapters.call import Call
from adapters.envelope import HttpError
from adapters.response_events import ResponseDraft
from adapters.response_items import complete_item, parse_items, written_items
from adapters.response_object import response_id_of
from adapters.store import StoredResponse, StoreFailed
from engine.errors import RequestError

T = TypeVar("T")
_DEFAULT_LIMIT, _MOST_ITEMS = 20, 100


async def retrieve_response(call: Call) -> Response:
    """The stored object, or its events from a number on."""
    stored = await _stored(call)
    query = call.request.query_params
    streams = _flag(query.get("stream"), "stream")
    after = query.get("starting_after")
    if after is not None and not after.isdecimal():
        raise RequestError("starting_after must be a sequence number", "starting_after")
    if after is not None and not streams:
        raise RequestError("starting_after needs stream=true", "starting_after")
    if not streams:
        return Response(stored.response, media_type="application/json")
    return sse.EventStream(
        _replayed(stored.events, -1 if after is None else int(after)),
        heartbeat=lambda: sse.COMMENT,
        silence=0,
        close=lambda: None,
    )


async def _replayed(events: Iterable[bytes], after: int) -> AsyncGenerator[bytes, None]:
    for payload in events:
        found = from_json(payload)
        if found["sequence_number"] > after:
            yield sse.event(found["type"].encode(), payload)


async def delete_response(call: Call) -> Response:
    """The response is gone; those that continue it are not."""
    response_id = call.request.path_params["response_id"]
    store = call.store
    if store is None or not await _from_store(store.delete(call.tenant, response_id)):
        raise _not_found(response_id)
    deleted = {"id": response_id, "object": "response", "deleted": True}
    return Response(to_json(deleted), media_type="application/json")


async def cancel_response(call: Call) -> Response:
    """Always refused."""
    await _stored(call)
    raise RequestError("only a response in the background can be cancelled, and there are none")


async def list_input_items(call: Call) -> Response:
    """The items of the request that made a response, newest first unless asked otherwise."""
    stored = await _stored(call)
    query = call.request.query_params
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise RequestError("order must be asc or desc", "order")
    limit = query.get("limit", str(_DEFAULT_LIMIT))
    if not (limit.isdecimal() and 1 <= int(limit) <= _MOST_ITEMS):
        raise RequestError(f"limit must be a number from 1 to {_MOST_ITEMS}", "limit")
    items: list[dict[str, Any]] = json.loads(stored.input)
    if order == "desc":
        items.reverse()
    after = query.get("after")
    if after:
        places = [place for place, item in enumerate(items) if item["id"] == after]
        if not places:
            raise RequestError(f"after: no item of this response has the id {after!r}", "after")
        items = items[places[0] + 1 :]
    page = items[: int(limit)]
    listed = {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(items) > len(page),
    }
    return Response(to_json(listed), media_type="application/json")


# Keeping and continuing


async def save_response(
    call: Call,
    draft: ResponseDraft,
    response_id: str,
    items: Sequence[Any],
    previous: str | None,
) -> None:
    """Keep a finished response with the items of its request. Raises HttpError."""
    store = call.store
    assert store is not None
    stored = StoredResponse(
        id=response_id,
        tenant=call.tenant,
        created_at=int(time.time()),
        response=draft.final,
        input=to_json(list(written_items(items, response_id))),
        output=draft.output(),
        events=tuple(draft.kept),
        previous=previous,
    )
    await _from_store(store.save(stored))


async def _from_store(work: Awaitable[T]) -> T:
    try:
        return await work
    except StoreFailed as error:
        headers = {"Retry-After": "5"}
        raise HttpError(503, error.message, code="store_failed", headers=headers) from None


async def earlier_items(call: Call, previous: str) -> list[Any]:
    """All items of a stored conversation, oldest first. Raises RequestError where there is none."""
    store = call.store
    turns = None if store is None else await _from_store(store.turns(call.tenant, previous))
    if turns is None:
        raise RequestError(
            f"previous_response_id: there is no stored response {previous!r}",
            "previous_response_id",
            "previous_response_not_found",
        )
    return [item for turn in turns for part in turn for item in parse_items(part)]


async def referenced_item(call: Call, item_id: str, param: str) -> Any:
    """The item of a stored response that a reference names. Raises RequestError."""
    response_id = response_id_of(item_id)
    stored = None
    if call.store is not None and response_id is not None:
        stored = await _from_store(call.store.load(call.tenant, response_id))
    items: list[Any] = []
    if stored is not None:
        items = [*json.loads(stored.input), *json.loads(stored.output)]
    found = [item for item in items if item.get("id") == item_id]
    if not found:
        raise RequestError(f"{param}: there is no stored item {item_id!r}", param)
    for item in found:
        complete_item(item)
    return parse_items(found[:1])[0]


async def _stored(call: Call) -> StoredResponse:
    response_id: str = call.request.path_params["response_id"]
    store = call.store
    found = None if store is None else await _from_store(store.load(call.tenant, response_id))
    if found is None:
        raise _not_found(response_id)
    return found


def _not_found(response_id: str) -> HttpError:
    message = f"There is no stored response {response_id!r}."
    return HttpError(404, message, code="response_not_found", param="response_id")


def _flag(value: str | None, name: str) -> bool:
    if value is None or value.lower() in ("false", "0"):
        return False
    if value.lower() in ("true", "1"):
        return True
    raise RequestError(f"{name} must be true or false", name)
