"""Every dialect's grammar against its own rendering, and its own parser against its grammar."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from engine.conversation import CustomFormat, Tool, ToolCall, ToolChoice
from engine.dialects.dialect import Dialect
from engine.dialects.registry import DIALECTS
from engine.grammar.output import output_grammar
from tests.engine.grammar.outputs import Outputs, endings_of
from tests.engine.grammar.test_walks import finite

WRITE = Tool(
    "write_file", strict=True,
    parameters={
        "type": "object", "additionalProperties": False, "required": ["path", "count"],
        "properties": {
            "path": {"type": "string"},
            "count": {"type": "integer", "minimum": 0, "maximum": 99},
            "mode": {"enum": ["r", "w"]},
            "flag": {"type": "boolean"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
        },
        "$defs": {"edit": {
            "type": "object", "additionalProperties": False, "required": ["old"],
            "properties": {"old": {"type": "string"}, "n": {"type": ["integer", "null"]}},
        }},
    },
)  # fmt: skip
NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}
NOTHING = Tool("nothing", parameters=NO_ARGUMENTS, strict=True)
LOOSE = Tool("look.up", parameters={"type": "object", "properties": {"q": {"type": "string"}}})
PATCH = Tool("patch", format=CustomFormat("regex", '[a-c]+\n["x]*'))
NOTE = Tool("note", format=CustomFormat())
TOOLS = (WRITE, NOTHING, LOOSE, PATCH, NOTE)
REQUIRED = ToolChoice("required")
FAMILIES = [dialect for dialect in DIALECTS if dialect.name != "plain"]
EVERY = pytest.mark.parametrize("dialect", FAMILIES, ids=lambda dialect: dialect.name)

ARGUMENTS = [
    ("write_file", {"path": "a/b.py", "count": 3}),
    ("write_file", {"path": 'x <b> "q"\nline \\n', "count": 0, "mode": "w", "flag": True,
                    "note": None, "edits": [{"old": "é\n</x>", "n": None}]}),
    ("write_file", {"path": "", "count": 9, "note": "text"}),
    ("nothing", {}),
    ("look.up", {"q": "it", "more": [1, {"a": None}]}),
]  # fmt: skip

# Families that write strings beside other types, or lists of elements, in another way than JSON,
# and whose grammar has JSON there where a schema is enforced
OTHERWISE = {"gemma4": (1,), "functiongemma": (1,), "minimax_m3": (1,)}

# Families whose calls begin with text: in free text they are read with care
UNTRUSTED = {"llama_json", "pythonic", "gemma3"}

# Families whose parsers read calls that begin without the token that masks guard
READS_MORE = {"qwen_xml", "mimo"}


def is_valid(name: str, arguments: str) -> bool:
    """Whether a call is one that the masks promise."""
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        return False
    if tool.format is not None:
        return tool is NOTE or re.fullmatch(tool.format.source, arguments) is not None
    value = finite(json.loads(arguments))
    schema: Any = tool.parameters if tool.strict else {"type": "object"}
    return bool(jsonschema_rs.validator_for(schema).is_valid(value))


def refused(dialect: Dialect, calls: list[ToolCall]) -> str | None:
    """What of the calls the grammar does not allow as the dialect shows them."""
    outputs = Outputs(dialect)
    form = outputs.form(TOOLS, choice=REQUIRED, think_open=None, think_close=None, compose=None)
    made = output_grammar(form)
    assert made is not None
    shown = dialect.rendering.calls(calls)
    rest = outputs.refused_at(made.text, shown)
    return rest if rest is not None or outputs.accepts(made.text, shown) else "the end"


def call_of(number: int) -> ToolCall:
    name, arguments = ARGUMENTS[number]
    return ToolCall(f"call_{number}", name, json.dumps(arguments, ensure_ascii=False))


@EVERY
@pytest.mark.parametrize("number", range(len(ARGUMENTS)))
def test_calls_as_the_dialect_shows_them_are_allowed(dialect: Dialect, number: int) -> None:
    rest = refused(dialect, [call_of(number)])
    assert (rest is not None) is (number in OTHERWISE.get(dialect.name, ())), rest


@EVERY
def test_several_calls_as_the_dialect_shows_them_are_allowed(dialect: Dialect) -> None:
    numbers = set(range(len(ARGUMENTS))) - set(OTHERWISE.get(dialect.name, ()))
    rest = refused(dialect, [call_of(number) for number in sorted(numbers)])
    assert (rest is None) is (dialect.name != "harmony"), rest  # its turns have one call


@EVERY
@pytest.mark.parametrize("tools", [TOOLS, (WRITE,), (LOOSE,), (PATCH,)], ids=len)
@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "single"])
def test_whatever_masks_allow_is_read_as_valid_calls(
    dialect: Dialect, tools: tuple[Tool, ...], parallel: bool
) -> None:
    outputs = Outputs(dialect)
    form = outputs.form(tools, choice=REQUIRED, parallel=parallel)
    made = output_grammar(form)
    assert made is not None
    for number in range(6):
        ids = outputs.walk(made.text, number, endings_of(dialect), 100)
        said = outputs.read(ids, tools, trusted=made.trusts_calls)
        shown = outputs.tokenizer.decode(ids)
        assert said.calls, shown
        assert not said.is_open, shown
        assert parallel or len(said.calls) == 1
        assert all(is_valid(name, arguments) for name, arguments in said.calls), (shown, said)


@pytest.mark.parametrize(
    "dialect", [d for d in FAMILIES if d.compose is None], ids=lambda dialect: dialect.name
)
def test_calls_begin_in_free_text_and_are_held_to_their_schema(dialect: Dialect) -> None:
    """The outputs of the others are not text and then calls."""
    outputs = Outputs(dialect)
    made = output_grammar(outputs.form((WRITE, LOOSE), parallel=False))
    assert made is not None
    good, bad = ({"path": "x", "count": count} for count in (7, 700))
    for text in ("", "Some text, <b>, {} and [so] on.\n"):
        for arguments, is_one in ((good, True), (bad, False)):
            call = ToolCall("call_1", "write_file", json.dumps(arguments))
            shown = text + dialect.rendering.calls([call])
            assert outputs.accepts(made.text, shown) is is_one, shown
        assert outputs.accepts(made.text, text)


@pytest.mark.parametrize(
    "dialect", [d for d in FAMILIES if d.name not in UNTRUSTED], ids=lambda dialect: dialect.name
)
def test_free_text_holds_no_call_where_calls_are_trusted(dialect: Dialect) -> None:
    outputs = Outputs(dialect)
    made = output_grammar(outputs.form((WRITE,)))
    assert made is not None and made.trusts_calls
    ids = outputs.ids(dialect.rendering.calls([call_of(0)]))
    spelt = [part for token in ids for part in outputs.spelt(token)]
    bare = [token for token in ids if token not in outputs.marks.of_token]
    found = []
    for text in (spelt, bare):
        matcher = outputs.matcher(made.text)
        if all(token in outputs.allowed(matcher) and matcher.consume(token) for token in text):
            found += outputs.read(text, (WRITE,), trusted=True).calls
    assert bool(found) is (dialect.name in READS_MORE), found
