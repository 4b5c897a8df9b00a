"""The specs as the tests read them: operations, request fields with their dispositions, samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]

FOLDER = Path(__file__).parent.parent / "specs"
ROUTES = {
    "chat": "ChatCompletionRequest",
    "completions": "CompletionRequest",
    "messages": "MessagesRequest",
    "count": "CountTokensRequest",
    "responses": "ResponseRequest",
    "input_tokens": "InputTokensRequest",
    "compact": "CompactRequest",
}
_FILES = {
    "chat": "chat_completions",
    "completions": "completions",
    "messages": "messages",
    "count": "messages",
    "responses": "responses",
    "input_tokens": "responses",
    "compact": "responses",
}
_COMBINATORS = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True)
class Holder:
    """An object that a field is in: its path, and the schema that declares the field."""

    path: str
    schema: Schema
    file: str

    def __str__(self) -> str:
        """What tells it from its siblings: the value that names its kind."""
        named = (inner.get("const") for inner in self.schema.get("properties", {}).values())
        return next((str(value) for value in named if isinstance(value, str)), "")


@dataclass(frozen=True)
class Field:
    """One request field; `around` are the objects that it is in, the body first."""

    route: str
    path: str  # messages[].content[].text
    disposition: str
    schema: Schema
    file: str
    around: tuple[Holder, ...] = ()

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    def __str__(self) -> str:
        kinds = [kind for kind in map(str, self.around) if kind]
        return f"{self.route}:{self.path}" + (f" of {' '.join(kinds)}" if kinds else "")


@cache
def document(file: str) -> Schema:
    """A spec file."""
    loaded: Schema = yaml.safe_load((FOLDER / f"{file}.yaml").read_text(encoding="utf-8"))
    return loaded


def resolve(schema: Schema, file: str) -> tuple[Schema, str]:
    """The schema that a reference names, and the file that it is in."""
    while "$ref" in schema:
        target, pointer = schema["$ref"].split("#/")
        file = target.removesuffix(".yaml") or file
        schema = document(file)
        for step in pointer.split("/"):
            schema = schema[step]
    return schema, file


def alternatives(schema: Schema, file: str) -> Iterator[tuple[Schema, str]]:
    """The plain schemas that a value can match, without references and combinators."""
    schema, file = resolve(schema, file)
    combined = [part for key in _COMBINATORS for part in schema.get(key, ())]
    for part in combined:
        yield from alternatives(part, file)
    if not combined:
        yield schema, file


def operations() -> dict[str, dict[str, Schema]]:
    """The operations of every path of all specs, by their methods."""
    return {
        path: {method.upper(): operation for method, operation in item.items()}
        for file in sorted(FOLDER.glob("*.yaml"))
        for path, item in document(file.stem).get("paths", {}).items()
    }


def request(route: str) -> tuple[Schema, str]:
    """The schema of a route's body."""
    file = _FILES[route]
    return document(file)["components"]["schemas"][ROUTES[route]], file


def fields(route: str) -> list[Field]:
    """Every request field, at any depth below fields that are honoured.

    What is below a refused or ignored field shares its fate. A field that several schemas declare
    (the content of each role) is one field, unless they differ in what they do about it.
    """
    found: dict[tuple[str, str], Field] = {}
    for field in occurrences(route):
        found.setdefault((field.path, field.disposition), field)
    return list(found.values())


def occurrences(route: str) -> list[Field]:
    """The same, once for each object that can have it.

    What a body says of a field wins over the schemas that it is made from.
    """
    found = list(fields_of(_FILES[route], ROUTES[route], route))
    last = {field.path: field for field in found if len(field.around) == 1}
    return [field for field in found if last.get(field.path, field) is field]


def fields_of(file: str, name: str, route: str = "") -> Iterator[Field]:
    """Every field of a schema of a spec file."""
    schema = document(file)["components"]["schemas"][name]
    return _fields_of(schema, file, route, "", ())


def _fields_of(
    schema: Schema, file: str, route: str, path: str, around: tuple[Holder, ...]
) -> Iterator[Field]:
    for plain, where in alternatives(schema, file):
        here = (*around, Holder(path, plain, where))
        for name, inner in plain.get("properties", {}).items():
            below = f"{path}.{name}" if path else name
            disposition = inner.get("x-disposition")
            assert disposition, f"{route} {below} has no disposition"
            yield Field(route, below, disposition, inner, where, here)
            if disposition == "honoured":
                yield from _fields_of(inner, where, route, below, here)
        if isinstance(plain.get("items"), dict):
            yield from _fields_of(plain["items"], where, route, path + "[]", around)


