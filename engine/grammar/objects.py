"""What a rewritten schema says about objects: which names may be escaped, and whether it ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.grammar.keywords import OBJECT_KEYWORDS

Schema = dict[str, Any] | bool
_CONTROL = frozenset(map(chr, [*range(32), 127]))


def escape_proof(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The same object in a form that llguidance 1.9.1 matches exactly; None when there is none.

    llguidance takes `"\\u0061"` for another name than the declared `"a"`, and gives it the schema
    of additional properties. It reads no escapes in names that a pattern describes, so additional
    properties become those that match the empty pattern. That changes nothing where they are free,
    or where no name is declared. Elsewhere, the answer must do without `\\u` escapes.
    """
    keywords = [keyword for keyword in schema if keyword in OBJECT_KEYWORDS]
    if "patternProperties" in keywords:
        return None
    properties = schema.get("properties", {})
    additional = schema.get("additionalProperties", True)
    if not keywords or additional is False:
        return schema
    if properties and additional not in (True, {}):
        return None
    if any(not _CONTROL.isdisjoint(name) for name in (*properties, *schema.get("required", ()))):
        return None
    out: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == keywords[0]:  # order of keywords is order of properties
            out |= {name: schema[name] for name in ("properties", "required") if name in schema}
            out |= {"patternProperties": {"": additional}, "additionalProperties": False}
        if keyword not in OBJECT_KEYWORDS:
            out[keyword] = value
    return out


def endless(definitions: Mapping[str, Schema]) -> list[str]:
    """The definitions that no finite document satisfies, since they require themselves."""
    ending: set[str] = set()
    while True:
        more = {name for name, schema in definitions.items() if _ends(schema, ending)}
        if more == ending:
            return [name for name in definitions if name not in ending]
        ending = more


def _ends(schema: Schema, ending: set[str]) -> bool:
    if isinstance(schema, bool):
        return True
    if "$ref" in schema and schema["$ref"].rsplit("/", 1)[1] not in ending:
        return False
    choices = (schema.get("anyOf"), schema.get("oneOf"))
    if not all(any(_ends(part, ending) for part in options) for options in choices if options):
        return False
    needed: list[Schema] = [*schema.get("allOf", ())]
    kind = schema.get("type")
    if kind in ("array", ["array"]):
        needed += _needed_items(schema)
    elif kind in ("object", ["object"]):
        for name in schema.get("required", ()):
            needed += _values_of(schema, name)
    return all(_ends(part, ending) for part in needed)


def _needed_items(schema: dict[str, Any]) -> list[Schema]:
    count = int(schema.get("minItems", 0))
    first: list[Schema] = schema.get("prefixItems", [])
    return first[:count] + ([schema.get("items", True)] if count > len(first) else [])


def _values_of(schema: dict[str, Any], name: str) -> list[Schema]:
    """The schemas that the value of a name must satisfy."""
    found = [part for part in (schema.get("properties", {}).get(name),) if part is not None]
    for pattern, part in schema.get("patternProperties", {}).items():
        if _matches(pattern, name):
            found.append(part)
    return found or [schema.get("additionalProperties", True)]


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:  # another dialect; llguidance judges it
        return False
