"""Calls as elements: one for the call, and in it one for each argument, whose strings stand bare.

DeepSeek's DSML and Kimi's XTML are such. The tag of an argument says whether a string or JSON
follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import regex

from engine.dialects.json_call import arguments
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Closed, Malformed, Opened, Steps
from engine.dialects.tagged import AWAITED, Ends, TaggedArguments, ends
from engine.events import Channel


class Argument(NamedTuple):
    """What the tag of an argument says; None where it does not tell strings from JSON."""

    key: str
    is_string: bool | None


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags as regular expressions, with the groups that the parser of the family reads.

    A section holds calls. `starts` are the characters that a tag can begin with. `named` is the
    beginning of an argument's tag with its key. `json` and `json_end` may stand around an object
    that is there instead of the arguments.
    """

    starts: str
    section: str
    section_end: str
    call: str
    call_end: str
    argument: str
    argument_end: str
    named: Callable[[str], str]
    json: str = r"(?!)"
    json_end: str = r"(?!)"


class ElementParser(OutputParser, ABC):
    """A dialect says which tags it has, and what is in them."""

    @abstractmethod
    def tags(self, head: regex.Match[str]) -> Tags:
        """The tags of the calls that begin with `head`."""

    @abstractmethod
    def call_name(self, tag: regex.Match[str]) -> str:
        """The tool that the tag of a call names."""

    def is_empty(self, tag: regex.Match[str]) -> bool:
        """Whether the tag of a call is all of it."""
        return False

    @abstractmethod
    def argument(self, tag: regex.Match[str]) -> Argument:
        """What the tag of an argument says."""

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader, tags = self.reader, self.tags(head)
        section = yield from reader.match(tags.section)
        if section is not None:
            reader.consume(section.end(), Channel.CALL)
        while (tag := (yield from reader.match(rf"\s*{tags.call}"))) is not None:
            reader.consume(tag.end(), Channel.CALL)
            yield from self._one_call(tags, tag)
        if section is not None:
            yield from reader.expect(rf"\s*{tags.section_end}", Channel.CALL)

    def _one_call(self, tags: Tags, tag: regex.Match[str]) -> Steps[None]:
        name = self.call_name(tag)
        if not name:
            raise Malformed
        yield Opened(name)
        if self.is_empty(tag):
            yield from TaggedArguments(self, name).close()
        elif (yield from self._stands_json(tags)):
            yield from arguments(self, name)
            end = rf"\s*(?:{tags.json_end}\s*)?{tags.call_end}"
            yield from self.reader.expect(end, Channel.CALL)
        else:
            yield from self._arguments(tags, name)
        yield Closed()

    def _stands_json(self, tags: Tags) -> Steps[bool]:
        """Whether all arguments are one object; then the reader stands before it."""
        body = yield from self.reader.match(rf"\s*(?:{tags.json}\s*)?(?=\{{)")
        if body is not None:
            self.reader.consume(body.end(), Channel.CALL)
        return body is not None

    def _arguments(self, tags: Tags, name: str) -> Steps[None]:
        said = TaggedArguments(self, name)
        pattern = rf"\s*(?:{tags.argument}|(?P<call_end>{tags.call_end}))"
        while (tag := (yield from self.reader.expect(pattern, Channel.CALL)))["call_end"] is None:
            key, is_string = self.argument(tag)
            if not key:
                raise Malformed
            end = self._ends(tags, said.awaits(key))
            if is_string is None:
                yield from said.value(key, end)
            else:
                yield from said.flagged(key, end, is_string=is_string)
        yield from said.close()

    def _ends(self, tags: Tags, accepts: Callable[[regex.Match[str]], bool]) -> Ends:
        """Where a value ends: at a tag behind which the syntax goes on.

        `accepts` knows the arguments that may follow.
        """
        body = rf"\s*(?:{tags.argument}|{tags.call_end})"
        end = rf"{tags.argument_end}(?={body})"
        starts = tags.starts + "\n"
        if self.expected.trusted:
            return ends(starts, [end])
        dropped = [
            rf"\n?(?={tags.named(AWAITED)})",
            rf"\n?(?={tags.call_end}\s*(?:{tags.call}|{tags.section_end}))",
        ]
        quoted = (rf"{tags.call}(?={body})", tags.call_end)
        return ends(starts, [end, *dropped], quoted=quoted, accepts=accepts)
