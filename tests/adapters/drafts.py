"""Drafts of responses, and a reader of their events that believes nothing."""

from __future__ import annotations

import copy
import json
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from openai._models import validate_type
from openai.types import responses as sdk
from pydantic import BaseModel, TypeAdapter

from adapters.logprobs import TokenNames
from adapters.response_events import ResponseDraft, response_events
from adapters.response_object import ResponseHead, new_response_id
from adapters.response_tools import Origin
from engine.errors import GenerationFailed, RequestError
from engine.events import FinishCause, SemanticEvent
from generated.responses import ResponseEvent, ResponseObject
from tests.adapters.played import Batch, called, finished, played, started, text, thought
from tests.serving import tokenizer

NAMES = TokenNames(tokenizer(), as_ids=False)
ORIGINS = {
    "shell": Origin("function", "shell"),
    "mcp__fs__read": Origin("function", "read", "mcp__fs"),
    "apply_patch": Origin("custom", "apply_patch"),
    "edit__patch": Origin("custom", "patch", "edit"),
    "tool_search": Origin("tool_search", "tool_search"),
}
TERMINAL = ("response.completed", "response.incomplete", "response.failed")

CALLS, LIMIT = FinishCause.TOOL_CALLS, FinishCause.LIMIT

TURNS: dict[str, list[Batch]] = {
    "nothing": [[started()], [finished()]],
    "nothing before the limit": [[started()], [finished(LIMIT)]],
    "text": [[started(), text("a"), text("b")], [finished()]],
    "thoughts and text": [[started(), thought("x"), thought("é\n"), text("y")], [finished()]],
    "cut text": [[started(), text("a")], [finished(LIMIT)]],
    "a cut thought": [[started(), thought("x")], [finished(LIMIT)]],
    "text after empty text": [[started(), text(""), thought(""), text("a")], [finished()]],
    "a call": [
        [started()],
        called("shell", '{"id": ', '42"', "}}"),
        [finished(CALLS)],
    ],
    "a call without arguments": [[started()], called("shell"), [finished(CALLS)]],
    "thoughts, text and calls of all kinds": [
        [started(), thought("x"), text("y\n")],
        called("mcp__fs__read", '{"p":', '"a.txt"}'),
        called("apply_patch", "*** Begin", "\n\n", custom=True, call=1),
        called("edit__patch", "z", custom=True, call=2),
        called("tool_search", '{"query":', '"mail"}', call=3),
        called("made_up", "{}", call=4),
        [finished(CALLS)],
    ],
    "a cut call": [
        [started()],
        called("shell", '{"a":"b', whole=False),
        [finished(LIMIT)],
    ],
    "a cut custom call": [
        [started(), text("a")],
        called("apply_patch", "*** Be", custom=True, whole=False),
        [finished(LIMIT)],
    ],
    "a cut search": [
        [started()],
        called("tool_search", '{"q":1}', whole=False),
        [finished(LIMIT)],
    ],
    "a call that a stop cuts": [
        [started()],
        called("shell", "{", whole=False),
        [finished(FinishCause.STOP_STRING, stop="{")],
    ],
    "a limit behind a whole call": [
        [started()],
        called("shell", "{}"),
        [finished(LIMIT)],
    ],
    "thoughts between calls": [
        [started()],
        called("shell", "{}"),
        [thought("x")],
        called("shell", "{}", call=1),
        [finished(CALLS)],
    ],
    "text, a thought, text": [[started(), text("a"), thought("x"), text("b")], [finished()]],
}

_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseEvent)
_SDK_EVENTS: dict[str, type[BaseModel]] = {
    typing.get_args(event.model_fields["type"].annotation)[0]: event
    for event in typing.get_args(typing.get_args(sdk.ResponseStreamEvent)[0])
}


def origin_of(name: str) -> Origin:
    return ORIGINS.get(name, Origin("function", name))


def head(**fields: Any) -> ResponseHead:
    sampling: dict[str, Any] = {
        "temperature": 0.5, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0,
    }  # fmt: skip
    known = {"id": new_response_id(), "created_at": 1, "model": "first", **sampling}
    return ResponseHead(**{**known, **fields})


