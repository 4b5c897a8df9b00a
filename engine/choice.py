"""One choice: its tokens become semantic events."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from engine.client import TokenEvent
from engine.events import (
    FinishCause,
    Finished,
    PromptScored,
    SemanticEvent,
    Started,
    TextDelta,
    TokenRecord,
    TokenScore,
    Usage,
)
from engine.speech import Reading, Speech
from engine.text.detokenizer import Detokenizer
from engine.text.stops import StopMatcher
from engine.types import Stops

_OWN_ENDS = (FinishCause.END, FinishCause.COMPLETE, FinishCause.TOOL_CALLS)
BROKEN = (FinishCause.FAILED, FinishCause.CANCELLED, FinishCause.DEAD_END)


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """What the choices of a request have in common.

    `limit_cause` is what reaching the output limit means: the request's own limit, or the window.
    `opened` is the time of admission on the monotonic clock. Text of the first `min_tokens` tokens
    cannot hold a stop string (as in vLLM), and none of them can end a stop sequence. `records` asks
    for a record of each token, `scores_prompt` says that the engine scores the prompt. The end
    token has no record unless `records_end`: evaluation harnesses that have a prompt echoed drop
    the last entry unseen, so there must be one for the generated token whatever it is. `reading`
    None takes all output for answer text.
    """

    prompt_tokens: int
    stops: Stops
    min_tokens: int
    limit_cause: FinishCause
    opened: float
    echo: str = ""
    records: bool = False
    scores_prompt: bool = False
    records_end: bool = False
    reading: Reading | None = None


class Choice:
    """Detokenises, looks for stops and counts, for one choice of a generation.

    Its text is what the model wrote, a token that delimits something being one character of a
    `Reading`; stops are looked for in it before anything is parsed.
    """

    def __init__(self, index: int, detokenizer: Detokenizer, options: ChoiceOptions) -> None:
        self.index = index
        self.finished = False
        self._options = options
        self._detokenizer = detokenizer
        reading = options.reading
        self._marks = reading.marks if reading is not None else {}
        self._speech = Speech(reading, self._usage)
        self._spelt = _spellings_of_stops(options.stops.strings, reading)
        self._stops = StopMatcher(tuple(self._spelt))
        # A token is one character to this matcher, so that a sequence of tokens is a string.
        sequences = tuple("".join(map(chr, ids)) for ids in options.stops.token_sequences)
        self._token_stops = StopMatcher(sequences) if sequences else None
        self._held: deque[tuple[int, TokenScore | None, float]] = deque()
        self._records: list[TokenRecord] = []
        self._text_len = 0  # characters made so far
        self._said_len = 0  # characters that are final
        self._cached = 0
        self._output = 0
        self._drafted = 0
        self._accepted = 0
        self._scored = False
        self._first_token: float | None = None
        self._last_token = 0.0

    @property
    def malformed_calls(self) -> int:
        """What began like a call and was returned as text."""
        return self._speech.malformed_calls

    def without_output(self) -> list[SemanticEvent]:
        """The events of a choice that generates nothing."""
        events: list[SemanticEvent] = [Started(self._usage())]
        self._echo(events)
        self._end(FinishCause.LIMIT, events)
        return events

    def take(self, event: TokenEvent, events: list[SemanticEvent]) -> None:
        """Take the engine's next event of this choice; what it means is added to `events`."""
        if event.prompt_scores is not None:
            self._take_prompt_scores(event.prompt_scores, events)
        if event.token is not None:
            self._output += 1
            self._drafted += event.drafted
            self._accepted += event.accepted
            self._start(event.cached or 0, events)
            self._take_token(event.token, event.score, event.cause, events)
        elif event.cause is not None and not self.finished:
            self._take_end(event, events)

    def _take_prompt_scores(self, scores: list[TokenScore], events: list[SemanticEvent]) -> None:
        first: tuple[None, ...] = () if self._scored else (None,)
        self._scored = True
        events.append(PromptScored((*first, *scores), self._usage()))

    def _start(self, cached: int, events: list[SemanticEvent]) -> None:
        now = time.monotonic() - self._options.opened
        self._last_token = now
        if self._first_token is None:
            self._first_token = now
            self._cached = cached
            if self._options.scores_prompt and not self._scored:  # a prompt of one token
                self._take_prompt_scores([], events)
            events.append(Started(self._usage()))
            self._echo(events)

    def _take_token(
        self,
        token: int,
        score: TokenScore | None,
        cause: FinishCause | None,
        events: list[SemanticEvent],
    ) -> None:
        if cause is not FinishCause.END and cause is not FinishCause.STOP_TOKEN:
            if self._token_stops is None or self._output <= self._options.min_tokens:
                self._speak(token, score, self._last_token, events)
            else:
                self._hold(self._token_stops, token, score, events)
        elif self._options.records_end:
            self._release_all(events)
            self._records.append(TokenRecord(token, self._text_len, self._last_token, score))
        if cause is not None and not self.finished:
            self._release_all(events)
            if cause is FinishCause.STOP_TOKEN and self._options.stops.include:
                self._feed(self._text_of(token), events)
            self._close(cause, token if cause is FinishCause.STOP_TOKEN else None, events)

    def _hold(
        self, stops: StopMatcher, token: int, score: TokenScore | None, events: list[SemanticEvent]
    ) -> None:
        """Let a token through only when it can be no part of a stop sequence."""
        self._held.append((token, score, self._last_token))
        ready, matched = stops.feed(chr(token))
        self._release(len(ready), events)
        if matched is not None and not self.finished:
            if self._options.stops.include:
                self._release(len(matched), events)
            self._close(FinishCause.STOP_TOKEN, token, events)

    def _take_end(self, event: TokenEvent, events: list[SemanticEvent]) -> None:
        """End without a token: out of pages or time, only scores were wanted, or a failure."""
        assert event.cause is not None
        if event.cause in BROKEN:
            self._end(event.cause, events, error=event.reason)
            return
        if event.cause is FinishCause.LIMIT:
            self._start(event.cached or 0, events)
        elif self._first_token is None:
            self._echo(events)
        self._release_all(events)
        self._close(event.cause, None, events)

    def _close(
        self, cause: FinishCause, stop: str | int | None, events: list[SemanticEvent]
    ) -> None:
        """End after what is held back has been said, unless a stop string is completed by it."""
        if not self.finished:
            self._feed(self._detokenizer.flush(), events)
        if not self.finished:
            tail = self._stops.flush()
            self._said_len = self._text_len
            self._say(tail, events)
            self._end(cause, events, stop)

    def _release_all(self, events: list[SemanticEvent]) -> None:
        if self._token_stops is not None and not self.finished:
            self._release(len(self._token_stops.flush()), events)

    def _release(self, count: int, events: list[SemanticEvent]) -> None:
        """Turn the next `count` held tokens, which are no stop, into text."""
        for _ in range(count):
            if self.finished:
                return
            token, score, at = self._held.popleft()
            self._speak(token, score, at, events)

    def _speak(
        self, token: int, score: TokenScore | None, at: float, events: list[SemanticEvent]
    ) -> None:
        if self._options.records:
            self._records.append(TokenRecord(token, self._text_len, at, score))
        self._speech.hear(self._text_len)
        self._feed(self._text_of(token), events)

    def _text_of(self, token: int) -> str:
        mark = self._marks.get(token)
        if mark is None:
            return self._detokenizer.push((token,))
        return self._detokenizer.flush() + mark

    def _feed(self, text: str, events: list[SemanticEvent]) -> None:
        self._text_len += len(text)
        if self._output <= self._options.min_tokens:
            self._said_len += len(text)
            self._say(text, events)
            return
        safe, matched = self._stops.feed(text)
        self._said_len += len(safe)
        if matched is None:
            self._say(safe, events)
            return
        if self._options.stops.include:
            self._said_len += len(matched)
            safe += matched
        self._records = [item for item in self._records if item.offset < self._said_len]
        self._text_len = self._said_len  # the tokens left are certain now
        self._say(safe, events)
        self._end(FinishCause.STOP_STRING, events, self._spelt[matched])

    def _echo(self, events: list[SemanticEvent]) -> None:
        echo = self._options.echo
        if echo:
            events.append(TextDelta(echo, self._usage(), echoed=len(echo)))

    def _say(self, text: str, events: list[SemanticEvent]) -> None:
        records = self._certain_records()
        if text or records:
            self._speech.say(text, records, events)
        if self._speech.is_over and not self.finished:
            self._end(FinishCause.TOOL_CALLS, events)

    def _certain_records(self) -> tuple[TokenRecord, ...]:
        """The records that no stop string can take back any more."""
        if not self._records:
            return ()
        # The bytes of a character that is not whole may yet begin a stop string.
        pending = bool(self._options.stops.strings) and self._detokenizer.is_holding
        all_said = self._said_len == self._text_len and not pending
        certain = [item for item in self._records if all_said or item.offset < self._said_len]
        self._records = self._records[len(certain) :]
        return tuple(certain)

    def _end(
        self,
        cause: FinishCause,
        events: list[SemanticEvent],
        stop: str | int | None = None,
        error: str | None = None,
    ) -> None:
        if self.finished:  # what was said last had ended the turn already
            return
        self.finished = True
        if cause not in BROKEN:
            self._speech.finish(events, cut=cause not in _OWN_ENDS)
            if self._speech.calls and cause in _OWN_ENDS:
                cause = FinishCause.TOOL_CALLS
        if cause is FinishCause.LIMIT:
            cause = self._options.limit_cause
        first = self._first_token or 0.0
        decode = self._last_token - first if self._first_token is not None else 0.0
        events.append(Finished(cause, self._usage(), stop, error, first, decode))

    def _usage(self) -> Usage:
        return Usage(
            prompt=self._options.prompt_tokens,
            cached=self._cached,
            output=self._output,
            reasoning=self._speech.reasoning,
            drafted=self._drafted,
            accepted=self._accepted,
        )


def _spellings_of_stops(strings: tuple[str, ...], reading: Reading | None) -> dict[str, str]:
    """The stops as they may stand in the text, each with the client's own string."""
    spelt = {string: string for string in strings}
    if reading is None:
        return spelt
    for string in strings:
        marked = string
        for spelling, mark in reading.spellings.items():
            marked = marked.replace(spelling, mark)
        spelt.setdefault(marked, string)
    return spelt
