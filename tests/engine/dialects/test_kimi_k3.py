from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool, ToolChoice
from engine.dialects.kimi_k3 import CLOSE, KIMI_K3, OPEN, SEPARATOR
from engine.dialects.pieces import Arguments, Closed, Expected, Opened
from engine.grammar.output import output_grammar
from engine.types import OutputConstraint
from tests.engine.dialects.fixtures import marks_of
from tests.engine.dialects.outputs import read, said, splits, streamed, tool
from tests.engine.grammar.outputs import Outputs


def opened(tag: str, **attributes: str) -> str:
    return OPEN + tag + "".join(f' {k}="{v}"' for k, v in attributes.items()) + SEPARATOR


def closed(tag: str) -> str:
    return CLOSE + tag + SEPARATOR


def element(tag: str, content: str, **attributes: str) -> str:
    return opened(tag, **attributes) + content + closed(tag)


def argument(key: str, value: str, kind: str = "string") -> str:
    return element("argument", value, key=key, type=kind)


def call(name: str, *arguments: str, index: str = "1") -> str:
    return element("call", "".join(arguments), tool=name, index=index)


def tools(*calls: str) -> str:
    return element("tools", "".join(calls))


THINKS, ANSWERS = opened("think"), opened("response")
END = closed("message")
_SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'


