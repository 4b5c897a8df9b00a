"""Calls as DeepSeek and Kimi write them: rendered, read back, and allowed by their masks."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.conversation import CustomFormat, Tool, ToolCall, ToolChoice
from engine.dialects.deepseek_dsml import DEEPSEEK_V4, DEEPSEEK_V32, DEEPSEEK_V41
from engine.dialects.deepseek_v3 import DEEPSEEK_V3, DEEPSEEK_V31
from engine.dialects.dialect import Dialect
from engine.dialects.kimi_k2 import KIMI_K2
from engine.dialects.kimi_k3 import KIMI_K3, OPEN, SEPARATOR
from engine.dialects.pieces import Expected
from engine.grammar.output import output_grammar
from tests.engine.dialects.fixtures import marks_of
from tests.engine.dialects.outputs import said
from tests.engine.grammar.outputs import Outputs, endings_of

DIALECTS = (DEEPSEEK_V3, DEEPSEEK_V31, DEEPSEEK_V32, DEEPSEEK_V4, DEEPSEEK_V41, KIMI_K2, KIMI_K3)
EACH = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
_STAND_IN = "\ue000"  # for the first character of a delimiter that the client's text spells
_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,20}", fullmatch=True)
_KEYS = st.text(
    st.characters(exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn"), exclude_characters='"<>\n'),
    min_size=1,
)


def arguments(dialect: Dialect) -> st.SearchStrategy[dict[str, object]]:
    """Objects whose strings hold the dialect's delimiters, and whole calls."""
    shown = dialect.rendering.calls([ToolCall("functions.f:0", "f", '{"a": "x", "n": 1}')])
    marked = [*dialect.spellings, shown, "\n```", "</", "<", '"', "\\", "\n", " ", "é🌸"]
    texts = st.lists(st.sampled_from(marked) | st.text(), max_size=6).map("".join)
    texts = texts.filter(lambda text: not any("\ud800" <= char <= "\ue000" for char in text))
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
    finite = scalars.filter(lambda value: value not in (float("inf"), float("-inf")))
    values = st.recursive(
        finite, lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner), max_leaves=6
    )
    return st.dictionaries(_KEYS, values, max_size=4)


def protected(dialect: Dialect, value: object) -> object:
    """A value whose strings spell no delimiter, as a template would get it."""
    if isinstance(value, str):
        for spelling in dialect.spellings:
            value = value.replace(spelling, _STAND_IN + spelling[1:])
        return value
    if isinstance(value, list):
        return [protected(dialect, item) for item in value]
    if isinstance(value, dict):
        return {key: protected(dialect, item) for key, item in value.items()}
    return value


def written(dialect: Dialect, calls: Sequence[tuple[str, dict[str, object]]]) -> str:
    """The text of calls, with the delimiters marked that are not the client's."""
    shown = dialect.rendering.calls(
        [
            ToolCall(f"call_{n}", name, json.dumps(protected(dialect, given), ensure_ascii=False))
            for n, (name, given) in enumerate(calls)
        ]
    )
    text = marks_of(dialect).marked(shown)
    for spelling in dialect.spellings:
        text = text.replace(_STAND_IN + spelling[1:], spelling)
    return text


@EACH
@pytest.mark.parametrize("trusted", [True, False])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rendered_calls_are_read_back(dialect: Dialect, trusted: bool, data: st.DataObject) -> None:
    calls = data.draw(st.lists(st.tuples(_NAMES, arguments(dialect)), min_size=1, max_size=3))
    text = written(dialect, calls)
    size = data.draw(st.integers(1, 40))
    parser = dialect.parser(marks_of(dialect), Expected({}, trusted=trusted))
    pieces = [p for at in range(0, len(text), size) for p in parser.feed(text[at : at + size])]
    output = said(pieces + parser.finish(cut=False))
    assert output.calls == calls
    assert output.text == output.thought == ""
    assert parser.reader.spans[-1].end == len(text)


TOOLS = (
    Tool(
        "f",
        parameters={
            "type": "object",
            "properties": {
                "VALUE": {"type": "string"},
                "n": {"type": "integer"},
                "o": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
                "e": {"enum": ["x", 2]},
            },
            "required": ["n", "e"],
        },
        strict=True,
    ),
    Tool("get_time"),
    Tool("patch", format=CustomFormat()),
)


def begun(dialect: Dialect, mode: str, *, in_thought: bool) -> str:
    """What comes before the calls."""
    text = "hello" if mode == "auto" else ""
    if dialect is KIMI_K3:
        response = f"{OPEN}response{SEPARATOR}" if in_thought else ""
        text = f"{response}{text}<|close|>response{SEPARATOR}"
    return f"I think.{dialect.parser.think_close}{text}" if in_thought else text


@EACH
@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize("in_thought", [True, False])
def test_masks_allow_rendered_calls(dialect: Dialect, mode: str, in_thought: bool) -> None:
    outputs = Outputs(dialect)
    choice = ToolChoice("required" if mode == "required" else "auto")
    made = output_grammar(outputs.form(TOOLS, choice=choice, in_thought=in_thought))
    assert made is not None and made.text is not None and made.trusts_calls
    calls = [
        ToolCall("functions.f:0", "f", '{"VALUE": " a\\n<b>", "n": -1, "o": null, "e": "x"}'),
        ToolCall("functions.f:1", "f", '{"n": 1, "o": "abc", "e": 2}'),
        ToolCall("functions.get_time:2", "get_time", "{}"),
        ToolCall("functions.g:3", "undeclared", '{"a": {"b": [1]}, "c": "d"}'),
        ToolCall("functions.patch:4", "patch", '{"input": "*** \\"x\\"\\n"}'),
    ]
    before = begun(dialect, mode, in_thought=in_thought)
    if mode == "required":
        del calls[3]  # it would be no call of a declared tool
    assert outputs.accepts(made.text, before + dialect.rendering.calls(calls))
    wrong = [ToolCall("functions.f:0", "f", '{"n": "1", "e": "x"}')]
    assert not outputs.accepts(made.text, before + dialect.rendering.calls(wrong))


@EACH
@pytest.mark.parametrize("has_tokens", [True, False])
def test_what_masks_allow_is_read_as_calls(dialect: Dialect, has_tokens: bool) -> None:
    outputs = Outputs(dialect, has_tokens=has_tokens)
    made = output_grammar(outputs.form(TOOLS, choice=ToolChoice("required"), think_close=None))
    assert made is not None and made.text is not None
    for seed in range(8):
        ids = outputs.walk(made.text, seed, endings_of(dialect), budget=60)
        trusted = outputs.read(ids, TOOLS, trusted=True)
        assert trusted == outputs.read(ids, TOOLS, trusted=False)
        assert trusted.calls and not trusted.text and not trusted.is_open
        for name, text in trusted.calls:
            if name == "f":
                known = json.loads(text)
                assert isinstance(known["n"], int) and known["e"] in ("x", 2)
                assert len(known.get("o") or "") <= 3
            elif name == "get_time":
                assert isinstance(json.loads(text), dict)
