"""Every way to ask for a form of the answer becomes one constraint."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.types import OutputConstraint
from tests.adapters.decoding import ROUTES, decoded, refused

SCHEMA = {"type": "object", "properties": {"a": {"const": "é"}}}
NAMED = {"name": "n", "schema": SCHEMA}
CONSTRAINTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"response_format": {"type": "json_object"}}, "json_object", "", "response_format"),
    (
        {"response_format": {"type": "json_schema", "json_schema": NAMED}},
        "json_schema",
        json.dumps(SCHEMA),
        "response_format.json_schema.schema",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
        "json_schema",
        '{"type": "object"}',
        "response_format.json_schema.schema",
    ),
    ({"structured_outputs": {"json": SCHEMA}}, "json_schema", json.dumps(SCHEMA),
     "structured_outputs.json"),
    ({"structured_outputs": {"json": "{}"}}, "json_schema", "{}", "structured_outputs.json"),
    ({"structured_outputs": {"regex": "a+"}}, "regex", "a+", "structured_outputs.regex"),
    ({"structured_outputs": {"choice": ["a", "é"]}}, "choice", '["a", "\\u00e9"]',
     "structured_outputs.choice"),
    ({"structured_outputs": {"grammar": "start: A"}}, "lark", "start: A",
     "structured_outputs.grammar"),
    ({"structured_outputs": {"json_object": True}}, "json_object", "",
     "structured_outputs.json_object"),
    ({"guided_json": SCHEMA}, "json_schema", json.dumps(SCHEMA), "guided_json"),
    ({"guided_regex": "a+"}, "regex", "a+", "guided_regex"),
    ({"guided_choice": ["a"]}, "choice", '["a"]', "guided_choice"),
    ({"guided_grammar": "start: A"}, "lark", "start: A", "guided_grammar"),
    ({"json_schema": SCHEMA}, "json_schema", json.dumps(SCHEMA), "json_schema"),
    ({"json_schema": "{}"}, "json_schema", "{}", "json_schema"),
    ({"regex": "a+"}, "regex", "a+", "regex"),
    ({"grammar": "start: A"}, "lark", "start: A", "grammar"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "kind", "source", "param"), CONSTRAINTS, ids=str)
def test_every_form_of_constraint_is_one_object_named_as_the_client_did(
    fields: dict[str, Any], kind: Any, source: str, param: str
) -> None:
    for route in ROUTES:
        assert decoded(route, **fields).constraint == OutputConstraint(kind, source, param)


@pytest.mark.parametrize("second", CONSTRAINTS[1:], ids=lambda item: item[3])
def test_an_answer_has_one_form(second: tuple[dict[str, Any], str, str, str]) -> None:
    fields, _, _, param = second
    if "response_format" in fields:
        fields, param = {**fields, "regex": "a"}, "regex"
    else:
        fields = {"response_format": {"type": "json_object"}, **fields}
    assert refused(**fields).param == param
    both: dict[str, Any] = {"structured_outputs": {"regex": "a", "choice": ["b"]}}
    assert (refused(**both).param or "").startswith("structured_outputs.")
