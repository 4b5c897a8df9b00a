"""Compares the specs with the types of the installed official SDKs: `python -m specs.drift`.

Each operation names its official types in `x-official`. Every official request field must be in the
spec with a disposition, and every official response field in the response schema, at every depth.
The marker `x-opaque` on a property or an object ends the comparison there.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import sdk_types
from .document import Json, Operation, Place, Specs, load


@dataclass(frozen=True, slots=True)
class Missing:
    """A difference, with the schema where it is to be mended."""

    ref: str
    field: str
    problem: str

    def __str__(self) -> str:
        return f"specs/{self.ref}: `{self.field}` {self.problem}"


@dataclass(slots=True)
class Comparison:
    """What was compared so far and what was missing."""

    specs: Specs
    is_request: bool
    missing: list[Missing] = field(default_factory=list)
    count: int = 0
    seen: set[tuple[Any, ...]] = field(default_factory=set)

    def compare(self, annotation: Any, places: Iterable[Place]) -> None:
        """Compare an official type with the schemas that stand for it."""
        variants = [
            variant
            for place in places
            if not place.schema.get("x-opaque")
            for variant in self.specs.variants(place)
        ]
        for member in sdk_types.members(annotation):
            if (inner := sdk_types.element(member)) is not None:
                self.compare(inner, [v.child("items") for v in variants if "items" in v.schema])
            elif (inner := sdk_types.value(member)) is not None:
                key = "additionalProperties"
                maps = [v for v in variants if isinstance(v.schema.get(key), dict)]
                self.compare(inner, [v.child(key) for v in maps])
            elif (official := sdk_types.fields(member)) is not None and variants:
                self._compare_object(member, official, variants)

    def _compare_object(
        self, member: Any, official: dict[str, sdk_types.SdkField], variants: list[Place]
    ) -> None:
        key = (member, *sorted(variant.ref for variant in variants))
        if key in self.seen:
            return
        self.seen.add(key)
        constants = sdk_types.constants(official)
        objects = [v for v in variants if "properties" in v.schema and _fits(v, constants)]
        if any(place.schema.get("x-opaque") for place in objects):
            return
        if not objects:
            self._report(variants[0], str(constants or member.__name__), "has no schema")
        for name, wanted in official.items() if objects else ():
            self.count += 1
            owners = [place for place in objects if name in place.schema["properties"]]
            if not owners:
                self._report(objects[0], name, f"of {member.__name__} is missing")
            for owner in owners:
                self._check(owner, name, wanted)
            self.compare(wanted.type, [owner.child("properties", name) for owner in owners])

    def _check(self, owner: Place, name: str, wanted: sdk_types.SdkField) -> None:
        if self.is_request:
            if "x-disposition" not in owner.schema["properties"][name]:
                self._report(owner, name, "has no disposition")
        elif wanted.required and name not in owner.schema.get("required", ()):
            self._report(owner, name, "is required in the official response")

    def _report(self, place: Place, name: str, problem: str) -> None:
        found = Missing(place.ref, name, problem)
        if found not in self.missing:
            self.missing.append(found)


def _fits(place: Place, constants: dict[str, Any]) -> bool:
    properties = place.schema["properties"]
    return all(
        value in _admitted(properties[name])
        for name, value in constants.items()
        if _admitted(properties.get(name, {}))
    )


def _admitted(schema: Json) -> list[Any]:
    """The only values that a schema admits, where it lists them."""
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def drift(specs: Specs) -> tuple[list[Missing], int]:
    """All differences of all operations, and how many official fields were compared."""
    missing: list[Missing] = []
    count = 0
    flat = specs.flattened()
    for operation in flat.operations():
        for part, names in operation.place.schema.get("x-official", {}).items():
            for name in [names] if isinstance(names, str) else names:
                comparison = Comparison(flat, is_request=part == "request")
                comparison.compare(sdk_types.find(name), _places(flat, operation, part))
                missing += [found for found in comparison.missing if found not in missing]
                count += comparison.count
    return missing, count


def _places(specs: Specs, operation: Operation, part: str) -> list[Place]:
    if part == "item" and operation.response:  # the elements of a list's `data`
        lists = specs.variants(operation.response)
        return [
            v.child("properties", "data", "items")
            for v in lists
            if "data" in v.schema["properties"]
        ]
    place: Place | None = getattr(operation, part)
    return [place] if place else []


def main() -> int:
    """The command line; 1 when anything is missing."""
    missing, count = drift(load())
    for found in missing:
        print(found)
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("openai", "anthropic"))
    print(f"{', '.join(versions)}: {count} official fields compared, {len(missing)} missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
