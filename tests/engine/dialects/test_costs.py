"""What a long output costs: one more character never costs more, however much came before it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
import regex

from engine.dialects import reader
from engine.dialects.dialect import Dialect
from engine.dialects.marks import Marks
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Expected
from engine.dialects.registry import DIALECTS
from tests.engine.dialects.outputs import tool

ECHO = tool("echo", text="string", count="integer")
LENGTH = 16384
MOST_LOOKS = 16  # of MOST_AHEAD characters each, for one character of output

OPENERS = {
    "hermes": ["<tool_call>", '<tool_call>{"', '<tool_call>{"name": "', '<tool_call>{"x": "'],
    "qwen_xml": [
        "<tool_call>",
        "<tool_call><function=",
        "<tool_call>\n<function=echo>\n<parameter=",
        "<tool_call>\n<function=echo>\n<parameter=text>\na",
        "<tool_call>\n<function=echo>\n<parameter=count>\na\n</parameter>",
        "<tool_call>\n<function=echo>\n</function>",
    ],
    "glm47": [
        "<tool_call>",
        "<tool_call>echo",
        "<tool_call>echo<arg_key>",
        "<tool_call>echo<arg_key>text</arg_key>",
        "<tool_call>echo<arg_key>text</arg_key><arg_value>a</arg_value>",
    ],
    "minimax": [
        "<minimax:tool_call>",
        '<minimax:tool_call><invoke name="',
        '<minimax:tool_call><invoke name="echo"><parameter name="',
        '<minimax:tool_call><invoke name="echo"><parameter name="text">a</parameter>',
    ],
    "minimax_m3": [
        "]<]minimax[>[<tool_call>",
        ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="',
        ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="echo">]<]minimax[>[<',
        ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="echo">]<]minimax[>[<other>',
    ],
    "gemma4": [
        "<|tool_call>",
        "<|tool_call>call:",
        "<|tool_call>call:echo{",
        "<|tool_call>call:echo{text:",
        '<|tool_call>call:echo{text:"',
    ],
    "mistral": ["[TOOL_CALLS]", '[TOOL_CALLS][{"name": "', "[TOOL_CALLS]echo[ARGS]"],
    "llama_json": ['{"name": "', '{"name"', "<|python_tag|>", "[echo(", '[echo(text="'],
    "gemma3": ["```tool_code\n", "[echo(text='", "[echo(text="],
    "harmony": [" to=", "<|channel|>commentary to=", "<|channel|>commentary to=functions.echo "],
    "kimi_k2": [
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        "<|tool_call_begin|>functions.echo:0<|tool_call_argument_begin|>",
    ],
    "kimi_k3": ["<|open|>", '<|open|>call tool="', '<|open|>call tool="echo"<|sep|>'],
    "deepseek_v3": ["<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>"],
    "deepseek_v32": ['<｜DSML｜invoke name="', '<｜DSML｜invoke name="echo">'],
}  # fmt: skip
BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
CASES = [
    (BY_NAME[name], opener, filler, tokens)
    for name, openers in OPENERS.items()
    for opener, filler, tokens in product(openers, " a", (True, False))
]


def parser_of(dialect: Dialect, *, tokens: bool) -> tuple[OutputParser, Marks]:
    known = {text: n for n, text in enumerate(dialect.spellings)} if tokens else {}
    marks = Marks(dialect.spellings, known)
    return dialect.parser(marks, Expected({"echo": ECHO}, "")), marks


@pytest.fixture(name="looked")
def count_looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How far each look at the output could go."""
    spans: list[int] = []
    attempt = reader.attempt

    def counted(pattern: regex.Pattern[str], text: str, at: int) -> regex.Match[str] | None:
        spans.append(min(reader.MOST_AHEAD, len(text) - at))
        return attempt(pattern, text, at)

    monkeypatch.setattr(reader, "attempt", counted)
    yield spans


@pytest.mark.parametrize(("dialect", "opener", "filler", "tokens"), CASES)
def test_one_more_character_costs_the_same_at_any_length(
    looked: list[int], dialect: Dialect, opener: str, filler: str, tokens: bool
) -> None:
    parser, marks = parser_of(dialect, tokens=tokens)
    for piece in (marks.marked(opener), *[filler * 512] * (LENGTH // 512)):
        parser.feed(piece)
    for _ in range(8):
        looked.clear()
        parser.feed(filler)
        assert sum(looked) <= MOST_LOOKS * reader.MOST_AHEAD
        assert len(parser.reader.text) - parser.reader.at <= reader.MOST_AHEAD


@pytest.mark.parametrize("begun", ['{"name": "', '{"', '{"arguments": "', '{"arguments": {"a": "'])
def test_a_string_is_read_once(begun: str) -> None:
    parser, marks = parser_of(BY_NAME["hermes"], tokens=True)
    parser.feed(marks.marked("<tool_call>" + begun))
    for char in 'text \\" more' * 20:
        parser.feed(char)
        assert len(parser.reader.text) - parser.reader.at <= 1


def test_what_a_decision_needs_is_bounded_the_same_at_every_split() -> None:
    dialect = BY_NAME["qwen_xml"]
    for space in (reader.MOST_AHEAD // 2, reader.MOST_AHEAD * 2):
        output = f"<function=echo>{' ' * space}<parameter=text>\nhi\n</parameter>\n</function>"
        said = []
        for step in (1, 100, len(output)):
            parser, _ = parser_of(dialect, tokens=False)
            parts = [output[at : at + step] for at in range(0, len(output), step)]
            pieces = [piece for part in parts for piece in parser.feed(part)]
            pieces += parser.finish(cut=False)
            said.append("".join(getattr(piece, "text", "") for piece in pieces))
        assert len(set(said)) == 1
        assert said[0] == ('{"text": "hi"}' if space < reader.MOST_AHEAD else output)
