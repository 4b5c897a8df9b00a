"""Responses and their streams, held against the rules that OpenAI's SDKs and Codex rely on."""

from __future__ import annotations

import json
from typing import Any

from conformance import sse
from conformance.choice import Call, Choice
from conformance.reply import Item, Reply, error_of
from conformance.response_items import (
    CALLS,
    TEXTS,
    check_begun,
    check_done,
    check_entries,
    check_output,
    check_part,
    text_of,
)
from conformance.response_object import CHANGING, check_compaction, check_object, check_usage

_FRESH = {"id", "created_at"}
_NAMES = {"function_call": "function", "custom_tool_call": "custom"}
_PLACE = {"item_id", "output_index"}
_PART = _PLACE | {"content_index"}
_MEMBERS: dict[str, set[str]] = {
    "output_item.done": {"output_index", "item"},
    "content_part.added": _PART | {"part"},
    "content_part.done": _PART | {"part"},
    "output_text.delta": _PART | {"delta", "logprobs"},
    "output_text.done": _PART | {"text", "logprobs"},
    "reasoning_text.delta": _PART | {"delta"},
    "reasoning_text.done": _PART | {"text"},
    "function_call_arguments.delta": _PLACE | {"delta"},
    "function_call_arguments.done": _PLACE | {"name", "arguments"},
    "custom_tool_call_input.delta": _PLACE | {"delta"},
    "custom_tool_call_input.done": _PLACE | {"input"},
    "compaction.compacting": _PLACE,
}
"""What an event has besides its type and number."""


def _with_part(text: str) -> tuple[str, ...]:
    parts = "content_part.added", f"{text}.delta", f"{text}.done", "content_part.done"
    return (*parts, "output_item.done")


def _spelled(text: str) -> tuple[str, ...]:
    return f"{text}.delta", f"{text}.done", "output_item.done"


_STAGES: dict[str, tuple[str, ...]] = {
    "message": _with_part("output_text"),
    "reasoning": _with_part("reasoning_text"),
    "function_call": _spelled("function_call_arguments"),
    "custom_tool_call": _spelled("custom_tool_call_input"),
    "tool_search_call": ("output_item.done",),
    "compaction": ("compaction.compacting", "output_item.done"),
}
"""What follows the event that an item begins with: deltas once or more, all else once."""


def read_whole(reply: Reply, route: str) -> None:
    """A buffered response, a count, a compaction, or an error."""
    body = reply.body
    if reply.status != 200:
        reply.error = error_of(body)
        return
    if route == "input_tokens":
        assert set(body) == {"object", "input_tokens"}, f"unknown members: {body}"
        assert body["object"] == "response.input_tokens" and body["input_tokens"] > 0, body
        reply.usage = {"input_tokens": body["input_tokens"]}
        return
    if route == "compact":
        check_compaction(body)
        reply.items = [Item(value) for value in body["output"]]
        reply.usage = body["usage"]
        return
    assert body["status"] in ("completed", "incomplete"), body
    reply.items = [Item(value) for value in body["output"]]
    _finish(reply, body)


# Streams


def take(reply: Reply, event: sse.Event) -> None:
    """Add one event to a streamed response. Fails where the order or the form is wrong."""
    assert event.comment is None, f"a comment, which Codex's timer does not see: {event}"
    data = event.data
    assert isinstance(data, dict), f"no event of this protocol: {event}"
    assert event.name == data["type"], f"the event's name is not its type: {event}"
    number = len(reply.chunks)
    assert data["sequence_number"] == number, f"number {number} is missing: {data}"
    reply.chunks.append(data)
    kind = data["type"].removeprefix("response.")
    assert kind != data["type"], f"unknown event: {data}"
    assert (kind == "created") == (number == 0), f"out of order: {data}"
    assert number != 1 or kind == "in_progress", f"out of order: {data}"
    match kind:
        case "created" | "in_progress":
            _take_progress(reply, _response(reply, data))
        case "completed" | "incomplete" | "failed":
            response = _response(reply, data)
            assert response["status"] == kind, data
            _end(reply, response)
        case "output_item.added":
            _open_item(reply, data)
        case _:
            _take_step(reply, kind, data)


