from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.minimax import MINIMAX
from engine.dialects.pieces import Arguments, Closed, Opened
from tests.engine.dialects.outputs import read, streamed, tool


def invoke(name: str, *values: tuple[str, str]) -> str:
    parameters = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in values)
    return f'<invoke name="{name}">\n{parameters}</invoke>\n'


def section(*invocations: str) -> str:
    return f"<minimax:tool_call>\n{''.join(invocations)}</minimax:tool_call>"


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("trusted", [True, False])
def test_several_invocations_in_a_section(tokens: bool, trusted: bool) -> None:
    written = section(invoke("f", ("a", "1"), ("b", "x")), invoke("g"), invoke("f", ("b", " y\n")))
    output = read(
        MINIMAX, f"Look.\n\n{written}\nDone.", tool("f", a="integer", b="string"), tool("g"),
        tokens=tokens, trusted=trusted,
    )  # fmt: skip
    assert output.calls == [("f", {"a": 1, "b": "x"}), ("g", {}), ("f", {"b": " y\n"})]
    assert output.text.split() == ["Look.", "Done."]


def test_calls_in_thoughts() -> None:
    output = read(MINIMAX, "I look." + section(invoke("g")), tool("g"), tail="]~b]ai\n<think>\n")
    assert (output.thought, output.calls) == ("I look.", [("g", {})])


def test_compact_and_loosely_quoted_tags() -> None:
    written = (
        "<minimax:tool_call><invoke name='f'><parameter name=a>5</parameter>"
        '<parameter name="x > y">z</parameter></invoke></minimax:tool_call>'
    )
    output = read(MINIMAX, written, tool("f", a="integer"))
    assert output.calls == [("f", {"a": 5, "x > y": "z"})]


def test_an_array_may_be_several_arguments_of_one_name() -> None:
    written = section(invoke("f", ("a", "1"), ("a", "2"), ("b", "x"), ("b", "y")))
    known = tool("f", a={"type": "array", "items": {"type": "integer"}}, b="string")
    assert read(MINIMAX, written, known).calls == [("f", {"a": [1, 2], "b": "x"})]


@pytest.mark.parametrize("trusted", [True, False])
def test_a_value_may_quote_tags(trusted: bool) -> None:
    text = 'a </parameter> b </invoke> c <parameter name="p"> d\n</minimax:tool_call> e'
    output = read(
        MINIMAX,
        section(invoke("w", ("p", "x"), ("c", text))),
        tool("w", p="string", c="string"),
        trusted=trusted,
    )
    assert output.calls == [("w", {"p": "x", "c": text})]


def test_a_value_may_quote_whole_calls() -> None:
    text = "So:\n" + section(invoke("w", ("p", "x")), invoke("g")) + "\nand again."
    output = read(MINIMAX, section(invoke("w", ("p", text), ("n", "5"))), tool("w", p="string"))
    assert output.calls == [("w", {"p": text, "n": 5})]


def test_missing_ends() -> None:
    written = (
        '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">x\n<parameter name="b">5\n'
        "</invoke>\n"
    )
    output = read(MINIMAX, written, tool("f", a="string", b="integer"))
    assert (output.calls, output.text) == ([("f", {"a": "x", "b": 5})], "")


def test_a_broken_invocation_keeps_the_ones_before_it() -> None:
    written = section(invoke("f", ("a", "x"))).replace("</minimax", '<invoke name="f">\n</minimax')
    output = read(MINIMAX, written, tool("f", a="string"))
    assert output.calls == [("f", {"a": "x"})]
    assert "<invoke" in output.text


def test_prose_is_text_where_the_opener_is_no_token() -> None:
    text = "Begin with <minimax:tool_call>, then <invoke name=...>."
    assert read(MINIMAX, text, tool("f"), tokens=False).text == text


def test_the_input_of_a_custom_tool_is_text() -> None:
    custom = Tool("run", format=CustomFormat())
    output = read(MINIMAX, section(invoke("run", ("input", 'a "b"\n'))), custom)
    assert output.calls == [("run", 'a "b"\n')]


def test_strings_go_out_while_they_come() -> None:
    known = {"w": tool("w", p="string")}
    parts = [
        "<minimax:tool_call>", '\n<invoke name="w">\n', '<parameter name="p">', "a", "b</para",
        "meter>\n", "</invoke>\n", "</minimax:tool_call>",
    ]  # fmt: skip
    assert streamed(MINIMAX, parts, known) == [
        [], [], [Opened("w")], [Arguments('{"p": "a')], [Arguments("b")], [],
        [Arguments('"}'), Closed()], [],
    ]  # fmt: skip


def test_the_template_tells() -> None:
    assert MINIMAX.fits("{%- set toolcall_begin_token = '<minimax:tool_call>' -%}", ())
