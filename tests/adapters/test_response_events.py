"""The event grammar of every kind of item, and the ends of a response."""

from __future__ import annotations

from typing import Any

import pytest
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types import responses as sdk
from pydantic import TypeAdapter

from adapters.response_events import ResponseDraft
from adapters.response_object import response_id_of
from engine.events import Channel, FinishCause, TokenRecord, TokenScore
from tests.adapters.drafts import (
    TURNS,
    head,
    new_draft,
    origin_of,
    raw_events,
    said,
    stream,
    timeless,
    types_of,
    valid_event,
    valid_object,
    whole,
)
from tests.adapters.played import Batch, called, finished, started, text, thought
from tests.serving import ids

CALLS = FinishCause.TOOL_CALLS
OPENAI_EVENT: TypeAdapter[Any] = TypeAdapter(sdk.ResponseStreamEvent)


def without_place(event: dict[str, Any]) -> dict[str, Any]:
    hidden = ("sequence_number", "item_id", "output_index", "content_index")
    return {name: value for name, value in event.items() if name not in hidden}


@pytest.mark.parametrize("turn", TURNS)
async def test_every_turn_is_well_formed_and_the_same_in_one_piece(turn: str) -> None:
    streamed = stream(new_draft(encrypted=True), *TURNS[turn])[-1]["response"]
    body = await whole(new_draft(encrypted=True), *TURNS[turn])
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
        "id": item["id"], "type": "reasoning", "summary": [],
        "content": [{"type": "reasoning_text", "text": "xé\n"}], "status": "completed",
    }  # fmt: skip


def test_a_thought_is_sealed_where_that_is_included() -> None:
    events = stream(new_draft(encrypted=True), *TURNS["thoughts and text"])
    assert "encrypted_content" not in events[2]["item"]
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


def test_a_response_whose_call_a_stop_cuts_is_incomplete() -> None:
    """Clients run the calls of a completed one."""
    response = stream(new_draft(), *TURNS["a call that a stop cuts"])[-1]["response"]
    assert response["status"] == "incomplete"
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
