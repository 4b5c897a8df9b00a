"""The event grammar of every kind of item, and the ends of a response."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types import responses as sdk
from pydantic import TypeAdapter

from adapters.generation import guarded
from adapters.response_events import ResponseDraft, response_events, whole_response
from adapters.response_object import CUT, response_id_of
from engine.choice import BROKEN
from engine.errors import (
    ContextOverflow,
    EngineUnavailable,
    GenerationFailed,
    Overloaded,
    RequestError,
)
from engine.events import Channel, FinishCause, TokenRecord, TokenScore
from tests.adapters.drafts import (
    head,
    new_draft,
    origin_of,
    raw_events,
    said,
    stream,
    timeless,
    valid_event,
    valid_object,
)
from tests.adapters.played import Batch, called, finished, played, started, text, thought
from tests.serving import ids

CALLS, LIMIT = FinishCause.TOOL_CALLS, FinishCause.LIMIT
OPENAI_EVENT: TypeAdapter[Any] = TypeAdapter(sdk.ResponseStreamEvent)

TURNS: dict[str, list[Batch]] = {
    "nothing": [[started()], [finished()]],
    "nothing before the limit": [[started()], [finished(LIMIT)]],
    "text": [[started(), text("a"), text("b")], [finished()]],
    "thoughts and text": [[started(), thought("x"), thought("é\n"), text("y")], [finished()]],
    "cut text": [[started(), text("a")], [finished(LIMIT)]],
    "a cut thought": [[started(), thought("x")], [finished(LIMIT)]],
    "text after empty text": [[started(), text(""), thought(""), text("a")], [finished()]],
    "a call": [[started()], called("shell", '{"id": ', '42"', "}}"), [finished(CALLS)]],
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
    "a cut call": [[started()], called("shell", '{"a":"b', whole=False), [finished(LIMIT)]],
    "a cut custom call": [
        [started(), text("a")],
        called("apply_patch", "*** Be", custom=True, whole=False),
        [finished(LIMIT)],
    ],
    "a cut search": [[started()], called("tool_search", '{"q":1}', whole=False), [finished(LIMIT)]],
    "a call that a stop cuts": [
        [started()],
        called("shell", "{", whole=False),
        [finished(FinishCause.STOP_STRING, stop="{")],
    ],
    "a limit behind a whole call": [[started()], called("shell", "{}"), [finished(LIMIT)]],
    "thoughts between calls": [
        [started()],
        called("shell", "{}"),
        [thought("x")],
        called("shell", "{}", call=1),
        [finished(CALLS)],
    ],
    "text, a thought, text": [[started(), text("a"), thought("x"), text("b")], [finished()]],
}


def types_of(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def without_place(event: dict[str, Any]) -> dict[str, Any]:
    hidden = ("sequence_number", "item_id", "output_index", "content_index")
    return {name: value for name, value in event.items() if name not in hidden}


@pytest.mark.parametrize("turn", TURNS)
async def test_every_turn_is_well_formed_and_the_same_in_one_piece(turn: str) -> None:
    streamed = stream(new_draft(encrypted=True), *TURNS[turn])[-1]["response"]
    generation = played(*TURNS[turn])
    body = await whole_response(new_draft(encrypted=True), generation)
    assert timeless(valid_object(body)) == timeless(streamed)


@pytest.mark.parametrize("turn", TURNS)
def test_the_sdk_puts_the_events_together(turn: str) -> None:
    events = stream(new_draft(), *TURNS[turn])
    state: ResponseStreamState[None] = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in events:
        list(state.handle_event(OPENAI_EVENT.validate_python(event)))
    snapshot: Any = vars(state)["_ResponseStreamState__current_snapshot"]
    found = [item.to_dict() for item in snapshot.output]
    for item, want in zip(found, events[-1]["response"]["output"], strict=True):
        assert (item["id"], item["type"]) == (want["id"], want["type"])
        assert item.get("arguments") == want.get("arguments") or item["type"] == "tool_search_call"
        if item["type"] == "message":
            assert item["content"][0]["text"] == want["content"][0]["text"]


def test_a_stream_begins_with_the_whole_response() -> None:
    created, in_progress, *_ = stream(new_draft(metadata={"k": "v"}), *TURNS["text"])
    assert created["type"] == "response.created"
    assert in_progress["type"] == "response.in_progress"
    assert created["response"] == in_progress["response"]
    assert created["response"]["metadata"] == {"k": "v"}
    assert (created["sequence_number"], in_progress["sequence_number"]) == (0, 1)


def test_the_first_events_do_not_wait_for_the_first_token() -> None:
    draft = new_draft()
    assert len(list(draft.begin())) == 2
    assert list(draft.begin()) == []
    assert list(draft.take(started()[1])) == []
    [*first, delta] = draft.take(text("a")[1])
    assert len(first) == 2 and valid_event(delta)["sequence_number"] == 4


def test_the_grammar_of_a_message() -> None:
    events = stream(new_draft(), *TURNS["text"])
    assert types_of(events) == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
        "output_text.delta", "output_text.done", "content_part.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    item = events[8]["item"]
    part = {"type": "output_text", "text": "ab", "annotations": [], "logprobs": []}
    assert item == {
        "id": item["id"], "type": "message", "role": "assistant", "status": "completed",
        "phase": "final_answer", "content": [part],
    }  # fmt: skip
    assert [without_place(event) for event in events[2:8]] == [
        {"type": "response.output_item.added", "item": {
            "id": item["id"], "type": "message", "role": "assistant", "status": "in_progress",
            "content": [],
        }},
        {"type": "response.content_part.added", "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", "delta": "a", "logprobs": []},
        {"type": "response.output_text.delta", "delta": "b", "logprobs": []},
        {"type": "response.output_text.done", "text": "ab", "logprobs": []},
        {"type": "response.content_part.done", "part": part},
    ]  # fmt: skip


def test_d004_a_thought_is_an_item_in_front_of_the_message() -> None:
    events = stream(new_draft(), *TURNS["thoughts and text"])
    assert types_of(events)[2:9] == [
        "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.delta",
        "reasoning_text.done", "content_part.done", "output_item.done",
    ]  # fmt: skip
    assert {event["output_index"] for event in events[2:9]} == {0}
    assert {event["output_index"] for event in events[9:-1]} == {1}
    assert {event.get("content_index", 0) for event in events} == {0}
    item = events[8]["item"]
    assert item == {
        "id": item["id"], "type": "reasoning", "summary": [], "encrypted_content": None,
        "content": [{"type": "reasoning_text", "text": "xé\n"}], "status": "completed",
    }  # fmt: skip


def test_a_thought_is_sealed_where_that_is_included() -> None:
    events = stream(new_draft(encrypted=True), *TURNS["thoughts and text"])
    assert events[2]["item"]["encrypted_content"] is None
    assert events[8]["item"]["encrypted_content"] == "sealed xé\n"
    assert events[-1]["response"]["output"][0]["encrypted_content"] == "sealed xé\n"


def test_d003_the_arguments_of_a_call_come_in_deltas() -> None:
    events = stream(new_draft(), *TURNS["a call"])[2:-1]
    assert types_of(events) == [
        "output_item.added", *3 * ["function_call_arguments.delta"],
        "function_call_arguments.done", "output_item.done",
    ]  # fmt: skip
    arguments = '{"id": 42"}}'
    added, done = events[0]["item"], events[5]["item"]
    assert (added["arguments"], added["status"]) == ("", "in_progress")
    assert done == {
        "id": added["id"], "type": "function_call", "call_id": "call_00", "name": "shell",
        "status": "completed", "arguments": arguments,
    }  # fmt: skip
    assert events[4] == {
        "type": "response.function_call_arguments.done", "sequence_number": 6,
        "item_id": added["id"], "output_index": 0, "name": "shell", "arguments": arguments,
    }  # fmt: skip


def test_d003_a_call_without_arguments_has_a_delta_too() -> None:
    events = stream(new_draft(), *TURNS["a call without arguments"])
    assert types_of(events)[3:5] == [
        "function_call_arguments.delta", "function_call_arguments.done",
    ]  # fmt: skip


def test_d012_calls_are_named_as_their_tools_were_declared() -> None:
    output = stream(new_draft(), *TURNS["thoughts, text and calls of all kinds"])[-1]["response"][
        "output"
    ]
    shown = [{k: v for k, v in item.items() if k not in ("id", "status")} for item in output[2:]]
    assert shown == [
        {"type": "function_call", "call_id": "call_00", "name": "read", "namespace": "mcp__fs",
         "arguments": '{"p":"a.txt"}'},
        {"type": "custom_tool_call", "call_id": "call_01", "name": "apply_patch",
         "input": "*** Begin\n\n"},
        {"type": "custom_tool_call", "call_id": "call_02", "name": "patch", "namespace": "edit",
         "input": "z"},
        {"type": "tool_search_call", "call_id": "call_03", "execution": "client",
         "arguments": {"query": "mail"}},
        {"type": "function_call", "call_id": "call_04", "name": "made_up", "arguments": "{}"},
    ]  # fmt: skip


def test_the_grammar_of_custom_calls_and_searches() -> None:
    events = stream(new_draft(), *TURNS["thoughts, text and calls of all kinds"])
    of = {index: [e for e in events if e.get("output_index") == index] for index in range(7)}
    assert types_of(of[3]) == [
        "output_item.added", *2 * ["custom_tool_call_input.delta"], "custom_tool_call_input.done",
        "output_item.done",
    ]  # fmt: skip
    assert of[3][0]["item"]["input"] == "" and of[3][3]["input"] == "*** Begin\n\n"
    assert types_of(of[5]) == ["output_item.added", "output_item.done"]
    assert of[5][0]["item"]["arguments"] == {}


@pytest.mark.parametrize(
    "arguments", ["", "[1]", "{", '{"a":NaN}', '{"a":"\\ud800"}', '{"a":1e999}', "[" * 5000, "3"]
)
def test_a_search_whose_arguments_are_no_object_has_none(arguments: str) -> None:
    events = stream(new_draft(), [started()], called("tool_search", arguments), [finished(CALLS)])
    assert events[-2]["item"]["arguments"] == {}
    assert events[-2]["item"]["status"] == "completed"


def test_d009_a_turn_of_calls_has_no_message() -> None:
    turn: list[Batch] = [[started(), text("")], called("shell", "{}"), [text(""), finished(CALLS)]]
    output = stream(new_draft(), *turn)[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["function_call"]


@pytest.mark.parametrize("turn", ["a cut call", "a cut custom call", "a cut search"])
def test_a_cut_call_is_in_the_output_but_never_announced_as_done(turn: str) -> None:
    events = stream(new_draft(), *TURNS[turn])
    assert events[-1]["type"] == "response.incomplete"
    item = events[-1]["response"]["output"][-1]
    assert item["status"] == "incomplete"
    of_call = [e for e in events if e.get("output_index") == len(events[-1]["response"]["output"])]
    assert not [kind for kind in types_of(of_call) if kind.endswith(".done")]
    done = [event["item"]["id"] for event in events if event["type"].endswith("item.done")]
    assert item["id"] not in done


def test_a_cut_call_keeps_what_was_generated() -> None:
    output = stream(new_draft(), *TURNS["a cut call"])[-1]["response"]["output"]
    assert output[0]["arguments"] == '{"a":"b'
    output = stream(new_draft(), *TURNS["a cut search"])[-1]["response"]["output"]
    assert output[0]["arguments"] == {}


@pytest.mark.parametrize("turn", ["cut text", "a cut thought"])
def test_a_cut_text_is_done_as_incomplete(turn: str) -> None:
    events = stream(new_draft(), *TURNS[turn])
    assert types_of(events)[-2:] == ["output_item.done", "incomplete"]
    assert events[-2]["item"]["status"] == "incomplete"


def test_a_stop_completes_whatever_it_cuts() -> None:
    response = stream(new_draft(), *TURNS["a call that a stop cuts"])[-1]["response"]
    assert response["status"] == "completed"
    assert response["output"][0]["status"] == "incomplete"


def test_phases_tell_the_answer_from_what_is_said_on_the_way() -> None:
    def phases(turn: str) -> list[str]:
        output = stream(new_draft(), *TURNS[turn])[-1]["response"]["output"]
        return [item["phase"] for item in output if item["type"] == "message"]

    assert phases("text") == ["final_answer"]
    assert phases("cut text") == ["final_answer"]
    assert phases("thoughts, text and calls of all kinds") == ["commentary"]
    assert phases("a cut custom call") == ["commentary"]
    assert phases("text, a thought, text") == ["commentary", "final_answer"]


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
        await whole_response(new_draft(), played(*turn))


async def test_a_generation_without_an_end_has_failed() -> None:
    with pytest.raises(GenerationFailed):
        await whole_response(new_draft(), played([started(), text("a")]))


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


# Log probabilities


def record(char: str, channel: Channel, *, forced: bool = False) -> TokenRecord:
    [token], [other] = ids(char), ids("z")
    score = None if forced else TokenScore(token, -0.5, 1, ((token, -0.5), (other, -1.5)))
    return TokenRecord(token, 0, 0.0, score, channel)


def entry(char: str) -> dict[str, Any]:
    def one(char: str, logprob: float) -> dict[str, Any]:
        return {"token": char, "bytes": [ord(char)], "logprob": logprob}

    return {**one(char, -0.5), "top_logprobs": [one(char, -0.5), one("z", -1.5)]}


TEXT, MARKUP = Channel.TEXT, Channel.MARKUP
SEEN: list[Batch] = [
    [started(), thought("a", records=[record("a", Channel.REASONING)])],
    [thought("", records=[record("<", MARKUP), record("x", TEXT)])],  # its text comes later
    [text("xb", records=[record("b", TEXT), record("f", TEXT, forced=True)])],
    [text("", records=[record("c", TEXT)])],
    called("shell", "{}", records=[record("d", TEXT), record("{", Channel.CALL)]),
    [text("e", records=[record("e", TEXT)])],
    [finished(CALLS)],
]


def test_only_tokens_of_the_answer_have_log_probabilities() -> None:
    events = stream(new_draft(logprobs=True), *SEEN)
    output = events[-1]["response"]["output"]
    assert [item["content"][0]["logprobs"] for item in output if item["type"] == "message"] == [
        [entry(char) for char in "xbcd"], [entry("e")],
    ]  # fmt: skip
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert [(event["delta"], event["logprobs"]) for event in deltas] == [
        ("xb", [entry("x"), entry("b")]), ("", [entry("c")]), ("", [entry("d")]),
        ("e", [entry("e")]),
    ]  # fmt: skip
    dones = [event for event in events if event["type"] == "response.output_text.done"]
    assert [len(event["logprobs"]) for event in dones] == [4, 1]


def test_nothing_is_said_of_tokens_that_nobody_asked_about() -> None:
    events = stream(new_draft(), *SEEN)
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert [event["delta"] for event in deltas] == ["xb", "e"]
    assert not any(event["logprobs"] for event in deltas)


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


def test_ids_are_stable_and_lead_back_to_the_response() -> None:
    known = head()
    draft = ResponseDraft(known, origin_of)
    events = [
        valid_event(raw)
        for raw in raw_events(draft, said(*TURNS["thoughts, text and calls of all kinds"]))
    ]
    found = [item["id"] for item in events[-1]["response"]["output"]]
    assert [item.partition("_")[0] for item in found] == [
        "rs", "msg", "fc", "ctc", "ctc", "tsc", "fc",
    ]  # fmt: skip
    assert {response_id_of(item) for item in found} == {known.id}


NASTY = 'quote " backslash \\ newline \n return \r nul \0 \u2028 é 😀 </tool_call>'


def test_every_kind_of_text_survives_whatever_it_holds() -> None:
    events = stream(
        new_draft(encrypted=True, instructions=NASTY),
        [started(), thought(NASTY), text(NASTY)],
        called(NASTY, NASTY, NASTY),
        called("apply_patch", NASTY, custom=True, call=1),
        [finished(CALLS)],
    )
    reasoning, message, function, custom = events[-1]["response"]["output"]
    assert reasoning["content"][0]["text"] == message["content"][0]["text"] == NASTY
    assert (function["name"], function["arguments"]) == (NASTY, NASTY * 2)
    assert custom["input"] == NASTY
