"""The parts that dialects build calls from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from engine.conversation import CustomFormat, Tool
from engine.grammar.document import Refused
from engine.grammar.rules import Rules
from tests.engine.grammar.drive import accepts, walk

INT: dict[str, Any] = {"type": "integer"}
TEXT: dict[str, Any] = {"type": "string"}
CLOSE = "\n</p>\n"


def tool(name: str = "add", parameters: Any = None, **more: Any) -> Tool:
    return Tool(name, parameters={"type": "object", **(parameters or {}), **more}, strict=True)


def bare(schema: Any) -> str:
    """The grammar of a bare value, its closing text, and something behind it."""
    return grammar(lambda rules: f'{rules.bare(schema, CLOSE)} "!"')


def grammar(build: Callable[[Rules], str], *tools: Tool, **known: Any) -> str:
    rules = Rules(tools, enforced={tool.name for tool in tools}, **known)
    return rules.document(build(rules), tokens=False)


def test_a_delimiter_is_its_token_where_there_is_one() -> None:
    rules = Rules([], tokens={"<call>": 7, "<c": 8})
    start = f"{rules.mark('<call>')} {rules.mark('</call>')}"
    made = json.loads(rules.document(start, tokens=True))["grammars"][0]["lark_grammar"]
    assert "<[7]>" in made
    assert accepts(rules.document(start, tokens=False), "<call></call>")
    assert rules.starts_as_token("<call>")
    assert not rules.starts_as_token("x<call>")


def test_a_delimiter_of_several_tokens_is_all_of_them() -> None:
    rules = Rules([], tokens={"<|open|>": 7, "<|sep|>": 8})
    start = rules.mark("<|open|>think<|sep|>!")
    made = json.loads(rules.document(start, tokens=True))["grammars"][0]["lark_grammar"]
    assert "<[7]>" in made
    assert "<[8]>" in made
    assert accepts(rules.document(start, tokens=False), "<|open|>think<|sep|>!")


@pytest.mark.parametrize("text", ["", "a", 'say "hi"\n\\ é😀', "\u2028\x01", "<[5]> %json {} // x"])
def test_text_is_exactly_these_characters(text: str) -> None:
    assert accepts(grammar(lambda rules: f"{rules.text(text)} {rules.text('!')}"), text + "!")


def test_alternatives_that_begin_alike_are_told_apart() -> None:
    def build(rules: Rules) -> str:
        declared = f"{rules.text(json.dumps('add'))} {rules.text(': 1')}"
        other = f'"\\"" {rules.name()} "\\"" {rules.text(": 2")}'
        return f"{rules.text('{')} ({declared} | {other}) {rules.text('}')}"

    made = grammar(build, tool(), tool("x.y"))
    for text in ('{"add": 1}', '{"adder": 2}', '{"a": 2}', '{"x": 2}'):
        assert accepts(made, text), text
    for text in ('{"add": 2}', '{"x.y": 2}', '{"b c": 2}'):
        assert not accepts(made, text), text


def test_until_ends_at_the_first_closing() -> None:
    made = grammar(lambda rules: f'{rules.until("</a>", "!")} "x"')
    assert accepts(made, "one</a x</a>x")
    assert accepts(made, "!x")
    assert not accepts(made, "one</a></a>x")


def test_until_takes_tokens_and_texts() -> None:
    rules = Rules([], tokens={"<end>": 7})
    made = json.loads(rules.document(rules.until("<end>", "!"), tokens=True))["grammars"][0]
    assert "<[7]>" in made["lark_grammar"]
    assert " & ~" in made["lark_grammar"]  # text up to the token holds no `!`


def test_calls_repeat_where_they_may() -> None:
    for parallel in (True, False):
        made = grammar(lambda rules: rules.repeated('"a"', '","'), parallel=parallel)
        assert accepts(made, "a")
        assert accepts(made, "a,a") is parallel


def test_arguments_are_held_to_the_schema_where_they_must_be() -> None:
    one = tool(properties={"a": INT}, required=["a"], additionalProperties=False)
    held = grammar(lambda rules: rules.arguments(one), one)
    assert accepts(held, '{"a": 1}')
    assert not accepts(held, '{"a": "x"}')
    free = Rules([one])
    for known in (one, None):
        made = free.document(free.arguments(known), tokens=False)
        assert accepts(made, '{"b": [1, {}]}')
        assert not accepts(made, "[]")
        assert not accepts(made, '{"b":' + " " * 30 + "1}")


def test_arguments_that_are_no_object_are_refused() -> None:
    one = Tool("add", parameters={"type": "array"}, strict=True)
    with pytest.raises(Refused, match="root must be an object"):
        grammar(lambda rules: rules.arguments(one), one)


CUSTOM = [
    (CustomFormat(), ["", 'a"\n\\'], []),
    (CustomFormat("regex", '[a-c"]+\n/'), ['ab"\n/'], ["d\n/", ""]),
    (CustomFormat("lark", 'start: "a" LF\n%import common.LF'), ["a\n"], ["a", "b\n"]),
    (CustomFormat("lark", 'start: r0\nr0: T1 "x"\nT1: /y+/'), ["yyx"], ["x"]),
]


@pytest.mark.parametrize(("wanted", "good", "bad"), CUSTOM)
def test_a_custom_tool_takes_text_of_its_format(
    wanted: CustomFormat, good: list[str], bad: list[str]
) -> None:
    one = Tool("patch", format=wanted)
    raw = grammar(lambda rules: f"{rules.text('<')} {rules.custom(one)}", one)
    quoted = grammar(lambda rules: rules.arguments(one), one)
    for text in (*good, *bad):
        spelt = json.dumps(text, ensure_ascii=False)
        assert accepts(raw, "<" + text) is (text in good)
        assert accepts(quoted, f'{{"input": {spelt}}}') is (text in good)
    free = Rules([one])
    made = free.document(free.arguments(one), tokens=False)
    assert accepts(made, '{"input":"anything\\n"}')


def test_several_client_grammars_do_not_mix() -> None:
    first = Tool("one", format=CustomFormat("lark", 'start: A\nA: "x"\n%ignore " "'))
    second = Tool("two", format=CustomFormat("lark", 'start: A B\nA: "y"\nB: "z"'))
    made = grammar(lambda r: f'"1" {r.custom(first)} | "2" {r.custom(second)}', first, second)
    assert accepts(made, "1x")
    assert accepts(made, "2yz")
    assert not accepts(made, "2y z")


def test_parameters_come_one_by_one_with_what_they_refer_to() -> None:
    one = tool(
        properties={"a": {"$ref": "#/$defs/n"}, "b": False, "c": TEXT}, required=["a", "z"],
        parameters={"$defs": {"n": INT}, "title": "T", "additionalProperties": False},
    )  # fmt: skip
    found = Rules([one], enforced={"add"}).parameters(one)
    assert [(name, must) for name, _, must in found] == [
        ("a", True), ("b", False), ("c", False), ("z", True)
    ]  # fmt: skip
    made = grammar(lambda rules: rules.bare(found[0][1], CLOSE))
    assert accepts(made, "12" + CLOSE)
    assert not accepts(made, "x" + CLOSE)


@pytest.mark.parametrize("keyword", ["patternProperties", "anyOf", "minProperties", "$ref"])
def test_what_says_more_than_names_is_refused_one_by_one(keyword: str) -> None:
    one = tool(parameters={keyword: {}})
    with pytest.raises(Refused, match=re.escape(f"'{keyword}'")):
        Rules([one], enforced={"add"}).parameters(one)
    assert Rules([one]).parameters(one) == []


# schema, values, texts that are none
BARE: list[tuple[Any, list[str], list[str]]] = [
    (True, ["", "any\nthing", "{"], []),
    (TEXT, ["", "a</p>\n", "<p>é"], []),
    (INT, ["12", "-3"], ["1.5", "x", " 1", ""]),
    ({"type": "number", "minimum": 2}, ["2.5"], ["1"]),
    ({"type": "boolean"}, ["true"], ["True", "null"]),
    ({"type": ["boolean", "null"]}, ["false", "null"], ["x"]),
    ({"type": "array", "items": INT}, ["[1, 2]", "[]"], ['["a"]', "1"]),
    ({"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
     ['{"a": "</p>"}', "{}"], ['{"b": 1}']),
    ({"enum": ["a", "b c"]}, ["a", "b c"], ["", "ab", '"a"']),
    ({"const": "x\ny", "type": "string"}, ["x\ny"], ["x"]),
    ({"enum": ["a", 1, None, True]}, ["a", "1", "null", "true"], ["2", "false"]),
    ({"enum": [1, 2]}, ["1"], ["3"]),
    ({"enum": ["two", True, 2]}, ["two", "true", "2"], ["false", "1"]),
    ({"type": ["string", "null"]}, ["x", "null", ""], []),
    ({"anyOf": [TEXT, {"type": "null"}], "default": None}, ["x", "null"], []),
    ({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, ["a", "null"], ["b", "nul"]),
    ({"anyOf": [TEXT, {"type": "array", "items": INT}]}, ["x", "[1]"], ["[x]", ' ["a"]']),
    ({"type": ["string", "integer"], "minimum": 5}, ["x", "7"], ["3", "-x"]),
    (TEXT | {"pattern": "^a+$"}, ["aa"], ["ab", ""]),
    (TEXT | {"pattern": "b\\d"}, ["ab1c", "b2\n"], ["b", "\u0663b"]),
    (TEXT | {"pattern": "^x|y$"}, ["xz", "zy"], ["zx"]),
    (TEXT | {"minLength": 2, "maxLength": 3}, ["ab", "日本語"], ["a", "abcd"]),
    (TEXT | {"minLength": 1, "maxLength": 20_000}, ["x"], [""]),
    (TEXT | {"minLength": 1, "pattern": "^\\s*$"}, [" \n"], ["", "x"]),
    *((TEXT | {"format": name}, good, bad) for name, good, bad in [
        ("date", ["2024-02-29"], ["2023-02-29", "x"]),
        ("date-time", ["2024-02-29T10:00:00.5Z"], ["2024-02-29"]),
        ("time", ["10:00:00+01:00"], ["25:00:00Z"]),
        ("duration", ["P3D", "PT5M", "P1DT2H"], ["P", "3D"]),
        ("email", ["a.b@example.com"], ["a@", "@b"]),
        ("hostname", ["a-b.example"], ["-a", "a_b"]),
        ("ipv4", ["192.168.0.1"], ["256.1.1.1", "1.1.1"]),
        ("ipv6", ["::1", "fe80::1", "1:2:3:4:5:6:7:8"], ["1:2", "g::1"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123"]),
        ("uri", ["https://example.com:80/a/b?c=d", "urn:/x"], ["a b", "/x"]),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "good", "bad"), BARE, ids=[repr(case[0])[:40] for case in BARE])
def test_a_bare_value_fits_its_schema(schema: Any, good: list[str], bad: list[str]) -> None:
    made = bare(schema)
    for text in good:
        assert accepts(made, text + CLOSE + "!"), text
    for text in bad:
        assert not accepts(made, text + CLOSE + "!"), text


def test_a_bare_value_holds_no_text_that_closes_it() -> None:
    for schema in (
        True,
        TEXT,
        TEXT | {"pattern": "x"},
        TEXT | {"minLength": 1},
        TEXT | {"minLength": 2},
    ):
        made = bare(schema)
        assert accepts(made, f"xx{CLOSE}!")
        assert not any(accepts(made, f"{text}{CLOSE}xx{CLOSE}!") for text in ("", "x", "xx"))


def test_a_closing_text_may_hold_a_token() -> None:
    rules = Rules([], tokens={"</p>": 7})
    for schema in (TEXT, INT, TEXT | {"minLength": 1}):
        start = rules.bare(schema, "\n</p>\n!")
        made = json.loads(rules.document(start, tokens=True))["grammars"][0]["lark_grammar"]
        assert "<[7]>" in made
        assert "</p>" not in made
    assert accepts(rules.document(rules.bare(INT, "\n</p>\n!"), tokens=False), "1\n</p>\n!")


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (False, "no value"),
        ({"not": {}}, "'not'"),
        ({"allOf": [TEXT, {"minLength": 2}]}, "'allOf'"),
        ({"enum": ["a", f"b{CLOSE}c"]}, "'enum'"),
        ({"minLength": 2}, "without 'type'"),
        ({"enum": ["a"], "minLength": 1}, "'enum'"),
        (TEXT | {"pattern": "(^a)"}, "'^' inside"),
        ({"$ref": "#/properties/x"}, "'$ref'"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "itself"),
    ],
)
def test_bare_values_that_cannot_be_enforced_are_refused_by_name(schema: Any, named: str) -> None:
    with pytest.raises(Refused, match=re.escape(named)):
        Rules([]).bare(schema, CLOSE)


FORMATS = ("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
           "uri")  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_random_texts_of_a_format_have_it(name: str) -> None:
    validator = jsonschema_rs.validator_for(TEXT | {"format": name}, validate_formats=True)
    made = grammar(lambda rules: rules.bare(TEXT | {"format": name}, "\n"))
    for number in range(25):
        text = walk(made, number, 30, "\n").removesuffix("\n")
        assert validator.is_valid(text), text


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (INT, ["1"], ['"a"']), (True, ["1", '"a"', "{}"], ["x"]), ({}, ["[1]"], [" 1"]),
        (TEXT | {"minLength": 2}, ['"ab"'], ['"a"']),
        ({"$ref": "#/$defs/a", "$defs": {"a": INT}}, ["3"], ["x"]),
    ],
)  # fmt: skip
def test_values_are_json_under_their_schema(schema: Any, good: list[str], bad: list[str]) -> None:
    made = grammar(lambda rules: f'"v=" {rules.value(schema)}')
    assert all(accepts(made, f"v={text}") for text in good)
    assert not any(accepts(made, f"v={text}") for text in bad)


def test_a_value_that_cannot_be_enforced_is_refused() -> None:
    with pytest.raises(Refused):
        Rules([]).value({"uniqueItems": True})
