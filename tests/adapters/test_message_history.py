"""The messages of a body of Messages, as those of a conversation."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from engine.conversation import Message, Text, ToolCall, ToolResult
from tests.adapters.messaging import (
    USER,
    answered,
    assistant,
    body_of,
    conversation,
    found,
    read,
    refused,
    said,
    thinking,
    tool,
    used,
    user,
)

CACHED: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
BILLING = "x-anthropic-billing-header: cch=aaaaa;"
DOCUMENT = {"type": "document", "source": {"type": "text", "data": "abc"}}


def messages(*turns: dict[str, Any], **fields: Any) -> tuple[Message, ...]:
    return conversation(*turns, **fields).messages


def result(call_id: str, *texts: str) -> Message:
    return Message("tool", (ToolResult(call_id, texts),))


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (USER, [Message("user", (Text("hi"),))]),
        ({"role": "user", "content": ""}, [Message("user", (Text(""),))]),
        ({"role": "assistant", "content": "so"}, [Message("assistant", (Text("so"),))]),
        (user(said("a"), said("b")), [Message("user", (Text("a"), Text("b")))]),
        (
            assistant(said("a"), used("1", "f", {"x": 1}), said("b"), used("2", "g")),
            [Message("assistant", (
                Text("a"), ToolCall("1", "f", '{"x": 1}'), Text("b"), ToolCall("2", "g", "{}"),
            ))],
        ),
        (user(answered("1"), answered("2", "no")), [result("1", "ok"), result("2", "no")]),
        (
            user(said("a"), answered("1"), answered("2"), said("b"), said("c"), answered("3")),
            [
                Message("user", (Text("a"),)), result("1", "ok"), result("2", "ok"),
                Message("user", (Text("b"), Text("c"))), result("3", "ok"),
            ],
        ),
    ],
    ids=lambda value: str(value)[:80],
)  # fmt: skip
def test_a_turn_becomes_its_messages_in_order(turn: Any, expected: list[Message]) -> None:
    assert messages(turn) == tuple(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"content": "22 C"}, ToolResult("1", ("22 C",))),
        ({"content": [said("22 C"), said("sunny")]}, ToolResult("1", ("22 C", "sunny"))),
        ({"content": "no", "is_error": True}, ToolResult("1", ("no",), is_error=True)),
        ({"content": "yes", "is_error": False}, ToolResult("1", ("yes",))),
        ({"content": "yes", "is_error": None}, ToolResult("1", ("yes",))),
        ({"content": None}, ToolResult("1", ("",))),
        ({}, ToolResult("1", ("",))),
        ({"content": []}, ToolResult("1", ())),
        ({"content": [DOCUMENT, said("x")]}, ToolResult("1", ("Document\n\nabc", "x"))),
    ],
    ids=str,
)
def test_results_are_texts(fields: dict[str, Any], expected: ToolResult) -> None:
    block = {"type": "tool_result", "tool_use_id": "1", **fields}
    assert messages(user(block)) == (Message("tool", (expected,)),)


def test_arguments_keep_their_order_and_their_characters() -> None:
    arguments = {"z": "é 😀 \u2028", "a": [1, 2.5, None, True], "m": {"y": '\\"\n', "b": {}}}
    [message] = messages(assistant(used("1", "f", arguments)))
    [call] = message.parts
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == arguments
    assert list(json.loads(call.arguments)) == ["z", "a", "m"]
    assert "é 😀" in call.arguments  # as the model wrote them, for the prefix cache


def test_a_caller_of_a_call_can_be_the_model_alone() -> None:
    direct = used("1", caller={"type": "direct"})
    assert messages(assistant(direct)) == messages(assistant(used("1")))
    foreign = used("1", caller={"type": "code_execution_20250825", "tool_id": "t"})
    assert refused(assistant(foreign)).param == "messages[0].content[0].caller.type"


# Other blocks


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (DOCUMENT, "Document\n\nabc"),
        ({**DOCUMENT, "title": "T", "context": "C"}, "Document: T\n\nC\n\nabc"),
        ({**DOCUMENT, "title": "T", "context": None}, "Document: T\n\nabc"),
        ({**DOCUMENT, "source": {"type": "content", "content": "abc"}}, "Document\n\nabc"),
        (
            {**DOCUMENT, "source": {"type": "content", "content": [said("a"), said("b")]}},
            "Document\n\na\n\nb",
        ),
        (
            {"type": "search_result", "source": "https://x", "title": "T",
             "content": [said("a"), said("b")]},
            "Search result: T (https://x)\n\na\n\nb",
        ),
        ({"type": "compaction", "content": "what was", "encrypted_content": "?"}, "what was"),
        ({"type": "compaction", "content": None}, ""),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_other_blocks_are_shown_as_text(block: dict[str, Any], text: str) -> None:
    assert messages(user(said("see"), block)) == (Message("user", (Text("see"), Text(text))),)


def test_what_other_servers_tools_did_is_left_out_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hosted = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    answer = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"secret": 1}]}
    with caplog.at_level(logging.INFO):
        turns = messages(USER, assistant(said("a"), hosted, answer, said("b")), user(hosted), USER)
    hi = Message("user", (Text("hi"),))
    assert turns == (hi, Message("assistant", (Text("a"), Text("b"))), hi)
    [line] = caplog.messages
    assert line.endswith("server_tool_use, web_search_tool_result") and "secret" not in line


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (user(said("a"), used("1")), "tool_use"),
        (user(said("a"), thinking("hm")), "thinking"),
        (user(said("a"), {"type": "redacted_thinking", "data": "x"}), "redacted_thinking"),
        (assistant(said("a"), answered("1")), "tool_result"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_misplaced_blocks_are_refused_by_name(turn: dict[str, Any], kind: str) -> None:
    error = refused(USER, turn)
    assert error.param == "messages[1].content[1]"
    assert f"a {kind} block" in error.message


PDF = {"type": "base64", "media_type": "application/pdf", "data": ""}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


@pytest.mark.parametrize(
    ("turn", "param"),
    [
        (user(said("a"), IMAGE), "messages[0].content[1].type"),
        (user(answered("1", [said("a"), IMAGE])), "messages[0].content[0].content[1].type"),
        (user(said("a"), {**DOCUMENT, "source": PDF}), "messages[0].content[1].source.type"),
        ({"role": "system", "content": [DOCUMENT]}, "messages[0].content[0].type"),
        ({"role": "tool", "content": "x"}, "messages[0].role"),
        ({"role": "assistant", "content": None}, "messages[0].content"),
        (user(answered("1", found("f"), is_error="no")), "messages[0].content[0].is_error"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_what_the_schema_forbids_is_named(turn: dict[str, Any], param: str) -> None:
    assert refused(turn).param == param


@pytest.mark.parametrize(
    "turns", [[user()], [assistant()], [{"role": "system"}], [{"role": "assistant", "content": ""}]]
)
@pytest.mark.parametrize("system", [None, "be brief"])
def test_nothing_to_answer_is_refused(turns: list[dict[str, Any]], system: str | None) -> None:
    assert refused(*turns, system=system).param == "messages"


# Continuations


@pytest.mark.parametrize(
    ("last", "continues"),
    [
        ({"role": "assistant", "content": "so"}, True),
        (assistant(said("so")), True),
        (assistant(thinking("hm"), said("so")), True),
        (assistant(thinking("hm")), False),
        (assistant(said("so"), thinking("hm")), False),
        (assistant(said("so"), used("1")), False),
        (assistant(used("1"), said("so")), False),
        (user(said("so")), False),
        (user(said("so"), answered("1")), False),
        ({"role": "system", "content": "so"}, False),
        ({"role": "assistant", "content": ""}, False),
    ],
    ids=str,
)
def test_text_at_the_end_of_the_assistant_is_continued(
    last: dict[str, Any], continues: bool
) -> None:
    made = conversation(USER, last, tools=[tool("f")])
    assert made.continue_final is continues
    assert made.add_generation_prompt is not continues
    assert made.continue_param == "messages"
    assert not conversation(USER, last, USER, tools=[tool("f")]).continue_final


# What is worth keeping

MARKED = {"type": "content", "content": [said("a", **CACHED)]}


@pytest.mark.parametrize(
    ("turns", "fields", "kept"),
    [
        ([USER, USER], {}, []),
        ([user(said("a", **CACHED), said("b")), USER], {}, [0]),
        ([user(said("a", cache_control=None))], {}, []),
        ([user(said("a", **CACHED), answered("1"), answered("2"), said("b")), USER], {}, [3]),
        ([user(answered("1", **CACHED), answered("2")), USER], {}, [1]),
        ([assistant(used("1", **CACHED)), USER], {}, [0]),
        ([user({**DOCUMENT, **CACHED}), USER], {}, [0]),
        ([{"role": "system", "content": [said("a", **CACHED)]}, USER], {}, [0]),
        ([USER], {"system": [said("a"), said("b", **CACHED)]}, [0]),
        ([USER], {"system": [said(BILLING, **CACHED), said("b")]}, []),
        ([USER], {"tools": [tool("f", **CACHED)]}, []),
        ([USER, USER], dict(CACHED), [1]),
        ([USER], {"system": [said("a", **CACHED)], **CACHED}, [0, 1]),
        ([user(answered("1", [said("a", **CACHED)])), USER], {}, [0]),
        ([user(answered("1", [{**found("f")[0], **CACHED}])), USER], {}, [0]),
        ([user({**DOCUMENT, "source": MARKED}), USER], {}, [0]),
    ],
    ids=lambda value: str(value)[:90],
)  # fmt: skip
def test_marks_keep_the_prompt_up_to_their_message(
    turns: list[dict[str, Any]], fields: dict[str, Any], kept: list[int]
) -> None:
    made = messages(*turns, **fields)
    assert [place for place, message in enumerate(made) if message.keep] == kept


def test_the_results_that_brought_definitions_are_known() -> None:
    turns = [
        assistant(used("1"), used("2"), used("3")),
        user(answered("1", found("f")), answered("2"), answered("3", [said("x"), *found("g")])),
    ]
    assert read(body_of(*turns)).history.fixed == {"1", "3"}
