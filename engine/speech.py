"""The text of one choice becomes the events that show it: answer, thoughts, calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Arguments, Opened, Piece, Said
from engine.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Channel,
    Delta,
    ReasoningDelta,
    SemanticEvent,
    TextDelta,
    TokenRecord,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the outputs of a conversation are read.

    `parser` makes one for each choice; `new_id` an id for a call that brings none
    of which `takes_id` is true. `marks` are the
    characters that stand for the tokens which are delimiters, `spellings` those tokens' texts with
    their characters. `parallel_calls` False ends the turn after its first call.
    """

    parser: Callable[[], OutputParser]
    new_id: Callable[[], str]
    takes_id: Callable[[str], bool]
    marks: dict[int, str]
    spellings: dict[str, str]
    parallel_calls: bool = True


class Speech:
    """What a choice has said. `calls` counts the calls that are whole."""

    def __init__(self, reading: Reading | None, usage: Callable[[], Usage]) -> None:
        self._reading = reading
        self._parser = reading.parser() if reading is not None else None
        self._usage = usage
        self._records: tuple[TokenRecord, ...] = ()  # certain, but not shown with an event yet
        self._unread: deque[TokenRecord] = deque()  # their text is not read yet
        self._offsets: deque[int] = deque()  # of tokens whose channel is not known yet
        self._opened = -1
        self._ids: set[str] = set()
        self._custom = False
        self.calls = 0
        self.reasoning = 0

    @property
    def is_over(self) -> bool:
        """Whether the turn has the one call that it may make."""
        return self._reading is not None and not self._reading.parallel_calls and self.calls > 0

    @property
    def malformed_calls(self) -> int:
        """What began like a call and was none."""
        return self._parser.failed if self._parser is not None else 0

    def hear(self, offset: int) -> None:
        """A token whose text begins at this character of the output."""
        if self._parser is not None:
            self._offsets.append(offset)

    def say(self, text: str, records: tuple[TokenRecord, ...], events: list[SemanticEvent]) -> None:
        """Text that no stop can take back any more, with the records that are certain with it."""
        if self._parser is None:
            self._records = records
            if text or records:
                self._show(TextDelta(text, self._usage()), events)
            return
        self._unread += records
        pieces = self._parser.feed(text) if text else []
        self._settle(self._parser.reader.settled)
        self._show_all(pieces, events)

    def finish(self, events: list[SemanticEvent], *, cut: bool) -> None:
        """The output is over: show what was held back."""
        if self._parser is None or self.is_over:
            return
        pieces = self._parser.finish(cut=cut)
        self._settle(None)
        self._show_all(pieces, events)
        if self._records:
            self._show(TextDelta("", self._usage()), events)

    def _show_all(self, pieces: Iterable[Piece], events: list[SemanticEvent]) -> None:
        for piece in pieces:
            self._show(self._event(piece), events)
            if self.is_over:
                return

    def _settle(self, end: int | None) -> None:
        """Tokens whose text begins before `end` (None: all) have a channel now."""
        tokens: list[int] = []
        while self._offsets and (end is None or self._offsets[0] < end):
            tokens.append(self._offsets.popleft())
        records: list[TokenRecord] = []
        while self._unread and (end is None or self._unread[0].offset < end):
            records.append(self._unread.popleft())
        self.reasoning += self._channels(tokens).count(Channel.REASONING)
        channels = self._channels([record.offset for record in records])
        self._records += tuple(
            replace(record, channel=channel)
            for record, channel in zip(records, channels, strict=True)
        )
        self._forget_spans()

    def _channels(self, offsets: list[int]) -> list[Channel]:
        """Where the characters at these rising offsets went."""
        assert self._parser is not None
        spans = self._parser.reader.spans
        channels: list[Channel] = []
        place = 0
        for offset in offsets:
            while place + 1 < len(spans) and spans[place].end <= offset:
                place += 1
            channels.append(spans[place].channel if spans else Channel.TEXT)
        return channels

    def _forget_spans(self) -> None:
        assert self._parser is not None
        spans = self._parser.reader.spans
        waiting = [*(self._offsets and [self._offsets[0]]), *(r.offset for r in self._unread)][:2]
        low = min(waiting, default=self._parser.reader.settled)
        old = 0
        while old + 1 < len(spans) and spans[old].end <= low:
            old += 1
        del spans[:old]

    def _event(self, piece: Piece) -> Delta:
        usage = self._usage()
        if isinstance(piece, Said):
            shown = TextDelta if piece.channel is Channel.TEXT else ReasoningDelta
            return shown(piece.text, usage)
        if isinstance(piece, Opened):
            return self._open(piece, usage)
        if isinstance(piece, Arguments):
            return CallDelta(self._opened, piece.text, usage)
        self.calls += 1
        return CallEnd(self._opened, usage)

    def _open(self, piece: Opened, usage: Usage) -> CallStart:
        assert self._reading is not None and self._parser is not None
        self._opened += 1
        own = piece.id
        if not own or own in self._ids or not self._reading.takes_id(own):
            own = self._reading.new_id()
        self._ids.add(own)
        tool = self._parser.tool(piece.name)
        custom = tool is not None and tool.format is not None
        return CallStart(self._opened, own, piece.name, custom, usage)

    def _show(self, event: Delta, events: list[SemanticEvent]) -> None:
        """Add an event, joined to the last one where both are of one kind, with its records."""
        records, self._records = self._records, ()
        last = events[-1] if events else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            event = replace(event, text=last.text + event.text, echoed=last.echoed)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            event = replace(event, text=last.text + event.text)
        elif isinstance(event, CallDelta) and isinstance(last, CallDelta):
            event = replace(event, arguments=last.arguments + event.arguments)
        else:
            events.append(replace(event, records=records) if records else event)
            return
        events[-1] = replace(event, records=last.records + records)
