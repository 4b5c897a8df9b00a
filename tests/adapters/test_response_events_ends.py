"""How a response ends or fails, and what else a stream of it can say."""

from __future__ import annotations

import json

import pytest

from adapters.generation import guarded
from adapters.response_events import response_events
from adapters.response_object import CUT
from engine.choice import BROKEN
from engine.errors import (
    ContextOverflow,
    EngineUnavailable,
    GenerationFailed,
    Overloaded,
    RequestError,
)
from engine.events import FinishCause
from tests.adapters.drafts import (
    TURNS,
    new_draft,
    raw_events,
    said,
    stream,
    types_of,
    valid_event,
    valid_object,
    whole,
)
from tests.adapters.played import Batch, finished, played, started, text, thought


@pytest.mark.parametrize("cause", sorted(set(FinishCause) - set(BROKEN), key=str))
def test_what_every_end_is_called(cause: FinishCause) -> None:
    last = stream(new_draft(), [started(), text("a")], [finished(cause)])[-1]
    reason = {"reason": "max_output_tokens"}
    status, details = ("incomplete", reason) if cause in CUT else ("completed", None)
    assert last["type"] == f"response.{status}"
    assert last["response"]["incomplete_details"] == details
    assert last["response"]["usage"]["total_tokens"] == 8
    assert last["response"]["flare"]["time_to_first_token_ms"] == 250


@pytest.mark.parametrize("cause", BROKEN)
async def test_a_broken_generation_fails_a_stream_and_is_raised_from_a_buffered_one(
    cause: FinishCause,
) -> None:
    turn: list[Batch] = [[started(), text("a")], [finished(cause)]]
    *_, last = stream(new_draft(), *turn)
    assert last["type"] == "response.failed"
    code = "invalid_prompt" if cause is FinishCause.DEAD_END else "server_error"
    assert last["response"]["error"]["code"] == code
    assert last["response"]["output"][0]["status"] == "incomplete"
    with pytest.raises((GenerationFailed, RequestError)):
        await whole(new_draft(), *turn)


async def test_a_generation_without_an_end_has_failed() -> None:
    with pytest.raises(GenerationFailed):
        await whole(new_draft(), [started(), text("a")])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ContextOverflow("too long", "input", 9, 8), "context_length_exceeded"),
        (Overloaded("full"), "rate_limit_exceeded"),
        (EngineUnavailable("gone"), "server_error"),
    ],
)
def test_a_failure_before_anything_else_is_a_whole_stream(error: Exception, code: str) -> None:
    draft = new_draft()
    events = [valid_event(raw + b"\n\n") for raw in draft.failed(error).split(b"\n\n")[:-1]]
    assert types_of(events) == ["created", "in_progress", "failed"]
    assert events[-1]["response"]["error"]["code"] == code
    assert events[-1]["response"]["usage"] is None
    assert events[-1]["sequence_number"] == 2


async def test_d006_a_failure_in_a_stream_is_its_last_event() -> None:
    draft = new_draft(keep=True)
    turn: list[Batch] = [[started(), text("a"), text("b"), text("c")]]
    raw = [e async for e in guarded(response_events(draft, played(*turn)), draft.failed)]
    events = [valid_event(item) for item in raw]
    assert events[-1]["type"] == "response.failed"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    response = events[-1]["response"]
    assert response["status"] == "failed"
    assert response["error"] == {
        "code": "server_error", "message": "the generation ended without a finish",
    }  # fmt: skip
    assert response["usage"]["output_tokens"] == 2
    assert response == json.loads(draft.final)
    assert [json.loads(data) for data in draft.kept] == events


def test_a_thought_that_a_failure_breaks_off_is_not_sealed() -> None:
    turn: list[Batch] = [[started(), thought("x")], [finished(FinishCause.FAILED)]]
    [item] = stream(new_draft(encrypted=True), *turn)[-1]["response"]["output"]
    assert item["status"] == "incomplete" and "encrypted_content" not in item


# Heartbeats, storage and compaction


def test_heartbeats_have_all_so_far_and_numbers_of_their_own() -> None:
    draft = new_draft(keep=True)
    assert draft.heartbeat() == b""
    raw = list(draft.begin())
    for event in said([started(), thought("x"), text("a")]):
        for made in draft.take(event):
            raw += [made, draft.heartbeat()]
    beat = valid_event(draft.heartbeat())
    assert [item["status"] for item in beat["response"]["output"]] == ["completed", "in_progress"]
    assert beat["response"]["output"][1]["content"][0]["text"] == "a"
    raw += draft.take(finished()[1])
    raw += [draft.heartbeat(), draft.end()]
    assert draft.heartbeat() == b""
    events = [valid_event(item) for item in raw]
    assert [event["sequence_number"] for event in events] == [
        number for number in range(len(events) + 1) if number != beat["sequence_number"]
    ]
    kept = [json.loads(data) for data in draft.kept]
    assert [event for event in kept if event != beat] == events


def test_no_heartbeat_follows_a_failure() -> None:
    draft = new_draft()
    draft.failed(GenerationFailed("broke"))
    assert draft.heartbeat() == b""


def test_events_are_kept_only_where_that_is_wanted() -> None:
    draft = new_draft()
    assert len(list(raw_events(draft, said(*TURNS["text"])))) == 10
    assert draft.kept == []


async def test_a_response_is_saved_before_its_end_is_told() -> None:
    draft = new_draft(keep=True)
    seen: list[str] = []

    async def save() -> None:
        assert json.loads(draft.final)["status"] == "completed"
        assert json.loads(draft.kept[-1])["type"] == "response.completed"
        assert json.loads(draft.output()) == json.loads(draft.final)["output"]
        assert draft.heartbeat() == b""
        seen.append("saved")

    async for raw in response_events(draft, played(*TURNS["text"]), save):
        seen.append(valid_event(raw)["type"])
    assert seen[-2:] == ["saved", "response.completed"]


async def test_a_response_that_cannot_be_saved_has_failed_and_has_one_end() -> None:
    draft = new_draft(keep=True)

    async def save() -> None:
        raise EngineUnavailable("the disk is full")

    generation = played(*TURNS["thoughts and text"])
    stream_of = guarded(response_events(draft, generation, save), draft.failed)
    events = [valid_event(raw) async for raw in stream_of]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [kind for kind in types_of(events) if "." not in kind] == [
        "created", "in_progress", "failed",
    ]  # fmt: skip
    assert [json.loads(data) for data in draft.kept] == events
    assert events[-1]["response"]["completed_at"] is None
    assert [item["status"] for item in events[-1]["response"]["output"]] == 2 * ["completed"]


def test_a_compaction_stands_in_front_of_the_answer() -> None:
    draft = new_draft()
    raw = list(draft.compacted("a note"))
    raw += raw_events(draft, said(*TURNS["text"]))
    events = [valid_event(item) for item in raw]
    assert types_of(events)[:6] == [
        "created", "in_progress", "output_item.added", "compaction.compacting",
        "output_item.done", "output_item.added",
    ]  # fmt: skip
    note, message = valid_object(draft.final)["output"]
    assert note == {"id": note["id"], "type": "compaction", "encrypted_content": "a note"}
    assert [event["output_index"] for event in events[2:6]] == [0, 0, 0, 1]
    assert message["id"] != note["id"]
