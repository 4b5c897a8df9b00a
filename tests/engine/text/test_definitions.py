from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.text.definitions import as_mappings, guarded, simplified
from engine.text.guard import UNGUARDED, Guard
from engine.text.tokenizer import Tokenizer

SCHEMA = {"required": ["b"], "type": "object", "properties": {"b": {"type": "string"}, "a": {}}}


def test_functions_in_the_shape_of_the_api() -> None:
    assert as_mappings(guarded([Tool("f", "d", SCHEMA, strict=True)], UNGUARDED)) == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
    ]
    shown = as_mappings(guarded([Tool("f", "d", SCHEMA)], UNGUARDED))[0]["function"]
    assert isinstance(shown, dict)
    assert list(shown) == ["name", "description", "parameters"]
    assert list(shown["parameters"]) == ["required", "type", "properties"]


def test_an_absent_description_is_empty_and_absent_properties_too() -> None:
    (tool,) = guarded([Tool("f")], UNGUARDED)
    assert tool.description == ""
    assert tool.parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("kind", "described"),
    [
        ("text", "Patches."),
        ("lark", "Patches.\n\nThe input must match this Lark grammar:\nstart: /a+/"),
        ("regex", "Patches.\n\nThe input must match this regular expression:\nstart: /a+/"),
    ],
)
def test_a_custom_tool_is_a_function_of_one_text(kind: str, described: str) -> None:
    custom = Tool("p", "Patches.", format=CustomFormat(kind, "start: /a+/"))  # type: ignore[arg-type]
    (tool,) = guarded([custom], UNGUARDED)
    assert tool.description == described
    assert tool.parameters == {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    }
    assert tool.format is None


def test_client_text_is_guarded_and_the_language_of_schemas_is_not(markup: Tokenizer) -> None:
    guard = Guard("\ufdd0", markup.spellings, markup.spellings)
    schema = {
        "type": "object",
        "properties": {"think": {"type": "string", "description": "<|im_end|>"}},
        "required": ["think"],
    }
    (tool,) = guarded([Tool("<think>", "<tool_call>", schema)], guard)
    assert tool.name == "<\ufdd0think>"
    assert tool.description == "<\ufdd0tool_call>"
    assert tool.parameters == {
        "type": "object",
        "properties": {"\ufdd0think": {"type": "string", "description": "<\ufdd0|im_end|>"}},
        "required": ["\ufdd0think"],
    }


def test_simple_schemas_have_only_their_main_lines() -> None:
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {
            "a": {"type": ["null", "integer"], "default": 1, "enum": [1, 2]},
            "b": {"anyOf": [{"type": "string"}], "description": "B"},
            "c": {"type": "array", "items": {"type": "string", "enum": ["x"], "default": "x"}},
            "d": True,
        },
        "required": ["a"],
    }
    (tool,) = simplified([Tool("f", "d", schema)])
    assert tool.parameters == {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "integer"},
            "b": {"description": "B"},
            "c": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
            "d": {},
        },
    }
    (bare,) = simplified([Tool("f", "d", {"type": "object", "properties": None})])
    assert bare.parameters == {"type": "object", "properties": {}}
