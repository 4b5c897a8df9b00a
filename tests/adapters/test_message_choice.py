"""The choice among the tools of a body of Messages."""

from __future__ import annotations

from typing import Any

import pytest

from engine.conversation import ToolChoice
from tests.adapters.messaging import USER, answered, assistant, conversation, refused, used, user
from tests.adapters.test_message_tools import TOOLS, chosen, defined, searched, shown


@pytest.mark.parametrize("found_first", [False, True])
def test_a_deferred_tool_that_must_be_called_is_known(found_first: bool) -> None:
    turns = searched("fetch") if found_first else []
    made = conversation(USER, *turns, tools=TOOLS, tool_choice={"type": "tool", "name": "fetch"})
    assert [(tool.name, tool.listed) for tool in made.tools] == [("search", True), ("fetch", True)]
    assert made.tool_choice == ToolChoice("required", frozenset({"fetch"}))
    assert "Fetches" not in shown(made)  # it is in the list of tools


@pytest.mark.parametrize(
    ("selected", "choice", "parallel"),
    [
        (None, ToolChoice(), True),
        ({"type": "auto"}, ToolChoice(), True),
        ({"type": "auto", "disable_parallel_tool_use": None}, ToolChoice(), True),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice(), False),
        ({"type": "any"}, ToolChoice("required"), True),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("required"), False),
        ({"type": "tool", "name": "search"}, ToolChoice("required", frozenset({"search"})), True),
        (
            {"type": "tool", "name": "search", "disable_parallel_tool_use": True},
            ToolChoice("required", frozenset({"search"})),
            False,
        ),
        ({"type": "none"}, ToolChoice("none"), True),
    ],
    ids=str,
)
def test_every_form_of_choice(selected: Any, choice: ToolChoice, parallel: bool) -> None:
    made = conversation(tools=TOOLS, tool_choice=selected)
    assert (made.tool_choice, made.parallel_calls) == (choice, parallel)


@pytest.mark.parametrize(
    ("selected", "param"),
    [
        ({"type": "tool", "name": "nowhere"}, "tool_choice.name"),
        ({"type": "tool"}, "tool_choice.name"),
        ({"type": "required"}, "tool_choice.type"),
        ("auto", "tool_choice"),
    ],
    ids=str,
)
def test_what_is_wrong_with_the_choice_is_named(selected: Any, param: str) -> None:
    assert refused(tools=TOOLS, tool_choice=selected).param == param


def test_a_tool_of_the_conversation_can_be_chosen() -> None:
    choice = {"type": "tool", "name": "new"}
    assert chosen(defined("new"), tool_choice=choice) == ToolChoice("required", frozenset({"new"}))


def test_a_loop_of_calls_suppresses_the_next_where_the_client_wants_that() -> None:
    turn = [assistant(used("1", "search", {"q": 1})), user(answered("1"))]
    for selected in (None, {"type": "any"}, {"type": "tool", "name": "search"}):
        fields = {"tools": TOOLS, "tool_choice": selected}
        free = conversation(USER, *turn * 3, **fields)
        assert free.tool_choice.mode in ("auto", "required")
        held = conversation(USER, *turn * 3, **fields, suppress_tool_call=True)
        assert held.tool_choice == ToolChoice("none") and held.tools == free.tools
        early = conversation(USER, *turn * 2, **fields, suppress_tool_call=True)
        assert early.tool_choice == free.tool_choice
