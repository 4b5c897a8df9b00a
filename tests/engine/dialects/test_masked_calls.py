"""What masks make of the calls of these families is what their parsers read."""

from __future__ import annotations

import json
from functools import cache
from typing import Literal

import pytest

from engine.conversation import CustomFormat, Tool, ToolCall, ToolChoice
from engine.dialects.dialect import Dialect
from engine.dialects.gemma3 import GEMMA3
from engine.dialects.gemma4 import FUNCTIONGEMMA, GEMMA4
from engine.dialects.harmony import HARMONY
from engine.dialects.llama_json import LLAMA_JSON
from engine.dialects.mistral import MAGISTRAL, MISTRAL
from engine.dialects.pythonic import PYTHONIC
from engine.grammar.output import OutputGrammar, output_grammar
from engine.types import OutputConstraint
from tests.engine.grammar.outputs import Outputs, endings_of

DIALECTS = (LLAMA_JSON, PYTHONIC, MISTRAL, MAGISTRAL, GEMMA3, GEMMA4, FUNCTIONGEMMA, HARMONY)
EACH = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
Mode = Literal["auto", "required"]
MODES = pytest.mark.parametrize("mode", ["auto", "required"])

STRICT = Tool(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {
            "unit": {"enum": ["c", "f"]},
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
        "additionalProperties": False,
    },
    strict=True,
)
FREE = Tool("f", parameters={"type": "object"})
CUSTOM = Tool("patch", format=CustomFormat("regex", "[ab]+\n"))
TOOLS = (STRICT, FREE, CUSTOM)


@cache
def outputs(dialect: Dialect) -> Outputs:
    return Outputs(dialect)


def grammar_of(
    dialect: Dialect, mode: Mode, answer: OutputConstraint | None = None
) -> OutputGrammar:
    form = outputs(dialect).form(TOOLS, choice=ToolChoice(mode), answer=answer)
    grammar = output_grammar(form)
    assert grammar is not None
    return grammar


@EACH
@MODES
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_weather", {"city": "Oslo", "days": 3}),
        ("get_weather", {"unit": "c", "city": 'a "b"\n'}),
        ("f", {}),
        ("f", {"x": 1.5, "y": None, "z": [1, {"a": True}]}),
    ],
)
def test_masks_allow_calls_as_they_are_shown(
    dialect: Dialect, mode: Mode, name: str, arguments: dict[str, object]
) -> None:
    grammar = grammar_of(dialect, mode)
    text = dialect.rendering.calls([ToolCall("1", name, json.dumps(arguments))])
    assert outputs(dialect).refused_at(grammar.text, text) is None
    assert outputs(dialect).accepts(grammar.text, text)


@EACH
@pytest.mark.parametrize(
    "arguments", [{"days": 3}, {"city": "Oslo", "days": "3"}, {"city": "Oslo", "more": 1}]
)
def test_masks_forbid_other_calls_of_a_strict_tool(
    dialect: Dialect, arguments: dict[str, object]
) -> None:
    grammar = grammar_of(dialect, "required")
    text = dialect.rendering.calls([ToolCall("1", "get_weather", json.dumps(arguments))])
    assert not outputs(dialect).accepts(grammar.text, text)


@EACH
@MODES
@pytest.mark.parametrize("seed", range(4))
def test_whatever_masks_allow_is_read_as_calls(dialect: Dialect, mode: Mode, seed: int) -> None:
    grammar = grammar_of(dialect, mode)
    ids = outputs(dialect).walk(grammar.text, seed, endings_of(dialect))
    for trusted in {grammar.trusts_calls, False}:
        read = outputs(dialect).read(ids, TOOLS, trusted=trusted)
        assert not read.is_open
        assert read.calls or mode == "auto"
        for name, arguments in read.calls:
            if name == "patch":
                assert arguments.strip("ab") == "\n"
            elif name == "get_weather":
                assert "city" in json.loads(arguments)
            else:
                assert isinstance(json.loads(arguments), dict)


@EACH
def test_an_answer_may_have_a_format_beside_calls(dialect: Dialect) -> None:
    schema = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
    grammar = grammar_of(dialect, "auto", OutputConstraint("json_schema", schema, "format"))
    final = "<|channel|>final<|message|>" if dialect is HARMONY else ""
    assert outputs(dialect).accepts(grammar.text, f'{final}{{"a": 1}}')
    assert not outputs(dialect).accepts(grammar.text, f'{final}{{"a": "1"}}')
    call = dialect.rendering.calls([ToolCall("1", "f", "{}")])
    assert outputs(dialect).accepts(grammar.text, call)


@MODES
def test_harmony_thinks_and_speaks_before_it_calls(mode: Mode) -> None:
    grammar = grammar_of(HARMONY, mode)
    following = "<|end|><|start|>assistant"
    before = (
        f"<|channel|>analysis<|message|>hm{following}"
        f"<|channel|>commentary<|message|>I'll look.{following}"
    )
    call = "to=functions.f"
    one = f"{before} {call}<|channel|>commentary <|constrain|>json<|message|>{{}}"
    other = f"{before}<|channel|>commentary {call}<|constrain|>json<|message|>{{}}"
    assert outputs(HARMONY).accepts(grammar.text, one)
    assert outputs(HARMONY).accepts(grammar.text, other)
    final = f"{before}<|channel|>final<|message|>Done."
    assert outputs(HARMONY).accepts(grammar.text, final) == (mode == "auto")
    assert not outputs(HARMONY).accepts(grammar.text, before)


def test_a_message_of_harmony_that_the_prompt_began_goes_on() -> None:
    grammar = grammar_of(HARMONY, "auto")
    assert outputs(HARMONY).accepts(grammar.text, " the rest of an answer")


@EACH
def test_arguments_may_have_odd_names_and_kinds(dialect: Dialect) -> None:
    kinds: dict[str, object] = {
        "foo-bar": {"type": "integer"},
        "a:b": {"type": ["string", "null"]},
        "x y": {"anyOf": [{"enum": ["p", "q"]}, {"type": "integer"}]},
    }
    schema = {"type": "object", "properties": kinds, "additionalProperties": False}
    odd = Tool("odd", parameters=schema, strict=True)
    made = output_grammar(outputs(dialect).form((odd,), choice=ToolChoice("required")))
    assert made is not None

    def is_allowed(arguments: dict[str, object]) -> bool:
        text = dialect.rendering.calls([ToolCall("1", "odd", json.dumps(arguments))])
        return outputs(dialect).accepts(made.text, text)

    assert is_allowed({"foo-bar": 1, "a:b": "s", "x y": "p"})
    assert is_allowed({"a:b": None, "x y": 3})
    assert not is_allowed({"x y": "r"})
    assert not is_allowed({"foo-bar": "1"})
