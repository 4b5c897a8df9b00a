"""Tokens of one choice to events: text, stops, causes, counts."""

from __future__ import annotations

import pytest

from engine.choice import BROKEN
from engine.client import TokenEvent
from engine.events import FinishCause, Finished, SemanticEvent, Started, TextDelta, Usage
from tests.engine.choices import choice, end, play, said
from tests.serving import ids, tokenizer

END_ID = tokenizer().eos_ids[0]


def test_the_first_token_starts_with_what_was_cached() -> None:
    events = play(choice(), ids("ab"))
    assert events == [
        Started(Usage(10, 3, 1)), TextDelta("a", Usage(10, 3, 1)), TextDelta("b", Usage(10, 3, 2)),
    ]  # fmt: skip


def test_a_first_token_without_text_starts_all_the_same() -> None:
    assert play(choice(), ids("é")[:1]) == [Started(Usage(10, 3, 1))]


@pytest.mark.parametrize(
    ("stops", "text", "shown", "stop"),
    [
        (("END",), "a END b", "a ", "END"),
        (("a",), "abc", "", "a"),
        (("XY", "Y"), "aXYb", "a", "XY"),
        (("é",), "caféteria", "caf", "é"),
        (("😀!",), "a😀!b", "a", "😀!"),
        (("NEVER",), "NEV", "NEV", None),
        ((), "abc", "abc", None),
    ],
)
def test_stop_strings_end_the_text_before_them(
    stops: tuple[str, ...], text: str, shown: str, stop: str | None
) -> None:
    events = play(choice(*stops), ids(text), FinishCause.LIMIT)
    assert said(events) == shown
    cause = FinishCause.STOP_STRING if stop else FinishCause.LIMIT
    assert (end(events).cause, end(events).stop) == (cause, stop)


def test_no_shown_text_is_ever_part_of_a_stop_string() -> None:
    one = choice("END")
    seen = ""
    for place, token in enumerate(ids("aE EN END")):
        own: list[SemanticEvent] = []
        one.take(TokenEvent(0, token, 0 if place == 0 else None), own)
        seen += said(own)
        assert "aE EN ".startswith(seen)
    assert one.finished and seen == "aE EN "


def test_the_tokens_of_a_stop_string_are_counted_and_those_after_it_are_not() -> None:
    events = play(choice("END"), ids("abENDmore"))
    assert end(events).usage == Usage(10, 3, 5)


@pytest.mark.parametrize("cause", [FinishCause.LIMIT, FinishCause.CONTEXT_FULL, FinishCause.END])
def test_a_stop_string_on_the_last_token_beats_the_limit(cause: FinishCause) -> None:
    """Helios: a matched stop that lands on the final allowed token is the cause."""
    tokens = (*ids("aEND"), END_ID) if cause is FinishCause.END else ids("aEND")
    assert end(play(choice("END"), tokens, cause)).cause is FinishCause.STOP_STRING


def test_held_text_is_released_at_the_end() -> None:
    events = play(choice("END"), (*ids("aEN"), END_ID), FinishCause.END)
    assert (said(events), end(events).cause) == ("aEN", FinishCause.END)


@pytest.mark.parametrize(
    ("cause", "stop"), [(FinishCause.END, None), (FinishCause.STOP_TOKEN, ids("z")[0])]
)
def test_the_token_that_ends_is_counted_but_not_shown(cause: FinishCause, stop: int | None) -> None:
    events = play(choice(), ids("abz"), cause)
    assert said(events) == "ab"
    assert (end(events).stop, end(events).usage.output) == (stop, 3)


def test_the_last_token_of_a_limit_is_shown() -> None:
    assert said(play(choice(), ids("abc"), FinishCause.LIMIT)) == "abc"


def test_a_limit_that_is_the_window_says_so() -> None:
    events = play(choice(limit=FinishCause.CONTEXT_FULL), ids("ab"), FinishCause.LIMIT)
    assert end(events).cause is FinishCause.CONTEXT_FULL


@pytest.mark.parametrize("text", ["é", "😀", "a漢字b"])
def test_split_characters_are_whole_or_absent(text: str) -> None:
    events = play(choice(), ids(text))
    assert said(events) == text
    assert all("\ufffd" not in e.text for e in events if isinstance(e, TextDelta))


def test_half_a_character_at_the_end_is_replaced() -> None:
    events = play(choice(), ids("a😀")[:-1], FinishCause.LIMIT)
    assert said(events) == "a\ufffd"


def test_a_stop_string_may_be_made_of_the_replacement() -> None:
    events = play(choice("\ufffd"), ids("a😀")[:-1], FinishCause.LIMIT)
    assert (said(events), end(events).cause) == ("a", FinishCause.STOP_STRING)


@pytest.mark.parametrize(
    ("min_tokens", "shown"), [(0, ""), (2, "aab"), (3, "aab"), (4, "aaba"), (9, "aabaa")]
)
def test_the_first_tokens_cannot_hold_a_stop_string(min_tokens: int, shown: str) -> None:
    events = play(choice("a", min_tokens=min_tokens), ids("aabaa"), FinishCause.LIMIT)
    assert said(events) == shown


def test_the_echo_comes_first_and_holds_no_stop() -> None:
    events = play(choice("b", echo="ab"), ids("xb"), FinishCause.LIMIT)
    assert events[1] == TextDelta("abx", Usage(10, 3, 1), echoed=2)
    assert end(events).cause is FinishCause.STOP_STRING


def test_without_output_there_is_the_echo_and_a_limit() -> None:
    usage = Usage(10, 0, 0)
    assert choice(echo="ab").without_output() == [
        Started(usage), TextDelta("ab", usage, echoed=2), Finished(FinishCause.LIMIT, usage),
    ]  # fmt: skip
    assert choice().without_output() == [Started(usage), Finished(FinishCause.LIMIT, usage)]


def test_texts_of_one_batch_are_one_delta_with_the_last_count() -> None:
    one = choice()
    events: list[SemanticEvent] = []
    for place, token in enumerate(ids("abc")):
        one.take(TokenEvent(0, token, 0 if place == 0 else None), events)
    assert events[1:] == [TextDelta("abc", Usage(10, 0, 3))]


def test_pages_that_run_out_release_the_held_text() -> None:
    one = choice("END")
    play(one, ids("aEN"))
    events: list[SemanticEvent] = []
    one.take(TokenEvent(0, cause=FinishCause.CONTEXT_FULL), events)
    assert said(events) == "EN"
    assert (end(events).cause, end(events).error) == (FinishCause.CONTEXT_FULL, None)


@pytest.mark.parametrize("cause", BROKEN)
def test_a_broken_choice_says_why_and_nothing_else(cause: FinishCause) -> None:
    one = choice("END")
    play(one, ids("aEN"))
    events: list[SemanticEvent] = []
    one.take(TokenEvent(0, cause=cause, reason="why"), events)
    assert events == [Finished(cause, Usage(10, 3, 3), None, "why", first_token=1.0, decode=2.0)]
    assert one.finished


def test_drafts_are_counted_up_to_the_token_that_stops() -> None:
    one = choice("END")
    events: list[SemanticEvent] = []
    for place, token in enumerate(ids("abEND")):
        drafted = {0: 3, 3: 5}.get(place, 0)
        event = TokenEvent(0, token, 0 if place == 0 else None)
        one.take(event._replace(drafted=drafted, accepted=place != 2), events)
    usage = end(events).usage
    assert (usage.output, usage.drafted, usage.accepted) == (5, 8, 4)