def _response(reply: Reply, data: dict[str, Any]) -> dict[str, Any]:
    """The response of an event, which says what the first one said."""
    assert set(data) == {"type", "sequence_number", "response"}, data
    response: dict[str, Any] = data["response"]
    check_object(response)
    first = reply.chunks[0]["response"]
    for name in set(response) - CHANGING:
        assert response[name] == first[name], f"{name} was {first[name]} and is {response[name]}"
    return response


def _take_progress(reply: Reply, response: dict[str, Any]) -> None:
    """The first two events; any further one is a sign of life, with all that there is so far."""
    assert response["status"] == "in_progress" and response["usage"] is None, response
    assert set(response["flare"]) == {"dropped_tools"}, response["flare"]
    ids = [item.value["id"] for item in reply.items]
    assert [item["id"] for item in response["output"]] == ids, response["output"]
    for item, value in zip(reply.items, response["output"], strict=True):
        assert text_of(value) == "".join(item.deltas), f"{value} is not {item}"
    reply.comments += len(reply.chunks) > 2
    reply.choices.setdefault(0, Choice())


def _open_item(reply: Reply, data: dict[str, Any]) -> None:
    assert set(data) == {"type", "sequence_number", "output_index", "item"}, data
    assert all(_is_done(item) for item in reply.items), f"an item within another: {data}"
    assert data["output_index"] == len(reply.items), f"an item is missing: {data}"
    value = data["item"]
    check_begun(value)
    assert value["id"] not in [item.value["id"] for item in reply.items], f"an id twice: {value}"
    reply.items.append(Item(value))
    if value["type"] in CALLS:
        reply.choices[0].calls.append(_call(value, ""))


def _is_done(item: Item) -> bool:
    return item.stage == len(_STAGES[item.kind])


def _take_step(reply: Reply, kind: str, data: dict[str, Any]) -> None:
    """An event of the item that is open."""
    assert kind in _MEMBERS, f"unknown event: {data}"
    assert set(data) == {"type", "sequence_number"} | _MEMBERS[kind], f"wrong members: {data}"
    assert data["output_index"] == len(reply.items) - 1, f"not the last item: {data}"
    item = reply.items[-1]
    assert not _is_done(item), f"the item is done: {data}"
    assert data.get("item_id", item.value["id"]) == item.value["id"], f"another item: {data}"
    assert data.get("content_index", 0) == 0, f"another part than the only one: {data}"
    _advance(item, kind)
    if kind.endswith(".delta"):
        _take_delta(reply, item, data)
    elif kind.startswith("content_part"):
        _check_part(item, kind, data["part"])
    elif kind == "output_item.done":
        check_done(data["item"], item.value)
        assert text_of(data["item"]) == "".join(item.deltas), f"the deltas were {item.deltas}"
        assert _logprobs(data["item"]) == item.logprobs, f"the entries were {item.logprobs}"
        item.value = data["item"]
    elif kind != "compaction.compacting":
        _check_text(item, data)


def _advance(item: Item, kind: str) -> None:
    """Deltas come once or more, all else once, in the order of the item's kind."""
    stages = _STAGES[item.kind]
    if stages[item.stage].endswith(".delta"):
        if kind == stages[item.stage]:
            return
        assert item.deltas, f"{kind} without a delta before it: {item}"
        item.stage += 1
    assert kind == stages[item.stage], f"{kind} in place of {stages[item.stage]}: {item}"
    item.stage += 1


def _take_delta(reply: Reply, item: Item, data: dict[str, Any]) -> None:
    piece, choice = data["delta"], reply.choices[0]
    assert isinstance(piece, str), data
    assert piece or data.get("logprobs") or item.kind in TEXTS, f"an empty piece: {data}"
    item.deltas.append(piece)
    if item.kind in CALLS:
        assert piece or len(item.deltas) == 1, f"an empty piece: {data}"
        choice.calls[-1].text += piece
        choice.calls[-1].deltas.append(piece)
    elif item.kind == "reasoning":
        choice.reasoning += piece
        choice.reasoning_deltas.append(piece)
    else:
        check_entries(data["logprobs"])
        item.logprobs += data["logprobs"]
        choice.text += piece
        choice.deltas.append(piece)


