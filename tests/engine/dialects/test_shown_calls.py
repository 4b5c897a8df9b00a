"""What a dialect shows of calls is what its parser reads as these calls."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.conversation import Tool, ToolCall
from engine.dialects.dialect import Dialect
from engine.dialects.gemma3 import GEMMA3
from engine.dialects.gemma4 import FUNCTIONGEMMA, GEMMA4
from engine.dialects.harmony import HARMONY
from engine.dialects.hermes import HERMES
from engine.dialects.llama_json import LLAMA_JSON
from engine.dialects.marks import Marks
from engine.dialects.mistral import MAGISTRAL, MISTRAL
from engine.dialects.pieces import Expected, Piece, Said
from engine.dialects.pythonic import PYTHONIC
from tests.engine.dialects.outputs import said

DIALECTS = (
    LLAMA_JSON, PYTHONIC, MISTRAL, MAGISTRAL, GEMMA3, GEMMA4, FUNCTIONGEMMA, HARMONY, HERMES,
)  # fmt: skip
EXAMPLES = int(os.environ.get("HELIOGRAPH_EXAMPLES", "20"))
SPELLINGS = sorted({spelling for dialect in DIALECTS for spelling in dialect.spellings})

names = st.one_of(
    st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True),
    st.text("abé.:/+-", min_size=1, max_size=6),
)
texts = st.lists(
    st.one_of(
        st.text(max_size=6), st.sampled_from([*SPELLINGS, "\n", '"', "'", "\\", "```", "}]"])
    ),
    max_size=4,
).map("".join)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63),
        st.floats(allow_nan=False, allow_infinity=False), texts,
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
calls = st.lists(
    st.tuples(names, st.dictionaries(texts, values, max_size=3)), min_size=1, max_size=3
)


def read(
    dialect: Dialect, tokens: bool, parts: Sequence[str], tools: Sequence[str], cut: bool = False
) -> list[Piece]:
    marks = Marks(dialect.spellings, {s: n for n, s in enumerate(dialect.spellings) if tokens})
    parser = dialect.parser(marks, Expected({name: Tool(name) for name in tools}))
    pieces = [piece for part in parts for piece in parser.feed(part)]
    pieces += parser.finish(cut=cut)
    ends = [span.end for span in parser.reader.spans]
    assert (ends or [0])[-1] == sum(map(len, parts))
    assert ends == sorted(set(ends))
    return pieces


def shown(dialect: Dialect, tokens: bool, called: Sequence[tuple[str, object]]) -> str:
    """Calls as the template would have them, delimiters marked."""
    marks = Marks(dialect.spellings, {s: n for n, s in enumerate(dialect.spellings) if tokens})
    history = [
        ToolCall(f"id{n}", name, json.dumps(arguments, ensure_ascii=False))
        for n, (name, arguments) in enumerate(called)
    ]
    return marks.marked(dialect.rendering.calls(history))


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=EXAMPLES, deadline=None)
@given(called=calls, size=st.integers(1, 9))
def test_shown_calls_are_read_back(
    dialect: Dialect, tokens: bool, called: list[tuple[str, object]], size: int
) -> None:
    text = shown(dialect, tokens, called)
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    pieces = read(dialect, tokens, parts, [name for name, _ in called])
    assert said(pieces).calls == called
    assert not [piece for piece in pieces if isinstance(piece, Said) and piece.text.strip()]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=EXAMPLES, deadline=None)
@given(called=calls, tokens=st.booleans(), cut=st.booleans(), data=st.data())
def test_broken_calls_are_read_to_their_end(
    dialect: Dialect, called: list[tuple[str, object]], tokens: bool, cut: bool, data: st.DataObject
) -> None:
    """The same at any split, whatever is dropped or doubled."""
    text = shown(dialect, tokens, called)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    broken = text[:start] + text[start:end] * data.draw(st.sampled_from((0, 2))) + text[end:]
    declared = [name for name, _ in called]
    whole = said(read(dialect, tokens, [broken], declared, cut))
    assert said(read(dialect, tokens, list(broken), declared, cut)) == whole
