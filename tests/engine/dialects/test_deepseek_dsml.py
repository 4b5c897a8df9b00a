from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.deepseek_dsml import DEEPSEEK_V4, DEEPSEEK_V32, DEEPSEEK_V41, DSML
from engine.dialects.dialect import Dialect
from engine.dialects.pieces import Arguments, Closed, Expected, Opened
from engine.dialects.registry import choose
from tests.engine.dialects.fixtures import marks_of
from tests.engine.dialects.outputs import read, said, streamed, tool

VERSIONS: dict[Dialect, tuple[str, str, str]] = {
    DEEPSEEK_V32: ("function_calls", "invoke", "parameter"),
    DEEPSEEK_V4: ("tool_calls", "invoke", "parameter"),
    DEEPSEEK_V41: (" calls", " invoke", " parameter"),
}


def argument(key: str, value: str, flag: str | None = "true", tag: str = "parameter") -> str:
    kind = f' string="{flag}"' if flag else ""
    return f'<{DSML}{tag} name="{key}"{kind}>{value}</{DSML}{tag}>\n'


def invoke(name: str, *arguments: str, tag: str = "invoke") -> str:
    return f'<{DSML}{tag} name="{name}">\n{"".join(arguments)}</{DSML}{tag}>\n'


def section(*calls: str, tag: str = "tool_calls") -> str:
    return f"<{DSML}{tag}>\n{''.join(calls)}</{DSML}{tag}>"


