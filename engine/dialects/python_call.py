"""A call as Python writes it, `name(key="value", other=None)`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import regex

from engine.dialects.json_text import dumps
from engine.dialects.literals import Literals, Members, quoted
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Opened, Steps
from engine.dialects.values import Shape
from engine.events import Channel

_ANY = Shape.of(None)
_ARGUMENT = r"([^\W\d]\w{0,200})\s*+=\s*+(?=\S)|\*\*\s*+(?=\{)"
_NAME = r"[^\W\d][\w.-]{0,255}"
_ANY_NAME = r"[^\s()\[\]{}\"',=\ud800-\udfff]{1,256}"
_SUFFIX = ".call"  # of the tools that Llama 3.1 was trained with


class PythonLiterals(Literals):
    """Python's values, and JSON's, which models mix in."""

    brackets: ClassVar[Mapping[str, str]] = {"[": "]", "(": ")"}

    def key(self) -> Steps[str]:
        key = yield from quoted(self.reader, self.marks)
        if key is None:
            key = dumps((yield from self.word(_ANY)))
        yield from self.reader.expect(r"\s*+:\s*+(?=\S)", Channel.CALL)
        return key


def call_start(parser: OutputParser) -> str:
    """An expression for what begins a call; its first group is the name."""
    fits = partial(regex.fullmatch, _NAME)
    name = _NAME if all(map(fits, parser.expected.tools or ())) else _ANY_NAME
    return rf"({name})\s*+\("


def python_call(parser: OutputParser) -> Steps[None]:
    """Read one call; says its name and its arguments, but not its end. Raises Malformed."""
    reader = parser.reader
    found = yield from reader.expect(call_start(parser), Channel.CALL)
    name = found[1]
    if parser.tool(name) is None:
        name = name.removesuffix(_SUFFIX)
    tool = parser.tool(name)
    shape = parser.shape(name)
    literals = PythonLiterals(reader, parser.marks)
    members = Members(tool, trusted=parser.expected.trusted)
    yield Opened(name)
    is_first = True
    while not (yield from literals.is_closed(")", is_first)):
        is_first = False
        found = yield from reader.expect(_ARGUMENT, Channel.CALL)
        if found[1] is not None:
            yield from members.name(found[1])
            yield from members.value((yield from literals.value(shape.member(found[1]))))
            continue
        unpacked = yield from literals.value(shape)
        assert isinstance(unpacked, dict)
        for key, value in unpacked.items():
            yield from members.name(key)
            yield from members.value(value)
    yield from members.end()