def _check_part(item: Item, kind: str, part: dict[str, Any]) -> None:
    check_part(part, item.kind)
    assert part["text"] == "".join(item.deltas), f"{kind}: {part} is not {item.deltas}"
    assert part.get("logprobs", item.logprobs) == item.logprobs, f"{kind}: {part}"


def _check_text(item: Item, data: dict[str, Any]) -> None:
    """An event that has the whole text: that of all deltas."""
    text = data.get("text", data.get("arguments", data.get("input")))
    assert text == "".join(item.deltas), f"{data} is not {item.deltas}"
    assert data.get("logprobs", item.logprobs) == item.logprobs, data
    assert data.get("name", item.value.get("name")) == item.value.get("name"), data


def _end(reply: Reply, response: dict[str, Any]) -> None:
    """The object of the last event has the items that were announced, and what was cut."""
    status, output = response["status"], response["output"]
    assert len(output) == len(reply.items), f"{len(reply.items)} items were told: {output}"
    for item, value in zip(reply.items, output, strict=True):
        if _is_done(item):
            assert value == item.value, f"{item.value} became {value}"
            continue
        assert item is reply.items[-1] and value["status"] == "incomplete", f"not done: {value}"
        assert status == "failed" or item.kind in CALLS, f"not announced as done: {value}"
        assert value["id"] == item.value["id"], f"{item.value} became {value}"
        assert text_of(value) == "".join(item.deltas), f"{value} is not {item.deltas}"
        item.value = value
    _finish(reply, response)
    reply.done = status != "failed"


# Both


def _finish(reply: Reply, response: dict[str, Any]) -> None:
    """How it ended and what it cost."""
    check_object(response)
    status = response["status"]
    check_output(response["output"], status)
    reply.told = {n: v for n, v in response.items() if n not in CHANGING | _FRESH}
    if response["usage"] is not None:
        check_usage(response["usage"], response["output"])
    if status == "failed":
        error = response["error"]
        assert {"code", "message"} <= set(error) <= {"code", "message", "param", "type"}, error
        assert error["code"] and error["message"], error
        reply.error = error
        return
    reply.usage = response["usage"]
    assert reply.usage is not None, response
    times = {"time_to_first_token_ms", "decode_time_ms"}
    assert set(response["flare"]) == times | {"dropped_tools"}, response["flare"]
    assert all(response["flare"][name] >= 0 for name in times), response["flare"]
    whole = _choice(reply.items)
    whole.finish = (response["incomplete_details"] or {"reason": status})["reason"]
    reply.choices = {0: whole}


def _choice(items: list[Item]) -> Choice:
    said = [item for item in items if item.kind == "message"]
    thoughts = [item for item in items if item.kind == "reasoning"]
    entries = [entry for item in said for entry in _logprobs(item.value)]
    return Choice(
        text="".join(text_of(item.value) for item in said),
        content_is_null=not said,
        deltas=[delta for item in said for delta in item.deltas],
        reasoning="".join(text_of(item.value) for item in thoughts),
        reasoning_deltas=[delta for item in thoughts for delta in item.deltas],
        calls=[_call(item.value, None, item.deltas) for item in items if item.kind in CALLS],
        logprobs=entries or None,
    )


def _call(value: dict[str, Any], text: str | None, deltas: list[str] | None = None) -> Call:
    """The call of an item; of a search, which has an object, its JSON."""
    if value["type"] == "tool_search_call":
        shown = json.dumps(value["arguments"], ensure_ascii=False)
        return Call(value["call_id"], "tool_search", "tool_search", shown)
    found = text_of(value) if text is None else text
    return Call(value["call_id"], _NAMES[value["type"]], value["name"], found, list(deltas or ()))


def _logprobs(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of a message; other items have none."""
    if item["type"] != "message":
        return []
    return [entry for part in item["content"] for entry in part["logprobs"]]
