"""JSON that a model writes, read while it comes."""

from __future__ import annotations

import json
from collections.abc import Callable

import regex

from engine.dialects.marks import Marks
from engine.dialects.pieces import Arguments, Incomplete, Malformed, Steps
from engine.dialects.reader import Reader
from engine.events import Channel

MOST_NESTED = 256
_OUTSIDE = regex.compile(r'["{}\[\]]')
_INSIDE = regex.compile(r'["\\]')
_SCALAR = r"-?[0-9.eE+-]+|true|false|null|True|False|None"
_STRING = regex.compile(r'(?:[^"\\]|\\.)*+')  # what is between the quotes
_HALF = regex.compile("[\ud800-\udfff]")  # of a character
_HALF_ESCAPE = regex.compile(r"\\u[dD][89a-fA-F]")


def loads(text: str) -> object:
    """The value, or Malformed. Control characters in strings are let through: models write them.

    Half a character, which only an escape can write, becomes U+FFFD.
    """
    try:
        value = json.loads(text, strict=False)
        return json.loads(dumps(value), strict=False) if _HALF_ESCAPE.search(text) else value
    except (ValueError, RecursionError):
        raise Malformed from None


def dumps(value: object) -> str:
    """Arguments as the official APIs have them."""
    return repaired(json.dumps(value, ensure_ascii=False))


def rewritten(value: object) -> str:
    """The value as strict JSON; Malformed where it holds a number that has no JSON."""
    text = dumps(value)
    if not is_strict(text):
        raise Malformed
    return text


def repaired(text: str) -> str:
    """Text in which two halves are one character, and one half is U+FFFD."""
    if not _HALF.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_strict(text: str) -> bool:
    """Whether every JSON reader takes the text."""
    try:
        json.loads(text, parse_constant=_refuse)
        text.encode()
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> object:
    raise ValueError(name)


class _Scan:
    """Where a container in JSON text ends."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.in_string = False
        self.escaped = False

    def advance(self, text: str, at: int) -> tuple[int, bool]:
        """Read on from `at`; the place reached, and whether the container ended there."""
        while at < len(text):
            if self.escaped:
                self.escaped = False
                at += 1
                continue
            found = (_INSIDE if self.in_string else _OUTSIDE).search(text, at)
            if found is None:
                return len(text), False
            at = found.end()
            if self._take(found[0]):
                return at, True
        return at, False

    def _take(self, char: str) -> bool:
        if self.in_string:
            self.escaped = char == "\\"
            self.in_string = char != '"'
        elif char == '"':
            self.in_string = True
        elif char in "{[":
            self.open.append("}" if char == "{" else "]")
            if len(self.open) > MOST_NESTED:
                raise Malformed
        elif not self.open or self.open.pop() != char:
            raise Malformed
        return not self.open and not self.in_string


def container(
    reader: Reader, marks: Marks, *, streams: bool, begun: Callable[[str], Arguments] = Arguments
) -> Steps[str]:
    """Read an object or a list; its text, which is valid JSON in full.

    `streams` has it said as arguments while it comes: only for text that masks keep valid. Else
    nothing is said, but for what there is when the output is cut, as `begun` makes it.
    """
    scan = _Scan()
    parts: list[str] = []
    while True:
        end, is_whole = scan.advance(reader.text, reader.at)
        parts.append(marks.plain(reader.consume(end, Channel.CALL)))
        if streams and parts[-1]:
            yield Arguments(parts[-1])
        if is_whole:
            break
        try:
            yield from reader.wait()
        except Incomplete:
            if reader.cut and not streams:
                yield begun("".join(parts))
            raise
    text = "".join(parts)
    return text if is_strict(text) else rewritten(loads(text))


def string(reader: Reader, marks: Marks) -> Steps[str]:
    """Read a JSON string; its value."""
    yield from reader.expect('"', Channel.CALL)
    parts = ['"']
    while True:
        found = _STRING.match(reader.text, reader.at)
        end = reader.at if found is None else found.end()
        parts.append(reader.consume(end, Channel.CALL))
        rest = reader.text[end : end + 2]
        if rest.startswith('"'):
            parts.append(reader.consume(end + 1, Channel.CALL))
            break
        if rest not in ("", "\\"):
            raise Malformed
        yield from reader.wait()
    value = loads(marks.plain("".join(parts)))
    assert isinstance(value, str)
    return value


def value(reader: Reader, marks: Marks) -> Steps[object]:
    """Read any JSON value that something follows."""
    found = yield from reader.match(r'["{\[]|(?:' + _SCALAR + r")(?=[\s,}\]])")
    if found is None:
        raise Malformed
    if found[0] == '"':
        return (yield from string(reader, marks))
    if found[0] in ("{", "["):
        return loads((yield from container(reader, marks, streams=False)))
    reader.consume(found.end(), Channel.CALL)
    constants = {"None": None, "True": True, "False": False}
    return constants[found[0]] if found[0] in constants else loads(found[0])
