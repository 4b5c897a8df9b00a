from __future__ import annotations

import re

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.marks import Marks
from engine.dialects.mistral import MAGISTRAL, MISTRAL
from engine.dialects.pieces import Arguments, Closed, Expected, Opened
from engine.dialects.registry import choose
from tests.engine.dialects.outputs import read, streamed, tool


def ids(output: str, *, trusted: bool = False) -> list[str | None]:
    """The ids that the model gave its calls."""
    marks = Marks(MISTRAL.spellings, {text: n for n, text in enumerate(MISTRAL.spellings)})
    parser = MISTRAL.parser(marks, Expected({"f": tool("f")}, trusted=trusted))
    pieces = [*parser.feed(marks.marked(output)), *parser.finish(cut=False)]
    return [piece.id for piece in pieces if isinstance(piece, Opened)]


@pytest.mark.parametrize("tokens", [True, False])
def test_a_delimiter_in_a_string_is_data(tokens: bool) -> None:
    """D116"""
    topic = "he said 'hi' and [TOOL_CALLS]"
    output = read(
        MISTRAL,
        f'[TOOL_CALLS] [{{"name": "story", "arguments": {{"topic": "{topic}"}}}}]',
        tool("story", topic="string"), tokens=tokens,
    )  # fmt: skip
    assert output.calls == [("story", {"topic": topic})]


def test_ids_are_nine_letters_and_digits() -> None:
    """D116"""
    made = {MISTRAL.new_id() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch("[A-Za-z0-9]{9}", one) for one in made)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{}", ["abc123def"]),
        ("[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{}", [None, "abc123def"]),
        ('[TOOL_CALLS][{"id": "abc123def", "name": "f", "arguments": {}}]', ["abc123def"]),
        ('[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "abc123def"}]', ["abc123def"]),
        ('[TOOL_CALLS][{"name": "f", "arguments": {"id": "x"}}]', [None]),
    ],
)
def test_the_ids_of_the_model_stay(output: str, expected: list[str | None]) -> None:
    assert ids(output) == expected


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("between", ["[ARGS]", "", " [ARGS] "])
def test_compact_calls_follow_each_other(between: str, tokens: bool) -> None:
    call = f'[TOOL_CALLS]f{between}{{"a": 1}}'
    output = read(MISTRAL, f"Hello.{call}\n{call}", tool("f"), tokens=tokens)
    assert output.calls == [("f", {"a": 1})] * 2
    assert output.text == "Hello."


@pytest.mark.parametrize("tokens", [True, False])
def test_a_call_in_a_thought_is_a_quotation(tokens: bool) -> None:
    thought = 'I could write [TOOL_CALLS]f[ARGS]{"a": 1} now.'
    output = read(MISTRAL, f"[THINK]{thought}[/THINK]No.", tool("f"), tokens=tokens)
    assert (output.thought, output.text, output.calls) == (thought, "No.", [])


@pytest.mark.parametrize("calls", ["[TOOL_CALLS]f[ARGS]{}", '[TOOL_CALLS][{"name": "f"}]'])
def test_a_thought_that_ends_in_calls_makes_them(calls: str) -> None:
    """D101"""
    output = read(MISTRAL, f"[THINK]I need it. {calls}{calls} ", tool("f"))
    assert (output.thought, output.text) == ("I need it.", "")
    assert output.calls == [("f", {})] * 2


def test_a_call_cut_in_a_thought_is_thought() -> None:
    thought = 'I need it. [TOOL_CALLS]f[ARGS]{"a'
    assert read(MISTRAL, f"[THINK]{thought}", tool("f"), cut=True).thought == thought


def test_a_cut_call_stays_open() -> None:
    output = read(MISTRAL, '[TOOL_CALLS]f[ARGS]{"a": "b', tool("f"), cut=True)
    assert (output.is_open, output.arguments) == (True, '{"a": "b')
    output = read(MISTRAL, '[TOOL_CALLS] [{"name": "f", "arguments": {"a', tool("f"), cut=True)
    assert (output.is_open, output.arguments) == (True, '{"a')


@pytest.mark.parametrize(
    "text",
    ["[TOOL_CALLS] of old", "[TOOL_CALLS]f[ARGS]{", '[TOOL_CALLS][{"name": "f"', "[TOOL_CALLS]["],
)
def test_what_is_no_call_is_text(text: str) -> None:
    assert read(MISTRAL, text, tool("f")).text == text


def test_arguments_stream_under_masks() -> None:
    said = streamed(MISTRAL, ["[TOOL_CALLS]", "f", "[ARGS]", '{"a":', " 1}"], {"f": tool("f")})
    assert said[3:] == [
        [Opened("f"), Arguments('{"a":')],
        [Arguments(" 1}"), Closed()],
    ]


def test_a_custom_tool_has_its_text() -> None:
    patch = Tool("patch", format=CustomFormat())
    output = read(MISTRAL, '[TOOL_CALLS]patch[ARGS]{"input": "a\\nb"}', patch)
    assert output.calls == [("patch", "a\nb")]


def test_the_first_magistral_thinks_in_plain_text() -> None:
    output = read(
        MAGISTRAL, "<think>\nhm\n</think>\nYes[TOOL_CALLS]f[ARGS]{}", tool("f"), tokens=False
    )
    assert (output.thought, output.text, output.calls) == ("hm", "Yes", [("f", {})])


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("[AVAILABLE_TOOLS] [TOOL_CALLS]", "mistral"),
        ("[TOOL_CALLS] [THINK] [/THINK]", "mistral"),
        ("[TOOL_CALLS] <think> </think>", "magistral"),
    ],
)
def test_a_template_tells_the_dialect(template: str, name: str) -> None:
    assert choose(template, (), None).name == name
