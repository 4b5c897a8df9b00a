"""What the arguments of a tool may be, one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from engine.conversation import JsonValue, Tool
from engine.grammar.compile import compile_schema, compiled, inline, lark
from engine.grammar.document import Refused
from engine.grammar.keywords import ANNOTATIONS
from engine.grammar.values import DEFINITIONS, SHARED, Schema, normalised

Parameter = tuple[str, Schema, bool]
"""Name, schema, and whether it is required."""
_LISTED = ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}
_Place = tuple[str, str]  # the keyword and the name of a definition


def is_free(tool: Tool) -> bool:
    """Whether any arguments are valid."""
    if tool.format is not None:
        return tool.format.kind == "text"
    said = tool.parameters.keys() - ANNOTATIONS
    return said <= {"type"} and tool.parameters.get("type", "object") == "object"


def size(tool: Tool) -> int:
    """How long the text is that says what the arguments may be."""
    if tool.format is not None:
        return len(tool.format.source)
    return len(json.dumps(tool.parameters))


def listed(tool: Tool) -> list[Parameter]:
    """The arguments that a schema declares. Raises Refused when it says more than their names.

    Each schema carries the definitions that it refers to.
    """
    root = tool.parameters
    for keyword in root:
        if keyword not in _LISTED and not keyword.startswith("x-"):
            raise Refused(f"'{keyword}' cannot be enforced in this model's calls", f"#/{keyword}")
    if root.get("type", "object") != "object":
        raise Refused("the root must be an object", "#/type")
    return declared(tool)


def listed_size(tool: Tool) -> int:
    """How long the schemas of all arguments are together, each with its definitions."""
    known, definitions = _properties(tool), _Definitions(tool.parameters)
    return sum(
        len(json.dumps(schema)) + sum(map(definitions.size, definitions.reached(schema)))
        for schema in known.values()
    )


def declared(tool: Tool) -> list[Parameter]:
    """The arguments that a schema names, whatever else it says."""
    known, required = _properties(tool), _required(tool)
    definitions = _Definitions(tool.parameters)
    return [(name, definitions.standalone(known[name]), name in required) for name in known]


def _required(tool: Tool) -> dict[str, None]:
    required = tool.parameters.get("required")
    return dict.fromkeys(map(str, required)) if isinstance(required, list) else {}


def _properties(tool: Tool) -> dict[str, JsonValue]:
    properties = tool.parameters.get("properties")
    known: dict[str, JsonValue] = dict(properties) if isinstance(properties, Mapping) else {}
    return known | {name: True for name in _required(tool) if name not in known}


class _Definitions:
    """What the parts of a schema may refer to, so that each carries no more than it needs."""

    def __init__(self, root: Mapping[str, JsonValue]) -> None:
        self.root = root
        self._targets: dict[_Place, set[_Place]] = {}
        self._sizes: dict[_Place, int] = {}

    def standalone(self, schema: JsonValue) -> Schema:
        if not isinstance(schema, Mapping):
            return schema is not False
        shared = {name: self.root[name] for name in SHARED if name in self.root}
        reached = self.reached(schema)
        for keyword in DEFINITIONS:
            if isinstance(known := shared.get(keyword), Mapping):
                shared[keyword] = {n: known[n] for n in known if (keyword, n) in reached}
        return {**schema, **{name: part for name, part in shared.items() if part != {}}}

    def reached(self, schema: JsonValue) -> set[_Place]:
        """The definitions that a part refers to, directly or not."""
        found: set[_Place] = set()
        pending = self._referred(schema)
        while pending:
            place = pending.pop()
            if place not in found:
                found.add(place)
                if place not in self._targets:
                    self._targets[place] = self._referred(self._of(place))
                pending |= self._targets[place] - found
        return found

    def size(self, place: _Place) -> int:
        if place not in self._sizes:
            self._sizes[place] = len(json.dumps(self._of(place)))
        return self._sizes[place]

    def _of(self, place: _Place) -> JsonValue:
        known = self.root[place[0]]
        return known[place[1]] if isinstance(known, Mapping) else None

    def _referred(self, schema: JsonValue) -> set[_Place]:
        found: set[_Place] = set()
        for target in _references(schema):
            parts = unquote(target).split("/")
            names = [part.replace("~1", "/").replace("~0", "~") for part in parts[1:3]]
            for keyword in DEFINITIONS:
                known = self.root.get(keyword)
                if names[:1] != [keyword] or not isinstance(known, Mapping):
                    continue
                places = names[1:] if len(names) > 1 else list(known)
                found |= {(keyword, name) for name in places if name in known}
        return found


def _references(schema: JsonValue) -> Iterable[str]:
    pending: list[JsonValue] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            if isinstance(target := part.get("$ref"), str):
                yield target
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def check(tool: Tool) -> None:
    """Raise Refused for a schema or a grammar that is wrong in any syntax of calls."""
    if tool.format is None:
        schema = normalised(json.dumps(tool.parameters))
        compile_schema(schema, lark(f"start: %json {inline(schema)}"))
    elif tool.format.kind != "text":
        compiled(tool.format.kind, tool.format.source)
