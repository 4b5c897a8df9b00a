"""Arguments that stand bare between tags, and the JSON that they mean by the schema of their tool.

Such syntaxes write a string as it is and all else as JSON, so only the schema tells "02134" from a
number. Where it leaves a choice, a value is what its text looks like. A value that does not fit its
schema becomes what the model most likely meant; nothing is refused here.
"""

from __future__ import annotations

import ast
import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

import regex

from engine.conversation import JsonValue, Tool
from engine.dialects.json_text import dumps, is_strict, loads
from engine.dialects.pieces import Malformed
from engine.grammar.document import Refused, find

_CUSTOM = {"type": "object", "properties": {"input": {"type": "string"}}}
_MOST_DIGITS = 300
_MOST_NODES = 4096  # parts of a schema that are about one value; no more of them are looked at
_NUMBER = regex.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LOOSE_NUMBER = regex.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_PYTHON = regex.compile(
    r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|\b(?:True|False|None)\b|,(?=\s*[\]}])""", regex.DOTALL
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}


class Shape:
    """What a part of a tool's schema lets a value be."""

    def __init__(self, nodes: Iterable[JsonValue], root: Mapping[str, JsonValue]) -> None:
        self._root = root
        self._nodes = list(_alternatives(nodes, root))
        self.types = frozenset(kind for node in self._nodes for kind in _types(node))
        self.is_text = self.types == {"string"}

    @staticmethod
    def of(tool: Tool | None) -> Shape:
        """The arguments of a tool; those of an unknown one may be anything."""
        if tool is None:
            return Shape([], {})
        root = tool.parameters if tool.format is None else _CUSTOM
        return Shape([root], root)

    @property
    def names(self) -> list[str]:
        """The members that an object is declared to have."""
        declared = (_mapping(node.get("properties")) for node in self._nodes)
        return list(dict.fromkeys(name for properties in declared for name in properties))

    def member(self, name: str) -> Shape:
        """The member of an object."""
        found = []
        for node in self._nodes:
            properties = _mapping(node.get("properties"))
            found.append(properties.get(name, node.get("additionalProperties")))
        return Shape(found, self._root)

    @property
    def item(self) -> Shape:
        """Any element of an array."""
        return Shape([node.get("items") for node in self._nodes], self._root)

    def json_of(self, text: str) -> str | None:
        """The JSON of a bare value; None where it stands for no value."""
        is_any = not self.types
        if self.is_text:
            return dumps(text)
        core = text.strip()
        as_text = is_any or "string" in self.types
        if not core:
            return dumps(text) if as_text else None
        readers = (("null", _null), ("boolean", _boolean), ("integer", _integer))
        for kind, read in (*readers, ("number", _number)):
            if (is_any or kind in self.types) and (found := read(core, as_text)) is not None:
                return found
        found = self._container(core, as_text)
        if found is not None:
            return found
        return dumps(text) if as_text else self._mistyped(core, text)

    def list_of(self, texts: Iterable[str]) -> str:
        """The JSON of an array, of which every element stands for itself."""
        item = self.item
        elements = (item.json_of(text) for text in texts)
        return "[" + ", ".join(element for element in elements if element is not None) + "]"

    def _container(self, core: str, as_text: bool) -> str | None:
        kind = {"{": "object", "[": "array"}.get(core[0])
        if kind is None or (self.types and kind not in self.types):
            return None
        if is_strict(core) and core[-1] in "}]":
            return core
        for candidate in (core,) if as_text else (core, _from_python(core)):
            try:
                written = dumps(loads(candidate))
            except Malformed:
                continue
            if is_strict(written):
                return written
        return None

    def _mistyped(self, core: str, text: str) -> str | None:
        """A value of another type than declared, where no string is allowed."""
        if core.lower() in ("null", "none"):
            return None
        if not is_strict(core):
            is_element = "array" in self.types and "array" not in self.item.types
            return self.list_of([text]) if is_element else dumps(text)
        value = json.loads(core)
        if isinstance(value, str) and value != text:
            inner = self.json_of(value)
            return inner if inner is None or is_strict(inner) else dumps(text)
        return dumps(text) if value in (math.inf, -math.inf) else core


def _mapping(value: object) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}


def _alternatives(
    given: Iterable[JsonValue], root: Mapping[str, JsonValue]
) -> Iterator[Mapping[str, JsonValue]]:
    """The parts of a schema that are about the same value, references followed, each once."""
    seen: set[int] = set()
    nodes = deque(node for node in given if isinstance(node, Mapping))
    while nodes and len(seen) < _MOST_NODES:
        node = nodes.popleft()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if "$ref" in node:
            try:
                referred = find(root, node["$ref"], "")
            except Refused:
                continue
            if isinstance(referred, Mapping):
                nodes.append(referred)
        for keyword in ("anyOf", "oneOf", "allOf"):
            branches = node.get(keyword)
            if isinstance(branches, list):
                nodes.extend(branch for branch in branches if isinstance(branch, Mapping))


def _types(node: Mapping[str, JsonValue]) -> Iterator[str]:
    """The types that one part of a schema names, or those of the values that it lists."""
    declared = node.get("type")
    if declared is not None:
        listed = declared if isinstance(declared, list) else [declared]
        yield from (kind.lower() for kind in listed if isinstance(kind, str))
        return
    values = node.get("enum")
    listed = [*values] if isinstance(values, list) else []
    if "const" in node:
        listed.append(node["const"])
    yield from map(_type_of, listed)
    if "properties" in node:
        yield "object"
    if "items" in node:
        yield "array"


def _type_of(value: JsonValue) -> str:
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return "null" if value is None else kinds.get(type(value), "object")


# A reader is given the text, and whether it may as well mean itself; then it must be exact.


def _null(core: str, exact: bool) -> str | None:
    return "null" if core == "null" or (not exact and core.lower() in ("null", "none")) else None


def _boolean(core: str, exact: bool) -> str | None:
    known = core.lower() if not exact else _CONSTANTS.get(core, core)
    return known if known in ("true", "false") else None


def _integer(core: str, exact: bool) -> str | None:
    if len(core) > _MOST_DIGITS:
        return None
    if exact:
        return core if regex.fullmatch(r"-?(?:0|[1-9][0-9]*)", core) else None
    if not _LOOSE_NUMBER.fullmatch(core):
        return None
    value = Decimal(core)
    if value.adjusted() > _MOST_DIGITS or value != value.to_integral_value():
        return None
    return str(int(value))


def _number(core: str, exact: bool) -> str | None:
    known = (_NUMBER if exact else _LOOSE_NUMBER).fullmatch(core)
    if known is None or len(core) > _MOST_DIGITS or not math.isfinite(float(core)):
        return None
    return core if _NUMBER.fullmatch(core) else repr(float(core))


def _from_python(core: str) -> str:
    """A list or a dict as Python writes it, in the spelling of JSON."""

    def respelt(found: regex.Match[str]) -> str:
        piece = found[0]
        if piece[0] not in "'\"":
            return _CONSTANTS.get(piece, "")
        try:
            return dumps(ast.literal_eval(piece))
        except (ValueError, SyntaxError):
            return piece

    return _PYTHON.sub(respelt, core)
