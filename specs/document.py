"""Loads the specs and answers questions about their schemas.

Every `$ref` is made absolute on loading (`stem.yaml#/components/schemas/Name`), so a schema can be
read without knowing the file that it came from.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

FOLDER = Path(__file__).parent
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
COMBINATORS = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True)
class Place:
    """A schema and where it is written: `stem.yaml#/pointer`."""

    ref: str
    schema: Json

    def child(self, *keys: str | int) -> Place:
        """The place below, reached by these keys."""
        return Place("/".join([self.ref, *map(str, keys)]), reduce(_step, keys, self.schema))

    @property
    def name(self) -> str:
        """The name of the component that holds this place, or the last part of its pointer."""
        parts = self.ref.split("#/")[1].split("/")
        return parts[2] if parts[0] == "components" else parts[-1]


@dataclass(frozen=True, slots=True)
class Field:
    """A property at some depth below a schema."""

    path: str  # messages[].content[].text
    name: str
    owner: str  # the component that declares it
    required: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    stem: str
    place: Place

    def content(self, media: str) -> Place | None:
        """What a successful response holds in this media type."""
        found = self.place.schema["responses"]["200"].get("content", {}).get(media)
        return self.place.child("responses", "200", "content", media) if found else None

    @property
    def request(self) -> Place | None:
        """The schema of the JSON body."""
        if "requestBody" not in self.place.schema:
            return None
        return self.place.child("requestBody", "content", "application/json", "schema")

    @property
    def response(self) -> Place | None:
        """The schema of a JSON answer."""
        content = self.content("application/json")
        return content.child("schema") if content else None

    @property
    def event(self) -> Place | None:
        """The schema of the data of a streamed event."""
        content = self.content("text/event-stream")
        if content is None:
            return None
        return content.child("itemSchema", "properties", "data", "anyOf", 0, "contentSchema")


class Specs:
    """All documents by stem, references absolute."""

    def __init__(self, documents: dict[str, Json]) -> None:
        self.documents = documents

    def at(self, ref: str) -> Place:
        """The place that a reference names. Raises KeyError when there is none."""
        file, pointer = ref.split("#/")
        return Place(
            ref, reduce(_step, pointer.split("/"), self.documents[file.removesuffix(".yaml")])
        )

    def operations(self) -> Iterator[Operation]:
        """All operations in the order of the files."""
        for stem, document in self.documents.items():
            for path, item in document.get("paths", {}).items():
                for method in METHODS:
                    if method in item:
                        # Not at(): the slashes of a path would split its pointer.
                        ref = f"{stem}.yaml#/paths/{path.replace('/', '~1')}/{method}"
                        yield Operation(method.upper(), path, stem, Place(ref, item[method]))

    def parameters(self, operation: Operation) -> list[Place]:
        """What an operation reads of path, query and headers."""
        places = (
            operation.place.child("parameters", number)
            for number in range(len(operation.place.schema.get("parameters", ())))
        )
        return [self.at(p.schema["$ref"]) if "$ref" in p.schema else p for p in places]

    def variants(self, place: Place, refused: bool = True) -> Iterator[Place]:
        """The schemas that a place stands for, without references and combinators.

        With refused: also those of `x-refused`, which only the official API admits.
        """
        keys = (*COMBINATORS, "x-refused") if refused else COMBINATORS
        for key in keys:
            for number in range(len(place.schema.get(key, ()))):
                yield from self.variants(place.child(key, number), refused)
        if "$ref" in place.schema:
            yield from self.variants(self.at(place.schema["$ref"]), refused)
        elif not any(key in place.schema for key in COMBINATORS):
            yield place

    def fields(
        self, place: Place, refused: bool = True, path: str = "", seen: frozenset[str] = frozenset()
    ) -> Iterator[Field]:
        """Every property at every depth, once for each path that leads to it."""
        done = set()
        for variant in self.variants(place, refused):
            if variant.ref in seen:
                continue
            for field in self._fields_of(variant, refused, path, seen | {variant.ref}):
                if (key := (field.path, field.place.ref)) not in done:
                    done.add(key)
                    yield field

    def _fields_of(
        self, place: Place, refused: bool, path: str, seen: frozenset[str]
    ) -> Iterator[Field]:
        for name in place.schema.get("properties", {}):
            inner = place.child("properties", name)
            below = f"{path}.{name}" if path else name
            required = name in place.schema.get("required", ())
            yield Field(below, name, place.name, required, inner)
            yield from self.fields(inner, refused, below, seen)
        if isinstance(place.schema.get("items"), dict):
            yield from self.fields(place.child("items"), refused, path + "[]", seen)
        if isinstance(place.schema.get("additionalProperties"), dict):
            yield from self.fields(place.child("additionalProperties"), refused, path + ".*", seen)

    def reachable(self, refused: bool = True) -> set[str]:
        """References of all components that the routes use."""
        found: set[str] = set()
        waiting = [operation.place.schema for operation in self.operations()]
        waiting += [document.get("security", []) for document in self.documents.values()]
        while waiting:
            for ref in references(waiting.pop(), refused):
                if ref not in found:
                    found.add(ref)
                    waiting.append(self.at(ref).schema)
        return found

    def flattened(self) -> Specs:
        """A copy in which a component made with `allOf` is one object with all properties."""
        documents = copy.deepcopy(self.documents)
        for document in documents.values():
            schemas = document["components"]["schemas"]
            for name, schema in schemas.items():
                if "allOf" in schema:
                    schemas[name] = self._merged(schema)
        return Specs(documents)

    def _merged(self, schema: Json) -> Json:
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        merged |= {"type": "object", "required": [], "properties": {}}
        for part in schema["allOf"]:
            whole = self.at(part["$ref"]).schema if "$ref" in part else part
            whole = self._merged(whole) if "allOf" in whole else whole
            merged["required"] += whole.get("required", [])
            merged["properties"] |= whole["properties"]
        return merged


def load(folder: Path = FOLDER) -> Specs:
    """Read all specs of a folder."""
    documents: dict[str, Json] = {}
    for path in sorted(folder.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        documents[path.stem] = rewrite(document, partial(_absolute, path.name))
    return Specs(documents)


def rewrite(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of a JSON value with `change` applied to every reference, also of discriminators."""
    if isinstance(value, dict):
        return {key: rewrite(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [rewrite(inner, change) for inner in value]
    return change(value) if isinstance(value, str) and "#/components/" in value else value


def references(value: Any, refused: bool = True) -> Iterator[str]:
    """All references of a JSON value, with or without those below `x-refused`."""
    if isinstance(value, list):
        for inner in value:
            yield from references(inner, refused)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            elif refused or key != "x-refused":
                yield from references(inner, refused)


def without(value: Any, *keys: str) -> Any:
    """A copy of a JSON value in which no object has these keys."""
    if isinstance(value, dict):
        return {key: without(inner, *keys) for key, inner in value.items() if key not in keys}
    if isinstance(value, list):
        return [without(inner, *keys) for inner in value]
    return value


def _absolute(file: str, ref: str) -> str:
    return file + ref if ref.startswith("#") else ref


def _step(value: Any, key: str | int) -> Any:
    return value[int(key)] if isinstance(value, list) else value[key]
