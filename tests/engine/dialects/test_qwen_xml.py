from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.mimo import MIMO
from engine.dialects.pieces import Arguments, Closed, Opened
from engine.dialects.qwen_xml import QWEN_XML
from tests.engine.dialects.outputs import read, streamed, tool

THINK = "<|im_start|>assistant\n<think>\n"


def call(name: str, **values: str) -> str:
    parameters = "".join(
        f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items()
    )
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


# Thoughts


@pytest.mark.parametrize("tokens", [True, False])
def test_quoted_markup_in_a_thought_is_thought(tokens: bool) -> None:
    """D099"""
    thought = "Some models write <function=name> or <tool_call> markup; I will just answer."
    output = read(QWEN_XML, f"<think>{thought}</think>Done.", tool("web_search"), tokens=tokens)
    assert (output.thought, output.text, output.calls) == (thought, "Done.", [])


@pytest.mark.parametrize("tokens", [True, False])
def test_a_call_ends_a_thought(tokens: bool) -> None:
    """D101"""
    output = read(
        QWEN_XML, "I need the files.\n" + call("ls", dir="src"), tool("ls", dir="string"),
        tail=THINK, tokens=tokens,
    )  # fmt: skip
    assert (output.thought, output.text) == ("I need the files.", "")
    assert output.calls == [("ls", {"dir": "src"})]


def test_only_the_first_delimiter_ends_a_thought() -> None:
    """D102"""
    output = read(QWEN_XML, "thought</think>The tag </think> ends thinking.", tool("f"), tail=THINK)
    assert (output.thought, output.text) == ("thought", "The tag </think> ends thinking.")


@pytest.mark.parametrize("cut", [True, False])
def test_a_thought_without_an_end_is_thought(cut: bool) -> None:
    """D103"""
    output = read(QWEN_XML, "Okay, so ...", tail=THINK, cut=cut)
    assert (output.thought, output.text) == ("Okay, so ...", "")


# Types


def test_types_come_from_the_schema() -> None:
    """D106"""
    known = tool("f", zip="string", flag="string", n="integer", r="number", b="boolean")
    output = read(QWEN_XML, call("f", zip="02134", flag="true", n="5.0", r="1e5", b="True"), known)
    expected = {"zip": "02134", "flag": "true", "n": 5, "r": 100000.0, "b": True}
    assert output.calls == [("f", expected)]


@pytest.mark.parametrize("trusted", [True, False])
def test_unions(trusted: bool) -> None:
    """D107"""
    known = tool(
        "f",
        limit={"type": ["string", "null"]},
        opt={"anyOf": [{"type": "object"}, {"type": "null"}]},
        z={"anyOf": [{"type": "integer"}, {"type": "null"}]},
        none={"type": ["string", "null"]},
        nullary={"type": ["string", "null"]},
    )
    output = read(
        QWEN_XML,
        call("f", limit="4", opt='{"city": "Paris"}', z="null", none="null", nullary="nullary"),
        known,
        trusted=trusted,
    )
    expected = {"limit": "4", "opt": {"city": "Paris"}, "z": None, "none": None}
    assert output.calls == [("f", {**expected, "nullary": "nullary"})]


@pytest.mark.parametrize("text", ["\n", "\n\n"])
def test_an_empty_value_that_is_no_string_is_left_out(text: str) -> None:
    """D108"""
    written = (
        f"<tool_call>\n<function=f>\n<parameter=n>{text}</parameter>\n"
        f"<parameter=s>{text}</parameter>\n</function>\n</tool_call>"
    )
    output = read(QWEN_XML, written, tool("f", n="integer", s="string"))
    assert output.calls == [("f", {"s": ""})]


def test_an_unknown_tool_has_what_its_arguments_look_like() -> None:
    output = read(QWEN_XML, call("g", a="5", b="x y", c='{"d": [1]}', zip="02134"), tool("f"))
    assert output.calls == [("g", {"a": 5, "b": "x y", "c": {"d": [1]}, "zip": "02134"})]


# Broken calls


def test_a_broken_parameter_takes_no_other_call_with_it() -> None:
    """D109"""
    broken = "<tool_call>\n<function=b>\n<parameter=y\n2\n</function>\n</tool_call>"
    output = read(
        QWEN_XML, call("a", x="1") + "\n" + broken, tool("a", x="string"), tool("b", y="string")
    )
    assert output.calls == [("a", {"x": "1"}), ("b", {"y": "2"})]
    assert output.text == ""


def test_a_call_that_never_ends_is_text() -> None:
    whole, broken = call("a", x="1"), "<tool_call>\n<function=a>\n<parameter=x>\n1\n</param"
    output = read(QWEN_XML, f"{whole}\n{broken}", tool("a", x="string"))
    assert output.calls == [("a", {"x": "1"})]
    assert output.text.strip() == broken


def test_prose_about_calls_is_text() -> None:
    text = "Write <tool_call>, then <function=name>, and end with </function> and </tool_call>."
    output = read(QWEN_XML, text, tool("name"))
    assert (output.text, output.calls) == (text, [])


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("tail", ["", "\n", "\n</para", "\n</parameter>\n</func"])
def test_a_cut_keeps_what_was_said_and_no_half_tag(trusted: bool, tail: str) -> None:
    written = "<tool_call>\n<function=w>\n<parameter=p>\na\n</parameter>\n<parameter=c>\nrm -rf /"
    known = tool("w", p="string", c="string")
    output = read(QWEN_XML, written + tail, known, trusted=trusted, cut=True)
    assert output.is_open
    assert (output.text, output.calls) == ("", [])
    assert output.arguments == '{"p": "a", "c": "rm -rf /'


# Closing tags


