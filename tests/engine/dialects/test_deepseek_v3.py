from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.deepseek_v3 import DEEPSEEK_V3, DEEPSEEK_V31
from engine.dialects.dialect import Dialect
from engine.dialects.pieces import Arguments, Closed, Opened
from tests.engine.dialects.outputs import read, streamed

BOTH = pytest.mark.parametrize("dialect", [DEEPSEEK_V3, DEEPSEEK_V31], ids=lambda d: d.name)
SECTION, SECTION_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, CALL_END, SEPARATOR = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"


def fenced(name: str, arguments: str) -> str:
    return f"{CALL}function{SEPARATOR}{name}\n```json\n{arguments}\n```{CALL_END}"


def bare(name: str, arguments: str) -> str:
    return f"{CALL}{name}{SEPARATOR}{arguments}{CALL_END}"


@BOTH
@pytest.mark.parametrize("write", [fenced, bare])
@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("trusted", [True, False])
def test_either_dialect_reads_both_forms(
    dialect: Dialect, write: Callable[[str, str], str], tokens: bool, trusted: bool
) -> None:
    calls = [("f", {"a": 1, "b": [{"c": "}"}]}), ("function", {}), ("g-1", {"x": "ü"})]
    written = (
        write("f", '{"a": 1, "b": [{"c": "}"}]}')
        + write("function", "{}")
        + "\n"
        + write("g-1", '{"x":"ü"}')
    )
    output = read(
        dialect, f"Look.\n{SECTION}{written}{SECTION_END}", tokens=tokens, trusted=trusted
    )
    assert (output.text, output.calls) == ("Look.", calls)


def test_braces_that_come_with_the_end_are_arguments() -> None:  # D072
    output = read(DEEPSEEK_V31, SECTION + bare("get", '{"id": 42}') + SECTION_END)
    assert output.calls == [("get", {"id": 42})]


def test_a_closer_in_a_string_is_data() -> None:  # D110
    text = f"end with {CALL_END}{SECTION_END} or ``` please"
    for write in (fenced, bare):
        written = SECTION + write("w", f'{{"text": "{text}"}}') + SECTION_END
        assert read(DEEPSEEK_V3, written).calls == [("w", {"text": text})]


def test_a_broken_call_keeps_the_ones_before_it() -> None:  # D109
    written = SECTION + bare("f", '{"x": 1}') + bare("g", '{"y": ') + SECTION_END
    output = read(DEEPSEEK_V31, written)
    assert output.calls == [("f", {"x": 1})]
    assert 'g<｜tool▁sep｜>{"y": ' in output.text


def test_a_call_ends_a_thought_that_was_never_closed() -> None:  # D101
    written = f"I need it.\n{SECTION}{bare('ls', '{}')}{SECTION_END}"
    output = read(DEEPSEEK_V31, written, tail="<｜Assistant｜><think>")
    assert (output.thought, output.calls, output.text) == ("I need it.", [("ls", {})], "")


def test_markup_in_ordinary_tokens_is_text() -> None:  # D099
    text = f"A call is {SECTION}{CALL}; it ends in {CALL_END}."
    assert read(DEEPSEEK_V3, text, tokens=False).text == text


def test_only_the_first_delimiter_closes_a_thought() -> None:  # D102
    output = read(DEEPSEEK_V3, "t</think>The tag </think> ends.", tail="<think>\n")
    assert (output.thought, output.text) == ("t", "The tag </think> ends.")


@pytest.mark.parametrize("cut", [True, False])
def test_an_unclosed_thought_is_a_thought(cut: bool) -> None:  # D098, D103
    output = read(DEEPSEEK_V3, "Okay, so ... ", tail="<think>\n", cut=cut)
    assert (output.thought, output.text) == ("Okay, so ... ", "")


def test_ends_without_a_beginning_are_nothing() -> None:
    output = read(DEEPSEEK_V3, f"Done.{CALL_END}{SECTION_END}")
    assert (output.text, output.calls) == ("Done.", [])


def test_calls_without_a_section_and_sections_of_their_own() -> None:
    one, two = bare("f", "{}"), bare("g", "{}")
    written = f"{one}{SECTION}{two}{SECTION_END}{SECTION}{one}{SECTION_END}"
    assert read(DEEPSEEK_V31, written).calls == [("f", {}), ("g", {}), ("f", {})]


def test_a_section_that_never_ends() -> None:
    output = read(DEEPSEEK_V31, SECTION + bare("f", "{}"))
    assert (output.calls, output.text) == ([("f", {})], "")


def test_missing_ends_of_calls() -> None:
    written = f"{SECTION}{CALL}f{SEPARATOR}{{}}{CALL}g{SEPARATOR}{{}}{SECTION_END}"
    assert read(DEEPSEEK_V31, written).calls == [("f", {}), ("g", {})]


def test_no_arguments_are_an_empty_object() -> None:
    assert read(DEEPSEEK_V31, SECTION + bare("f", "") + SECTION_END).calls == [("f", {})]


def test_arguments_in_a_string() -> None:
    written = SECTION + bare("f", '"{\\"a\\": 1}"') + SECTION_END
    assert read(DEEPSEEK_V31, written).calls == [("f", {"a": 1})]


def test_the_input_of_a_custom_tool_is_text() -> None:
    custom = Tool("run", format=CustomFormat())
    written = SECTION + fenced("run", '{"input": "a\\n\\"b\\""}') + SECTION_END
    assert read(DEEPSEEK_V3, written, custom).calls == [("run", 'a\n"b"')]


def test_a_cut_call_stays_open() -> None:
    output = read(DEEPSEEK_V31, f'{SECTION}{CALL}f{SEPARATOR}{{"a": "xy', cut=True)
    assert (output.is_open, output.arguments, output.text) == (True, '{"a": "xy', "")


def test_a_call_cut_before_its_name_is_nothing() -> None:
    for whole in (
        SECTION,
        SECTION + CALL,
        f"{SECTION}{CALL}get_wea",
        f"{SECTION}{CALL}f{SEPARATOR}",
    ):
        output = read(DEEPSEEK_V31, f"Well. {whole}", cut=True)
        assert (output.text, output.calls, output.is_open) == ("Well.", [], False)


def test_arguments_go_out_while_they_come() -> None:
    parts = [SECTION, CALL, "f", SEPARATOR, '{"a": ', '"b', 'c"}', CALL_END, SECTION_END]
    assert streamed(DEEPSEEK_V31, parts, {}) == [
        [], [], [], [], [Opened("f"), Arguments('{"a": ')], [Arguments('"b')], [Arguments('c"}')],
        [Closed()], [],
    ]  # fmt: skip


def test_the_templates_tell() -> None:
    v3 = "{{'<｜tool▁calls▁begin｜>' + tool['type'] + '\\n' + '```json' + '\\n'}}"
    v31 = "{{'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>'+ tool['function']['name']}}"
    assert DEEPSEEK_V3.fits(v3, ()) and not DEEPSEEK_V31.fits(v3, ())
    assert DEEPSEEK_V31.fits(v31, ()) and not DEEPSEEK_V3.fits(v31, ())
    assert not DEEPSEEK_V3.fits("", (SECTION,)) and not DEEPSEEK_V31.fits("", (SECTION,))
