"""What may be declared as a tool, what may be chosen, and calls that go round."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.tools import Wanted, arguments_schema, check_tools, choose, is_looping
from engine.conversation import CustomFormat, Message, Text, Tool, ToolCall, ToolChoice, ToolResult
from engine.errors import RequestError

TOOLS = (Tool("f"), Tool("g"), Tool("c", format=CustomFormat()))


def wanted(*names: str, custom: bool = False) -> list[Wanted]:
    return [Wanted(name, custom, f"choice[{place}]") for place, name in enumerate(names)]


def refused(call: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        call()
    return caught.value


def test_a_name_is_that_of_one_tool_of_any_kind() -> None:
    twice = [(Tool("f"), "n[0]"), (Tool("g"), "n[1]"), (Tool("f", format=CustomFormat()), "n[2]")]
    assert refused(lambda: check_tools(twice)).param == "n[2]"


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (None, {"type": "object"}),
        ({}, {"type": "object"}),
        ({"type": "object", "properties": {}}, {"type": "object", "properties": {}}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
    ],
    ids=str,
)
def test_arguments_are_an_object(schema: Any, made: dict[str, Any]) -> None:
    assert arguments_schema(schema, "p") == made


def test_a_schema_keeps_the_order_in_which_it_was_written() -> None:
    schema = {"required": ["a"], "type": "object"}
    assert list(arguments_schema(schema, "p")) == ["required", "type"]


@pytest.mark.parametrize("kind", ["array", "string", None, ["object", "null"], 5])
def test_arguments_of_another_type_are_refused(kind: Any) -> None:
    assert refused(lambda: arguments_schema({"type": kind}, "p")).param == "p"


def test_a_choice_without_names_is_among_all() -> None:
    for mode in ("auto", "none", "required"):
        assert choose(TOOLS, mode, "p") == ToolChoice(mode)


def test_a_choice_with_names_is_among_those() -> None:
    assert choose(TOOLS, "auto", "p", wanted("f", "g", "f")) == ToolChoice(
        "auto", frozenset({"f", "g"})
    )
    custom = choose(TOOLS, "required", "p", wanted("c", custom=True))
    assert custom == ToolChoice("required", frozenset({"c"}))


def test_no_tools_leave_nothing_to_choose() -> None:
    assert choose((), "none", "p") == choose((), "auto", "p") == ToolChoice()
    assert choose(TOOLS, "auto", "p", []) == ToolChoice("none")
    assert refused(lambda: choose((), "required", "p")).param == "p"
    assert refused(lambda: choose(TOOLS, "required", "p", [])).param == "p"


@pytest.mark.parametrize(
    ("names", "custom", "param"),
    [(("f", "h"), False, "choice[1]"), (("c",), False, "choice[0]"), (("f",), True, "choice[0]")],
)
def test_what_is_chosen_is_declared_and_of_its_kind(
    names: tuple[str, ...], custom: bool, param: str
) -> None:
    error = refused(lambda: choose(TOOLS, "auto", "p", wanted(*names, custom=custom)))
    assert error.param == param and param in error.message


def history(*calls: tuple[str, str]) -> list[Message]:
    messages = [Message("user", (Text("go"),))]
    for number, (name, arguments) in enumerate(calls):
        call = ToolCall(f"id{number}", name, arguments)
        messages.append(Message("assistant", (Text(""), call)))
        messages.append(Message("tool", (ToolResult(call.id, ("?",)),)))
    return messages


@pytest.mark.parametrize(
    ("calls", "loops"),
    [
        ([], False),
        ([("f", "{}")] * 2, False),
        ([("f", "{}")] * 3, True),
        ([("g", "{}"), *[("f", "{}")] * 3], True),
        ([*[("f", "{}")] * 3, ("g", "{}")], False),
        ([("f", "{}"), ("f", '{"a":1}'), ("f", "{}")], False),
        ([("f", "{}"), ("g", "{}"), ("f", "{}"), ("f", "{}")], False),
    ],
    ids=str,
)
def test_three_equal_calls_in_the_end_are_a_loop(calls: list[tuple[str, str]], loops: bool) -> None:
    assert is_looping(history(*calls)) is loops


def test_parallel_calls_of_one_turn_count_one_by_one() -> None:
    same = tuple(ToolCall(str(number), "f", "{}") for number in range(3))
    assert is_looping([Message("assistant", same)])
    assert is_looping([Message("assistant", same[:2]), Message("assistant", same[2:])])
