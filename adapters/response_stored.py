"""Stored responses: read, replayed, listed, continued and deleted."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence
from typing import Any, TypeVar

from pydantic_core import to_json
from starlette.responses import Response

from adapters import sse
from adapters.call import Call
from adapters.envelope import HttpError
from adapters.response_events import ResponseDraft
from adapters.response_items import parse_item, parse_items
from adapters.response_object import response_id_of
from adapters.store import StoredResponse, StoreFailed
from engine.errors import RequestError
from generated.responses import ReferenceItem

T = TypeVar("T")
_DEFAULT_LIMIT, _MOST_ITEMS = 20, 100
_MOST_DIGITS = 9


async def retrieve_response(call: Call) -> Response:
    """The stored object, or its events from a number on."""
    stored = await _stored(call)
    query = call.request.query_params
    streams = _flag(query.get("stream"), "stream")
    sent = query.get("starting_after")
    after = -1 if sent is None else _number(sent)
    if after is None:
        raise RequestError("starting_after must be a sequence number", "starting_after")
    if sent is not None and not streams:
        raise RequestError("starting_after needs stream=true", "starting_after")
    if not streams:
        return Response(stored.response, media_type="application/json")
    return sse.EventStream(
        _replayed(stored.events, after),
        heartbeat=lambda: sse.COMMENT,
        silence=0,
        close=lambda: None,
    )


async def _replayed(events: Iterable[bytes], after: int) -> AsyncGenerator[bytes, None]:
    for payload in events:
        found = json.loads(payload)  # which reads deeper than pydantic does
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
    limit = _number(query.get("limit", str(_DEFAULT_LIMIT)))
    if limit is None or not 1 <= limit <= _MOST_ITEMS:
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
    page = items[:limit]
    listed = {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(items) > len(page),
    }
    return Response(dumped(listed), media_type="application/json")


# Keeping and continuing


async def save_response(
    call: Call,
    draft: ResponseDraft,
    response_id: str,
    items: bytes,
    previous: str | None,
) -> None:
    """Keep a finished response with the items of its request, as JSON. Raises HttpError."""
    store = call.store
    assert store is not None
    stored = StoredResponse(
        id=response_id,
        tenant=call.tenant,
        created_at=int(time.time()),
        response=draft.final,
        input=items,
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
    parts = [part for turn in turns for part in turn]
    return await call.service.offload(
        lambda: [item for part in parts for item in parse_items(part)]
    )


async def resolved_items(call: Call, items: Sequence[Any]) -> list[Any]:
    """The items, with those of stored responses in place of references to them.

    Raises RequestError for a reference to what is not stored.
    """
    stored: dict[str, dict[str, Any]] = {}  # items by id, for each response
    found = []
    for place, item in enumerate(items):
        if not isinstance(item, ReferenceItem):
            found.append(item)
            continue
        response_id = response_id_of(item.id) or ""
        if response_id and response_id not in stored:
            stored[response_id] = await _items_of(call, response_id)
        if item.id not in stored.get(response_id, {}):
            param = f"input[{place}].id"
            raise RequestError(f"{param}: there is no stored item {item.id!r}", param)
        found.append(parse_item(stored[response_id][item.id]))
    return found


async def _items_of(call: Call, response_id: str) -> dict[str, Any]:
    """What went into a stored response and came out of it, by id; nothing where it is unknown."""
    store = call.store
    found = None if store is None else await _from_store(store.load(call.tenant, response_id))
    if found is None:
        return {}
    return {item["id"]: item for part in (found.input, found.output) for item in json.loads(part)}


def dumped(value: object) -> bytes:
    """JSON of any depth that the server reads; pydantic writes less."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


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


def _number(text: str) -> int | None:
    """A natural number; of more digits than count here, only that it is beyond them."""
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0")
    return int(digits or "0") if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS


def _flag(value: str | None, name: str) -> bool:
    if value is None or value.lower() in ("false", "0"):
        return False
    if value.lower() in ("true", "1"):
        return True
    raise RequestError(f"{name} must be true or false", name)
