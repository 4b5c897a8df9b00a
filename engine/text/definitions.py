"""The tools of a request as a chat template takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from engine.conversation import JsonValue, Tool
from engine.text.guard import Guard

_RULES = {
    "lark": "The input must match this Lark grammar:\n",
    "regex": "The input must match this regular expression:\n",
}
_INPUT: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


def listed(tools: Sequence[Tool]) -> list[Tool]:
    """The tools of the prompt's list: all where none is listed, since a list shows how to call."""
    return [tool for tool in tools if tool.listed] or list(tools)


def guarded(tools: Sequence[Tool], guard: Guard) -> list[Tool]:
    """Tools as functions, with no text of the client's that could become a control token."""
    return [_guarded(_as_function(tool), guard) for tool in tools]


def as_mappings(tools: Sequence[Tool]) -> list[dict[str, object]]:
    """Functions in the shape of the OpenAI API, which templates are written for.

    An absent description is empty text, since many templates join it to other text.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def simplified(tools: Sequence[Tool]) -> list[Tool]:
    """Tools with only what any template can follow: types, properties, descriptions."""
    return [
        replace(tool, parameters={"type": "object", "properties": {}, **_simple(tool.parameters)})
        for tool in tools
    ]


def _simple(schema: object) -> dict[str, JsonValue]:
    if not isinstance(schema, Mapping):
        return {}
    kept: dict[str, JsonValue] = {}
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((item for item in kind if item != "null"), None)
    if isinstance(kind, str):
        kept["type"] = kind
    if isinstance(schema.get("description"), str):
        kept["description"] = schema["description"]
    for key in ("enum", "required"):
        items = schema.get(key)
        if isinstance(items, list) and all(isinstance(item, str) for item in items):
            kept[key] = items
    if isinstance(schema.get("items"), Mapping):
        kept["items"] = _simple(schema["items"])
    if isinstance(schema.get("properties"), Mapping):
        kept["properties"] = {name: _simple(item) for name, item in schema["properties"].items()}
    return kept


def _as_function(tool: Tool) -> Tool:
    """A custom tool as a function of one text, described with the form that it must have."""
    if tool.format is None:
        # Some templates go through the properties without asking whether there are any.
        if "properties" in tool.parameters:
            return tool
        return replace(tool, parameters={**tool.parameters, "properties": {}})
    rule = _RULES.get(tool.format.kind)
    form = f"{rule}{tool.format.source}" if rule else ""
    description = "\n\n".join(filter(None, (tool.description, form)))
    return replace(tool, description=description, parameters=_INPUT, format=None)


def _guarded(tool: Tool, guard: Guard) -> Tool:
    return replace(
        tool,
        name=guard.text(tool.name),
        description=guard.text(tool.description),
        parameters=cast(Mapping[str, JsonValue], guard.schema(tool.parameters)),
    )