@pytest.mark.parametrize("trusted", [True, False])
def test_a_whole_message(trusted: bool) -> None:
    written = (
        "I look." + closed("think") + element("response", "Here.\n")
        + tools(
            call("f", argument("a", " x\n"), argument("n", "1.5", "number")),
            call("g", argument("o", '{"b": [true, null]}', "object"), index="2"),
            call("h", index="3"),
        ) + END
    )  # fmt: skip
    output = read(KIMI_K3, written, tail=THINKS, trusted=trusted)
    assert (output.thought, output.text) == ("I look.", "Here.")
    assert output.calls == [
        ("f", {"a": " x\n", "n": 1.5}), ("g", {"o": {"b": [True, None]}}), ("h", {}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "next_", [ANSWERS + "Well.", closed("response"), tools(call("f")), END], ids=range(4)
)
def test_the_next_element_ends_a_thought(next_: str) -> None:  # D101
    output = read(KIMI_K3, "I look." + next_, tail=THINKS)
    assert output.thought == "I look."
    assert output.text == ("Well." if "Well." in next_ else "")
    assert output.calls == ([("f", {})] if "tools" in next_ else [])


def test_a_message_may_end_without_its_response() -> None:
    """vllm-project/vllm#51412"""
    assert read(KIMI_K3, "Well." + END, tail=ANSWERS).text == "Well."


@pytest.mark.parametrize("trusted", [True, False])
def test_a_value_may_quote_tags(trusted: bool) -> None:
    text = (
        f"a {closed('argument')} b {opened('argument', key='old', type='string')} c "
        f"{closed('call')} d {closed('tools')}"
    )
    known = tool("w", old="string", text="string")
    written = tools(call("w", argument("old", "x"), argument("text", text)))
    output = read(KIMI_K3, written, known, tail=ANSWERS, trusted=trusted)
    assert output.calls == [("w", {"old": "x", "text": text})]


def test_attributes_are_escaped() -> None:
    written = tools(call("a&amp;b", argument("say &quot;&amp;quot;&quot;", "&amp;")))
    assert read(KIMI_K3, written, tail=ANSWERS).calls == [("a&b", {'say "&quot;"': "&amp;"})]


def test_arguments_as_one_object() -> None:
    written = tools(call("f", element("json", '{"a": {"b": 1}}', type="object")), call("g", "{}"))
    assert read(KIMI_K3, written, tail=ANSWERS).calls == [("f", {"a": {"b": 1}}), ("g", {})]


def test_values_that_are_not_what_their_tags_say() -> None:
    """Wrong types failed some 8 calls an hour (sgl-project/sglang#34604)."""
    written = tools(
        call(
            "f", argument("a", "celsius", "object"), argument("b", "True", "boolean"),
            argument("c", '"x"', "array"), element("argument", "5", key="d"),
        )
    )  # fmt: skip
    output = read(KIMI_K3, written, tool("f", d="integer"), tail=ANSWERS)
    assert output.calls == [("f", {"a": "celsius", "b": True, "c": "x", "d": 5})]


def test_calls_without_a_section_and_missing_ends() -> None:
    written = call("f", opened("argument", key="a", type="string") + "x", argument("b", "y"))
    output = read(KIMI_K3, written + call("g"), tool("f", a="string", b="string"), tail=ANSWERS)
    assert output.calls == [("f", {"a": "x", "b": "y"}), ("g", {})]


def test_a_broken_call_keeps_the_ones_before_it() -> None:  # D109
    written = tools(call("f", argument("x", "1")), opened("call", tool="g", index="2") + "oops")
    output = read(KIMI_K3, written, tail=ANSWERS)
    assert output.calls == [("f", {"x": "1"})]
    assert 'tool="g"' in output.text


def test_markup_in_ordinary_tokens_is_text() -> None:  # D099
    text = f"A call is {opened('call', tool='f')}, and {closed('response')} ends."
    assert read(KIMI_K3, text, tail=ANSWERS, tokens=False).text.startswith("A call is")
    marks = marks_of(KIMI_K3)
    parser = KIMI_K3.parser(marks, Expected({}, marks.marked(ANSWERS)))
    assert said(parser.feed(text) + parser.finish(cut=False)).text == text


@pytest.mark.parametrize("tail", [THINKS, ANSWERS])
def test_without_tools_the_elements_are_read_and_calls_are_text(tail: str) -> None:
    marks = marks_of(KIMI_K3)
    written = f"Well.{closed('think')}" if tail == THINKS else ""
    written += f"Hello.{closed('response')}{tools(call('f'))}{END}"
    for parts in splits(marks.marked(written)):
        parser = KIMI_K3.parser(marks, Expected(None, marks.marked(tail)))
        pieces = [piece for part in parts for piece in parser.feed(part)]
        output = said(pieces + parser.finish(cut=False))
        assert output.text == "Hello." + tools(call("f"))


def test_an_answer_with_a_format_ends_at_its_element() -> None:
    marks = marks_of(KIMI_K3)
    answer = '{"a": "</think> <|open|>tools"}'
    written = marks.marked("T" + closed("think") + ANSWERS) + answer
    written += marks.marked(closed("response") + END)
    for parts in splits(written):
        parser = KIMI_K3.parser(marks, Expected({}, marks.marked(THINKS), verbatim=True))
        pieces = [piece for part in parts for piece in parser.feed(part)]
        output = said(pieces + parser.finish(cut=False))
        assert (output.thought, output.text) == ("T", answer)


def test_the_input_of_a_custom_tool_is_text() -> None:
    custom = Tool("run", format=CustomFormat())
    written = tools(call("run", argument("input", 'a "b"\n')))
    assert read(KIMI_K3, written, custom, tail=ANSWERS).calls == [("run", 'a "b"\n')]


def test_a_cut_call_stays_open_without_its_unfinished_tag() -> None:
    whole = (
        opened("tools")
        + opened("call", tool="f", index="1")
        + opened("argument", key="a", type="string")
    )
    for rest in (
        "x",
        "x" + CLOSE,
        "x" + closed("argument"),
        "x" + closed("argument") + OPEN + "arg",
    ):
        output = read(KIMI_K3, whole + rest, tail=ANSWERS, cut=True)
        assert (output.is_open, output.arguments, output.text) == (True, '{"a": "x', "")


def test_a_tag_that_is_cut_is_nothing() -> None:
    for rest in (
        OPEN,
        f"{OPEN}too",
        opened("tools"),
        f'{opened("tools")}{OPEN}call tool="f',
        f"{CLOSE}resp",
    ):
        output = read(KIMI_K3, f"Well.{rest}", tail=ANSWERS, cut=True)
        assert (output.text, output.is_open) == ("Well.", False)


def test_strings_go_out_while_they_come() -> None:
    parts = [
        opened("tools"), opened("call", tool="w", index="1"),
        opened("argument", key="p", type="string"), 'a"', "b", closed("argument"),
        closed("call"), closed("tools"),
    ]  # fmt: skip
    assert streamed(KIMI_K3, parts, {}) == [
        [], [Opened("w")], [], [Arguments('{"p": "a\\"')], [Arguments("b")], [],
        [Arguments('"}'), Closed()], [],
    ]  # fmt: skip


@pytest.mark.parametrize("in_thought", [True, False])
def test_masks_keep_to_the_elements_of_a_message(in_thought: bool) -> None:
    outputs = Outputs(KIMI_K3)
    answer = OutputConstraint("json_schema", _SCHEMA, "response_format")
    known = [tool("f", a="string")]
    begun = "T" + closed("think") + ANSWERS if in_thought else ""
    made = [
        (begun + "Hello." + closed("response") + END, (True, False, False)),
        (begun + "Hello." + closed("response") + tools(call("f")), (True, False, False)),
        (begun + closed("response") + tools(call("f")) + END, (True, True, False)),
        (begun + '{"a":1}' + closed("response") + END, (True, False, True)),
        (begun + '{"a":1}' + closed("response") + tools(call("f")), (True, False, True)),
        (begun + "Hello." + closed("think"), (False, False, False)),
        (begun + "Hello.", (False, False, False)),
    ]
    forms = [
        outputs.form(known, in_thought=in_thought),
        outputs.form(known, in_thought=in_thought, choice=ToolChoice("required")),
        outputs.form(known, in_thought=in_thought, answer=answer),
    ]
    for place, form in enumerate(forms):
        grammar = output_grammar(form)
        assert grammar is not None and grammar.text is not None
        for text, accepted in made:
            assert outputs.accepts(grammar.text, text) is accepted[place], text


def test_templates_and_tokens_tell() -> None:
    assert KIMI_K3.template is not None and KIMI_K3.fits(KIMI_K3.template, ())
    assert KIMI_K3.fits("", (OPEN, CLOSE, SEPARATOR))
    assert not KIMI_K3.fits("{{ messages }}", (OPEN, CLOSE, SEPARATOR))
