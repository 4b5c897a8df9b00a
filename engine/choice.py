"""One choice: its tokens become semantic events."""

from __future__ import annotations

from engine.text.detokenizer import Detokenizer
from engine.text.stops import StopMatcher
from engine.types import FinishCause, Finished, SemanticEvent, Started, TextDelta, Usage

_WITHOUT_TEXT = (FinishCause.END, FinishCause.STOP_TOKEN)


class Choice:
    """Detokenises, looks for stop strings and counts, for one choice of a generation.

    `limit_cause` is what reaching the output limit means: the request's own limit, or the window.
    Text of the first `min_tokens` tokens cannot hold a stop string (as in vLLM).
    """

    def __init__(
        self,
        index: int,
        *,
        detokenizer: Detokenizer,
        stops: StopMatcher,
        prompt_tokens: int,
        min_tokens: int,
        limit_cause: FinishCause,
        echo: str = "",
    ) -> None:
        self.index = index
        self.finished = False
        self._detokenizer = detokenizer
        self._stops = stops
        self._min_tokens = min_tokens
        self._limit_cause = limit_cause
        self._echo = echo
        self._prompt = prompt_tokens
        self._cached = 0
        self._output = 0

    def without_output(self) -> list[SemanticEvent]:
        """The events of a choice that generates nothing."""
        events: list[SemanticEvent] = [Started(self._usage())]
        self._say(self._echo, events)
        self._end(FinishCause.LIMIT, events)
        return events

    def take(
        self, token: int, cached: int | None, cause: FinishCause | None, events: list[SemanticEvent]
    ) -> None:
        """Take the next token; `cached` comes with the first, `cause` with the last."""
        self._output += 1
        if cached is not None:
            self._cached = cached
            events.append(Started(self._usage()))
            self._say(self._echo, events)
        if cause not in _WITHOUT_TEXT:
            self._feed(self._detokenizer.push((token,)), events)
        if cause is not None and not self.finished:
            self._feed(self._detokenizer.flush(), events)
        if cause is not None and not self.finished:
            self._say(self._stops.flush(), events)
            self._end(cause, events, token if cause is FinishCause.STOP_TOKEN else None)

    def fail(self, cause: FinishCause, reason: str | None, events: list[SemanticEvent]) -> None:
        """End without a token: the pages ran out, or something broke."""
        if cause is FinishCause.CONTEXT_FULL:
            self._feed(self._detokenizer.flush(), events)
            self._say(self._stops.flush(), events)
        if not self.finished:
            self._end(cause, events, error=reason)

    def _feed(self, text: str, events: list[SemanticEvent]) -> None:
        if self._output <= self._min_tokens:
            self._say(text, events)
            return
        safe, matched = self._stops.feed(text)
        self._say(safe, events)
        if matched is not None:
            self._end(FinishCause.STOP_STRING, events, matched)

    def _say(self, text: str, events: list[SemanticEvent]) -> None:
        if not text:
            return
        if events and isinstance(last := events[-1], TextDelta):
            events[-1] = TextDelta(last.text + text, self._usage())
        else:
            events.append(TextDelta(text, self._usage()))

    def _end(
        self,
        cause: FinishCause,
        events: list[SemanticEvent],
        stop: str | int | None = None,
        error: str | None = None,
    ) -> None:
        self.finished = True
        if cause is FinishCause.LIMIT:
            cause = self._limit_cause
        events.append(Finished(cause, self._usage(), stop, error))

    def _usage(self) -> Usage:
        return Usage(self._prompt, self._cached, self._output)
