"""The tools of a body of Responses: what the model knows them by, and what is chosen of them."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.response_tools import Origin, ResponseTools
from engine.conversation import CustomFormat, Tool, ToolChoice
from engine.errors import RequestError
from tests.adapters.responding import described, function, namespace, validated

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {}}


def custom(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "custom", "name": name, **more}


def parsed(*tools: dict[str, Any]) -> Any:
    return validated(tools=list(tools)).tools


def declared(*tools: dict[str, Any]) -> ResponseTools:
    return ResponseTools(parsed(*tools))


def refused(*tools: dict[str, Any]) -> RequestError:
    with pytest.raises(RequestError) as caught:
        declared(*tools)
    return caught.value


# What the model knows


def test_functions_are_as_they_were_declared() -> None:
    bare, whole = declared(
        function("f"),
        function("g.h-i", description="Does.", parameters=SCHEMA, strict=True, defer_loading=False),
    ).callable()
    assert bare == Tool("f", param="tools[0].parameters")
    assert whole == Tool("g.h-i", "Does.", SCHEMA, True, param="tools[1].parameters")


def test_members_of_a_namespace_have_its_name_and_description_in_front() -> None:
    tools = declared(
        function("read"),
        namespace("mcp__fs", function("read", description="Reads."), function("write"),
                  custom("patch", format=GRAMMAR), description="Files."),
        namespace("clock", function("read", description="Tells.", strict=True)),
        namespace("quiet", function("read"), description=None),
    )  # fmt: skip
    found = {tool.name: tool for tool in tools.callable()}
    assert {name: tool.description for name, tool in found.items()} == {
        "read": "", "mcp__fs__read": "Files.\n\nReads.", "mcp__fs__write": "Files.",
        "mcp__fs__patch": "Files.", "clock__read": "Tells.", "quiet__read": "",
    }  # fmt: skip
    assert found["mcp__fs__write"].param == "tools[1].tools[1].parameters"
    assert found["mcp__fs__patch"].param == "tools[1].tools[2].format.definition"
    assert [tool.name for tool in found.values() if tool.strict] == ["clock__read"]


@pytest.mark.parametrize(
    ("form", "made"),
    [
        ({}, CustomFormat()),
        ({"format": None}, CustomFormat()),
        ({"format": {"type": "text"}}, CustomFormat()),
        ({"format": GRAMMAR}, CustomFormat("lark", 'start: "x"')),
        ({"format": {**GRAMMAR, "syntax": "regex"}}, CustomFormat("regex", 'start: "x"')),
    ],
    ids=described,
)
def test_custom_tools_have_a_format(form: Any, made: CustomFormat) -> None:
    [tool] = declared(custom("patch", description="Edits.", **form)).callable()
    param = "tools[0].format.definition" if made.source else "tools[0].format"
    assert tool == Tool("patch", "Edits.", format=made, param=param)


@pytest.mark.parametrize(
    "pair",
    [
        [function("f"), function("f")],
        [function("f"), custom("f")],
        [function("a__b"), namespace("a", function("b"))],
        [namespace("a", function("b__c")), namespace("a__b", function("c"))],
        [SEARCH, function("tool_search")],
        [function("f"), function("f", defer_loading=True)],
    ],
    ids=described,
)
def test_two_tools_of_one_name_are_refused(pair: list[dict[str, Any]]) -> None:
    error = refused(*pair)
    assert error.param is not None and error.param.startswith("tools[1]")
    if "tools" in pair[1]:
        assert error.param == "tools[1].tools[0].name"


def test_a_name_that_gets_too_long_is_refused() -> None:
    outer, inner = "n" * 200, "m" * 54
    [tool] = declared(namespace(outer, function(inner))).callable()
    assert len(tool.name) == 256
    error = refused(function("f"), namespace(outer, function(f"{inner}m")))
    assert error.param == "tools[1].tools[0].name" and "256" in error.message


def test_arguments_are_objects() -> None:
    [tool] = declared(function("f", parameters={"properties": {}})).callable()
    assert tool.parameters == {"type": "object", "properties": {}}
    assert refused(function("f", parameters={"type": "array"})).param == "tools[0].parameters"
    error = refused(namespace("n", function("f", parameters={"type": "array"})))
    assert error.param == "tools[0].tools[0].parameters"


# What is not there


def test_hosted_tools_are_left_out_and_named_once() -> None:
    tools = declared(
        {"type": "web_search", "external_web_access": True}, function("f"), {"type": "mcp"},
        {"type": "web_search"}, {"type": "local_shell"}, {"type": "tool_search"},
        {"type": "tool_search", "execution": "server"},
    )  # fmt: skip
    assert [tool.name for tool in tools.callable()] == ["f"]
    assert tools.dropped == ["web_search", "mcp", "local_shell", "tool_search"]
    tools.introduce(parsed({"type": "shell"}, {"type": "mcp"}), "input[0].tools")
    assert tools.dropped[4:] == ["shell"]


def test_the_clients_search_is_a_function() -> None:
    tools = declared(SEARCH)
    [tool] = tools.callable()
    param = "tools[0].parameters"
    assert tool == Tool("tool_search", "Finds.", {"type": "object"}, param=param)
    assert tools.origin("tool_search") == Origin("tool_search", "tool_search")
    assert tools.dropped == []
    [bare] = declared({"type": "tool_search", "execution": "client"}).callable()
    assert bare.description


def test_deferred_tools_cannot_be_called_before_they_are_found() -> None:
    mail = namespace("mail", function("send", defer_loading=True), function("read"))
    patch = custom("patch", defer_loading=True)
    tools = declared(mail, patch)
    assert [tool.name for tool in tools.callable()] == ["mail__read"]
    told = tools.introduce(parsed(patch), "input[0].tools")
    assert told.startswith("The tool patch can be called from now on:\n")
    assert [(tool.name, tool.listed) for tool in tools.callable()] == [
        ("mail__read", True), ("patch", False),
    ]  # fmt: skip
    tools.list_found()
    assert all(tool.listed for tool in tools.callable()) and len(tools.callable()) == 2
    assert tools.introduce(parsed(patch), "p") == "The tool patch can be called."


def test_what_is_declared_again_in_front_stays_as_it_was() -> None:
    tools = declared(function("f", description="first"), function("g", defer_loading=True))
    tools.declare(parsed(function("f"), custom("g"), {"type": "mcp"}), "input[0].tools")
    found = {tool.name: tool for tool in tools.callable()}
    assert found["f"].description == "first"
    assert found["g"].param == "input[0].tools[1].format"
    assert tools.dropped == ["mcp"]


# What the client calls them


def test_calls_are_told_by_the_clients_names() -> None:
    tools = declared(
        function("shell"), custom("patch"),
        namespace("fs", function("read"), custom("edit"), function("late", defer_loading=True)),
    )  # fmt: skip
    tools.introduce(parsed(namespace("mail", function("send"))), "input[0].tools")
    expected = {
        "shell": Origin("function", "shell"),
        "patch": Origin("custom", "patch"),
        "fs__read": Origin("function", "read", "fs"),
        "fs__edit": Origin("custom", "edit", "fs"),
        "fs__late": Origin("function", "late", "fs"),
        "mail__send": Origin("function", "send", "mail"),
    }
    assert {name: tools.origin(name) for name in expected} == expected


@pytest.mark.parametrize("name", ["made_up", "fs__made_up", "read", "tool_search", "", "__"])
def test_an_undeclared_name_is_a_function_of_that_name(name: str) -> None:
    tools = declared(namespace("fs", function("read")))
    assert tools.origin(name) == Origin("function", name)


# What is chosen


TOOLS = (
    function("shell"),
    custom("patch"),
    namespace("fs", function("read"), custom("edit"), function("late", defer_loading=True)),
    namespace("clock", function("read"), function("now")),
    namespace("never", function("later", defer_loading=True)),
    SEARCH,
    {"type": "web_search"},
)


def chosen(choice: Any, *tools: dict[str, Any]) -> ToolChoice:
    body: Any = validated(tools=list(tools or TOOLS), tool_choice=choice)
    return ResponseTools(body.tools).choose(body.tool_choice)


def allowed(*tools: dict[str, Any], mode: str = "auto") -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


@pytest.mark.parametrize("mode", ["none", "auto", "required"])
def test_a_mode_is_about_all_tools(mode: Any) -> None:
    assert chosen(mode) == ToolChoice(mode)


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        (function("shell"), "shell"),
        (custom("patch"), "patch"),
        (function("read", namespace="fs"), "fs__read"),
        (function("read", namespace="clock"), "clock__read"),
        (function("clock__now"), "clock__now"),
        (function("now"), "clock__now"),
        (custom("edit"), "fs__edit"),
        (custom("edit", namespace="fs"), "fs__edit"),
        (function("tool_search"), "tool_search"),
    ],
    ids=described,
)
def test_one_tool_must_be_called(choice: Any, name: str) -> None:
    assert chosen(choice) == ToolChoice("required", frozenset({name}))


def test_a_hosted_tool_is_like_auto() -> None:
    for kind in ("web_search", "mcp", "computer_use"):
        assert chosen({"type": kind, "server_label": "x"}) == ToolChoice("auto")


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (allowed(function("shell"), custom("patch")), {"shell", "patch"}),
        (allowed(function("read", namespace="fs")), {"fs__read"}),
        (allowed({"type": "namespace", "name": "fs"}), {"fs__read", "fs__edit"}),
        (allowed({"type": "namespace", "namespace": "clock"}), {"clock__read", "clock__now"}),
        (allowed({"type": "function", "namespace": "clock"}), {"clock__read", "clock__now"}),
        (allowed({"type": "tool_search"}, function("now")), {"tool_search", "clock__now"}),
        (allowed({"type": "web_search"}, function("shell"), {"type": "mcp"}), {"shell"}),
        (allowed({"type": "namespace", "name": "never"}, function("shell")), {"shell"}),
    ],
    ids=described,
)
def test_a_part_of_the_tools_is_allowed(choice: Any, names: set[str]) -> None:
    assert chosen(choice) == ToolChoice("auto", frozenset(names))
    required = {**choice, "mode": "required"}
    assert chosen(required) == ToolChoice("required", frozenset(names))


@pytest.mark.parametrize("part", [[], [{"type": "web_search"}]], ids=described)
def test_where_only_hosted_tools_are_allowed_none_is_called(part: Any) -> None:
    assert chosen(allowed(*part)) == ToolChoice("none")
    assert error_of(allowed(*part, mode="required")).param == "tool_choice.tools"


def error_of(choice: Any, *tools: dict[str, Any]) -> RequestError:
    with pytest.raises(RequestError) as caught:
        chosen(choice, *tools)
    return caught.value


@pytest.mark.parametrize(
    ("choice", "param"),
    [
        (function("made_up"), "tool_choice.name"),
        (function("read"), "tool_choice.name"),  # two namespaces have one
        (function("now", namespace="fs"), "tool_choice.name"),
        (function("shell", namespace="fs"), "tool_choice.name"),
        (function("now", namespace="made_up"), "tool_choice.name"),
        (function("late"), "tool_choice.name"),  # nobody has found it
        (custom("shell"), "tool_choice.name"),
        (function("patch"), "tool_choice.name"),
        (custom("tool_search"), "tool_choice.name"),
        (allowed(function("shell"), function("made_up")), "tool_choice.tools[1].name"),
        (allowed(custom("shell")), "tool_choice.tools[0].name"),
        (allowed({"type": "namespace", "name": "made_up"}), "tool_choice.tools[0].name"),
        (allowed({"type": "function"}), "tool_choice.tools[0].name"),
    ],
    ids=described,
)
def test_what_is_not_declared_is_refused(choice: Any, param: str) -> None:
    error = error_of(choice)
    assert error.param == param and param in error.message


def test_without_tools_nothing_can_be_required() -> None:
    web = {"type": "web_search"}
    assert error_of("required", web).param == "tool_choice"
    assert chosen("auto", web) == chosen("none", web) == ToolChoice()
    search = allowed({"type": "tool_search"})
    assert chosen(search, function("shell"), {"type": "tool_search"}) == ToolChoice("none")
    assert error_of(search, function("shell")).param == "tool_choice.tools[0].name"


def test_what_a_search_found_can_be_chosen() -> None:
    body: Any = validated(tools=list(TOOLS), tool_choice=function("late"))
    tools = ResponseTools(body.tools)
    found = parsed(namespace("fs", function("late", defer_loading=True)))
    tools.introduce(found, "input[0].tools")
    assert tools.choose(body.tool_choice) == ToolChoice("required", frozenset({"fs__late"}))
