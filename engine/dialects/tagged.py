"""Calls that are written tag by tag, one argument after another, each a bare value.

Nothing in such a value is escaped, so a file that a model writes may hold the very tag that closes
it. A closing tag counts where the syntax goes on behind it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

import regex

from engine.conversation import ToolCall, ToolResult
from engine.dialects.json_text import dumps, is_strict
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import WAIT, Arguments, Incomplete, Piece, Steps
from engine.dialects.reader import Stop
from engine.events import Channel

AWAITED = r"(?P<awaited>[^<>\n\ud800-\udfff]{1,256}?)"
"""The name of an argument, as `TaggedArguments.awaits` looks it up."""

Parts = Generator[str | None, None, regex.Match[str]]


class Ends(NamedTuple):
    """What ends a value: `now`, once what follows shows it; `last`, where nothing follows.

    A whole call that is quoted in the value begins with `opens` and ends with `closes`.
    """

    now: Stop
    last: Stop
    opens: Stop | None = None
    closes: Stop | None = None


def ends(
    starts: str,
    now: Sequence[str],
    last: Sequence[str] = (),
    *,
    quoted: tuple[str, str] | None = None,
    accepts: Callable[[regex.Match[str]], bool] | None = None,
) -> Ends:
    """Ends by regular expressions; `starts` are the characters that they begin with.

    `accepts` has the last word on an end.
    """

    def stop(*patterns: str) -> Stop:
        return Stop("", starts, regex.compile("|".join(patterns)))

    opens, closes = (stop(quoted[0]), stop(quoted[1])) if quoted else (None, None)
    now_, last_ = stop(*now), stop(*now, *last)
    return Ends(now_._replace(accepts=accepts), last_._replace(accepts=accepts), opens, closes)


def parts(parser: OutputParser, until: Ends) -> Parts:
    """The text of a value, as it comes; returns its end, which is consumed.

    Text that may belong to the end waits. Raises Incomplete.
    """
    reader = parser.reader
    depth = 0
    while True:
        end = until.last if reader.ended else until.now
        stops = [until.closes if depth else end, until.opens]
        at, stop, found = reader.first([stop for stop in stops if stop is not None])
        if stop is None and reader.ended:
            raise Incomplete
        is_found = found is not None and not found.partial
        is_quoted = is_found and (depth > 0 or stop is until.opens)
        if found is not None and is_quoted:
            at = found.end()
            depth += 1 if stop is until.opens else -1
        text = parser.marks.plain(reader.consume(at, Channel.CALL))
        if text:
            yield text
        if found is not None and is_found and not is_quoted:
            reader.consume(found.end(), Channel.CALL)
            return found
        if not is_found and reader.ended:
            raise Incomplete
        if not is_found:
            yield WAIT


def whole(parser: OutputParser, until: Ends) -> Steps[tuple[str, regex.Match[str]]]:
    """All of a value, and its end."""
    texts: list[str] = []
    coming = parts(parser, until)
    while True:
        try:
            part = next(coming)
        except StopIteration as stopped:
            return "".join(texts), stopped.value
        if part is None:
            yield WAIT
        else:
            texts.append(part)


class TaggedArguments:
    """The arguments of an open call, said as one JSON object while they come.

    A string goes out piece by piece, anything else once it is whole. A custom tool's are the text
    of its one parameter. Of arguments with the same name, the first counts.
    """

    def __init__(self, parser: OutputParser, name: str) -> None:
        tool = parser.tool(name)
        self._parser = parser
        self._is_custom = tool is not None and tool.format is not None
        self._given: set[str] = set()
        self._said = False
        self.shape = parser.shape(name)

    def awaits(self, behind: str = "") -> Callable[[regex.Match[str]], bool]:
        """Whether an end names none, or an argument that may still come behind one."""
        names = self.shape.names
        missing = {name for name in names if name not in self._given and name != behind}

        def accepts(found: regex.Match[str]) -> bool:
            return not names or found["awaited"] is None or found["awaited"] in missing

        return accepts

    def value(self, key: str, until: Ends, again: str | None = None) -> Steps[None]:
        """Read a value and its end, and say it.

        `again` is what opens another value of the same name, which an array takes as an element.
        """
        shape = self.shape.member(key)
        if key in self._given or (self._is_custom and key != "input"):
            yield from whole(self._parser, until)
        elif self._is_custom:
            yield from self._raw(until)
        elif self.streams(key):
            yield from self._text(key, until, nullable=not shape.is_text)
        else:
            texts = [(yield from whole(self._parser, until))[0]]
            while again is not None and "array" in shape.types:
                found = yield from self._parser.reader.match(again)
                if found is None:
                    break
                self._parser.reader.consume(found.end(), Channel.CALL)
                texts.append((yield from whole(self._parser, until))[0])
            known = shape.json_of(texts[0]) if len(texts) == 1 else shape.list_of(texts)
            yield from self.member(key, known)
        self._given.add(key)

    def streams(self, key: str) -> bool:
        """Whether a value goes out while it comes: a string, and all of a custom tool."""
        types = self.shape.member(key).types
        return self._is_custom or (bool(types) and types <= {"string", "null"})

    def flagged(self, key: str, until: Ends, *, is_string: bool) -> Steps[None]:
        """Read and say a value whose tag tells strings from JSON; what is no JSON is a string."""
        if key in self._given or (self._is_custom and key != "input"):
            yield from whole(self._parser, until)
        elif self._is_custom:
            yield from self._raw(until)
        elif is_string:
            yield from self._text(key, until, nullable=False)
        else:
            text = (yield from whole(self._parser, until))[0].strip()
            known = text if is_strict(text) else self.shape.member(key).json_of(text)
            yield from self.member(key, known)
        self._given.add(key)

    def member(self, key: str, value: str | None) -> Iterator[Piece]:
        """Say a value that is JSON, if there is one and it is the first of its name."""
        if value is not None and key not in self._given and not self._is_custom:
            yield Arguments(self._opening(key) + value)
        self._given.add(key)

    def close(self) -> Iterator[Piece]:
        """Say what ends the object."""
        if not self._is_custom:
            yield Arguments("}" if self._said else "{}")

    def _raw(self, until: Ends) -> Steps[None]:
        for part in parts(self._parser, until):
            yield WAIT if part is None else Arguments(part)

    def _text(self, key: str, until: Ends, *, nullable: bool) -> Steps[None]:
        """Say a string. One that may be null waits as long as it looks like that."""
        held, is_open = "", False
        for part in parts(self._parser, until):
            if part is None:
                yield WAIT
                continue
            held += part
            if is_open or not nullable or not "null".startswith(held):
                opening = "" if is_open else self._opening(key) + '"'
                yield Arguments(opening + dumps(held)[1:-1])
                held, is_open = "", True
        if is_open:
            yield Arguments('"')
        else:
            yield from self.member(key, "null" if held == "null" and nullable else dumps(held))

    def _opening(self, key: str) -> str:
        start = ", " if self._said else "{"
        self._said = True
        return f"{start}{dumps(key)}: "


# What a template that shows no calls needs


def members_of(call: ToolCall) -> dict[str, object]:
    """The arguments of a call by name; text that is no object is one argument."""
    if call.custom:
        return {"input": call.arguments}
    try:
        members = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        members = None
    return members if isinstance(members, dict) else {"arguments": call.arguments}


def arguments_of(call: ToolCall) -> list[tuple[str, str]]:
    """The arguments of a call as bare values."""
    members = members_of(call)
    return [(key, text if isinstance(text, str) else dumps(text)) for key, text in members.items()]


def tool_responses(results: Sequence[ToolResult]) -> str:
    """The turn that answers calls, as Qwen and GLM have it."""
    return "\n".join(
        "<tool_response>\n" + "\n\n".join(result.texts) + "\n</tool_response>" for result in results
    )