def sealed(text: str) -> str:
    return f"sealed {text}"


def new_draft(
    *, logprobs: bool = False, encrypted: bool = False, keep: bool = False, **fields: Any
) -> ResponseDraft:
    return ResponseDraft(
        head(**fields),
        origin_of,
        names=NAMES if logprobs else None,
        seal=sealed if encrypted else None,
        keep_events=keep,
    )


def valid_object(data: bytes | dict[str, Any], *, official: bool = True) -> dict[str, Any]:
    """A response, valid in the generated model and in the SDK's strict reading."""
    value: dict[str, Any] = json.loads(data) if isinstance(data, bytes) else data
    ResponseObject.model_validate(value, strict=True)
    if official:
        validate_type(type_=sdk.Response, value=value)
    return value


def valid_event(raw: bytes) -> dict[str, Any]:
    """The data of one event, well framed and valid as `valid_object`."""
    name, data = raw.split(b"\n", 1)
    assert data.startswith(b"data: ") and data.endswith(b"\n\n")
    assert b"\n" not in data[:-2] and b"\r" not in raw
    event: dict[str, Any] = json.loads(data[6:-2])
    assert name == b"event: " + event["type"].encode()
    _EVENT.validate_python(event, strict=True)
    error = event.get("response", {}).get("error")
    if not error or error["code"] != "context_length_exceeded":  # Codex's word, not the SDK's
        validate_type(type_=_SDK_EVENTS[event["type"]], value=event)
    return event


def said(*batches: Batch) -> list[SemanticEvent]:
    return [event for batch in batches for _, event in batch]


def raw_events(draft: ResponseDraft, events: Iterable[SemanticEvent]) -> Iterator[bytes]:
    """What a stream sends for these events, failures included."""
    yield from draft.begin()
    try:
        for event in events:
            yield from draft.take(event)
        yield draft.end()
    except (GenerationFailed, RequestError) as error:
        yield draft.failed(error)


def stream(draft: ResponseDraft, *batches: Batch) -> list[dict[str, Any]]:
    """Every event, valid; together they are the final object."""
    found = [valid_event(raw) for raw in raw_events(draft, said(*batches))]
    reader = Reader()
    for event in found:
        reader.take(event)
    assert reader.response == json.loads(draft.final)
    return found


async def whole(draft: ResponseDraft, *batches: Batch) -> bytes:
    """The response in one piece."""
    async for _ in response_events(draft, played(*batches)):
        pass
    return draft.final


def timeless(response: dict[str, Any]) -> dict[str, Any]:
    """A response without its id and the time of its end, which differ between equal ones."""
    text = json.dumps({**response, "completed_at": None})
    return typing.cast(dict[str, Any], json.loads(text.replace(response["id"][5:], "")))


