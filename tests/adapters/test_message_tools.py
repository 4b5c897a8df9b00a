"""The tools of a body of Messages, deferred and found ones, and the choice among them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.conversation import Conversation, Text, Tool, ToolChoice
from tests.adapters.messaging import (
    SCHEMA,
    USER,
    answered,
    assistant,
    conversation,
    found,
    refused,
    said,
    texts,
    tool,
    used,
    user,
)
from tests.serving import template, tokenizer

HIDDEN = {
    "name": "fetch", "description": "Fetches é.", "input_schema": SCHEMA, "defer_loading": True,
}  # fmt: skip
TOOLS = [tool("search"), HIDDEN, tool("other", defer_loading=True)]
DEFINITION = {"name": "fetch", "description": "Fetches é.", "parameters": SCHEMA}


def added(name: str) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}


def defined(name: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "tool_addition",
        "tool": {"type": "tool_definition", "definition": tool(name, **more)},
    }


def removed(name: str) -> dict[str, Any]:
    return {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}


def system(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "system", "content": list(blocks)}


def searched(*names: str, call_id: str = "1") -> list[dict[str, Any]]:
    return [assistant(used(call_id, "search")), user(answered(call_id, found(*names)))]


def shown(made: Conversation) -> str:
    return "\n".join(text for message in made.messages for text in texts(message))


def names(made: Conversation) -> list[str]:
    return [tool.name for tool in made.tools]


# What is declared


def test_tools_are_kept_in_order_with_their_paths() -> None:
    made = conversation(
        tools=[
            {"name": "a", "description": "does", "input_schema": SCHEMA, "strict": True},
            {"name": "b", "type": "custom", "input_schema": {}, "description": None},
            tool("c", type=None, strict=False, defer_loading=False, input_examples=[{}],
                 eager_input_streaming=True, allowed_callers=["direct"]),
        ]
    )  # fmt: skip
    assert made.tools == (
        Tool("a", "does", SCHEMA, strict=True, param="tools[0].input_schema"),
        Tool("b", param="tools[1].input_schema"),
        Tool("c", param="tools[2].input_schema"),
    )


@pytest.mark.parametrize("fields", [{}, {"tools": []}, {"tools": None}], ids=str)
def test_no_tools_are_no_tools(fields: dict[str, Any]) -> None:
    made = conversation(**fields, tool_choice={"type": "auto"})
    assert (made.tools, made.tool_choice) == ((), ToolChoice())
    assert conversation(**fields, tool_choice={"type": "none"}) == made
    assert refused(**fields, tool_choice={"type": "any"}).param == "tool_choice"
    wanted = {"type": "tool", "name": "f"}
    assert refused(**fields, tool_choice=wanted).param == "tool_choice.name"


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ([tool("f"), tool("g"), tool("f")], "tools[2].name"),
        ([tool("f"), tool("f", defer_loading=True)], "tools[1].name"),
        ([tool("a\nb")], "tools[0].name"),
        ([{"name": "f"}], "tools[0].input_schema"),
        ([{"name": "f", "input_schema": {"type": "array"}}], "tools[0].input_schema"),
        ([{"name": "bash", "type": "bash_20250124"}], "tools[0].type"),
        ([{"name": "web_search", "type": "web_search_20250305"}], "tools[0].type"),
        ([tool(f"f{number}") for number in range(1025)], "tools"),
    ],
    ids=lambda value: str(value)[:80],
)
def test_what_is_wrong_with_a_tool_is_named(tools: list[dict[str, Any]], param: str) -> None:
    assert refused(tools=tools).param == param


# Deferred tools


def test_a_deferred_tool_is_unknown_until_it_is_named() -> None:
    made = conversation(tools=TOOLS)
    assert names(made) == ["search"] and "fetch" not in shown(made)
    made = conversation(USER, *searched("fetch"), tools=TOOLS)
    assert made.tools == (
        Tool("search", param="tools[0].input_schema"),
        Tool("fetch", "Fetches é.", SCHEMA, listed=False, param="tools[1].input_schema"),
    )


@pytest.mark.parametrize(
    "turns",
    [
        searched("fetch"),
        [system(added("fetch"))],
        [user(said("use it"), added("fetch"))],
        [*searched("fetch"), *searched("fetch", call_id="2")],
        [*searched("fetch", "fetch"), system(added("fetch"), said("x"))],
        [system(removed("fetch"), added("fetch"))],
        [system(added("fetch"), removed("fetch"), added("fetch"))],
    ],
    ids=lambda value: str(value)[:90],
)
def test_its_definition_is_shown_exactly_once(turns: list[dict[str, Any]]) -> None:
    made = conversation(USER, *turns, USER, tools=TOOLS)
    text = shown(made)
    assert text.count("The tool fetch can be called from now on:\n") == text.count("Fetches") == 1
    line = next(line for line in text.splitlines() if "Fetches" in line)
    assert json.loads(line) == DEFINITION
    assert [tool.listed for tool in made.tools] == [True, False]
    assert made.tool_choice == ToolChoice()


def test_it_is_shown_where_it_is_first_named() -> None:
    made = conversation(
        USER, *searched("search", "fetch", "other"), *searched("fetch", call_id="2"), tools=TOOLS
    )
    first, second = (list(texts(message)) for message in made.messages if message.role == "tool")
    assert first[0] == "The tool search can be called."
    assert "Fetches" in first[1] and '"name": "other"' in first[2]
    assert second == ["The tool fetch can be called."]
    assert names(made) == ["search", "fetch", "other"]


def test_a_reference_to_an_unknown_tool_says_so() -> None:
    made = conversation(USER, *searched("nowhere"), system(added("else")), tools=TOOLS)
    assert names(made) == ["search"]
    assert "There is no tool nowhere." in shown(made) and "There is no tool else." in shown(made)


def test_loading_a_tool_leaves_the_prompt_before_it_as_it_was() -> None:
    def rendered(*turns: dict[str, Any]) -> str:
        made = conversation(USER, *turns, tools=TOOLS)
        return tokenizer().decode(template().render(made).token_ids)

    [call, results] = searched("fetch")
    before = rendered(call)
    head = before[: before.rindex("search")]  # up to the call, which the results go behind
    after = rendered(call, results)
    assert "search" in head and after.startswith(head)
    assert "Fetches" not in head and "Fetches" in after


# What conversations define and remove


def test_a_tool_can_be_defined_in_the_conversation() -> None:
    block = defined("made", description="New.", input_schema=SCHEMA, strict=True)
    made = conversation(USER, system(block), tools=[tool("f")])
    schema = "messages[1].content[0].tool.definition.input_schema"
    assert made.tools[1:] == (
        Tool("made", "New.", SCHEMA, strict=True, listed=False, param=schema),
    )
    assert made.messages[1].role == "system"
    [part] = made.messages[1].parts
    assert isinstance(part, Text)
    head, _, definition = part.text.partition("\n")
    assert head == "The tool made can be called from now on:"
    assert json.loads(definition) == {"name": "made", "description": "New.", "parameters": SCHEMA}


@pytest.mark.parametrize(
    ("block", "param"),
    [
        (defined("search"), "tool.definition.name"),
        (defined("fetch"), "tool.definition.name"),
        (defined("new", input_schema={"type": "string"}), "tool.definition.input_schema"),
        (defined("a b"), "tool.definition.name"),
        (defined("b", type="bash_20250124"), "tool.definition.type"),
        ({"type": "tool_addition", "tool": {"type": "mcp_tool_reference"}}, "tool.type"),
        ({"type": "tool_removal", "tool": {"type": "mcp_toolset_reference"}}, "tool.type"),
    ],
    ids=lambda value: str(value)[:90],
)
def test_what_is_wrong_with_an_addition_is_named(block: dict[str, Any], param: str) -> None:
    error = refused(USER, system(said("x"), block), tools=TOOLS)
    assert error.param == f"messages[1].content[1].{param}"


def test_a_later_definition_replaces_an_earlier_one() -> None:
    turns = [system(defined("new", description=word)) for word in ("First.", "Second.")]
    made = conversation(USER, *turns, tools=[tool("f")])
    assert [(tool.name, tool.description) for tool in made.tools] == [("f", ""), ("new", "Second.")]
    assert shown(made).count("new can be called from now on") == 2


def chosen(*blocks: dict[str, Any], **fields: Any) -> ToolChoice:
    return conversation(USER, system(*blocks), **{"tools": TOOLS, **fields}).tool_choice


def test_a_removed_tool_stays_in_the_prompt_and_cannot_be_called() -> None:
    tools = [tool("f"), tool("g")]
    made = conversation(USER, system(removed("f")), tools=tools)
    assert made.tools == conversation(tools=tools).tools
    assert made.tool_choice == ToolChoice("auto", frozenset("g"))
    assert "The tool f can no longer be called." in shown(made)
    assert chosen(removed("f"), tools=tools, tool_choice={"type": "any"}) == ToolChoice(
        "required", frozenset("g")
    )
    assert chosen(removed("f"), tools=tools, tool_choice={"type": "none"}) == ToolChoice("none")
    assert chosen(removed("f"), added("f"), tools=tools) == ToolChoice()
    assert chosen(removed("f"), removed("g"), added("g")) == chosen(removed("f"))


def test_where_all_tools_are_removed_there_is_no_call() -> None:
    assert chosen(removed("search")) == ToolChoice("none")
    assert chosen(added("fetch"), removed("search")) == ToolChoice("auto", frozenset({"fetch"}))
    assert chosen(defined("new"), removed("search"), removed("new")) == ToolChoice("none")
    assert chosen(removed("fetch"), added("fetch"), defined("new")) == ToolChoice()
    error = refused(USER, system(removed("search")), tools=TOOLS, tool_choice={"type": "any"})
    assert error.param == "tool_choice"


def test_a_removed_tool_cannot_be_chosen() -> None:
    choice = {"type": "tool", "name": "search"}
    error = refused(USER, system(removed("search")), tools=TOOLS, tool_choice=choice)
    assert error.param == "tool_choice.name"
    back = chosen(removed("search"), added("search"), tool_choice=choice)
    assert back == ToolChoice("required", frozenset({"search"}))
