"""A client's JSON Schema, checked keyword by keyword and rewritten into what llguidance enforces.

llguidance 1.9.1 ignores keywords and values that it does not know, and rounds, escapes and counts
in ways that let invalid documents through. This module refuses the former by name and rewrites the
latter, so that every document that the grammar accepts is valid under the schema that came in. The
grammar may accept fewer: properties come in the schema's order, numbers in one spelling.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from engine.grammar import keywords as kw

MAX_SCHEMA_CHARS = 256 * 1024
MAX_NODES = 8192
# llguidance recurses along references without a limit: chains of 1,000 overflow the stack.
MAX_NESTING = 512
_MAX_DEPTH = 64

Schema = dict[str, Any] | bool
# Names and patterns are matched without escapes, but other names may be escaped: see `_closed`.
_CONTROL = frozenset(map(chr, [*range(32), 127]))


class Refused(Exception):
    """The schema asks for what masks cannot promise: why, and where as a JSON pointer."""

    def __init__(self, reason: str, pointer: str) -> None:
        super().__init__(f"{reason} (at {pointer})")


@dataclass
class Normalised:
    """The rewritten schema.

    `root` refers to `definitions` as `#/$defs/N`. `escapes` is false where `\\u` escapes would let
    a name slip by that the schema declares. `places` are the rewritten parts by JSON pointer.
    """

    root: dict[str, Any]
    definitions: dict[str, Schema]
    escapes: bool
    places: dict[str, dict[str, Any]]

    def document(self, root: dict[str, Any] | None = None) -> dict[str, Any]:
        """The whole schema, or a part of it that can stand alone."""
        return {**(self.root if root is None else root), "$defs": self.definitions}


def parse(text: str) -> Any:
    """JSON that llguidance can read. Raises Refused."""

    def integer(digits: str) -> int:
        if len(digits) > 300:
            raise ValueError("a number is too large")
        return int(digits)

    def real(digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise ValueError("a number is too large")
        return value

    def constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    if len(text) > MAX_SCHEMA_CHARS:
        raise Refused(f"the schema is longer than {MAX_SCHEMA_CHARS:,} characters", "#")
    try:
        value = json.loads(text, parse_int=integer, parse_float=real, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused("the schema holds half of a surrogate pair", "#") from None
    except RecursionError:
        raise Refused("the schema is nested too deeply", "#") from None
    except ValueError as error:
        raise Refused(f"the schema is not JSON: {error}", "#") from None
    return value


def normalise(text: str) -> Normalised:
    """Read and rewrite a schema for the answer. Raises Refused.

    A root without a type that describes properties means an object. One that describes nothing is
    refused: nothing would end its digits and nested arrays (vllm-project/vllm#52011).
    """
    document = parse(text)
    return _Walk(document).run()


@dataclass
class _Walk:
    document: Any
    definitions: dict[str, Schema] = field(default_factory=dict)
    places: dict[str, dict[str, Any]] = field(default_factory=dict)
    escapes: bool = True
    _names: dict[str, str] = field(default_factory=dict)
    _pending: list[str] = field(default_factory=list)
    _inlining: list[str] = field(default_factory=list)
    _nodes: int = 0
    _depth: int = 0
    _old: bool = False

    def run(self) -> Normalised:
        root = self._root()
        nesting = self._deepest
        while self._pending:
            pointer = self._pending.pop()
            self._deepest = 0
            self.definitions[self._names[pointer]] = self._schema(self._find(pointer), pointer)
            nesting += self._deepest
        if nesting > MAX_NESTING:
            raise Refused(f"the schema is nested more than {MAX_NESTING} levels deep", "#")
        self._check_ends(root)
        return Normalised(root, self.definitions, self.escapes, self.places)

    _deepest: int = 0

    def _root(self) -> dict[str, Any]:
        document = self.document
        if not isinstance(document, dict) and document is not True:
            raise Refused("the schema must be an object", "#")
        dialect = {} if document is True else document
        if "$schema" in dialect:
            name = kw.dialect_of(dialect["$schema"])
            if name is None:
                raise Refused(f"the dialect {dialect['$schema']!r} is not known", "#/$schema")
            self._old = name != "draft/2020-12/schema"
        root = self._schema({k: v for k, v in dialect.items() if k != "$id"}, "#")
        if not isinstance(root, dict) or not root:
            raise Refused('the root must be an object, for example {"type": "object"}', "#")
        shaped = ("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf")
        if root.keys().isdisjoint(shaped):
            return {"type": "object", **root}
        return root

    def _schema(self, schema: object, pointer: str) -> Schema:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise Refused("a schema must be an object or a boolean", pointer)
        self._nodes += 1
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        if self._nodes > MAX_NODES:
            raise Refused(f"the schema has more than {MAX_NODES:,} parts", pointer)
        if self._depth > _MAX_DEPTH:
            raise Refused(f"the schema is nested more than {_MAX_DEPTH} levels deep", pointer)
        out: dict[str, Any] = {}
        for keyword, value in schema.items():
            if keyword in kw.ANNOTATIONS or keyword.startswith("x-"):
                continue
            place = f"{pointer}/{keyword.replace('~', '~0').replace('/', '~1')}"
            for name, rewritten in self._keyword(schema, keyword, value, place):
                out[name] = rewritten
        self._depth -= 1
        out = self._closed(out)
        self.places[pointer] = out
        return out

    def _keyword(
        self, schema: dict[str, Any], keyword: str, value: Any, place: str
    ) -> Iterator[tuple[str, Any]]:
        special = _SPECIAL.get(keyword)
        if special is not None:
            yield from special(self, schema, value, place)
        elif keyword in kw.VALUES:
            usable, wanted = kw.VALUES[keyword]
            if not usable(value):
                raise Refused(f"the value of '{keyword}' {wanted}", place)
            yield keyword, _rewritten(keyword, value)
        elif keyword in kw.SCHEMAS:
            yield keyword, self._schema(value, place)
        elif keyword in kw.SCHEMA_MAPS:
            if not isinstance(value, dict):
                raise Refused(f"the value of '{keyword}' must be an object", place)
            yield keyword, {
                name: self._schema(part, f"{place}/{name.replace('~', '~0').replace('/', '~1')}")
                for name, part in value.items()
            }
        elif keyword in kw.SCHEMA_LISTS:
            yield keyword, self._schemas(keyword, value, place)
        else:
            raise Refused(f"the keyword '{keyword}' cannot be enforced", place)

    def _schemas(self, keyword: str, value: Any, place: str) -> list[Schema]:
        if not isinstance(value, list) or not value:
            raise Refused(f"the value of '{keyword}' must be a list of schemas", place)
        one = self._option if keyword == "oneOf" else self._schema
        return [one(part, f"{place}/{at}") for at, part in enumerate(value)]

    def _option(self, schema: object, pointer: str) -> Schema:
        """An option of `oneOf`: references are followed once, so that options can be told apart."""
        target = schema.get("$ref") if isinstance(schema, dict) else None
        bare = isinstance(schema, dict) and not schema.keys() - kw.ANNOTATIONS - {"$ref"}
        if not bare or not isinstance(target, str) or target in self._inlining:
            return self._schema(schema, pointer)
        self._inlining.append(target)
        found = self._schema(self._find(target), pointer)
        self._inlining.pop()
        return found

    def _ref(self, _: object, value: Any, place: str) -> Iterator[tuple[str, Any]]:
        self._find(value, place)
        if value not in self._names:
            self._names[value] = str(len(self._names))
            self._pending.append(value)
        yield "$ref", f"#/$defs/{self._names[value]}"

    def _find(self, target: Any, place: str = "#") -> Any:
        """What a reference inside the document means."""
        if not isinstance(target, str) or not (target == "#" or target.startswith("#/")):
            raise Refused(f"'$ref' must be a JSON pointer in this schema, not {target!r}", place)
        found = self.document
        for step in unquote(target).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(name)] if isinstance(found, list) else found[name]
            except (KeyError, ValueError, IndexError, TypeError):
                raise Refused(f"'$ref' points at nothing: {target}", place) from None
        return found

    def _literals(self, value: Any, place: str) -> None:
        pending = [value]
        while pending:
            part = pending.pop()
            if isinstance(part, dict):
                pending += part.values()
            elif isinstance(part, list):
                pending += part
            elif isinstance(part, (int, float)) and not kw.is_exact(part):
                raise Refused(f"the number {part!r} cannot be enforced exactly", place)

    def _const(self, _: object, value: Any, place: str) -> Iterator[tuple[str, Any]]:
        self._literals(value, place)
        yield "const", value

    def _enum(self, _: object, value: Any, place: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(value, list) or not value:
            raise Refused("the value of 'enum' must be a list that is not empty", place)
        self._literals(value, place)
        yield "enum", value

    def _items(self, schema: dict[str, Any], value: Any, place: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(value, list):
            yield "items", self._schema(value, place)
        elif not self._old or "prefixItems" in schema:
            raise Refused("the value of 'items' must be a schema; use 'prefixItems'", place)
        else:  # before 2020-12, a list of items had the rest in `additionalItems`
            if value:
                yield "prefixItems", self._schemas("items", value, place)
            rest = place.removesuffix("items") + "additionalItems"
            yield "items", self._schema(schema.get("additionalItems", True), rest)

    def _additional_items(
        self, schema: dict[str, Any], _: Any, place: str
    ) -> Iterator[tuple[str, Any]]:
        if not self._old or not isinstance(schema.get("items"), list):
            raise Refused("the keyword 'additionalItems' cannot be enforced; use 'items'", place)
        yield from ()

    def _min_properties(
        self, schema: dict[str, Any], value: Any, place: str
    ) -> Iterator[tuple[str, Any]]:
        """Names may repeat, and readers count a repeated name once."""
        usable, wanted = kw.VALUES["minProperties"]
        if not usable(value):
            raise Refused(f"the value of 'minProperties' {wanted}", place)
        required = schema.get("required")
        sure = len(set(map(str, required))) if isinstance(required, list) else 0
        if value > max(sure, 1):
            raise Refused("'minProperties' above 1 and above the required ones cannot be enforced",
                          place)
        if value > sure:
            yield "minProperties", int(value)

    def _pattern(self, _: object, value: Any, place: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(value, str):
            raise Refused("the value of 'pattern' must be a string", place)
        foreign = kw.foreign_construct(value)
        if foreign:
            raise Refused(f"the pattern holds {foreign}, which cannot be enforced", place)
        yield "pattern", value

    def _trivial(self, *harmless: Any) -> None: ...

    def _closed(self, out: dict[str, Any]) -> dict[str, Any]:
        return out

    def _check_ends(self, root: dict[str, Any]) -> None: ...


def _rewritten(keyword: str, value: Any) -> Any:
    if keyword.startswith(("minimum", "maximum", "exclusive")):
        return kw.inner_bound(keyword, value)
    return value


_Handler = Callable[[_Walk, dict[str, Any], Any, str], Iterator[tuple[str, Any]]]
_SPECIAL: dict[str, _Handler] = {}
