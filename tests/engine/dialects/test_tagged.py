"""All dialects that write calls tag by tag: what is rendered is read, what is broken is kept."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.conversation import Tool, ToolCall
from engine.dialects.dialect import Dialect
from engine.dialects.glm import GLM_45, GLM_47
from engine.dialects.marks import Marks
from engine.dialects.mimo import MIMO
from engine.dialects.minimax import MINIMAX
from engine.dialects.minimax_m3 import MINIMAX_M3
from engine.dialects.pieces import Closed, Expected, Opened, Piece
from engine.dialects.qwen_xml import QWEN_XML
from engine.grammar.rules import Rules
from tests.engine.dialects.outputs import Output, said
from tests.engine.grammar.drive import accepts

DIALECTS = (QWEN_XML, MIMO, GLM_45, GLM_47, MINIMAX, MINIMAX_M3)
each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)

TYPES: dict[str, Any] = {
    "s": {"type": "string"},
    "text of it": {"type": "string"},
    "n": {"type": "integer"},
    "r": {"type": "number"},
    "b": {"type": "boolean"},
    "z": {"type": ["string", "null"]},
    "o": {"type": "object", "properties": {"p": {"type": "string"}, "q": {"type": "integer"}}},
    "l": {"type": "array", "items": {"type": "string"}},
}
TOOLS = [
    Tool("write_file", parameters={"type": "object", "properties": TYPES}),
    Tool("now"),
    Tool("a.b-c", parameters={"type": "object", "properties": TYPES}),
]

# Every tag of every family, followed by something that the syntax does not go on with
TAGS = (
    "<parameter=s>", "</parameter>", "<function=now>", "</function>", "<tool_call>", "</tool_call>",
    "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", '<parameter name="n">', "<s>", "</s>",
    '<invoke name="now">', "</invoke>", "<minimax:tool_call>", "</minimax:tool_call>", "<think>",
)  # fmt: skip
PLAIN = st.text(alphabet="ab<>/= \n\t\"\\é😀{}[]'", max_size=6)
TEXTS = st.lists(st.one_of(st.sampled_from(TAGS).map("{}.".format), PLAIN), max_size=5).map("".join)
WORDS = st.text(alphabet="xyz é", min_size=1, max_size=5).map("w{}".format)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "s": TEXTS,
    "text of it": TEXTS,
    "n": st.integers(),
    "r": st.floats(allow_nan=False, allow_infinity=False),
    "b": st.booleans(),
    "z": st.one_of(st.none(), WORDS),
    "o": st.tuples(WORDS, st.integers()).map(lambda pair: {"p": pair[0], "q": pair[1]}),
    "l": st.lists(WORDS, min_size=2, max_size=3),
}
ARGUMENTS = st.fixed_dictionaries({}, optional=VALUES)
CALLS: st.SearchStrategy[list[tuple[str, Any]]] = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write_file", "a.b-c"]), ARGUMENTS),
        st.tuples(st.just("now"), st.just({})),
    ),
    min_size=1,
    max_size=3,
)


def rendered(dialect: Dialect, calls: Sequence[tuple[str, Any]]) -> str:
    made = [ToolCall("", name, json.dumps(values, ensure_ascii=False)) for name, values in calls]
    return dialect.rendering.calls(made)


def marks_of(dialect: Dialect, tokens: bool = True) -> Marks:
    known = {text: n for n, text in enumerate(dialect.spellings)} if tokens else {}
    return Marks(dialect.spellings, known)


def pieces_of(
    dialect: Dialect,
    marks: Marks,
    parts: Sequence[str],
    *,
    trusted: bool = False,
    cut: bool = False,
) -> list[Piece]:
    """All pieces; every character of the output has a place."""
    expected = Expected({tool.name: tool for tool in TOOLS}, trusted=trusted)
    parser = dialect.parser(marks, expected)
    pieces = [piece for part in parts for piece in parser.feed(part)] + parser.finish(cut=cut)
    assert sum(map(len, parts)) == max((span.end for span in parser.reader.spans), default=0)
    return pieces


def pieces(text: str, seed: int) -> list[str]:
    """A text in random parts."""
    chance, parts = random.Random(seed), []
    while text:
        size = chance.randint(1, 9)
        parts.append(text[:size])
        text = text[size:]
    return parts


@each_dialect
@pytest.mark.parametrize("tokens", [True, False])
@settings(deadline=None, max_examples=40)
@given(calls=CALLS, seed=st.integers(0, 99), trusted=st.booleans())
def test_rendered_calls_are_read_back(
    dialect: Dialect, tokens: bool, calls: list[tuple[str, Any]], seed: int, trusted: bool
) -> None:
    marks = marks_of(dialect, tokens)
    text = rendered(dialect, calls)
    output = said(pieces_of(dialect, marks, pieces(marks.marked(text), seed), trusted=trusted))
    assert [(name, values) for name, values in output.calls] == calls
    assert (output.text, output.is_open) == ("", False)


@each_dialect
@pytest.mark.parametrize("enforced", [(), ("write_file", "now", "a.b-c")], ids=["free", "enforced"])
@settings(deadline=None, max_examples=8)
@given(calls=CALLS)
def test_the_grammar_allows_rendered_calls(
    dialect: Dialect, enforced: tuple[str, ...], calls: list[tuple[str, Any]]
) -> None:
    rules = Rules(TOOLS, open_names=True, enforced=enforced)
    assert dialect.grammar is not None
    grammar = rules.document(dialect.grammar(rules), tokens=False)
    ordered = [(name, {key: args[key] for key in TYPES if key in args}) for name, args in calls]
    text = rendered(dialect, ordered)
    # A byte cannot tell a token from its characters.
    assume(not any(f"{spelling}." in text for spelling in dialect.spellings))
    assert accepts(grammar, text)
    undeclared = [("other", {"s": "x", "y": "z"})]
    assert accepts(grammar, rendered(dialect, undeclared))


@each_dialect
def test_the_grammar_enforces_a_schema(dialect: Dialect) -> None:
    parameters = {"type": "object", "properties": TYPES, "required": ["n", "s"]}
    tool = Tool("f", parameters=parameters)
    rules = Rules([tool], parallel=False, enforced=["f"])
    assert dialect.grammar is not None
    grammar = rules.document(dialect.grammar(rules), tokens=False)
    valid = {"s": "x", "n": 5, "b": True}
    assert accepts(grammar, rendered(dialect, [("f", valid)]))
    for wrong in ({"s": "x"}, {"n": 5}, {"s": "x", "n": "y"}, {"s": "x", "n": 1, "b": "no"}):
        assert not accepts(grammar, rendered(dialect, [("f", wrong)])), wrong
    assert not accepts(grammar, rendered(dialect, [("g", valid)]))
    assert not accepts(grammar, rendered(dialect, [("f", valid), ("f", valid)]))


@each_dialect
@pytest.mark.parametrize("group", range(2))
def test_a_broken_output_is_read_to_its_end(dialect: Dialect, group: int) -> None:
    chance = random.Random(f"{dialect.name} {group}")
    marks = marks_of(dialect, tokens=group % 2 == 0)
    for _ in range(60):
        text = broken(marks.marked(example(dialect, chance)), chance)
        cut = chance.random() < 0.5
        whole = pieces_of(dialect, marks, [text], cut=cut)
        check(said(whole), whole, cut)
        for parts in (list(text), pieces(text, group)):
            assert said(pieces_of(dialect, marks, parts, cut=cut)) == said(whole), text
        trusted = pieces_of(dialect, marks, [text], cut=cut, trusted=True)
        assert said(trusted) == said(pieces_of(dialect, marks, list(text), cut=cut, trusted=True))


def example(dialect: Dialect, chance: random.Random) -> str:
    """A thought, an answer and calls."""
    values = {"s": "a <b> </c>\nd", "n": 5, "o": {"p": "x"}, "l": ["w", "v"], "z": None}
    given = {key: value for key, value in values.items() if chance.random() < 0.7}
    calls = [("write_file", given), ("now", {}), ("other", given)]
    chance.shuffle(calls)
    think_open, think_close = dialect.parser.think_open, dialect.parser.think_close
    return f"{think_open}I think.{think_close}\nSo.\n" + rendered(dialect, calls[:2]) + "\nDone."


def broken(text: str, chance: random.Random) -> str:
    """One to three changes: parts dropped, doubled, moved or cut off."""
    for _ in range(chance.randint(1, 3)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.choice((1, 1, 2, 5, 20, 80)))
        part, to = text[start:end], chance.randint(0, len(text))
        text = chance.choice((
            text[:start] + text[end:], text[:end] + text[start:], text[:to] + part + text[to:],
            text[:start],
        ))  # fmt: skip
    return text


def check(output: Output, pieces: Sequence[Piece], cut: bool) -> None:
    """Calls open and close in turn, only a limit leaves one open, and arguments are an object."""
    turns = [type(piece) for piece in pieces if isinstance(piece, Opened | Closed)]
    assert turns[::2] == [Opened] * len(turns[::2])
    assert turns[1::2] == [Closed] * len(turns[1::2])
    assert cut or not output.is_open
    assert all(isinstance(values, dict) for _, values in output.calls)
    for text in (output.text, output.thought, output.arguments):
        text.encode()  # no character that stands for a token
    json.dumps(output.calls, ensure_ascii=False).encode()