def types_of(events: Iterable[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


class Reader:
    """Puts a response together from its events alone; fails where one is out of order.

    `output` are the items so far, `response` the object of the last event.
    """

    def __init__(self) -> None:
        self.number = 0
        self.output: list[dict[str, Any]] = []
        self.response: dict[str, Any] | None = None
        self._head: dict[str, Any] = {}
        self._open: int | None = None
        self._deltas = 0
        self._text_is_done = self._part_is_done = False

    def take(self, event: dict[str, Any]) -> None:
        assert self.response is None, "an event behind the last"
        event = copy.deepcopy(event)  # its item grows here
        assert event["sequence_number"] == self.number
        self.number += 1
        kind = event["type"]
        if "response" in event:
            self._take_response(kind, event["response"])
        elif kind == "response.output_item.added":
            self._add(event)
        else:
            assert event["output_index"] == self._open == len(self.output) - 1
            item = self.output[-1]
            assert event.get("item_id", item["id"]) == item["id"]
            assert event.get("content_index", 0) == 0
            if kind == "response.output_item.done":
                self._finish(item, event["item"])
            elif kind.startswith("response.content_part."):
                self._take_part(kind, item, event["part"])
            elif kind == "response.compaction.compacting":
                assert item["type"] == "compaction"
            elif kind.endswith(".delta"):
                self._take_delta(kind, item, event)
            else:
                self._take_done(item, event)

    def _take_response(self, kind: str, response: dict[str, Any]) -> None:
        assert (kind == "response.created") == (self.number == 1)
        assert (kind == "response.in_progress") or self.number != 2
        if kind == "response.created":
            assert response["output"] == [] and response["usage"] is None
            self._head = response
        for name, value in response.items():
            if name not in (
                "status", "output", "usage", "error", "incomplete_details", "completed_at", "flare",
            ):  # fmt: skip
                assert value == self._head[name]
        status = "in_progress" if kind not in TERMINAL else kind.removeprefix("response.")
        assert response["status"] == status
        assert (response["completed_at"] is not None) == (status == "completed")
        assert (response["error"] is not None) == (status == "failed")
        assert (response["incomplete_details"] is not None) == (status == "incomplete")
        if kind in TERMINAL:
            self._end(status)
            self.response = {**response, "output": self.output}
            assert response == self.response

    def _end(self, status: str) -> None:
        """An item that is still open was cut and is not announced as done."""
        if self._open is not None:
            item = self.output[-1]
            assert status == "failed" or item["type"].endswith("_call")
            item["status"] = "incomplete"

    def _add(self, event: dict[str, Any]) -> None:
        item = event["item"]
        if self._open is not None:  # cut by what comes now
            assert self.output[-1]["type"].endswith("_call")
            self.output[-1]["status"] = "incomplete"
        assert event["output_index"] == len(self.output)
        assert item["id"] not in [other["id"] for other in self.output]
        assert item.get("status", "in_progress") == "in_progress"
        assert not item.get("content") and not item.get("arguments") and not item.get("input")
        assert not item.get("encrypted_content") and "phase" not in item
        self.output.append(item)
        self._open = event["output_index"]
        self._deltas = 0
        self._text_is_done = self._part_is_done = False

    def _take_part(self, kind: str, item: dict[str, Any], part: dict[str, Any]) -> None:
        if kind.endswith(".added"):
            assert item["content"] == [] and not part["text"] and not part.get("logprobs")
            item["content"].append(part)
        else:
            assert self._text_is_done and not self._part_is_done
            assert [part] == item["content"]
            self._part_is_done = True

    def _take_delta(self, kind: str, item: dict[str, Any], event: dict[str, Any]) -> None:
        assert not self._text_is_done
        self._deltas += 1
        owner, member = {
            "response.output_text.delta": ("message", "text"),
            "response.reasoning_text.delta": ("reasoning", "text"),
            "response.function_call_arguments.delta": ("function_call", "arguments"),
            "response.custom_tool_call_input.delta": ("custom_tool_call", "input"),
        }[kind]
        assert item["type"] == owner
        place = item["content"][0] if member == "text" else item
        place[member] += event["delta"]
        if owner == "message":
            place["logprobs"] += event["logprobs"]

    def _take_done(self, item: dict[str, Any], event: dict[str, Any]) -> None:
        assert self._deltas > 0 and not self._text_is_done
        place = item["content"][0] if "content" in item else item
        told = {"type", "sequence_number", "item_id", "output_index", "content_index"}
        for name, value in event.items():
            assert name in told or place[name] == value
        self._text_is_done = True

    def _finish(self, item: dict[str, Any], done: dict[str, Any]) -> None:
        kind = item["type"]
        assert self._text_is_done == (kind not in ("tool_search_call", "compaction"))
        assert self._part_is_done == (kind in ("message", "reasoning"))
        late = {
            "message": {"status", "phase"},
            "reasoning": {"status", "encrypted_content"},
            "tool_search_call": {"status", "arguments"},
            "compaction": {"encrypted_content"},
        }.get(kind, {"status"})
        for name, value in done.items():
            assert name in late or item[name] == value, f"{name} changes at the end"
        assert set(item) <= set(done)
        if kind.endswith("_call"):
            assert done["status"] == "completed"
        self.output[-1] = done
        self._open = None
