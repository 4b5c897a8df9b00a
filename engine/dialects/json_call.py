"""A call as one JSON object, `{"name": ..., "arguments": {...}}`: half of the families write it."""

from __future__ import annotations

from functools import partial

import regex

from engine.conversation import Tool
from engine.dialects.json_text import container, is_strict, loads, rewritten, string, value
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Arguments, Malformed, Opened, Steps
from engine.events import Channel

_ARGUMENTS = ("arguments", "parameters")
_INPUT = regex.compile(
    r'\s*+\{\s*+"input"\s*+:\s*+"((?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)'
)
"""The object of a custom tool, as far as its text is whole characters."""


def call_object(parser: OutputParser, *, needs_arguments: bool = False) -> Steps[None]:
    """Read the object of one call; says its name and arguments, but not its end.

    The arguments may come first, may be spelt `parameters`, may be a string that holds the object,
    or, unless the call needs them, be absent. Raises Malformed.
    """
    reader = parser.reader
    name: str | None = None
    call_id: str | None = None
    waiting: str | None = None
    is_said = False
    yield from reader.expect(r"\{\s*+(?=\S)", Channel.CALL)
    while True:
        key = yield from string(reader, parser.marks)
        yield from reader.expect(r"\s*+:\s*+(?=\S)", Channel.CALL)
        if key in _ARGUMENTS and name is not None and not is_said:
            yield Opened(name, call_id)
            is_said = True
            yield from arguments(parser, name)
        elif key in _ARGUMENTS and not is_said:
            waiting = yield from _text(parser)
        elif key in ("name", "id"):
            text = yield from string(reader, parser.marks)
            name, call_id = (text, call_id) if key == "name" else (name, text)
        else:
            yield from value(reader, parser.marks)
        separator = yield from reader.expect(r"\s*+(?:,\s*+(?=\")|\})", Channel.CALL)
        if separator[0].endswith("}"):
            break
    is_complete = is_said or waiting is not None or not needs_arguments
    if not name or not is_complete:
        raise Malformed
    if not is_said:
        yield Opened(name, call_id)
        yield whole_arguments(parser.tool(name), waiting or "{}")


def arguments(parser: OutputParser, name: str) -> Steps[None]:
    """Read the arguments of the open call and say them, streamed where that is safe."""
    tool = parser.tool(name)
    streams = parser.expected.trusted and (tool is None or tool.format is None)
    found = yield from parser.reader.match(r"\{|(?=[^{])")
    if found is not None and found[0] == "{":
        text = yield from container(
            parser.reader, parser.marks, streams=streams, begun=partial(begun_arguments, tool)
        )
        if not streams:
            yield whole_arguments(tool, text)
    else:
        yield whole_arguments(tool, (yield from _text(parser)))


def begun_arguments(tool: Tool | None, text: str) -> Arguments:
    """Arguments that a limit has cut; a custom tool's are the text that its object begins with."""
    if tool is None or tool.format is None:
        return Arguments(text)
    found = _INPUT.match(text)
    inner = loads(f'"{found[1]}"') if found else ""
    assert isinstance(inner, str)
    return Arguments(inner)


def whole_arguments(tool: Tool | None, text: str) -> Arguments:
    """Complete arguments; a custom tool's are the text in the object that stands for it."""
    if tool is None or tool.format is None:
        return Arguments(text)
    wrapped = loads(text)
    inner = wrapped.get("input") if isinstance(wrapped, dict) and len(wrapped) == 1 else None
    return Arguments(inner if isinstance(inner, str) else text)


def _text(parser: OutputParser) -> Steps[str]:
    """An object as JSON text; a string may hold it, and null is an empty one."""
    found = yield from value(parser.reader, parser.marks)
    if isinstance(found, str):
        inner = loads(found) if found.strip() else {}
        if not isinstance(inner, dict):
            raise Malformed
        return found if is_strict(found) and found.strip() else rewritten(inner)
    if found is None:
        return "{}"
    if not isinstance(found, dict):
        raise Malformed
    return rewritten(found)
