"""A strict reader of server-sent events, for tests: whatever it cannot explain is a failure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

DONE = "[DONE]"


@dataclass(frozen=True)
class Event:
    """One block: an event's data (JSON or DONE), or the text of a comment."""

    data: Any = None
    name: str | None = None
    comment: str | None = None


def events(parts: Iterable[bytes]) -> Iterator[Event]:
    """The events of a stream, each as soon as its last byte has arrived.

    Fails on text that is not UTF-8, on a line that is no field we send, on payloads that are not
    strict JSON, and on a stream that ends inside an event.
    """
    rest = b""
    for part in parts:
        *blocks, rest = (rest + part).split(b"\n\n")
        for block in blocks:
            yield _event(block.decode("utf-8"))
    assert not rest, f"the stream ends inside an event: {rest!r}"


def parse(body: bytes) -> list[Event]:
    """The events of a whole body."""
    return list(events([body]))


def _event(block: str) -> Event:
    assert block and "\r" not in block, f"not an event: {block!r}"
    if block.startswith(":"):
        assert "\n" not in block, f"a comment with more: {block!r}"
        return Event(comment=block[1:].strip())
    fields: dict[str, str] = {}
    for line in block.split("\n"):
        name, colon, value = line.partition(": ")
        assert colon and name in ("data", "event"), f"unknown line {line!r}"
        assert name not in fields, f"{name} twice in {block!r}"
        fields[name] = value
    assert "data" in fields, f"an event without data: {block!r}"
    data = fields["data"]
    return Event(data=DONE if data == DONE else strict_json(data), name=fields.get("event"))


def strict_json(text: str | bytes) -> Any:
    """JSON as RFC 8259 has it: no NaN, no repeated keys."""
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_object)


def _refuse(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a key twice in {names}"
    return dict(pairs)
