"""Plays a choice: tokens in, events out, on a clock of its own."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from engine.choice import Choice, ChoiceOptions
from engine.client import TokenEvent
from engine.events import FinishCause, Finished, SemanticEvent, TextDelta, TokenRecord, TokenScore
from engine.speech import Reading
from engine.text.detokenizer import Detokenizer
from engine.types import Stops
from tests.serving import tokenizer

OPENED = 100.0


def choice(
    *strings: str,
    stops: Stops | None = None,
    min_tokens: int = 0,
    echo: str = "",
    limit: FinishCause = FinishCause.LIMIT,
    records: bool = False,
    scores_prompt: bool = False,
    records_end: bool = False,
    reading: Reading | None = None,
) -> Choice:
    return Choice(
        0,
        Detokenizer(tokenizer(), skip_control=True),
        ChoiceOptions(
            prompt_tokens=10,
            stops=Stops(strings) if stops is None else stops,
            min_tokens=min_tokens,
            limit_cause=limit,
            opened=OPENED,
            echo=echo,
            records=records,
            scores_prompt=scores_prompt,
            records_end=records_end,
            reading=reading,
        ),
    )


def score_of(token: int, place: int) -> TokenScore:
    """A score that tells its place."""
    return TokenScore(token, -1.0 - place, 1)


def play(
    one: Choice, tokens: Sequence[int], cause: FinishCause | None = None, cached: int = 3
) -> list[SemanticEvent]:
    """Feed tokens one by one, one each second; the events of each in a list of its own, joined."""
    found: list[SemanticEvent] = []
    for place, token in enumerate(tokens):
        if one.finished:
            break
        own: list[SemanticEvent] = []
        last = place == len(tokens) - 1
        event = TokenEvent(
            0,
            token,
            cached if place == 0 else None,
            cause if last else None,
            score=score_of(token, place),
        )
        clocked(one, event, place + 1, own)
        found += own
    return found


def clocked(one: Choice, event: TokenEvent, seconds: float, events: list[SemanticEvent]) -> None:
    """Take an event that many seconds after admission."""
    with patch("engine.choice.time.monotonic", lambda: OPENED + seconds):
        one.take(event, events)


def said(events: Sequence[SemanticEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def recorded(events: Sequence[SemanticEvent]) -> list[TokenRecord]:
    return [record for e in events if isinstance(e, TextDelta) for record in e.records]


def end(events: Sequence[SemanticEvent]) -> Finished:
    assert sum(isinstance(event, Finished) for event in events) == 1
    assert isinstance(events[-1], Finished)
    return events[-1]
