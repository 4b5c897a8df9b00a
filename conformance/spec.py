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
ROUTES = {"chat": "ChatCompletionRequest", "completions": "CompletionRequest"}
_FILES = {"chat": "chat_completions", "completions": "completions"}
_COMBINATORS = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True)
class Field:
    """One request field; `schemas` are all its alternatives, references followed."""

    route: str
    path: str  # messages[].content[].text
    disposition: str
    schema: Schema
    file: str

    def __str__(self) -> str:
        return f"{self.route}:{self.path}"


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


def request(route: str) -> tuple[Schema, str]:
    """The schema of a route's body."""
    file = _FILES[route]
    return document(file)["components"]["schemas"][ROUTES[route]], file


def fields(route: str) -> list[Field]:
    """Every request field, at any depth below fields that are honoured.

    What is below a refused or ignored field shares its fate. A field that several schemas declare
    (the content of each role) is one field.
    """
    found: dict[str, Field] = {}
    for field in _fields_of(*request(route), route, ""):
        known = found.setdefault(field.path, field)
        assert known.disposition == field.disposition, f"{field} is {known.disposition} elsewhere"
    return list(found.values())


def _fields_of(schema: Schema, file: str, route: str, path: str) -> Iterator[Field]:
    for plain, where in alternatives(schema, file):
        for name, inner in plain.get("properties", {}).items():
            below = f"{path}.{name}" if path else name
            disposition = inner.get("x-disposition")
            assert disposition, f"{route} {below} has no disposition"
            yield Field(route, below, disposition, inner, where)
            if disposition == "honoured":
                yield from _fields_of(inner, where, route, below)
        if isinstance(plain.get("items"), dict):
            yield from _fields_of(plain["items"], where, route, path + "[]")


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


def _types(schema: Schema) -> set[str]:
    declared = schema.get("type", [])
    return {declared} if isinstance(declared, str) else set(declared)


def _distinct(values: list[Any]) -> list[Any]:
    """Without repetitions; 0, 0.0 and False are different values in JSON."""
    kept: dict[str, Any] = {}
    for value in values:
        kept.setdefault(repr(value), value)
    return list(kept.values())
