from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.glm import GLM_45, GLM_47
from engine.dialects.pieces import Arguments, Closed, Opened
from tests.engine.dialects.outputs import read, streamed, tool


def call(name: str, **values: str) -> str:
    pairs = "".join(
        f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in values.items()
    )
    return f"<tool_call>{name}{pairs}</tool_call>"


@pytest.mark.parametrize("tokens", [True, False])
def test_a_missing_opening_tag_of_a_value(tokens: bool) -> None:
    """D118"""
    written = "<tool_call>search<arg_key>query</arg_key>vacation days</arg_value></tool_call>"
    output = read(GLM_47, written, tool("search", query="string"), tokens=tokens)
    assert output.calls == [("search", {"query": "vacation days"})]


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("end", ["", "\n", "\n" + call("f", a="z")])
def test_missing_closing_tags_of_values(tokens: bool, end: str) -> None:
    written = (
        "<tool_call>f<arg_key>a</arg_key><arg_value>x<arg_key>b</arg_key><arg_value>5</tool_call>"
    )
    output = read(GLM_47, written + end, tool("f", a="string", b="integer"), tokens=tokens)
    assert output.calls[0] == ("f", {"a": "x", "b": 5})
    assert len(output.calls) == 1 + ("f" in end)
    assert output.text == ""


@pytest.mark.parametrize("trusted", [True, False])
def test_a_value_may_quote_tags(trusted: bool) -> None:
    text = "Put it in <tool_call> and </tool_call>,\n</arg_value> ends <arg_key> and <arg_value>"
    output = read(
        GLM_47, call("w", p="x", c=text), tool("w", p="string", c="string"), trusted=trusted
    )
    assert output.calls == [("w", {"p": "x", "c": text})]


def test_a_value_may_quote_a_whole_call() -> None:
    text = f"So: {call('w', p='x', c='y')} and again."
    output = read(GLM_47, call("w", p="x", c=text), tool("w", p="string", c="string"))
    assert output.calls == [("w", {"p": "x", "c": text})]


@pytest.mark.parametrize("dialect", [GLM_45, GLM_47])
def test_lines_and_no_lines(dialect: object) -> None:
    known = tool("f", a="string")
    lines = "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value> x\n</arg_value>\n</tool_call>"
    for parser in (GLM_45, GLM_47):
        assert read(parser, lines, known).calls == [("f", {"a": " x\n"})]
        assert read(parser, call("f", a=" x\n"), known).calls == [("f", {"a": " x\n"})]


@pytest.mark.parametrize("tokens", [True, False])
def test_prose_about_calls_is_text(tokens: bool) -> None:
    text = "Begin with <tool_call> and end with </tool_call>."
    output = read(GLM_47, text, tool("f"), tokens=tokens)
    assert (output.text, output.calls) == (text, [])


def test_an_undeclared_tool() -> None:
    output = read(GLM_47, call("g", a="5", b="Oslo", c="[1]"), tool("f"))
    assert output.calls == [("g", {"a": 5, "b": "Oslo", "c": [1]})]


def test_a_call_without_an_end_is_text_and_a_cut_one_stays_open() -> None:
    written = call("f", a="xyz").removesuffix("</arg_value></tool_call>")
    known = tool("f", a="string")
    output = read(GLM_47, written, known)
    assert (output.text, output.is_open) == (written, False)
    output = read(GLM_47, written, known, cut=True)
    assert (output.text, output.is_open, output.arguments) == ("", True, '{"a": "xyz')


def test_the_input_of_a_custom_tool_is_text() -> None:
    custom = Tool("apply_patch", format=CustomFormat())
    output = read(GLM_47, call("apply_patch", input='"a"\n'), custom, trusted=True)
    assert output.calls == [("apply_patch", '"a"\n')]


def test_strings_go_out_while_they_come() -> None:
    known = {"w": tool("w", path="string", n="integer")}
    parts = [
        "<tool_call>", "w", "<arg_key>", "path</arg_key><arg_value>", "a\n", "b", "</arg_value>",
        "<arg_key>n</arg_key><arg_value>4", "2</arg_value>", "</tool_call>",
    ]  # fmt: skip
    assert streamed(GLM_47, parts, known) == [
        [], [], [Opened("w")], [], [Arguments('{"path": "a\\n')], [Arguments("b")], [],
        [Arguments('"')], [], [Arguments(', "n": 42}'), Closed()],
    ]  # fmt: skip


def test_templates_tell_them_apart() -> None:
    lines = "<tool_call>{name}\n<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n</tool_call>"
    compact = lines.replace("\n", "")
    assert GLM_45.fits(lines, ()) and not GLM_45.fits(compact, ())
    assert GLM_47.fits(compact, ())