@pytest.mark.parametrize("dialect", VERSIONS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("written", VERSIONS.values(), ids=lambda tags: tags[0])
@pytest.mark.parametrize("tokens", [True, False])
def test_each_version_reads_the_tags_of_all(
    dialect: Dialect, written: tuple[str, str, str], tokens: bool
) -> None:
    block, call, parameter = written
    first = invoke(
        "f",
        argument("a", " x\n", tag=parameter),
        argument("n", "[1]", "false", parameter),
        tag=call,
    )
    output = read(
        dialect, f"Look.\n\n{section(first, invoke('g', tag=call), tag=block)}", tokens=tokens
    )
    assert (output.text, output.calls) == ("Look.", [("f", {"a": " x\n", "n": [1]}), ("g", {})])


@pytest.mark.parametrize("trusted", [True, False])
def test_a_value_may_quote_tags(trusted: bool) -> None:
    """Nothing of them counts where what follows does not fit (vllm-project/vllm#53227)."""
    text = (
        f'a </{DSML}parameter> b </{DSML}invoke> c <{DSML}invoke name="x"> d </{DSML}tool_calls> '
        f'<{DSML}parameter name="old" string="true"> e\n</{DSML}parameter'
    )
    known = tool("w", old="string", text="string")
    written = section(invoke("w", argument("old", "x"), argument("text", text)))
    output = read(DEEPSEEK_V4, written, known, trusted=trusted)
    assert output.calls == [("w", {"old": "x", "text": text})]


def test_a_value_may_quote_whole_calls() -> None:
    text = "So:\n" + section(invoke("w", argument("p", "x")), invoke("g")) + "\nand again."
    output = read(DEEPSEEK_V4, section(invoke("w", argument("p", text), argument("q", "y"))))
    assert output.calls == [("w", {"p": text, "q": "y"})]


def test_what_is_spelt_in_ordinary_tokens_ends_no_value_of_a_call_in_tokens() -> None:
    marks = marks_of(DEEPSEEK_V4)
    text = f"x</{DSML}parameter>\n</{DSML}invoke>\n</{DSML}tool_calls>"
    frame = marks.marked(section(invoke("w", argument("p", "VALUE"))))
    parser = DEEPSEEK_V4.parser(marks, Expected({}))
    pieces = parser.feed(frame.replace("VALUE", text)) + parser.finish(cut=False)
    assert said(pieces).calls == [("w", {"p": text})]


def test_missing_ends_of_arguments() -> None:
    """The next argument makes up for them, where it is a declared one (vllm#54838)."""
    written = section(
        f'<{DSML}invoke name="f">\n<{DSML}parameter name="a" string="true">x\n'
        f'<{DSML}parameter name="b" string="false">5\n</{DSML}invoke>\n'
    )
    output = read(DEEPSEEK_V4, written, tool("f", a="string", b="integer"))
    assert output.calls == [("f", {"a": "x", "b": 5})]


def test_calls_without_a_section_or_with_one_that_never_ends() -> None:
    one, two = invoke("f", argument("a", "x")), invoke("g")
    for written in (one + two, f"<{DSML}tool_calls>\n{one}{two}", f"<{DSML}toolcalls>\n{one}{two}"):
        output = read(DEEPSEEK_V4, f"Look. {written}")
        assert (output.text, output.calls) == ("Look.", [("f", {"a": "x"}), ("g", {})])


def test_a_call_may_close_itself() -> None:
    written = section(f'<{DSML}invoke name="f"/>\n', f'<{DSML}invoke name="g" />\n')
    assert read(DEEPSEEK_V4, written).calls == [("f", {}), ("g", {})]


def test_arguments_as_one_object() -> None:
    written = section(f'<{DSML}invoke name="f">\n{{"a": {{"b": 1}}}}\n</{DSML}invoke>\n')
    assert read(DEEPSEEK_V4, written).calls == [("f", {"a": {"b": 1}})]


def test_values_that_are_not_what_their_tags_say() -> None:
    written = section(
        invoke(
            "f", argument("a", "celsius", "false"), argument("b", "True", "false"),
            argument("c", '"x"', "false"), argument("d", "02134"), argument("e", "5", None),
            argument("g", "5", None),
        )
    )  # fmt: skip
    known = tool("f", e="integer", g="string")
    assert read(DEEPSEEK_V4, written, known).calls == [
        ("f", {"a": "celsius", "b": True, "c": "x", "d": "02134", "e": 5, "g": "5"})
    ]


def test_of_arguments_with_one_name_the_first_counts() -> None:
    written = section(invoke("f", argument("a", "x"), argument("a", "y"), argument("b", "z")))
    assert read(DEEPSEEK_V4, written).calls == [("f", {"a": "x", "b": "z"})]


def test_text_behind_the_section_is_discarded() -> None:
    output = read(DEEPSEEK_V4, f"Look. {section(invoke('f'))}\n\nDone. {section(invoke('g'))}")
    assert (output.text, output.calls) == ("Look.", [("f", {})])


def test_text_behind_an_empty_section_is_not() -> None:
    """vllm-project/vllm#56184"""
    output = read(DEEPSEEK_V4, f"Look. {section()} Done.")
    assert (output.text.split(), output.calls) == (["Look.", "Done."], [])


@pytest.mark.parametrize("tail", ["", "<think>"])
def test_ends_without_a_beginning_are_nothing(tail: str) -> None:
    """Neither in the answer nor in a thought, which they do not end (vllm#57051)."""
    output = read(DEEPSEEK_V4, f"Well</{DSML}parameter> then.\n</{DSML}invoke>", tail=tail)
    assert (output.text + output.thought).rstrip() == "Well then."
    assert bool(output.thought) is bool(tail)


def test_a_broken_call_keeps_the_ones_before_it() -> None:  # D109
    broken = f'<{DSML}invoke name="g">\n<{DSML}parameter name="y\n2</{DSML}invoke>\n'
    output = read(DEEPSEEK_V4, section(invoke("f", argument("x", "1")), broken))
    assert output.calls == [("f", {"x": "1"})]
    assert 'name="g"' in output.text


def test_a_call_ends_a_thought_that_was_never_closed() -> None:  # D101
    output = read(DEEPSEEK_V4, f"I need it.\n\n{section(invoke('ls'))}", tail="<think>")
    assert (output.thought, output.calls) == ("I need it.", [("ls", {})])


def test_markup_in_prose_is_text() -> None:  # D099
    text = f"Begin with <{DSML}tool_calls>, then <{DSML}invoke ...>."
    output = read(DEEPSEEK_V4, f"I write {text}</think>{text}", tail="<think>", tokens=False)
    assert (output.thought, output.text) == (f"I write {text}", text)


def test_the_input_of_a_custom_tool_is_text() -> None:
    custom = Tool("run", format=CustomFormat())
    text = '*** Begin Patch\n+ "a\\n"\n'
    output = read(DEEPSEEK_V4, section(invoke("run", argument("input", text))), custom)
    assert output.calls == [("run", text)]


def test_a_cut_call_stays_open_without_its_unfinished_tag() -> None:
    for rest in ("", "<", f"</{DSML}", f"</{DSML}parameter>", f"</{DSML}parameter>\n<{DSML}para"):
        whole = section(invoke("f", argument("a", "x y"))).partition(f"</{DSML}")[0]
        output = read(DEEPSEEK_V4, whole + rest, cut=True)
        assert (output.is_open, output.arguments, output.text) == (True, '{"a": "x y', "")


def test_a_call_cut_before_its_name_is_nothing() -> None:
    whole = f'<{DSML}tool_calls>\n<{DSML}invoke name="f'
    for end in range(len(f"<{DSML}"), len(whole) + 1):
        output = read(DEEPSEEK_V4, f"Well. {whole[:end]}", cut=True)
        assert (output.text, output.is_open) == ("Well.", False)


def test_strings_go_out_while_they_come() -> None:
    parts = [
        f"<{DSML}tool_calls>\n", f'<{DSML}invoke name="w">', f'\n<{DSML}parameter name="p" ',
        'string="true">', 'a"', "b</", f"{DSML}parameter>\n<", f'{DSML}parameter name="n" ',
        'string="false">[1,', f"2]</{DSML}parameter>\n", f"</{DSML}invoke>\n",
        f"</{DSML}tool_calls>",
    ]  # fmt: skip
    assert streamed(DEEPSEEK_V4, parts, {}) == [
        [], [Opened("w")], [], [], [Arguments('{"p": "a\\"')], [Arguments("b")], [],
        [], [Arguments('"')], [], [Arguments(', "n": [1,2]}'), Closed()], [],
    ]  # fmt: skip


def test_where_masks_hold_only_tokens_begin_calls() -> None:
    marks = marks_of(DEEPSEEK_V4)
    text = section(invoke("f"))
    for trusted in (True, False):
        parser = DEEPSEEK_V4.parser(marks, Expected({}, trusted=trusted))
        output = said(parser.feed(text) + parser.finish(cut=False))
        assert (len(output.calls), output.text) == ((0, text) if trusted else (1, ""))


def test_free_text_may_end_in_the_bracket_before_the_token() -> None:
    """Masks begin at the token, so the bracket is free, and may be missing."""
    marks = marks_of(DEEPSEEK_V4)
    parser = DEEPSEEK_V4.parser(marks, Expected({}, trusted=True))
    pieces = parser.feed(marks.marked(section(invoke("f"))[1:])) + parser.finish(cut=False)
    assert said(pieces).calls == [("f", {})]


def test_templates_and_tokens_tell_the_versions() -> None:
    versions = (DEEPSEEK_V32, DEEPSEEK_V4, DEEPSEEK_V41)
    for dialect in versions:
        assert choose(dialect.template, (), None) is dialect
    parts = (
        "{%- set dsml = '｜DSML｜' %}"
        "{{ '<' + dsml + 'TAGcalls>' + '<' + dsml + 'GAPinvoke name=' }}"
    )
    assert choose(parts.replace("TAG", "function_").replace("GAP", ""), (), None) is DEEPSEEK_V32
    assert choose(parts.replace("TAG", "tool_").replace("GAP", ""), (), None) is DEEPSEEK_V4
    assert choose(parts.replace("TAG", " ").replace("GAP", " "), (), None) is DEEPSEEK_V41
    assert choose(None, (DSML,), None) is DEEPSEEK_V32
    assert choose(None, (DSML, "<｜latest_reminder｜>"), None) is DEEPSEEK_V4
    assert choose(None, (DSML, "<｜latest_reminder｜>", "<｜System｜>"), None) is DEEPSEEK_V41
