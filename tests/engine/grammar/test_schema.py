"""Every keyword: enforced, or refused by name and place."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from engine.grammar import keywords
from engine.grammar.schema import MAX_NESTING
from tests.engine.grammar.drive import accepts, refusal, schema_grammar

INT, TEXT = {"type": "integer"}, {"type": "string"}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def holding(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": schema}, "required": ["v"],
            "additionalProperties": False}  # fmt: skip


def obj(**more: Any) -> dict[str, Any]:
    return {"type": "object", **more}


# keyword, schema, what it accepts, what it rejects; all as JSON texts
ENFORCED: list[tuple[str, Any, list[str], list[str]]] = [
    ("type", INT, ["0", "-12"], ['"a"', "1.5", "null", "01"]),
    ("type", {"type": ["string", "null"]}, ['"a"', "null"], ["1", "[]"]),
    ("exclusiveMinimum", {"type": "number", "exclusiveMinimum": 24}, ["24.00000000000001", "25"],
     ["24", "24.0", "24.0000000000000001"]),
    ("type", {"type": "number"}, ["1.5e3", "0", "-0.25"], ["true", ".5"]),
    ("enum", {"enum": ["a", 1, None, {"b": [1]}]}, ['"a"', "1", "null", '{"b":[1]}'],
     ['"b"', "2", "true", '{"b":[2]}']),
    ("enum", {"enum": ["a", 1], "type": "string"}, ['"a"'], ["1"]),
    ("const", {"const": {"a": "x"}}, ['{"a":"x"}'], ['{"a":"y"}', "{}", '{"a":"x","b":1}']),
    ("minLength", TEXT | {"minLength": 2}, ['"éé"', '"\\u00e9\\u00e9"'],
     ['"é"', '"\\ud83d\\ude00"']),
    ("maxLength", TEXT | {"maxLength": 1}, ['"😀"', '"\\ud83d\\ude00"', '"\\n"'],
     ['"ab"', '"\\n\\n"']),
    ("pattern", TEXT | {"pattern": "^a+$"}, ['"aa"'], ['"ab"', '""', '"a\\n"']),
    ("pattern", TEXT | {"pattern": "b"}, ['"abc"'], ['"ac"']),
    ("format", TEXT | {"format": "date"}, ['"2024-02-29"', '"2000-02-29"'],
     ['"2023-02-29"', '"1900-02-29"', '"2024-04-31"', '"x"']),
    ("format", TEXT | {"format": "uuid"}, ['"123e4567-e89b-12d3-a456-426614174000"'], ['"1"']),
    ("minimum", INT | {"minimum": 3}, ["3", "10"], ["2", "-5"]),
    ("maximum", {"type": "number", "maximum": 1.5}, ["1.5", "-9"], ["1.6", "2"]),
    ("exclusiveMinimum", INT | {"exclusiveMinimum": 3}, ["4"], ["3"]),
    ("exclusiveMaximum", {"type": "number", "exclusiveMaximum": 1}, ["0.9"], ["1", "1.0"]),
    ("minimum", INT | {"minimum": 2**53 + 1}, [str(2**53 + 3)], [str(2**53)]),
    ("maximum", INT | {"maximum": 2**63 - 1}, ["5"], [str(2**63)]),
    ("multipleOf", INT | {"multipleOf": 7}, ["14", "-7", "0"], ["8"]),
    ("multipleOf", {"type": "number", "multipleOf": 0.01}, ["0.07", "19.99"], ["0.075"]),
    ("items", {"type": "array", "items": INT}, ["[]", "[1,2]"], ['["a"]', '[1,"a"]']),
    ("prefixItems", {"type": "array", "prefixItems": [INT, TEXT]}, ["[]", '[1,"a",null]'],
     ['["a"]', "[1,1]"]),
    ("prefixItems", {"type": "array", "prefixItems": [INT], "items": False}, ["[1]"], ["[1,2]"]),
    ("minItems", {"type": "array", "minItems": 1}, ["[1]"], ["[]"]),
    ("maxItems", {"type": "array", "maxItems": 1}, ["[1]"], ["[1,2]"]),
    ("properties", obj(properties={"a": INT}), ['{"a":1}', "{}", '{"a":1,"b":"x"}'], ['{"a":"x"}']),
    ("required", obj(required=["a"]), ['{"a":1}', '{"a":1,"b":2}'], ["{}", '{"b":1}']),
    ("additionalProperties", obj(additionalProperties=INT), ['{"b":1}'], ['{"b":"x"}']),
    ("additionalProperties", obj(properties={"a": TEXT}, additionalProperties=False),
     ['{"a":"x"}'], ['{"b":1}']),
    ("additionalProperties", obj(properties={"a": TEXT}, additionalProperties=INT),
     ['{"a":"x","b":1}'], ['{"b":"x"}', '{"a":1}', '{"\\u0061":1}']),
    ("patternProperties", obj(patternProperties={"^x": INT}), ['{"x1":1}', '{"y":"s"}'],
     ['{"x1":"s"}', '{"\\u0078":"s"}']),
    ("minProperties", obj(minProperties=1), ['{"a":1}'], ["{}"]),
    ("maxProperties", obj(maxProperties=1), ['{"a":1}', "{}"], ['{"a":1,"b":1}']),
    ("anyOf", {"anyOf": [INT, TEXT]}, ["1", '"a"'], ["null", "1.5"]),
    ("oneOf", {"oneOf": [INT, TEXT]}, ["1", '"a"'], ["null"]),
    ("allOf", {"allOf": [obj(properties={"a": INT}, required=["a"]), obj(required=["b"])]},
     ['{"a":1,"b":2}'], ['{"a":1}', '{"a":"x","b":1}']),
    ("uniqueItems", {"type": "array", "uniqueItems": False}, ["[1,1]"], ["1"]),
    ("propertyNames", obj(propertyNames=TEXT, additionalProperties=INT), ['{"a":1}'], ['{"a":""}']),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [case[1:] for case in ENFORCED],
    ids=[f"{number}-{case[0]}" for number, case in enumerate(ENFORCED)],
)
def test_a_keyword_is_enforced(schema: Any, good: list[str], bad: list[str]) -> None:
    grammar = schema_grammar(holding(schema))
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    for text in good:
        assert validator.is_valid(json.loads(text)), text
        assert accepts(grammar, f'{{"v":{text}}}'), text
    for text in bad:
        assert not accepts(grammar, f'{{"v":{text}}}'), text


def test_every_keyword_of_the_tables_is_probed() -> None:
    probed = {case[0] for case in ENFORCED}
    assert set(keywords.VALUES) <= probed
    assert set(keywords.OBJECT_KEYWORDS) <= probed


# keyword as the message names it, schema, pointer
REFUSED: list[tuple[str, Any, str]] = [
    *((name, {name: value}, f"#/properties/v/{name}") for name, value in {
        "not": TEXT, "if": TEXT, "then": TEXT, "else": TEXT, "uniqueItems": True, "contains": INT,
        "minContains": 1, "maxContains": 2, "dependentSchemas": {"a": {}}, "dependencies": {},
        "dependentRequired": {"a": ["b"]}, "unevaluatedProperties": False,
        "unevaluatedItems": False, "propertyNames": {"maxLength": 3}, "additionalItems": False,
        "$dynamicRef": "#a", "$recursiveRef": "#", "$dynamicAnchor": "a", "$id": "http://x/y",
        "nullable": True, "divisibleBy": 2, "disallow": "string", "extends": {}, "tpye": "string",
    }.items()),
    ("format", TEXT | {"format": "idn-email"}, "#/properties/v/format"),
    ("format", {"format": "unknown"}, "#/properties/v/format"),
    ("type", {"type": "text"}, "#/properties/v/type"),
    ("minProperties", obj(minProperties=2), "#/properties/v/minProperties"),
    ("minProperties", obj(properties={"a": {}}, minProperties=1), "#/properties/v/minProperties"),
    ("maxProperties", obj(properties={"a": {}}, maxProperties=0), "#/properties/v/maxProperties"),
    ("oneOf", {"oneOf": [INT, {"type": "number"}]}, "#/properties/v/oneOf"),
    ("oneOf", {"type": "array", "items": {"oneOf": [obj(), obj()]}}, "#/properties/v/items/oneOf"),
    ("pattern", TEXT | {"pattern": "(?=a)b"}, "#/properties/v/pattern"),
    ("pattern", TEXT | {"pattern": r"(a)\1"}, "#/properties/v/pattern"),
    ("pattern", TEXT | {"pattern": r"\bfoo"}, "#/properties/v/pattern"),
    ("pattern", TEXT | {"pattern": "[a&&b]"}, "#/properties/v/pattern"),
    ("pattern", TEXT | {"pattern": "["}, "#/properties/v/pattern"),
    ("patternProperties", obj(patternProperties={"^a": INT, "b$": TEXT}),
     "#/properties/v/patternProperties"),
    ("multipleOf", INT | {"multipleOf": 0}, "#/properties/v/multipleOf"),
    ("multipleOf", INT | {"multipleOf": -2}, "#/properties/v/multipleOf"),
    ("exclusiveMinimum", INT | {"exclusiveMinimum": True}, "#/properties/v/exclusiveMinimum"),
    ("minimum", INT | {"minimum": 5, "maximum": 2}, "#/properties/v/m"),
    ("minLength", TEXT | {"minLength": -1}, "#/properties/v/minLength"),
    ("items", {"type": "array", "items": [INT]}, "#/properties/v/items"),
    ("allOf", {"allOf": []}, "#/properties/v/allOf"),
    ("enum", {"enum": []}, "#/properties/v/enum"),
    ("enum", {"enum": [1e300]}, "#/properties/v/enum"),
    ("const", {"const": 2**60}, "#/properties/v/const"),
    ("properties", {"properties": []}, "#/properties/v/properties"),
    ("required", {"required": "a"}, "#/properties/v/required"),
    ("$ref", {"$ref": "http://example.com/a"}, "#/properties/v/$ref"),
    ("$ref", {"$ref": "other.json#/a"}, "#/properties/v/$ref"),
    ("$ref", {"$ref": "#/nowhere"}, "#/properties/v/$ref"),
    ("$ref", {"$ref": 3}, "#/properties/v/$ref"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("keyword", "schema", "pointer"),
    REFUSED,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(REFUSED)],
)
def test_what_cannot_be_enforced_is_refused_by_name_and_place(
    keyword: str, schema: Any, pointer: str
) -> None:
    message = refusal(holding(schema))
    assert keyword in message
    assert pointer in message


@pytest.mark.parametrize(
    "schema",
    [
        {"title": "T", "description": "D", "default": 1, "examples": [1], "deprecated": True},
        {"readOnly": True, "writeOnly": False, "$comment": "c", "x-order": 3, "$anchor": "a"},
        {"contentEncoding": "base64", "discriminator": {"propertyName": "k"}},
    ],
)
def test_annotations_change_nothing(schema: Any) -> None:
    assert accepts(schema_grammar(holding(INT | schema)), '{"v":1}')
    assert not accepts(schema_grammar(holding(INT | schema)), '{"v":"a"}')


def test_a_property_may_be_named_like_a_keyword() -> None:
    grammar = schema_grammar(obj(properties={"not": INT, "$ref": TEXT, "~/": INT}))
    assert accepts(grammar, '{"not":1,"$ref":"x"}')
    assert "#/properties/~0~1/not" in refusal(obj(properties={"~/": {"not": {}}}))


@pytest.mark.parametrize("schema", [{}, True, {"title": "T"}, {"$schema": DRAFT_7}])
def test_a_root_without_a_shape_is_refused(schema: Any) -> None:
    assert "root must be an object" in refusal(schema)


@pytest.mark.parametrize("schema", [False, [], 3, "x", None])
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    assert "the schema must be an object" in refusal(schema)


def test_a_root_without_a_type_means_an_object() -> None:
    grammar = schema_grammar({"properties": {"a": INT}})
    assert accepts(grammar, '{"a":1}')
    assert not accepts(grammar, "1")


def test_a_schema_may_ask_for_another_root() -> None:
    assert accepts(schema_grammar({"type": "array", "items": INT}), "[1]")
    assert accepts(schema_grammar({"enum": ["a"]}), '"a"')


def test_containers_without_a_declared_shape_take_any_property_and_the_required_ones() -> None:
    grammar = schema_grammar(obj(required=["a"]))
    assert accepts(grammar, '{"a":1}')
    assert accepts(grammar, '{"a":[{"b":null}],"c":"x"}')
    assert not accepts(grammar, "{}")


def test_an_enum_behind_references_is_enforced() -> None:
    schema = {
        "type": "array", "minItems": 1, "items": {"$ref": "#/$defs/T"},
        "$defs": {"T": obj(required=["c"], additionalProperties=False,
                           properties={"c": {"$ref": "#/$defs/C"}}),
                  "C": {"enum": ["Alice", "Bob"]}},
    }  # fmt: skip
    assert accepts(schema_grammar(schema), '[{"c":"Bob"}]')
    assert not accepts(schema_grammar(schema), '[{"c":{"x":1}}]')
    assert not accepts(schema_grammar(schema), '[{"c":"Eve"}]')


def test_properties_come_in_the_order_of_the_schema() -> None:
    schema = obj(required=["z", "answer", "thought"], properties={"thought": TEXT, "answer": TEXT})
    grammar = schema_grammar(schema)
    assert accepts(grammar, '{"thought":"t","answer":"a","z":1}')
    assert not accepts(grammar, '{"answer":"a","thought":"t","z":1}')


def test_escapes_and_characters_beyond_ascii() -> None:
    schema = obj(
        required=["v", "u"], properties={"v": {"enum": ["café", "東京", 'a"b']}, "u": TEXT}
    )
    grammar = schema_grammar(schema)
    assert accepts(grammar, '{"v":"東京","u":"\\u00e9\\ud83d\\ude00"}')
    assert accepts(grammar, '{"v":"a\\"b","u":"é😀\\n"}')
    assert not accepts(grammar, '{"v":"café","u":"\\ud83d"}')


@pytest.mark.parametrize("name", ["a", "é", "a\nb", "\u0001"])
@pytest.mark.parametrize("additional", [True, {"type": "array"}])
def test_no_escape_disguises_a_declared_name(name: str, additional: Any) -> None:
    grammar = schema_grammar(obj(properties={name: TEXT}, additionalProperties=additional))
    escaped = "".join(f"\\u{ord(char):04x}" for char in name)
    for spelling in (escaped, escaped.upper().replace("U", "u"), json.dumps(name)[1:-1]):
        assert not accepts(grammar, f'{{"{spelling}":[]}}'), spelling


def test_recursion_is_fine_where_it_can_end() -> None:
    node = obj(properties={"next": {"$ref": "#"}}, additionalProperties=False)
    assert accepts(schema_grammar(node), '{"next":{"next":{}}}')
    assert not accepts(schema_grammar(node), '{"next":1}')
    assert accepts(schema_grammar(node | {"$id": "https://example.com/node"}), '{"next":{}}')
    both = {"anyOf": [{"$ref": "#"}, obj(additionalProperties=False)]}
    assert accepts(schema_grammar(both), "{}")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        obj(patternProperties={"^n": {"$ref": "#"}}, required=["n"]),
        obj(additionalProperties={"$ref": "#"}, required=["n"]),
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        obj(properties={"a": {"$ref": "#"}}, required=["a"]),
        holding({"$ref": "#/$defs/a"}) | {"$defs": {"a": {"type": "array", "minItems": 1,
                                                          "items": {"$ref": "#/$defs/a"}}}},
    ],
)  # fmt: skip
def test_what_never_ends_is_refused(schema: Any) -> None:
    assert "no document ends" in refusal(schema)


def test_options_of_one_of_are_told_apart_through_references() -> None:
    def tagged(tag: str) -> dict[str, Any]:
        return obj(properties={"kind": {"const": tag}, "v": INT}, required=["kind"])

    schema = holding(
        {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "discriminator": {}}
    ) | {"$defs": {"A": tagged("a"), "B": tagged("b")}}
    assert accepts(schema_grammar(schema), '{"v":{"kind":"b","v":1}}')
    assert not accepts(schema_grammar(schema), '{"v":{"kind":"c"}}')


def test_older_dialects_mean_the_same_or_are_refused() -> None:
    pair = {"$schema": DRAFT_7, "type": "array", "items": [INT, TEXT], "additionalItems": False}
    assert accepts(schema_grammar(pair), '[1,"a"]')
    assert not accepts(schema_grammar(pair), "[1,1]")
    assert not accepts(schema_grammar(pair), '[1,"a",1]')
    assert "#/$schema" in refusal(obj(**{"$schema": "http://json-schema.org/draft-04/schema#"}))


@pytest.mark.parametrize("guidance", [{"whitespace_pattern": "[ ]*"}, {"lenient": True}])
def test_a_schema_cannot_switch_the_compiler(guidance: Any) -> None:
    grammar = schema_grammar(holding({"type": "array"}) | {"x-guidance": guidance})
    assert not accepts(grammar, '{"v":[1,' + " " * 30 + "1]}")
    assert "'not'" in refusal(holding({"not": {}}) | {"x-guidance": guidance})


def chain(links: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        str(at): obj(properties={"a": {"$ref": f"#/$defs/{at + 1}"}}) for at in range(links)
    }
    return {"$ref": "#/$defs/0", "$defs": definitions | {str(links): INT}}


def test_size_and_depth_are_bounded() -> None:
    assert refusal(chain(MAX_NESTING // 2 - 2)) == ""  # far from the end of the stack
    assert "levels deep" in refusal(chain(MAX_NESTING))
    deep: Any = {}
    for _ in range(70):
        deep = {"items": deep}
    assert "64 levels" in refusal(holding(deep))
    assert "characters" in refusal({"title": "x" * 300_000, "type": "object"})
    assert "parts" in refusal(obj(properties={str(at): {} for at in range(5000)}))


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 400])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    from engine.grammar.document import Refused, parse

    with pytest.raises(Refused):
        parse(f'{{"const": {number}}}')


def test_half_a_surrogate_pair_is_refused() -> None:
    assert "surrogate" in refusal(holding({"const": "\ud800"}))
