"""Reads the types of an installed SDK: TypedDict parameters and pydantic models alike."""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

import typing_extensions as tx
from pydantic import BaseModel

QUALIFIERS = (typing.Required, typing.NotRequired, tx.Required, tx.NotRequired, Annotated)


@dataclass(frozen=True, slots=True)
class SdkField:
    """One field of an object type, under its name on the wire."""

    type: Any
    required: bool


def find(name: str) -> Any:
    """The type that `module:Name` means."""
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)


def strip(annotation: Any) -> Any:
    """A type without qualifiers, annotations and aliases."""
    while True:
        if tx.get_origin(annotation) in QUALIFIERS:
            annotation = tx.get_args(annotation)[0]
        elif isinstance(annotation, tx.TypeAliasType):
            annotation = annotation.__value__
        else:
            return annotation


def members(annotation: Any) -> list[Any]:
    """The members of a union; any other type is its own only member."""
    annotation = strip(annotation)
    if tx.get_origin(annotation) in (Union, types.UnionType):
        return [inner for part in tx.get_args(annotation) for inner in members(part)]
    return [annotation]


def element(annotation: Any) -> Any:
    """The element type of a list type, else None."""
    origin = tx.get_origin(annotation)
    # The SDK has a protocol of its own for sequences that are not strings.
    if origin in (list, Iterable, Sequence) or getattr(origin, "__name__", "") == "SequenceNotStr":
        return tx.get_args(annotation)[0]
    return None


def value(annotation: Any) -> Any:
    """The value type of a mapping type, else None."""
    if tx.get_origin(annotation) in (dict, Mapping):
        return tx.get_args(annotation)[1]
    return None


def fields(annotation: Any) -> dict[str, SdkField] | None:
    """The fields of an object type, else None."""
    if tx.is_typeddict(annotation):
        hints = tx.get_type_hints(annotation, include_extras=True)
        # Required[...] decides: with postponed annotations the key sets do not know it.
        return {name: SdkField(hint, _is_required(hint)) for name, hint in hints.items()}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {
            info.alias or name: SdkField(info.annotation, info.is_required())
            for name, info in annotation.model_fields.items()
        }
    return None


def constants(found: dict[str, SdkField]) -> dict[str, Any]:
    """The fields that have one literal value only, such as `type` and `role`."""
    single = {}
    for name, field in found.items():
        annotation = strip(field.type)
        if tx.get_origin(annotation) is Literal and len(tx.get_args(annotation)) == 1:
            single[name] = tx.get_args(annotation)[0]
    return single


def _is_required(hint: Any) -> bool:
    return tx.get_origin(hint) in (typing.Required, tx.Required)
