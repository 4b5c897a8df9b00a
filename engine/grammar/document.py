"""A schema as text: read it, find places in it, refuse it."""

from __future__ import annotations

import json
from typing import Any, NoReturn
from urllib.parse import unquote

from engine.conversation import Tool

MAX_SCHEMA_CHARS = 256 * 1024
_MAX_DIGITS = 300


class Refused(Exception):
    """What was asked for cannot be promised: why, and where as a JSON pointer."""

    def __init__(self, reason: str, pointer: str | None = None) -> None:
        super().__init__(reason if pointer is None else f"{reason} (at {pointer})")


class RefusedTool(Refused):
    """What was asked for one of several tools cannot be promised beside the others."""

    def __init__(self, reason: str, tool: Tool) -> None:
        super().__init__(reason)
        self.tool = tool


def parse(text: str) -> Any:
    """JSON that llguidance can read. Raises Refused."""
    if len(text) > MAX_SCHEMA_CHARS:
        raise Refused(f"the schema is longer than {MAX_SCHEMA_CHARS:,} characters")
    try:
        value = json.loads(text, parse_int=_int, parse_float=_float, parse_constant=_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused("the schema holds half of a surrogate pair") from None
    except RecursionError:
        raise Refused("the schema is nested too deeply") from None
    except ValueError as error:
        raise Refused(f"the schema is not JSON: {error}") from None
    return value


def step(pointer: str, name: str | int) -> str:
    """The pointer to a member."""
    return f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}"


def find(document: Any, target: Any, place: str) -> Any:
    """What a reference means inside its document. Raises Refused."""
    if not isinstance(target, str) or not (target == "#" or target.startswith("#/")):
        raise Refused(f"'$ref' must be a JSON pointer in this schema, not {target!r}", place)
    found = document
    for part in unquote(target).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(name)] if isinstance(found, list) else found[name]
        except (KeyError, ValueError, IndexError, TypeError):
            raise Refused(f"'$ref' points at nothing: {target}", place) from None
    return found


def _int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("a number is too large")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if abs(value) == float("inf"):
        raise ValueError("a number is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