FILE = """a </parameter> b </function> c <parameter=path> d
</parameter>
e
</function>
f </tool_call>"""


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_value_may_quote_tags(tokens: bool, trusted: bool) -> None:
    known = tool("w", path="string", content="string")
    output = read(
        QWEN_XML, call("w", path="x.md", content=FILE), known, tokens=tokens, trusted=trusted
    )
    assert output.calls == [("w", {"path": "x.md", "content": FILE})]


@pytest.mark.parametrize("tokens", [True, False])
def test_a_value_may_quote_a_whole_call(tokens: bool) -> None:
    quoted = "Call it so:\n" + call("w", path="p", content="c") + "\nand wait."
    known = tool("w", path="string", content="string")
    output = read(QWEN_XML, call("w", path="x.md", content=quoted), known, tokens=tokens)
    assert output.calls == [("w", {"path": "x.md", "content": quoted})]


def test_missing_ends_of_parameters() -> None:
    written = (
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n<parameter=b>\n2\n<parameter=c>\n3"
        "\n</function>\n</tool_call>"
    )
    output = read(QWEN_XML, written, tool("f", a="string", b="integer", c="string"))
    assert output.calls == [("f", {"a": "1", "b": 2, "c": "3"})]


@pytest.mark.parametrize("end", ["</function>", "</function>\n</tool_call>", "</tool_call>"])
def test_missing_outer_tags(end: str) -> None:
    written = f"Now:\n<function=f>\n<parameter=a>\n1\n</parameter>\n{end}\nDone."
    output = read(QWEN_XML, written, tool("f", a="string"))
    assert output.calls == [("f", {"a": "1"})]
    assert output.text.split() == ["Now:", "Done."]


def test_masks_do_not_vouch_for_a_function_without_its_outer_tag() -> None:
    known = tool("f", a="string")
    bare = "<function=f><parameter=a>1</parameter></function>"
    output = read(QWEN_XML, f"{bare}\n{call('f', a='2')}", known, trusted=True)
    assert output.calls == [("f", {"a": "1"}), ("f", {"a": "2"})]
    output = read(QWEN_XML, bare.removesuffix("</function>"), known, trusted=True)
    assert (output.text, output.is_open) == (bare.removesuffix("</function>"), False)


def test_two_functions_in_one_call() -> None:
    function = "<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n"
    written = f"<tool_call>\n{function.format(1)}{function.format(2)}</tool_call>"
    output = read(QWEN_XML, written, tool("f", a="integer"))
    assert output.calls == [("f", {"a": 1}), ("f", {"a": 2})]
    assert output.text == ""


# Names given twice


def test_the_first_of_two_arguments_counts() -> None:
    written = call("f", a="1", b="2").replace("=b>", "=a>")
    output = read(QWEN_XML, written, tool("f", a="string"))
    assert output.calls == [("f", {"a": "1"})]


def test_an_array_takes_all_of_its_name() -> None:
    written = call("f", a="1", b="2", c="x").replace("=b>", "=a>")
    known = tool("f", a={"type": "array", "items": {"type": "string"}}, c="string")
    output = read(QWEN_XML, written, known)
    assert output.calls == [("f", {"a": ["1", "2"], "c": "x"})]


# Custom tools


@pytest.mark.parametrize("trusted", [True, False])
def test_the_input_of_a_custom_tool_is_text(trusted: bool) -> None:
    patch = '*** Begin Patch\n+ "a"\n*** End Patch'
    custom = Tool("apply_patch", format=CustomFormat())
    output = read(QWEN_XML, call("apply_patch", input=patch), custom, trusted=trusted)
    assert output.calls == [("apply_patch", patch)]


# Streams


def test_strings_go_out_while_they_come_and_all_else_whole() -> None:
    known = {"w": tool("w", path="string", n="integer")}
    parts = [
        "<tool_call>", "\n<function=w>\n", "<parameter=path>\na\"", "b\n", "c\n</para", "meter>",
        "\n<parameter=n>\n4", "2\n</parameter>\n</function>", "\n</tool_call>",
    ]  # fmt: skip
    assert streamed(QWEN_XML, parts, known) == [
        [], [], [Opened("w"), Arguments('{"path": "a\\"')], [Arguments("b")], [Arguments("\\nc")],
        [], [Arguments('"')], [], [Arguments(', "n": 42}'), Closed()],
    ]  # fmt: skip


# MiMo


def test_mimo_keeps_all_white_space_of_a_value() -> None:
    written = (
        "<tool_call>\n<function=w>\n<parameter=c>\n    x\n\n</parameter>\n"
        "<parameter=n>3</parameter>\n</function>\n</tool_call>"
    )
    output = read(MIMO, written, tool("w", c="string", n="integer"))
    assert output.calls == [("w", {"c": "\n    x\n\n", "n": 3})]


def test_mimo_without_ends() -> None:
    written = "<tool_call><function=w><parameter=c>x\n<parameter=n>3</function></tool_call>"
    output = read(MIMO, written, tool("w", c="string", n="integer"))
    assert output.calls == [("w", {"c": "x", "n": 3})]


# Recognition


QWEN_TEMPLATE = r"{{- '<tool_call>\n<function=' }}<parameter=x>\nvalue_1\n</parameter>"
MIMO_TEMPLATE = r"{{- '<tool_call>\n<function=' }}<parameter=x>value_1</parameter>\n"


def test_templates_tell_them_apart() -> None:
    assert QWEN_XML.fits(QWEN_TEMPLATE, ())
    assert not QWEN_XML.fits(MIMO_TEMPLATE, ())
    assert MIMO.fits(MIMO_TEMPLATE, ())
    assert not MIMO.fits("<seed:tool_call><function=f><parameter=x>v</parameter>", ())
