"""The output of a model as a parser reads it while it is generated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import regex

from engine.dialects.pieces import WAIT, Incomplete, Malformed, Steps
from engine.events import Channel

MOST_AHEAD = 2048  # characters that a decision may need; what needs more of them is no match
_TOKEN = regex.compile(r"[\ud800-\udfff]")


class Span(NamedTuple):
    """The output up to its character `end`, from where the span before it ends."""

    end: int
    channel: Channel


class Stop(NamedTuple):
    """Something that ends a run of text. `starts`: every character that it can begin with.

    `accepts` has the last word on what the pattern matches.
    """

    name: str
    starts: str
    pattern: regex.Pattern[str]
    accepts: Callable[[regex.Match[str]], bool] | None = None


class Reader:
    """A window on the output: `text[at:]` is not consumed yet.

    `ended`: nothing follows, `cut`: because a limit was reached. `certain`: what begins like a
    delimiter is one. `spans` say what the consumed text was; whoever reads them may remove them
    from the front, up to `settled` characters of the output, which no `rewind` takes back.

    Steps wait until nothing that follows could change what they find: a match that reaches the end
    of the text as a part of a longer one is no match yet. None of them looks further than
    MOST_AHEAD characters, so that one more character costs no more the longer an output is.
    """

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.ended = False
        self.cut = False
        self.certain = False
        self.spans: list[Span] = []
        self._base = 0  # characters of the output before `text`
        self.held = 0  # characters consumed last whose channel is not certain
        self._pin: int | None = None

    @property
    def is_over(self) -> bool:
        return self.ended and self.at >= len(self.text)

    @property
    def settled(self) -> int:
        return self._base + (self.at if self._pin is None else self._pin) - self.held

    def push(self, text: str) -> None:
        """More text. What cannot be read again is dropped."""
        keep = self.at if self._pin is None else self._pin
        self.text = self.text[keep:] + text
        self._base += keep
        self.at -= keep
        if self._pin is not None:
            self._pin = 0

    def consume(self, end: int, channel: Channel) -> str:
        """Take `text[at:end]`."""
        start, self.at = self.at, end
        if end > start:
            if self.spans and self.spans[-1].channel is channel and self._pin != start:
                self.spans.pop()
            self.spans.append(Span(self._base + end, channel))
        return self.text[start:end]

    def recast(self, channel: Channel) -> None:
        """Give the characters that are held another channel; they are certain now."""
        count, self.held = self.held, 0
        if not count:
            return
        end = self._base + self.at
        last = self.spans.pop()
        before = self.spans[-1].end if self.spans else 0
        if before < end - count:
            self.spans.append(Span(end - count, last.channel))
        self.spans.append(Span(end, channel))

    def pin(self) -> None:
        """Remember this place, for `rewind`."""
        self._pin = self.at

    def unpin(self) -> None:
        self._pin = None

    def since_pin(self) -> str:
        """All text from the pin on, consumed or not."""
        return self.text[self._pin :]

    def rewind(self) -> None:
        """Go back to the pin, and forget it."""
        assert self._pin is not None
        self.at = self._pin
        self._pin = None
        start = self._base + self.at
        while self.spans and self.spans[-1].end > start:
            self.spans.pop()

    # Steps

    def wait(self) -> Steps[None]:
        """Let more text come. Raises Incomplete when there will be none."""
        if self.ended:
            raise Incomplete
        yield WAIT

    def match(self, pattern: str) -> Steps[regex.Match[str] | None]:
        """What matches here; nothing is consumed.

        The expression must end in something that more text cannot make longer.
        """
        compiled = regex.compile(pattern)
        while True:
            found = attempt(compiled, self.text, self.at)
            if found is None or not found.partial:
                return found
            yield from self.wait()

    def expect(self, pattern: str, channel: Channel = Channel.MARKUP) -> Steps[regex.Match[str]]:
        """Consume what matches. Raises Malformed when nothing does."""
        found = yield from self.match(pattern)
        if found is None:
            raise Malformed
        self.consume(found.end(), channel)
        return found

    def look(self, pattern: str) -> Steps[regex.Match[str] | None]:
        """What matches here, if the output does not end before that is certain."""
        try:
            return (yield from self.match(pattern))
        except Incomplete:
            return None

    def take(self, pattern: str, channel: Channel = Channel.MARKUP) -> Steps[str | None]:
        """Consume what matches here, if anything does."""
        found = yield from self.look(pattern)
        return None if found is None else self.consume(found.end(), channel)

    def skip_space(self) -> Steps[None]:
        """Consume white space, up to something else or the end."""
        while True:
            rest = self.text[self.at :].lstrip()
            self.consume(len(self.text) - len(rest), Channel.MARKUP)
            if rest or self.ended:
                return
            yield WAIT

    def first(self, stops: Sequence[Stop]) -> tuple[int, Stop | None, regex.Match[str] | None]:
        """The first place where a stop matches, or may match once more text is there.

        The end of the text, without a stop, where there is none. Where a limit cut the output, a
        stop that began with a token stays one that may match.
        """
        starts = "".join([stop.starts for stop in stops])
        if starts:
            for candidate in _any_of(starts).finditer(self.text, self.at):
                for stop in stops:
                    found = self._stop(stop, candidate)
                    if found is not None:
                        return candidate.start(), stop, found
        return len(self.text), None, None

    def _stop(self, stop: Stop, candidate: regex.Match[str]) -> regex.Match[str] | None:
        """The match of a stop at a place, or what may become one."""
        found = attempt(stop.pattern, self.text, candidate.start())
        if found is None:
            return None
        if found.partial:
            return None if self._is_text(candidate) else found
        if self.ended and candidate.start() + MOST_AHEAD < len(self.text):
            found = stop.pattern.match(self.text, candidate.start())  # now `\Z` is the end
        if found is None:
            return None
        return found if stop.accepts is None or stop.accepts(found) else None

    def _is_text(self, candidate: regex.Match[str]) -> bool:
        """Whether the rest of the output, from here, is no part of a stop."""
        begun = self.certain or _TOKEN.search(self.text, candidate.start()) is not None
        return self.ended and not (self.cut and begun)


def attempt(
    pattern: regex.Pattern[str], text: str, at: int, most: int = MOST_AHEAD
) -> regex.Match[str] | None:
    """What matches at a place within the characters that are looked at, or may do so later."""
    found = pattern.match(text, at, at + most, partial=True)
    is_short = found is not None and found.partial and at + most <= len(text)
    return None if is_short else found


@lru_cache(maxsize=256)
def _any_of(chars: str) -> regex.Pattern[str]:
    return regex.compile("[" + "".join(map(regex.escape, sorted(set(chars)))) + "]")
