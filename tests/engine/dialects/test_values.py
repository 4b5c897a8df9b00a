from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.conversation import Tool
from engine.dialects.json_text import is_strict
from engine.dialects.values import Shape

NOTHING = object()
NODE = {
    "type": "object",
    "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"$ref": "#/$defs/count"}},
    "$defs": {
        "node": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "object"}, {"type": "null"}]},
        "count": {"type": "integer"},
    },
}


def value_of(schema: object, text: str) -> object:
    tool = Tool("f", parameters={"type": "object", "properties": {"x": schema}})
    found = Shape.of(tool).member("x").json_of(text)
    return NOTHING if found is None else json.loads(found)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        # strings stay as they are
        ({"type": "string"}, "02134", "02134"),
        ({"type": "string"}, " true\n", " true\n"),
        ({"type": "string"}, "null", "null"),
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "string"}, "", ""),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"const": "true"}, "true", "true"),
        # numbers
        ({"type": "integer"}, "5.0", 5),
        ({"type": "integer"}, " +7 ", 7),
        ({"type": "integer"}, "1e3", 1000),
        ({"type": "integer"}, "123456789012345678901", 123456789012345678901),
        ({"type": "integer"}, "2.5", 2.5),
        ({"type": "integer"}, "five", "five"),
        ({"type": "integer"}, "1e999", "1e999"),
        ({"type": "integer"}, '"5"', 5),
        ({"type": "number"}, "1e5", 100000.0),
        ({"type": "number"}, ".5", 0.5),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "number"}, "1e400", "1e400"),
        ({"enum": [1, 2.5]}, "2.5", 2.5),
        # booleans and null
        ({"type": "boolean"}, "TRUE", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "boolean"}, "yes", "yes"),
        ({"type": ["integer", "null"]}, "None", None),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "None", "None"),
        ({"enum": [None, 1]}, "null", None),
        # no value
        ({"type": "integer"}, "", NOTHING),
        ({"type": "object"}, " \n", NOTHING),
        ({"type": "integer"}, "null", NOTHING),
        # containers
        ({"type": "object"}, '{"a": [1, "x"]}', {"a": [1, "x"]}),
        ({"type": "object"}, "{'a': True, \"b\": \"it's\",}", {"a": True, "b": "it's"}),
        ({"type": "object"}, "{'a': None, 'b': 'True, \\n'}", {"a": None, "b": "True, \n"}),
        ({"type": "object"}, '"{\\"a\\": 1}"', {"a": 1}),
        ({"type": "object"}, '{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ({"type": "array"}, "['a', 'b']", ["a", "b"]),
        ({"type": "array", "items": {"type": "string"}}, "a", ["a"]),
        ({"type": "array"}, '{"a": 1}', {"a": 1}),
        ({"type": "object"}, "[" * 100_000, "[" * 100_000),
        ({"properties": {}}, '{"a": 1}', {"a": 1}),
        # unions
        ({"type": ["string", "null"]}, "4", "4"),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, '{"city": "Paris"}', {"city": "Paris"}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "null", None),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "42", 42),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "042", "042"),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, "['a']", "['a']"),
        ({"type": ["STRING"]}, "5", "5"),
        # nothing said of the type: what it looks like
        ({}, "5", 5),
        ({}, "02134", "02134"),
        ({}, "True", True),
        ({}, '{"a": 1}', {"a": 1}),
        ({}, '"a"', '"a"'),
        ({}, "Paris", "Paris"),
        (True, "Paris", "Paris"),
        ({"$ref": "#/$defs/missing"}, "x", "x"),
        ("string", "x", "x"),
    ],
)  # fmt: skip
def test_a_bare_value_is_what_its_schema_makes_of_it(
    schema: object, text: str, value: object
) -> None:
    found = value_of(schema, text)
    assert (found, type(found)) == (value, type(value))


def test_references_are_followed_and_may_be_circular() -> None:
    shape = Shape.of(Tool("f", parameters=NODE))
    assert shape.member("n").json_of("7.0") == "7"
    assert shape.member("next").types == {"object", "null"}
    assert shape.member("next").json_of("null") == "null"
    assert shape.member("next").member("next").json_of("x") == '"x"'


def test_members_that_are_not_declared_have_the_schema_of_additional_ones() -> None:
    parameters = {"type": "object", "additionalProperties": {"type": "string"}}
    assert Shape.of(Tool("f", parameters=parameters)).member("x").json_of("5") == '"5"'
    assert Shape.of(None).member("x").json_of("5") == "5"


def test_elements_of_an_array_that_stand_alone() -> None:
    shape = Shape.of(
        Tool("f", parameters={"properties": {"x": {"type": "array", "items": {"type": "string"}}}})
    )
    assert shape.member("x").list_of(["1", "b"]) == '["1", "b"]'


KINDS = ("string", "integer", "number", "boolean", "null", "object", "array", "odd", None, 5)
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/properties/x", "elsewhere", 5])
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.one_of(st.sampled_from(KINDS), st.lists(st.sampled_from(KINDS))),
                "enum": st.lists(st.one_of(st.none(), st.booleans(), st.floats(), st.text())),
                "const": st.one_of(st.none(), st.integers()),
                "$ref": REFERENCES,
            },
        ),
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(KINDS),
            "anyOf": st.lists(inner, max_size=3),
            "oneOf": inner,
            "items": inner,
            "properties": st.dictionaries(st.sampled_from("xy"), inner),
            "additionalProperties": inner,
        },
    ),
    max_leaves=6,
)
TEXTS = st.one_of(
    st.text(alphabet="0123456789.eE+-\"'{}[],: truefalsnNT\\\n", max_size=25),
    st.sampled_from(
        ["", "null", "NaN", "[1e999]", '"\\ud800"', "[" * 3000, "9" * 5000, "-" * 3000, "1e9999999"]
    ),
)


@settings(deadline=None, max_examples=300)
@given(SCHEMAS, SCHEMAS, TEXTS)
def test_any_text_under_any_schema_is_json_or_nothing(x: Any, a: Any, text: str) -> None:
    parameters = {"type": "object", "properties": {"x": x}, "$defs": {"a": a}}
    shape = Shape.of(Tool("f", parameters=parameters))
    for part in (shape, shape.member("x"), shape.member("x").item, shape.member("x").member("y")):
        found = part.json_of(text)
        assert found is None or is_strict(found)
        assert is_strict(part.list_of([text]))
