"""JSON as models write it, made such that every reader takes it."""

from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.hermes import HERMES
from engine.dialects.json_call import whole_arguments
from engine.dialects.json_text import dumps, loads
from engine.dialects.mistral import MISTRAL
from engine.dialects.pieces import Arguments
from engine.dialects.syntax import by_kind
from engine.dialects.values import Shape
from tests.engine.dialects.outputs import read, tool

ECHO = tool("echo", text="string")
HALF = r"\ud800"


def test_half_a_character_becomes_a_replacement() -> None:
    assert loads(rf'{{"{HALF}k": ["{HALF}f", "\ud83d\ude00"]}}') == {"\ufffdk": ["\ufffdf", "😀"]}
    assert dumps("\ud800f") == '"\ufffdf"'


def test_half_a_character_in_a_name_and_in_arguments_is_no_error() -> None:
    output = read(HERMES, f'<tool_call>{{"name": "{HALF}f", "arguments": {{}}}}</tool_call>')
    output.text.encode()
    body = f'{{"arguments": {{"text": "{HALF}f\n"}}, "name": "echo"}}'
    output = read(HERMES, f"<tool_call>{body}</tool_call>", ECHO)
    assert output.calls == [("echo", {"text": "\ufffdf\n"})]


def test_half_a_character_in_a_custom_tools_input_is_no_error() -> None:
    custom = Tool("run", format=CustomFormat())
    assert whole_arguments(custom, f'{{"input": "{HALF}f"}}') == Arguments("\ufffdf")


@pytest.mark.parametrize(
    ("begun", "text"),
    [
        ('{"input": "a \\"b\\"\\n', 'a "b"\n'),
        ('{"input": "a\\', "a"),
        ('{"input": "a\\ud83d\\ude0', "a\ufffd"),
        ('{ "input":"whole"', "whole"),
        ('{"input": ', ""),
        ('{"other": "a', ""),
    ],
)
def test_a_custom_tools_input_is_as_much_as_there_is_of_it(begun: str, text: str) -> None:
    custom = Tool("run", format=CustomFormat())
    call = f'<tool_call>{{"name": "run", "arguments": {begun}'
    output = read(HERMES, call, custom, cut=True)
    assert (output.is_open, output.arguments, output.text) == (True, text, "")


@pytest.mark.parametrize("body", ['{"a": NaN, "b": 1e999}', '{"a": 1e999,\n"b": "\t"}'])
def test_a_number_that_json_lacks_makes_no_call(body: str) -> None:
    text = f'<tool_call>{{"name": "echo", "arguments": {body}}}</tool_call>'
    output = read(HERMES, text, ECHO)
    assert not output.calls
    assert output.text == text


def test_a_branch_that_is_no_schema_is_left_to_the_grammar() -> None:
    assert by_kind({"anyOf": [{"type": "string"}, 3]}) == ({"type": "string"}, 3)
    strings, others = by_kind({"anyOf": ["x"]})
    assert strings is None
    assert str(others) == "x"


def test_a_schema_of_endless_alternatives_is_read_in_part() -> None:
    shape = Shape(
        [{"anyOf": [{"type": "integer"}, 1, *[{"type": "null"} for _ in range(9000)]]}], {}
    )
    assert shape.types == {"integer", "null"}
    assert len(shape._nodes) <= 4096


def test_names_that_begin_with_any_character_are_called() -> None:
    declared = tool("3d.print-it", text="string")
    output = read(MISTRAL, '[TOOL_CALLS]3d.print-it[ARGS]{"text": "x"}', declared)
    assert output.calls == [("3d.print-it", {"text": "x"})]
