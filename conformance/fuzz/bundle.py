"""A spec as the fuzzer reads it: one document, with bounds that it can cross cheaply."""

from __future__ import annotations

import json
from typing import Any

from conformance import spec

MOST_ITEMS = 64
"""Larger bounds on lists are left out here, since crossing them takes bodies of megabytes, over and
over. The case BOUNDS crosses each of them once."""


def bundle(file: str) -> dict[str, Any]:
    """The document of a spec, with the components of shared.yaml in it."""
    whole: dict[str, Any] = json.loads(_inside(spec.document(file)))
    for kind, components in json.loads(_inside(spec.document("shared")["components"])).items():
        whole.setdefault("components", {}).setdefault(kind, {}).update(components)
    _relax(whole)
    schemas = whole["components"].get("schemas", {})
    for schema in schemas.values():
        _say_once(schema, schemas)
    return whole


def _inside(part: Any) -> str:
    """With every reference to shared.yaml turned into one to the same document."""
    return json.dumps(part).replace("shared.yaml#/", "#/")


def _say_once(schema: dict[str, Any], schemas: dict[str, Any]) -> set[str]:
    """The properties of a schema. One that a later part of it repeats is left out there: of such
    a schema, the fuzzer makes hardly any valid value. The first must admit what the second does.
    """
    if "$ref" in schema:
        return _say_once(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    properties = schema.get("properties", {})
    found: set[str] = set()
    for part in schema.get("allOf", ()):
        own = part.get("properties", {})
        for name in found & set(own):
            assert set(own[name]) <= {"type", "description", "x-disposition"}, own[name]
            del own[name]
        found |= _say_once(part, schemas)
    return found | set(properties)


def _relax(value: Any) -> None:
    if isinstance(value, list):
        for inner in value:
            _relax(inner)
    elif isinstance(value, dict):
        for bound in ("maxItems", "maxProperties"):
            if isinstance(value.get(bound), int) and value[bound] > MOST_ITEMS:
                del value[bound]
        for inner in value.values():
            _relax(inner)
