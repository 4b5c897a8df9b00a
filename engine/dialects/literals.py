"""Values in a syntax of a family's own: strings, lists and objects, nested in each other.

What is read becomes a JSON object, said member by member.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

import regex

from engine.conversation import Tool
from engine.dialects.json_call import begun_arguments, whole_arguments
from engine.dialects.json_text import dumps, repaired
from engine.dialects.marks import Marks
from engine.dialects.pieces import Arguments, Malformed, Piece, Steps
from engine.dialects.reader import Reader
from engine.dialects.values import Shape
from engine.events import Channel

MOST_NESTED = 64
_NUMBER = regex.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: Mapping[str, object] = {
    **{"true": True, "false": False, "null": None},
    **{"True": True, "False": False, "None": None},
}
_ESCAPE = regex.compile(
    r"\\(?:x(?P<x>[0-9A-Fa-f]{2})|u(?P<u>[0-9A-Fa-f]{4})"
    r"|U(?P<U>00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})|(?P<one>.))",
    regex.DOTALL,
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_KEPT = "\\'\"/"
# Longer quotes and shorter ones, told apart by what follows.
_QUOTE = r"'''|\"\"\"|''(?=[^'])|\"\"(?=[^\"])|'(?=[^'])|\"(?=[^\"])|(?=[^'\"])"
# What a literal holds up to its quote; a triple quote may have single ones in it.
_INSIDE = {
    "'": regex.compile(r"(?:[^'\\]|\\.)*+", regex.DOTALL),
    '"': regex.compile(r'(?:[^"\\]|\\.)*+', regex.DOTALL),
    "'''": regex.compile(r"(?:[^'\\]|\\.|'{1,2}(?=[^']))*+", regex.DOTALL),
    '"""': regex.compile(r'(?:[^"\\]|\\.|"{1,2}(?=[^"]))*+', regex.DOTALL),
}


class Members:
    """The arguments of the open call, said as one JSON object while they come."""

    def __init__(self, tool: Tool | None, *, trusted: bool) -> None:
        self._tool = tool
        self._trusted = trusted
        self._names: set[str] = set()
        self._text = ""  # of a custom tool's object, which says nothing before it is whole

    def name(self, name: str) -> Iterator[Piece]:
        """The name of the next argument. Raises Malformed for one that was there before."""
        if name in self._names and not self._trusted:
            raise Malformed
        yield from self._say(f"{', ' if self._names else '{'}{dumps(name)}: ")
        self._names.add(name)

    def value(self, value: object) -> Iterator[Piece]:
        """All of its value."""
        yield from self._say(dumps(value))

    def quote(self) -> Iterator[Piece]:
        """The beginning or the end of a value that is a string."""
        yield from self._say('"')

    def text(self, text: str) -> Iterator[Piece]:
        """A part of that string."""
        yield from self._say(dumps(text)[1:-1])

    def end(self) -> Iterator[Piece]:
        """There are no more arguments."""
        yield from self._say("}" if self._names else "{}")
        if self._text:
            yield whole_arguments(self._tool, self._text)

    def cut(self) -> Iterator[Piece]:
        """A limit has cut them."""
        if self._text:
            yield begun_arguments(self._tool, self._text)

    def _say(self, text: str) -> Iterator[Piece]:
        if self._tool is None or self._tool.format is None:
            yield Arguments(text)
        else:
            self._text += text


class Literals(ABC):
    """Reads values. What strings, keys and bare words look like is a family's own."""

    brackets: ClassVar[Mapping[str, str]] = {"[": "]"}

    def __init__(self, reader: Reader, marks: Marks) -> None:
        self.reader = reader
        self.marks = marks

    def string(self) -> Steps[str | None]:
        """Read the string that begins here, if one does."""
        return (yield from quoted(self.reader, self.marks))

    @abstractmethod
    def key(self) -> Steps[str]:
        """Read a key of an object and what separates it from its value."""

    def word(self, shape: Shape) -> Steps[object]:
        """Read a value that is neither quoted nor bracketed."""
        word = r"([^\s,:()\[\]{}]{1,400})(?=[\s,:)\]}])"
        found = yield from self.reader.expect(word, Channel.CALL)
        return constant(found[1])

    def value(self, shape: Shape, depth: int = 0) -> Steps[object]:
        """Read a value, of which `shape` is what its tool says."""
        reader = self.reader
        text = yield from self.string()
        if text is not None:
            return text
        found = yield from reader.match(r"[\[({]|(?=[^\[({])")
        if found is None or (found[0] != "{" and found[0] not in self.brackets):
            return (yield from self.word(shape))
        if depth == MOST_NESTED:
            raise Malformed
        reader.consume(found.end(), Channel.CALL)
        if found[0] == "{":
            return (yield from self._object(shape, depth + 1))
        return (yield from self._list(self.brackets[found[0]], shape, depth + 1))

    def _object(self, shape: Shape, depth: int) -> Steps[dict[str, object]]:
        found: dict[str, object] = {}
        while not (yield from self.is_closed("}", not found)):
            key = yield from self.key()
            found[key] = yield from self.value(shape.member(key), depth)
        return found

    def _list(self, close: str, shape: Shape, depth: int) -> Steps[list[object]]:
        found: list[object] = []
        inner = shape.item
        while not (yield from self.is_closed(close, not found)):
            found.append((yield from self.value(inner, depth)))
        return found

    def is_closed(self, close: str, is_first: bool) -> Steps[bool]:
        """Consume what closes a list or object, or what comes before its next item."""
        close = regex.escape(close)
        comma = r"(?=\S)" if is_first else r",\s*+(?=\S)"
        trailing = "" if is_first else r"(?:,\s*+)?"
        found = yield from self.reader.expect(rf"\s*+{trailing}({close})|\s*+{comma}", Channel.CALL)
        return found[1] is not None


def constant(word: str) -> object:
    """The value of a bare word. Raises Malformed for one that names no value."""
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if not _NUMBER.fullmatch(word):
        raise Malformed
    try:
        number = float(word) if any(char in word for char in ".eE") else int(word)
    except ValueError:
        raise Malformed from None
    if not math.isfinite(number):
        raise Malformed
    return number


def quoted(reader: Reader, marks: Marks) -> Steps[str | None]:
    """Read the string literal that begins here, if one does: JSON's or Python's."""
    found = yield from reader.match(_QUOTE)
    if found is None or not found[0]:
        return None
    quote = found[0][0] if len(found[0]) == 2 else found[0]
    reader.consume(reader.at + len(quote), Channel.CALL)
    parts = []
    while True:
        end = _inside_end(reader, quote)
        parts.append(reader.consume(end, Channel.CALL))
        if reader.text.startswith(quote, end):
            reader.consume(end + len(quote), Channel.CALL)
            return unescaped(marks.plain("".join(parts)))
        yield from reader.wait()


def _inside_end(reader: Reader, quote: str) -> int:
    found = _INSIDE[quote].match(reader.text, reader.at)
    return reader.at if found is None else found.end()


def unescaped(text: str) -> str:
    """The text that a literal stands for; an escape that neither JSON nor Python has stays."""
    return repaired(_ESCAPE.sub(_unescape, text))


def _unescape(found: regex.Match[str]) -> str:
    digits = found["x"] or found["u"] or found["U"]
    if digits:
        return chr(int(digits, 16))
    one = found["one"]
    if one == "\n":
        return ""
    return one if one in _KEPT else _ESCAPED.get(one, found[0])
