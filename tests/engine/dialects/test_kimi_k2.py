from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool, ToolCall, ToolResult
from engine.dialects.kimi_k2 import KIMI_K2
from engine.dialects.pieces import Arguments, Closed, Expected, Opened
from tests.engine.dialects.fixtures import marks_of
from tests.engine.dialects.outputs import read, streamed

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
ONE_SECTION, ONE_SECTION_END = "<|tool_call_section_begin|>", "<|tool_call_section_end|>"
CALL, ARGUMENTS, CALL_END = (
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
)


def call(call_id: str, arguments: str) -> str:
    return f"{CALL}{call_id}{ARGUMENTS}{arguments}{CALL_END}"


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("trusted", [True, False])
def test_several_calls_in_a_section(tokens: bool, trusted: bool) -> None:
    written = call("functions.f:0", '{"a": 1}') + call("functions.a.b-c:1", ' {"x": "}"} ')
    output = read(
        KIMI_K2, f"Look.\n{SECTION}{written}{SECTION_END}", tokens=tokens, trusted=trusted
    )
    assert (output.text, output.calls) == ("Look.", [("f", {"a": 1}), ("a.b-c", {"x": "}"})])


@pytest.mark.parametrize("tokens", [True, False])
def test_markers_of_a_section_in_the_singular(tokens: bool) -> None:  # D121
    written = f"{ONE_SECTION}{call('functions.f:1', '{}')}{ONE_SECTION_END}"
    assert read(KIMI_K2, written, tokens=tokens).calls == [("f", {})]
    marks = marks_of(KIMI_K2)
    parser = KIMI_K2.parser(marks, Expected({}))
    assert parser.feed(marks.marked(written))[0] == Opened("f", "functions.f:1")


@pytest.mark.parametrize(
    ("header", "name", "call_id"),
    [
        ("functions.get_weather:0", "get_weather", "functions.get_weather:0"),
        (" functions.f:12\n", "f", "functions.f:12"),
        ("get_weather:3", "get_weather", "get_weather:3"),
        ("functions.f", "f", None),
        ("a:b:7", "a:b", "a:b:7"),
    ],
)
def test_the_id_is_the_models_own(header: str, name: str, call_id: str | None) -> None:
    marks = marks_of(KIMI_K2)
    parser = KIMI_K2.parser(marks, Expected({}))
    pieces = parser.feed(marks.marked(SECTION + call(header, "{}") + SECTION_END))
    assert pieces == [Opened(name, call_id), Arguments("{}"), Closed()]


def test_ids_survive_a_rendering() -> None:
    calls = [ToolCall("functions.f:4", "f", "{}"), ToolCall("call_1", "g", "")]
    written = KIMI_K2.rendering.calls(calls)
    assert (
        written == SECTION + call("functions.f:4", "{}") + call("functions.g:1", "{}") + SECTION_END
    )
    results = KIMI_K2.rendering.results([ToolResult("functions.f:4", ("a", "b"))])
    assert results == "## Return of functions.f:4\na\n\nb"


def test_a_closer_in_a_string_is_data() -> None:  # D110
    text = f"stop at {CALL_END}{SECTION_END} please"
    written = SECTION + call("functions.w:0", f'{{"text": "{text}"}}') + SECTION_END
    assert read(KIMI_K2, written).calls == [("w", {"text": text})]


def test_a_broken_call_keeps_the_ones_before_it() -> None:  # D109
    written = SECTION + call("functions.f:0", "{}") + call("functions.g:1", '{"y": ') + SECTION_END
    output = read(KIMI_K2, written)
    assert output.calls == [("f", {})]
    assert "functions.g:1" in output.text


@pytest.mark.parametrize("opened", [SECTION, ""])
def test_a_call_ends_a_thought_that_was_never_closed(opened: str) -> None:  # D101
    written = f"I need it.\n{opened}{call('functions.ls:0', '{}')}"
    output = read(KIMI_K2, written, tail="<|im_middle|><think>")
    assert (output.thought, output.calls, output.text) == ("I need it.", [("ls", {})], "")


def test_an_empty_section_does_not_end_a_thought() -> None:
    output = read(KIMI_K2, f"I {SECTION}{SECTION_END}look.</think>Done.", tail="<think>")
    assert (output.thought, output.text) == ("I look.", "Done.")


def test_markup_in_ordinary_tokens_is_text() -> None:  # D099
    text = f"A section is {SECTION} and a call {CALL}f{CALL_END}."
    assert read(KIMI_K2, text, tokens=False).text == text


def test_text_behind_a_section_is_text() -> None:
    written = f"Look. {SECTION}{call('functions.f:0', '{}')}{SECTION_END} Done."
    assert read(KIMI_K2, written).text == "Look.  Done."


def test_markers_that_mean_nothing_are_nothing() -> None:
    output = read(KIMI_K2, f"Done.{CALL_END}{SECTION_END}")
    assert (output.text, output.calls) == ("Done.", [])


def test_missing_markers() -> None:
    written = f"{SECTION}{CALL}functions.f:0 {{}}{CALL}g:1{ARGUMENTS}{CALL_END}{SECTION_END}"
    assert read(KIMI_K2, written).calls == [("f", {}), ("g", {})]


def test_the_input_of_a_custom_tool_is_text() -> None:
    custom = Tool("run", format=CustomFormat())
    written = SECTION + call("functions.run:0", '{"input": "a\\n\\"b\\""}') + SECTION_END
    assert read(KIMI_K2, written, custom).calls == [("run", 'a\n"b"')]


def test_a_cut_call_stays_open() -> None:
    output = read(KIMI_K2, f'{SECTION}{CALL}functions.f:0{ARGUMENTS}{{"a": "x', cut=True)
    assert (output.is_open, output.arguments, output.text) == (True, '{"a": "x', "")


def test_a_call_cut_before_its_name_is_nothing() -> None:
    for whole in (SECTION, SECTION + CALL, f"{SECTION}{CALL}functions.get_w"):
        output = read(KIMI_K2, f"Well. {whole}", cut=True)
        assert (output.text, output.is_open) == ("Well.", False)


def test_arguments_go_out_while_they_come() -> None:
    parts = [SECTION, CALL, "functions.f:0", ARGUMENTS, '{"a": ', '"b"}', CALL_END, SECTION_END]
    assert streamed(KIMI_K2, parts, {}) == [
        [], [], [], [], [Opened("f", "functions.f:0"), Arguments('{"a": ')], [Arguments('"b"}')],
        [Closed()], [],
    ]  # fmt: skip


def test_the_template_tells() -> None:
    assert KIMI_K2.fits("{{ '<|tool_calls_section_begin|>' }}", ())
    assert KIMI_K2.fits("", (SECTION,))
    assert not KIMI_K2.fits("{{ messages }}", (SECTION,))
