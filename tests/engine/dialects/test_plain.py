from __future__ import annotations

from engine.dialects.plain import PLAIN
from engine.dialects.registry import choose
from tests.engine.dialects.outputs import read, tool


def test_everything_is_text() -> None:
    text = '<think>x</think><tool_call>{"name": "f", "arguments": {}}</tool_call>[TOOL_CALLS] \n'
    output = read(PLAIN, text, tool("f"))
    assert (output.text, output.thought, output.calls) == (text, "", [])


def test_only_its_name_chooses_it() -> None:
    assert choose("", (), "plain") is PLAIN
    assert choose("", (), None) is not PLAIN