def foreign(route: str) -> list[tuple[Field, list[Any]]]:
    """Fields with the values that official clients may send there, and that are refused.

    These are the x-refused alternatives of values and of items whose fields are honoured.
    """
    found = []
    for field in occurrences(route):
        if field.disposition != "honoured":
            continue
        values = [_kinds(item, where) for item, where in _foreign(field.schema, field.file)]
        for plain, where in alternatives(field.schema, field.file):
            items = plain.get("items", {})
            values += [[[one] for one in _kinds(*item)] for item in _foreign(items, where)]
        found.append((field, [value for kinds in values for value in kinds]))
    return [(field, values) for field, values in found if values]


def _foreign(schema: Schema, file: str) -> Iterator[tuple[Schema, str]]:
    """The x-refused alternatives of a schema, of those that it refers to and combines."""
    for refused_one in schema.get("x-refused", ()):
        yield refused_one, file
    if "$ref" in schema:
        target, where = resolve({"$ref": schema["$ref"]}, file)
        yield from _foreign(target, where)
    for key in _COMBINATORS:
        for part in schema.get(key, ()):
            yield from _foreign(part, file)


def _kinds(schema: Schema, file: str) -> list[Any]:
    """A sample of a schema for each type that it can name."""
    plain, where = resolve(schema, file)
    kinds = plain.get("properties", {}).get("type", {}).get("enum", [None])
    whole = sample(plain, where)
    return [whole if kind is None else {**whole, "type": kind} for kind in kinds]


def accepted(field: Field) -> list[Any]:
    """The values that a refused field still takes: its neutral ones."""
    values: list[Any] = []
    for plain, _ in alternatives(field.schema, field.file):
        types = _types(plain)
        if "const" in plain:
            values.append(plain["const"])
        values += plain.get("enum", [])
        if "null" in types:
            values.append(None)
        if "array" in types:
            values.append([])
        if "minimum" in plain:
            values.append(plain["minimum"])
        if "maximum" in plain:
            values.append(plain["maximum"])
        if "object" in types:
            values.append(sample(plain, field.file))
    return _distinct(values)


def refused(field: Field) -> list[Any]:
    """Values that ask for what a refused field means: official shapes, nearest neighbours."""
    schema = {**resolve(field.schema, field.file)[0], **field.schema}
    values = [sample(inner, field.file) for inner in schema.get("x-refused", ())]
    for plain, _ in alternatives(field.schema, field.file):
        types = _types(plain)
        if isinstance(plain.get("const"), bool):
            values.append(not plain["const"])
        elif "enum" in plain:
            values.append("anything-else")
        elif "array" in types:
            values.append(["x"])
        elif "integer" in types or "number" in types:
            values += [plain["maximum"] + 1] if "maximum" in plain else []
            values += [plain["minimum"] - 1] if "minimum" in plain else []
    if not values:  # only null is accepted
        values = ["x", 1, {}, []]
    return [value for value in _distinct(values) if value not in accepted(field)]


def sample(schema: Schema, file: str) -> Any:
    """A value of a schema, with all properties that are declared."""
    plain, where = next(pair for pair in alternatives(schema, file) if _types(pair[0]) != {"null"})
    known = [value for value in [plain.get("const"), *plain.get("enum", ())] if value is not None]
    types = _types(plain)
    if known:
        return known[0]
    if "object" in types:
        properties = plain.get("properties", {"label": {"type": "string"}})
        return {name: sample(inner, where) for name, inner in properties.items()}
    if "array" in types:
        return [sample(plain.get("items", {"type": "string"}), where)]
    simple = {"string": "x", "boolean": True}
    return next((simple[kind] for kind in simple if kind in types), max(1, plain.get("minimum", 1)))


def least(schema: Schema, file: str) -> dict[str, Any]:
    """An object with what it must have, and no more."""
    properties = schema.get("properties", {})
    return {name: _least(properties[name], file) for name in schema.get("required", ())}


def _least(schema: Schema, file: str) -> Any:
    plain, where = next(pair for pair in alternatives(schema, file) if _types(pair[0]) != {"null"})
    return least(plain, where) if "required" in plain else sample(plain, where)


def _types(schema: Schema) -> set[str]:
    declared = schema.get("type", [])
    return {declared} if isinstance(declared, str) else set(declared)


def _distinct(values: list[Any]) -> list[Any]:
    """Without repetitions; 0, 0.0 and False are different values in JSON."""
    kept: dict[str, Any] = {}
    for value in values:
        kept.setdefault(repr(value), value)
    return list(kept.values())
