"""A client's JSON Schema, checked keyword by keyword and rewritten into what llguidance enforces.

llguidance 1.9.1 ignores keywords and values that it does not know, and rounds, escapes and counts
in ways that let invalid documents through. The former are refused by name, the latter rewritten, so
that every document that the grammar accepts is valid under the schema that came in. The grammar may
accept fewer: properties come in the schema's order, numbers are spelt in one way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.grammar import keywords as kw
from engine.grammar.document import Refused, find, parse, step
from engine.grammar.objects import Schema, endless, escape_proof

MAX_NODES = 4096
# llguidance recurses along references: on an 8 MiB stack, chains of 1,000 objects crash it.
MAX_NESTING = 512
_MAX_DEPTH = 64

Keywords = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Normalised:
    """The rewritten schema.

    `root` refers to `definitions` as `#/$defs/N`. Without `escapes`, the grammar must not allow
    `\\u` escapes. `places` are the rewritten parts by JSON pointer, inner ones before outer ones.
    """

    root: Keywords
    definitions: dict[str, Schema]
    escapes: bool
    places: dict[str, Keywords]

    def document(self, root: Keywords | None = None) -> Keywords:
        """The whole schema, or a part of it that can stand alone."""
        return {**(self.root if root is None else root), "$defs": self.definitions}


def normalise(schema: str | Keywords | bool) -> Normalised:
    """Check and rewrite a schema. Raises Refused.

    A root without a type that describes properties means an object. One that describes nothing is
    refused: nothing would end its digits and arrays (vllm-project/vllm#52011).
    """
    document = parse(schema) if isinstance(schema, str) else schema
    walk = _Walk(document)
    root = walk.run()
    if not walk.escapes:
        walk = _Walk(document, escapes=False)
        root = walk.run()
    stuck = endless({**walk.definitions, "": root})
    if stuck:
        raise Refused("'$ref' requires itself, so that no document ends", walk.pointer_of(stuck[0]))
    return Normalised(root, walk.definitions, walk.escapes, walk.places)


@dataclass
class _Walk:
    """The state of one pass. `names` maps the references met to their new names."""

    document: Any
    definitions: dict[str, Schema] = field(default_factory=dict)
    places: dict[str, Keywords] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    escapes: bool = True
    old: bool = False  # a dialect before 2020-12
    inlining: list[str] = field(default_factory=list)
    nodes: int = 0
    depth: int = 0
    deepest: int = 0

    def run(self) -> Keywords:
        root = self.root()
        self.follow()
        return root

    def root(self) -> Keywords:
        schema = {} if self.document is True else self.document
        if not isinstance(schema, dict):
            raise Refused("the schema must be an object", "#")
        if "$schema" in schema:
            dialect = kw.dialect_of(schema["$schema"])
            if dialect is None:
                raise Refused(f"the dialect {schema['$schema']!r} is not known", "#/$schema")
            self.old = dialect != kw.NEWEST
        root = self.schema(schema, "#")
        if not isinstance(root, dict) or not root:
            raise Refused('the root must be an object, such as {"type": "object"}', "#")
        if root.keys().isdisjoint(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf")):
            return {"type": "object", **root}
        return root

    def follow(self) -> None:
        """Rewrite what references mean, until no new one turns up."""
        nesting = self.deepest
        while len(self.definitions) < len(self.names):
            target = list(self.names)[len(self.definitions)]
            self.deepest = 0
            before, self.places = self.places, {}
            found = self.schema(find(self.document, target, "#"), target)
            self.places |= before  # what is referred to comes before what refers to it
            self.definitions[self.names[target]] = found
            nesting += self.deepest
            if nesting > MAX_NESTING:
                raise Refused(f"the schema is nested more than {MAX_NESTING} levels deep", target)

    def pointer_of(self, name: str) -> str:
        return next((target for target, known in self.names.items() if known == name), "#")

    def schema(self, schema: object, pointer: str) -> Schema:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise Refused("a schema must be an object or a boolean", pointer)
        self.nodes += 1
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self.nodes > MAX_NODES or self.depth > _MAX_DEPTH:
            raise Refused(
                f"the schema has more than {MAX_NODES:,} parts or {_MAX_DEPTH} levels", pointer
            )
        out: Keywords = {}
        for keyword in schema:
            if keyword in kw.ANNOTATIONS or keyword.startswith("x-"):
                continue
            if keyword == "$id" and pointer == "#":  # elsewhere it moves what `$ref` means
                continue
            place = step(pointer, keyword)
            handler = _HANDLERS.get(keyword)
            if handler is None:
                raise Refused(f"the keyword '{keyword}' cannot be enforced", place)
            out |= handler(self, schema, keyword, place)
        self.depth -= 1
        return self.place(out, pointer)

    def place(self, out: Keywords, pointer: str) -> Keywords:
        if out.get("format") in ("date", "date-time"):  # llguidance knows no leap years
            out["allOf"] = [*out.get("allOf", ()), {"pattern": kw.CALENDAR}]
        exact = escape_proof(out) if self.escapes else out
        self.escapes = self.escapes and exact is not None
        self.places[pointer] = out if exact is None else exact
        return self.places[pointer]


def _plain(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    value = schema[keyword]
    usable, wanted = kw.VALUES[keyword]
    if not usable(value):
        raise Refused(f"the value of '{keyword}' must be {wanted}", place)
    if keyword in kw.COUNTS:
        value = int(value)
    elif keyword in kw.BOUNDS:
        value = kw.inner_bound(keyword, value, fractions="number" in kw.types_of(schema))
    elif keyword == "pattern" and (foreign := kw.foreign_construct(value)):
        raise Refused(f"the 'pattern' holds {foreign}, which cannot be enforced", place)
    return {keyword: value}


def _one(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    return {keyword: walk.schema(schema[keyword], place)}


def _list(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    value = schema[keyword]
    if not isinstance(value, list) or not value:
        raise Refused(f"the value of '{keyword}' must be a list of schemas", place)
    return {keyword: [walk.schema(part, step(place, at)) for at, part in enumerate(value)]}


def _map(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    value = schema[keyword]
    if not isinstance(value, dict):
        raise Refused(f"the value of '{keyword}' must be an object", place)
    if keyword == "patternProperties":
        for pattern in value:
            if foreign := kw.foreign_construct(pattern):
                raise Refused(f"the pattern holds {foreign}, which cannot be enforced", place)
    return {keyword: {name: walk.schema(part, step(place, name)) for name, part in value.items()}}


def _one_of(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    """llguidance tells options apart only when it sees them, so references are followed once."""
    value = schema[keyword]
    if not isinstance(value, list) or not value:
        raise Refused(f"the value of '{keyword}' must be a list of schemas", place)
    options = []
    for at, option in enumerate(value):
        bare = isinstance(option, dict) and not option.keys() - kw.ANNOTATIONS - {"$ref"}
        target = option.get("$ref") if bare else None
        if target is None or target in walk.inlining:
            options.append(walk.schema(option, step(place, at)))
        else:
            walk.inlining.append(target)
            options.append(walk.schema(find(walk.document, target, step(place, at)), target))
            walk.inlining.pop()
    return {keyword: options}


def _ref(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    target = schema[keyword]
    find(walk.document, target, place)
    name = walk.names.setdefault(target, str(len(walk.names)))
    return {keyword: f"#/$defs/{name}"}


def _literal(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    value = schema[keyword]
    if keyword == "enum" and (not isinstance(value, list) or not value):
        raise Refused("the value of 'enum' must be a list that is not empty", place)
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, (dict, list)):
            pending += part.values() if isinstance(part, dict) else part
        elif not kw.is_exact(part):
            raise Refused(f"the number {part!r} in '{keyword}' cannot be enforced", place)
    return {keyword: value}


def _items(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    value = schema[keyword]
    if not isinstance(value, list):
        return _one(walk, schema, keyword, place)
    if not walk.old or "prefixItems" in schema:
        raise Refused("the value of 'items' must be a schema; see 'prefixItems'", place)
    # Before 2020-12, a list came first, and the rest was in `additionalItems`.
    first = [walk.schema(part, step(place, at)) for at, part in enumerate(value)]
    rest = walk.schema(schema.get("additionalItems", True), place + "/additionalItems")
    return {"prefixItems": first, "items": rest} if first else {"items": rest}


def _additional_items(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    if walk.old and isinstance(schema.get("items"), list):
        return {}
    raise Refused("the keyword 'additionalItems' cannot be enforced; see 'items'", place)


def _min_properties(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    """The grammar lets a name come twice, which readers count once."""
    value = _plain(walk, schema, keyword, place)[keyword]
    required = schema.get("required")
    sure = len(set(map(str, required))) if isinstance(required, list) else 0
    if value > max(sure, 1):
        raise Refused("'minProperties' above 1 cannot be enforced", place)
    return {keyword: value} if value > sure else {}


def _harmless(walk: _Walk, schema: Keywords, keyword: str, place: str) -> Keywords:
    """Keywords that cannot be enforced, in the forms that ask for nothing."""
    if schema[keyword] in kw.HARMLESS[keyword]:
        return {}
    raise Refused(f"the keyword '{keyword}' cannot be enforced", place)


_HANDLERS: dict[str, Callable[[_Walk, Keywords, str, str], Keywords]] = {
    **dict.fromkeys(kw.VALUES, _plain),
    **dict.fromkeys(("allOf", "anyOf", "prefixItems"), _list),
    **dict.fromkeys(("properties", "patternProperties"), _map),
    **dict.fromkeys(kw.HARMLESS, _harmless),
    **dict.fromkeys(("enum", "const"), _literal),
    "additionalProperties": _one,
    "additionalItems": _additional_items,
    "items": _items,
    "minProperties": _min_properties,
    "oneOf": _one_of,
    "$ref": _ref,
}
