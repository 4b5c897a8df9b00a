"""Which fields of a request the spec of its route says nothing about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance import spec
from conformance.spec import Schema

Place = tuple[Schema, str]  # a schema, and the file that its references are in


def unlisted(body: Any, file: str, name: str) -> set[str]:
    """The paths of a body's fields that the schema of this name does not declare.

    What is in an object with free or opaque content is the client's own.
    """
    return set(_unlisted(body, [(spec.document(file)["components"]["schemas"][name], file)], ""))


def _unlisted(value: Any, places: Sequence[Place], path: str) -> Iterator[str]:
    plain = [found for schema, file in places for found in spec.alternatives(schema, file)]
    if isinstance(value, list):
        items = [(schema["items"], file) for schema, file in plain if "items" in schema]
        for inner in value:
            yield from _unlisted(inner, items, f"{path}[]")
    if not isinstance(value, dict):
        return
    fitting = [place for place in plain if _fits(value, *place)]
    if any(_is_free(schema) for schema, _ in fitting):
        return
    for name, inner in value.items():
        below = f"{path}.{name}" if path else name
        declared = [
            (schema["properties"][name], file)
            for schema, file in fitting
            if name in schema.get("properties", {})
        ]
        if declared:
            yield from _unlisted(inner, declared, below)
        else:
            yield below


def _is_free(schema: Schema) -> bool:
    return bool(schema.get("additionalProperties")) or "x-opaque" in schema


def _fits(value: dict[str, Any], schema: Schema, file: str) -> bool:
    """Whether an object is of this kind, as far as its constants tell: its type, or its role."""
    for name, inner in schema.get("properties", {}).items():
        known = [_constants(plain) for plain, _ in spec.alternatives(inner, file)]
        if name in value and all(known) and all(value[name] not in some for some in known):
            return False
    return True


def _constants(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))
