"""Model output to thoughts, answer text and calls, however the output is cut into pieces.

A parser is a coroutine over a `Reader`: it yields pieces, and WAIT where only more text can decide.
It decides nothing that more text could change, so the pieces join to the same whole for every
split. What a model writes wrongly is never an error here: what is no call is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import regex

from engine.conversation import Tool
from engine.dialects.marks import Marks
from engine.dialects.pieces import (
    WAIT,
    Arguments,
    Closed,
    Expected,
    Incomplete,
    Malformed,
    Opened,
    Piece,
    Said,
    Steps,
)
from engine.dialects.reader import Reader, Stop
from engine.dialects.values import Shape
from engine.events import Channel

MOST_FAILED = 64  # calls that turned out to be none, after which an output is taken for text


class OutputParser:
    """What dialects share: thoughts between two delimiters, answer text, calls in both.

    A dialect says what begins a call (`call_head`) and reads it (`call`). White space next to a
    delimiter is not said, unless more of the same text follows.
    """

    think_open: ClassVar[str | None] = "<think>"
    think_close: ClassVar[str | None] = "</think>"

    def __init__(self, marks: Marks, expected: Expected) -> None:
        self.marks = marks
        self.expected = expected
        self.reader = Reader()
        self.reader.certain = expected.trusted
        self._space = ""  # white space of the current text, said only if more of it follows
        self._spoke = True  # whether the last thing of the answer is text
        self.failed = 0  # calls that turned out to be none
        self._calls = 0  # calls said
        self._shapes: dict[str, Shape] = {}
        self._steps = self.run()
        self._advance()

    # What a dialect defines

    def call_head(self) -> tuple[str, str] | None:
        """What begins a call: its possible first characters, and a regular expression.

        A match must be certain to begin one, as far as the syntax allows.
        """
        return None

    def call(self, head: regex.Match[str]) -> Steps[None]:
        """Read one call, or a section of calls; the reader stands before the head.

        Raises Malformed when it is none.
        """
        raise Malformed
        yield WAIT

    def starts_thinking(self) -> bool:
        """Whether the prompt left a thought open."""
        if self.think_open is None or self.think_close is None or not self.expected.thinks:
            return False
        tail = self.expected.tail
        opened = tail.rfind(self.marks[self.think_open])
        return opened > tail.rfind(self.marks[self.think_close])

    def thought_end(self) -> Stop:
        """What closes a thought."""
        assert self.think_close is not None
        return self.delimiter("close", self.think_close)

    def final_stops(self) -> list[Stop]:
        """Stops at what is none of the answer, even where that is verbatim; a call reads it."""
        return []

    # What a choice calls

    def feed(self, text: str) -> list[Piece]:
        """Take the next part of the output, in which tokens that are delimiters are marked."""
        self.reader.push(text)
        return self._advance()

    def finish(self, *, cut: bool) -> list[Piece]:
        """The output is over: say what was held back. `cut`: a limit ended it, not the model."""
        self.reader.ended = True
        self.reader.cut = cut
        return self._advance()

    def _advance(self) -> list[Piece]:
        """Run until more text is needed; neighbouring pieces of one kind become one."""
        pieces: list[Piece] = []
        for piece in self._steps:
            if piece is WAIT:
                break
            last = pieces[-1] if pieces else None
            if isinstance(piece, Said) and isinstance(last, Said) and last.channel is piece.channel:
                pieces[-1] = Said(piece.channel, last.text + piece.text)
            elif isinstance(piece, Arguments) and isinstance(last, Arguments):
                pieces[-1] = Arguments(last.text + piece.text)
            else:
                pieces.append(piece)
        return pieces

    # The shared path

    def run(self) -> Steps[None]:
        """The whole output. A dialect of another shape has its own."""
        if self.starts_thinking():
            yield from self.thought()
        while not self.reader.is_over:
            yield from self.answer()
        if self._spoke:
            yield from self.say_space(Channel.TEXT)

    def thought(self) -> Steps[None]:
        """A thought up to its close, or up to a call that ends it."""
        self._space, self._spoke = "", False
        yield from self.reader.skip_space()
        while True:
            stops = [self.thought_end(), *self.call_stops()]
            found = yield from self.until(stops, Channel.REASONING)
            if found is None:
                yield from self.say_space(Channel.REASONING)
                return
            stop, match = found
            thoughts_space, self._space = self._space, ""
            self.reader.recast(Channel.MARKUP)
            if stop.name == "close":
                self.reader.consume(match.end(), Channel.MARKUP)
                yield from self.reader.skip_space()
                return
            calls = self._calls
            is_read = yield from self.try_call(match)
            if self._calls > calls:
                return
            self._space = thoughts_space
            if not is_read:
                yield from self.say(Channel.REASONING, self.reader.at + 1)

    def answer(self) -> Steps[None]:
        """Answer text up to a thought and through it, or through a call."""
        stops = self.call_stops()
        if self.think_open is not None and self.expected.thinks:
            stops.append(self.delimiter("think", self.think_open))
        if self.expected.verbatim and not (yield from self._stands_at(stops)):
            stops = self.final_stops()
        found = yield from self.until(stops, Channel.TEXT)
        if found is None:
            return
        stop, match = found
        if stop.name == "think":
            self.reader.consume(match.end(), Channel.MARKUP)
            yield from self.thought()
        else:
            calls = self._calls
            is_read = yield from self.try_call(match)
            if not is_read and self._calls == calls:
                yield from self.say(Channel.TEXT, self.reader.at + 1)

    def _stands_at(self, stops: Sequence[Stop]) -> Steps[bool]:
        """Whether a stop is next, behind white space."""
        reader = self.reader
        space = 0
        while True:
            rest = reader.text[reader.at + space :]
            space += len(rest) - len(rest.lstrip())
            if reader.at + space < len(reader.text):
                at, _, found = reader.first(stops)
                if found is None or not found.partial:
                    return found is not None and at == reader.at + space
            if reader.ended:
                return False
            yield WAIT

    def try_call(self, head: regex.Match[str]) -> Steps[bool]:
        """Read calls, or find that there is none: then the reader stands where it stood.

        Pieces go out when their call is whole, or at once where masks guarantee that it will be.
        """
        reader = self.reader
        held: list[Piece] = []
        opened = False
        reader.pin()
        try:
            for piece in self.call(head):
                if isinstance(piece, Opened) and not self._may_call(piece.name):
                    raise Malformed
                if isinstance(piece, Arguments) and not opened:
                    continue  # a limit cut them off before the name
                if piece is WAIT or self.expected.trusted:
                    yield piece
                    if opened and self.expected.trusted:
                        reader.pin()  # what is said stays said; long arguments need not be kept
                else:
                    held.append(piece)
                if isinstance(piece, Opened):
                    opened = True
                elif isinstance(piece, Closed):
                    yield from held
                    held, opened = [], False
                    self._calls += 1
                    self._spoke = False
                    reader.pin()
        except Malformed as error:
            return (yield from self._broken_call(error, held, opened))
        yield from held
        reader.unpin()
        return True

    def _may_call(self, name: str) -> bool:
        return self.expected.names is None or name in self.expected.names

    def _broken_call(self, error: Malformed, held: list[Piece], opened: bool) -> Steps[bool]:
        """What began like a call and has no end.

        It stays open where a limit cut it, and is nothing where that was before its name, or where
        only its delimiters were there. All else is text: the reader goes back.
        """
        reader = self.reader
        ended = isinstance(error, Incomplete)
        delimiters = "".join(self.marks.of_token.values())
        only_markup = not reader.since_pin().strip(delimiters + " \t\r\n")
        is_said = opened and self.expected.trusted
        if is_said or (ended and (only_markup or reader.cut)):
            yield from held
            self._calls += opened
            if ended:
                reader.consume(len(reader.text), Channel.CALL)
            reader.unpin()
            self._spoke = False
            return True
        reader.rewind()
        self.failed += 1
        return False

    # What dialects use

    def tool(self, name: str) -> Tool | None:
        """The declared tool of a name."""
        return (self.expected.tools or {}).get(name)

    def shape(self, name: str) -> Shape:
        """What the arguments of a tool may be."""
        if name not in self._shapes:
            self._shapes[name] = Shape.of(self.tool(name))
        return self._shapes[name]

    def call_stops(self) -> list[Stop]:
        """The stop at a call, where calls are read."""
        head = self.call_head() if self.expected.tools is not None else None
        if head is None or self.failed >= MOST_FAILED:
            return []
        return [Stop("call", head[0], regex.compile(head[1]))]

    def delimiter(self, name: str, *spellings: str) -> Stop:
        """A stop at any of some delimiters."""
        starts = "".join(self.marks[spelling][0] for spelling in spellings)
        return Stop(name, starts, regex.compile(self.marks.re(*spellings)))

    def until(
        self, stops: Sequence[Stop], channel: Channel
    ) -> Steps[tuple[Stop, regex.Match[str]] | None]:
        """Say everything before the first match of a stop; None when the output ends first.

        The reader then stands at the match.
        """
        while True:
            at, stop, found = self.reader.first(stops)
            yield from self.say(channel, at)
            if stop is not None and found is not None and not found.partial:
                return stop, found
            if self.reader.ended:
                is_call = stop is not None and stop.name == "call"
                rest = Channel.CALL if is_call else Channel.MARKUP
                if self.reader.consume(len(self.reader.text), rest):
                    self._space = ""
                return None
            yield WAIT

    def say(self, channel: Channel, end: int) -> Iterator[Piece]:
        """Consume text and say it; white space at its end waits for what comes behind it."""
        text = self.marks.plain(self.reader.consume(end, channel))
        core = text.rstrip()
        before = self._space if core else ""
        self._space = text[len(core) :] if core else self._space + text
        if channel is Channel.REASONING:
            self.reader.held = len(self._space)
        if core:
            self._spoke = channel is Channel.TEXT
            yield Said(channel, before + core)

    def say_space(self, channel: Channel) -> Iterator[Piece]:
        """Say the white space that waited."""
        space, self._space = self._space, ""
        self.reader.held = 0
        if space:
            yield Said(channel, space)
