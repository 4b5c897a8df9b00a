"""The items of a body of Responses, as the messages of a conversation."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, cast

import pytest
from openai._models import validate_type
from openai.types.responses import ResponseItem

from adapters.response_items import parse_items, written_items
from adapters.response_object import response_id_of
from engine.conversation import Message, Reasoning, Text, ToolCall
from engine.errors import RequestError
from tests.adapters.asgi import SEAL
from tests.adapters.responding import (
    MODEL,
    TENANT,
    answered,
    described,
    history,
    reader,
    said,
    validated,
)

USER = {"role": "user", "content": "hi"}
HI = said("user", "hi")
CALL = {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"cmd": "ls"}'}
CALLED = ToolCall("c1", "shell", '{"cmd": "ls"}')
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "a.txt"}
_INSTRUCTING = ("system", "developer")


def input_text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def messages(*items: Any, **more: Any) -> tuple[Message, ...]:
    return history(*items, **more).messages


OWN = SEAL.seal("sealed thought", TENANT, MODEL)


def compaction(note: str, **changes: Any) -> dict[str, Any]:
    payload = {"v": 1, "model": MODEL, "created_at": 1, "mode": "model", "note": note, **changes}
    sealed = SEAL.seal(json.dumps(payload), TENANT, MODEL)
    return {"type": "compaction", "id": "cmp_1", "encrypted_content": sealed}


def assistant(*parts: Any) -> Message:
    return Message("assistant", parts)


# Messages


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (USER, HI),
        ({**USER, "type": "message"}, HI),
        ({**USER, "type": None}, HI),
        ({**USER, "content": [input_text("a"), input_text("b")]}, said("user", "a", "b")),
        ({**USER, "content": ""}, said("user", "")),
        ({**USER, "content": []}, said("user")),
        ({"role": "system", "content": "s"}, said("system", "s")),
        ({"role": "developer", "content": [input_text("d")]}, said("developer", "d")),
        ({"role": "assistant", "content": "so"}, said("assistant", "so")),
        (
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "phase": "final_answer", "content": [output_text("a"), output_text("b")]},
            said("assistant", "a", "b"),
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            said("assistant", "no"),
        ),
        ({**USER, "id": "msg_1", "metadata": {"x": 1}, "internal": [1]}, HI),
    ],
    ids=described,
)  # fmt: skip
def test_each_shape_of_a_message(item: Any, expected: Message) -> None:
    assert messages(item)[0] == expected
    assert [one.role for one in messages(item)[1:]] == ["user"] * (item["role"] in _INSTRUCTING)


def test_a_phase_changes_nothing() -> None:
    answer = {"role": "assistant", "content": "a"}
    for phase in ("commentary", "final_answer", None, "unheard of"):
        assert messages(USER, {**answer, "phase": phase}) == messages(USER, answer)


def test_empty_instructions_are_none() -> None:
    empty = [{"role": role, "content": ""} for role in ("system", "developer", "assistant")]
    assert messages(USER, *empty) == (HI,)


@pytest.mark.parametrize(
    ("items", "before"),
    [([], ()), ([{"role": "developer", "content": "d"}], (said("developer", "d"),)),
     ([{"type": "reasoning"}, {"type": "web_search_call"}], ())],
    ids=described,
)  # fmt: skip
def test_without_a_turn_there_is_an_empty_one_of_the_user(items: Any, before: Any) -> None:
    assert messages(*items) == (*before, said("user", ""))


def test_instructions_come_first() -> None:
    assert messages(USER, instructions="Be brief.") == (said("system", "Be brief."), HI)
    assert messages(USER, instructions="") == (HI,)


# Turns of the model


def test_one_turn_of_the_model_is_one_message() -> None:
    found = messages(
        USER,
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "T"}]},
        {"role": "assistant", "content": "I look."},
        CALL,
        {**CALL, "call_id": "c2", "arguments": ""},
        OUTPUT,
        {**OUTPUT, "call_id": "c2", "output": [input_text("x"), output_text("y")]},
        {"role": "assistant", "content": [output_text("Done.")]},
        USER,
    )
    assert found == (
        HI,
        assistant(Reasoning("T"), Text("I look."), CALLED, ToolCall("c2", "shell", "{}")),
        answered("c1", "a.txt"),
        answered("c2", "x", "y"),
        said("assistant", "Done."),
        HI,
    )


def test_calls_of_custom_tools_keep_their_text() -> None:
    patch = "*** Begin Patch\n\n*** End Patch\n"
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": patch}
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok", "name": "x"}
    assert messages(USER, call, output)[1:] == (
        assistant(ToolCall("c1", "apply_patch", patch, custom=True)),
        answered("c1", "ok"),
    )


def test_namespaces_and_names_are_joined() -> None:
    custom = {"type": "custom_tool_call", "call_id": "c2", "name": "exec", "input": "x"}
    found = messages(
        USER,
        {**CALL, "namespace": "mcp__fs"},
        {**custom, "namespace": "functions"},
        {**OUTPUT, "name": "shell", "namespace": "mcp__fs"},
        {**OUTPUT, "call_id": None, "name": "shell"},
        {**OUTPUT, "name": None, "namespace": "mcp__fs"},
    )
    assert found[1:] == (
        assistant(
            ToolCall("c1", "mcp__fs__shell", '{"cmd": "ls"}'),
            ToolCall("c2", "functions__exec", "x", custom=True),
        ),
        answered("c1", "a.txt", name="mcp__fs__shell"),
        answered("", "a.txt", name="shell"),
        answered("c1", "a.txt"),
    )
    assert messages(USER, {**CALL, "namespace": ""})[1] == assistant(CALLED)


# What is not shown


def test_what_hosted_tools_did_is_left_out_with_one_line_of_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "heliograph.api")
    search = {"type": "web_search_call", "id": "ws_1", "action": {"secret": 1}}
    server = {"type": "tool_search_call", "arguments": {}, "execution": "server"}
    shell = {"type": "local_shell_call", "call_id": "x", "action": {}}
    found = messages(USER, CALL, search, server, shell, search, OUTPUT)
    assert found == (HI, assistant(CALLED), answered("c1", "a.txt"))
    [line] = caplog.messages
    assert line.endswith(": local_shell_call, tool_search_call, web_search_call")


@pytest.mark.parametrize(
    ("item", "param", "word"),
    [
        ({**USER, "content": [input_text("a"), {"type": "input_image", "image_url": "x"}]},
         "input[1].content[1].type", "input_image"),
        ({**USER, "content": [{"type": "input_file", "file_id": "x"}]},
         "input[1].content[0].type", "input_file"),
        ({**OUTPUT, "output": [{"type": "input_image", "image_url": "x"}]},
         "input[1].output[0].type", "input_image"),
        ({"type": "nonsense"}, "input[1].type", "nonsense"),
        ({}, "input[1].type", "required"),
        ({"type": None}, "input[1].type", "None"),
        ({"content": "x"}, "input[1].type", "required"),
        ({"role": "robot", "content": "x"}, "input[1].role", "robot"),
        ({"role": "user"}, "input[1].content", "required"),
        ({"type": "item_reference"}, "input[1].id", "required"),
        ({"type": "function_call", "call_id": "c", "name": "n"}, "input[1].arguments", "required"),
        ("x", "input[1]", "an object"),
        (None, "input[1]", "an object"),
    ],
    ids=described,
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_its_place(item: Any, param: str, word: str) -> None:
    with pytest.raises(RequestError) as caught:
        validated(USER, item)
    assert caught.value.param == param
    assert param in caught.value.message and word in caught.value.message


def test_an_id_alone_is_a_reference() -> None:
    sent: Any = validated({"id": "msg_1"}, {"id": "rs_1", "type": None}).input
    assert [(one.type, one.id) for one in sent] == [
        ("item_reference", "msg_1"), ("item_reference", "rs_1"),
    ]  # fmt: skip


# Lists of them


IDS = "resp_" + "0" * 32
FORM = {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}
SENT: list[dict[str, Any]] = [
    USER,
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
    {"role": "developer", "content": [input_text("a")]},
    CALL,
    {**OUTPUT, "output": [input_text("a")]},
    {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "", "namespace": "x"},
    {"type": "custom_tool_call_output", "call_id": "c", "output": "x"},
    {"type": "reasoning"},
    {"type": "reasoning", "summary": None, "content": None, "encrypted_content": OWN},
    {"type": "tool_search_call", "arguments": {"q": {"r": [1, 2.5, None]}}},
    {"type": "tool_search_output", "call_id": "s", "tools": []},
    {"type": "additional_tools", "role": "developer", "tools": []},
    compaction("n"),
    {"type": "configuration_update", "reasoning": {"effort": "low"}, "text": FORM},
    {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
]
"""Items with no more than the spec wants."""


@pytest.mark.parametrize("item", SENT, ids=described)
def test_a_list_has_what_typed_readers_want_and_is_read_back_as_it_was_sent(item: Any) -> None:
    sent: Any = validated(item).input
    [written] = written_items(sent, IDS)
    shown = json.loads(json.dumps(written))
    validate_type(type_=cast(Any, ResponseItem), value=shown)
    assert shown["id"] == item.get("id") or response_id_of(shown["id"]) == IDS
    [stored] = parse_items(json.dumps([shown]).encode())
    assert reader().read([], [stored], None) == reader().read([], sent, None)


def test_items_keep_their_ids_and_what_hosted_tools_did() -> None:
    sent: Any = validated({**USER, "id": "msg_mine"}, SENT[-1], USER, USER).input
    mine, hosted, one, other = written_items(sent, IDS)
    assert mine["id"] == "msg_mine"
    assert hosted.items() >= SENT[-1].items()
    assert one["id"] != other["id"]
    assert one["content"] == [input_text("hi")] and one["status"] == "completed"


def test_text_of_the_model_has_lists_beside_it() -> None:
    lists: dict[str, Any] = {"annotations": [], "logprobs": []}
    answer = {"role": "assistant", "content": "a"}
    bare = {**answer, "content": [{"type": "output_text", "text": "a", "annotations": None}]}
    for sent in (answer, bare):
        own: Any = validated(sent).input
        [item] = written_items(own, IDS)
        assert item["content"] == [{"type": "output_text", "text": "a", **lists}]


def test_ids_tell_the_kind() -> None:
    sent: Any = validated(*SENT, {**SENT[-3], "id": None}).input
    assert {item["type"]: item["id"].partition("_")[0] for item in written_items(sent, IDS)} == {
        "message": "msg", "function_call": "fc", "function_call_output": "fco",
        "custom_tool_call": "ctc", "custom_tool_call_output": "ctco", "reasoning": "rs",
        "tool_search_call": "tsc", "tool_search_output": "tso", "additional_tools": "at",
        "compaction": "cmp", "configuration_update": "item", "web_search_call": "item",
    }  # fmt: skip


def test_what_is_nested_too_deeply_to_be_written_is_refused() -> None:
    deep: Any = {}
    for _ in range(400):
        deep = {"a": deep}
    sent: Any = validated({"type": "tool_search_call", "arguments": deep}).input
    with pytest.raises(RequestError) as caught:
        written_items(sent, IDS)
    assert caught.value.param == "input"


# Size


def test_reading_takes_steps_in_proportion_to_the_items() -> None:
    turn = [
        USER, {"type": "reasoning", "encrypted_content": OWN}, CALL, OUTPUT,
        {"role": "assistant", "content": "a"}, compaction("n"),
    ]  # fmt: skip

    def steps(turns: int) -> int:
        count = 0

        def counted(*_: Any) -> None:
            nonlocal count
            count += 1

        own: Any = validated(*turn * turns).input
        into = reader()
        sys.setprofile(counted)
        try:
            into.read([], own, None)
        finally:
            sys.setprofile(None)
        return count

    steps(1)
    assert steps(75) > 1000
    assert steps(300) < 4.2 * steps(75)
