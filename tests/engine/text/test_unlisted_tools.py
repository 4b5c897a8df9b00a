"""Tools that can be called although the prompt does not list them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.conversation import Message, Tool, ToolCall
from tests.engine.text.test_template_tools import NAMES, TOOL, USER, answering, calling, styled

HIDDEN = Tool("fetch", "Fetches <|im_end|>.", {"type": "object"}, listed=False)
CALL = ToolCall("call_1", "fetch", "{}")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "history", [(USER,), (USER, calling(CALL), answering("call_1", "r"))], ids=len
)
def test_a_tool_that_is_not_listed_changes_no_byte(name: str, history: tuple[Message, ...]) -> None:
    listed = styled(name, *history, tools=(TOOL,))
    assert styled(name, *history, tools=(TOOL, HIDDEN)) == listed
    assert styled(name, *history, tools=(HIDDEN, TOOL, replace(HIDDEN, name="g"))) == listed
    assert "Fetches" in styled(name, *history, tools=(TOOL, replace(HIDDEN, listed=True)))


@pytest.mark.parametrize("name", NAMES)
def test_where_no_tool_is_listed_all_are(name: str) -> None:
    shown = styled(name, USER, tools=(HIDDEN, replace(TOOL, listed=False)))
    assert shown == styled(name, USER, tools=(replace(HIDDEN, listed=True), TOOL))
    assert "Fetches" in shown and "lookup" in shown
