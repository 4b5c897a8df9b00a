"""What the arguments of a tool may be, one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping

from engine.conversation import JsonValue, Tool
from engine.grammar.compile import compile_schema, compiled, inline, lark
from engine.grammar.document import Refused
from engine.grammar.keywords import ANNOTATIONS
from engine.grammar.values import SHARED, Schema, normalised

Parameter = tuple[str, Schema, bool]
"""Name, schema, and whether it is required."""
_LISTED = ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}


def is_free(tool: Tool) -> bool:
    """Whether any arguments are valid."""
    if tool.format is not None:
        return tool.format.kind == "text"
    said = tool.parameters.keys() - ANNOTATIONS
    return said <= {"type"} and tool.parameters.get("type", "object") == "object"


def listed(tool: Tool) -> list[Parameter]:
    """The arguments that a schema declares. Raises Refused when it says more than their names.

    Each schema carries the definitions that it may refer to.
    """
    root = tool.parameters
    for keyword in root:
        if keyword not in _LISTED and not keyword.startswith("x-"):
            raise Refused(f"'{keyword}' cannot be enforced in this model's calls", f"#/{keyword}")
    if root.get("type", "object") != "object":
        raise Refused("the root must be an object", "#/type")
    return declared(tool)


def declared(tool: Tool) -> list[Parameter]:
    """The arguments that a schema names, whatever else it says."""
    properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
    needed = [str(name) for name in required] if isinstance(required, list) else []
    known: dict[str, JsonValue] = dict(properties) if isinstance(properties, Mapping) else {}
    known |= {name: True for name in needed if name not in known}
    return [(name, _standalone(tool, known[name]), name in needed) for name in known]


def _standalone(tool: Tool, schema: JsonValue) -> Schema:
    if not isinstance(schema, Mapping):
        return schema is not False
    return {**schema, **{name: tool.parameters[name] for name in SHARED if name in tool.parameters}}


def check(tool: Tool) -> None:
    """Raise Refused for a schema or a grammar that is wrong in any syntax of calls."""
    if tool.format is None:
        schema = normalised(json.dumps(tool.parameters))
        compile_schema(schema, lark(f"start: %json {inline(schema)}"))
    elif tool.format.kind != "text":
        compiled(tool.format.kind, tool.format.source)
