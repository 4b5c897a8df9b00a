"""The arguments of calls that a history holds, as templates can show them."""

from __future__ import annotations

import json
import numbers
import re
import secrets
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from engine.conversation import ToolCall
from engine.text.guard import copied

_MOST_DIGITS = 1000  # Python converts no integer beyond 4,300
_DEEPEST = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


class AsWritten(dict[str, object]):
    """A JSON object with the text that a model or a client wrote for it.

    A template that writes it back as JSON writes that text, so that what the model generated has
    the same tokens in the next prompt, however it spaced them.
    """

    def __init__(self, value: Mapping[str, object], text: str) -> None:
        super().__init__(value)
        self.text = text


class Exact(numbers.Number):
    """A number that Python would write back in another way, such as 1e5 or -0."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__
    __hash__ = object.__hash__


def dumps(value: object, **options: Any) -> str:
    """`json.dumps` that writes an `Exact` as it is; `default` is taken."""
    secret = secrets.token_hex(8)
    found: list[str] = []

    def stand_in(value: object) -> str:
        if not isinstance(value, Exact):
            raise TypeError(f"{type(value).__name__} is not JSON serializable")
        found.append(value.text)
        return f"{secret}{len(found) - 1}."

    text = json.dumps(value, default=stand_in, **options)
    if not found:
        return text
    return re.sub(f'"{secret}([0-9]+)\\."', lambda match: found[int(match[1])], text)


def parse_object(text: str) -> dict[str, object] | None:
    """The JSON object of some arguments; {} of none at all, None where they are no object.

    The order of keys and the spelling of numbers stay; of equal keys the last counts.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_float=_float, parse_int=_int, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    nested = text.count("{") + text.count("[") > _DEEPEST
    if not isinstance(value, dict) or (nested and not _is_shallow(value, _DEEPEST)):
        return None
    return cast(dict[str, object], copied(value, _whole)) if "\\u" in text else value


def as_mapping(call: ToolCall) -> dict[str, object]:
    """Arguments for a template that goes through them; what is no object is the text in one."""
    if call.custom:
        return {"input": call.arguments}
    found = parse_object(call.arguments)
    return {"arguments": call.arguments} if found is None else found


def as_text(call: ToolCall) -> str:
    """Arguments for a template that copies them, as the client sent them."""
    if call.custom:
        return json.dumps({"input": call.arguments}, ensure_ascii=False)
    return call.arguments if call.arguments.strip() else "{}"


def as_json(call: ToolCall) -> str:
    """Arguments as the text of a JSON object, whatever they are."""
    if not call.custom and parse_object(call.arguments) is None:
        return json.dumps({"arguments": call.arguments}, ensure_ascii=False)
    return as_text(call)


def _float(text: str) -> object:
    value = float(text)
    return value if repr(value) == text else Exact(text)


def _int(text: str) -> object:
    return Exact(text) if len(text) > _MOST_DIGITS or text == "-0" else int(text)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_shallow(value: object, left: int) -> bool:
    """Whether nothing lies deeper than templates and their filters can follow."""
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return left > 0 and all(_is_shallow(item, left - 1) for item in items)


def _whole(text: str) -> str:
    """Half a surrogate pair is no character; JSON can spell it."""
    return _SURROGATE.sub("\ufffd", text)
