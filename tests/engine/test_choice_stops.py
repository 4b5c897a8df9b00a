"""What the tokens of one choice say about stop sequences, included stops, and ends without text."""

from __future__ import annotations

import itertools

import pytest

from engine.client import TokenEvent
from engine.events import (
    FinishCause,
    PromptScored,
    SemanticEvent,
    Started,
    TextDelta,
    TokenScore,
    Usage,
)
from engine.types import Stops
from tests.engine.choices import choice, clocked, end, play, recorded, said
from tests.serving import ids

A, B, C, D = ids("abcd")


def sequences(*texts: str, include: bool = False) -> Stops:
    return Stops(token_sequences=tuple(ids(text) for text in texts), include=include)


@pytest.mark.parametrize(
    ("stops", "text", "shown", "stop"),
    [
        (["cd"], "abcdab", "ab", D),
        (["abc"], "ababc", "ab", C),
        (["aab"], "aaab", "a", B),
        (["a"], "ba", "b", A),
        (["bcd", "c"], "abcd", "ab", C),
        (["abd"], "abcab", "abcab", None),
        (["é"], "aéb", "a", ids("é")[-1]),
    ],
    ids=str,
)
def test_a_sequence_of_tokens_ends_the_text_before_it(
    stops: list[str], text: str, shown: str, stop: int | None
) -> None:
    found = play(choice(stops=sequences(*stops), records=True), ids(text), FinishCause.LIMIT)
    assert said(found) == shown
    cause = FinishCause.LIMIT if stop is None else FinishCause.STOP_TOKEN
    assert (end(found).cause, end(found).stop) == (cause, stop)
    assert [record.token for record in recorded(found)] == list(ids(shown))


def test_the_tokens_of_a_stop_sequence_are_counted_and_those_after_it_are_not() -> None:
    found = play(choice(stops=sequences("cd")), ids("abcdab"))
    assert end(found).usage == Usage(10, 3, 4)


def test_a_prefix_of_a_sequence_waits_and_comes_out_whole_when_it_is_none() -> None:
    one = choice(stops=sequences("abc"), records=True)
    seen = []
    for place, token in enumerate(ids("xababd")):
        own: list[SemanticEvent] = []
        clocked(one, TokenEvent(0, token), place, own)
        assert [record.token for record in recorded(own)] == list(ids(said(own)))
        seen.append(said(own))
    assert seen == ["x", "", "", "ab", "", "abd"]


def test_what_is_held_keeps_the_time_of_its_arrival() -> None:
    found = play(choice(stops=sequences("abc"), records=True), ids("abd"))
    assert [record.time for record in recorded(found)] == [1.0, 2.0, 3.0]
    assert [record.score.logprob for record in recorded(found) if record.score] == [-1, -2, -3]


@pytest.mark.parametrize("cause", [FinishCause.LIMIT, FinishCause.END, FinishCause.COMPLETE])
def test_nothing_held_is_lost_at_the_end(cause: FinishCause) -> None:
    text = "xab" + ("z" if cause is FinishCause.END else "")
    found = play(choice(stops=sequences("abc"), records=True), ids(text), cause)
    assert (said(found), end(found).cause) == ("xab", cause)
    assert [record.token for record in recorded(found)] == list(ids("xab"))


@pytest.mark.parametrize("cause", [FinishCause.DEADLINE, FinishCause.CONTEXT_FULL])
def test_nothing_held_is_lost_at_an_end_without_a_token(cause: FinishCause) -> None:
    one = choice(stops=sequences("abc"), records=True)
    found = play(one, ids("xab"))
    clocked(one, TokenEvent(0, cause=cause), 9, found)
    assert (said(found), end(found).cause) == ("xab", cause)


def test_a_sequence_on_the_last_allowed_token_beats_the_limit() -> None:
    found = play(choice(stops=sequences("bc")), ids("abc"), FinishCause.LIMIT)
    assert (said(found), end(found).cause) == ("a", FinishCause.STOP_TOKEN)


@pytest.mark.parametrize("min_tokens", range(6))
def test_the_first_tokens_cannot_end_a_sequence(min_tokens: int) -> None:
    one = choice(stops=sequences("bb"), min_tokens=min_tokens)
    found = play(one, ids("bbbbb"), FinishCause.LIMIT)
    assert said(found) == ("bbbbb" if min_tokens > 3 else "b" * min_tokens)


@pytest.mark.parametrize(
    ("stops", "cause", "text", "shown"),
    [
        (Stops(("END",), include=True), None, "aENDb", "aEND"),
        (Stops(("é",), include=True), None, "aéb", "aé"),
        (Stops(token_ids=(C,), include=True), FinishCause.STOP_TOKEN, "abc", "abc"),
        (sequences("bc", include=True), None, "abcd", "abc"),
        (Stops(token_ids=(C,)), FinishCause.STOP_TOKEN, "abc", "ab"),
    ],
    ids=str,
)
def test_an_included_stop_is_part_of_the_text(
    stops: Stops, cause: FinishCause | None, text: str, shown: str
) -> None:
    assert said(play(choice(stops=stops), ids(text), cause)) == shown


def test_an_included_token_stop_comes_after_what_a_sequence_held() -> None:
    stops = Stops(token_ids=(C,), token_sequences=((B, D),), include=True)
    found = play(choice(stops=stops), (A, B, C), FinishCause.STOP_TOKEN)
    assert (said(found), end(found).stop) == ("abc", C)


@pytest.mark.parametrize("stop", ["abc", "cab", "bca"])
def test_streamed_pieces_and_a_whole_batch_say_the_same(stop: str) -> None:
    for tokens in itertools.product((A, B, C), repeat=5):
        one = choice(stops=sequences(stop), records=True)
        whole: list[SemanticEvent] = []
        for token in tokens:
            if not one.finished:
                one.take(TokenEvent(0, token), whole)
        pieces = play(choice(stops=sequences(stop), records=True), tokens)
        assert said(whole) == said(pieces)
        kept = [[record.token for record in recorded(events)] for events in (whole, pieces)]
        assert kept[0] == kept[1]
        text = bytes(map(b"abc".__getitem__, map((A, B, C).index, tokens))).decode()
        before, found, _ = text.partition(stop)
        if found:
            assert said(pieces) == before


@pytest.mark.parametrize(
    "cause", [FinishCause.COMPLETE, FinishCause.REPETITION, FinishCause.DEADLINE]
)
def test_the_token_of_another_end_is_shown(cause: FinishCause) -> None:
    found = play(choice(records=True), ids("ab"), cause)
    assert (said(found), end(found).cause, end(found).stop) == ("ab", cause, None)
    assert len(recorded(found)) == 2


def test_a_deadline_before_the_first_token_leaves_the_echo() -> None:
    one = choice(echo="abc")
    found: list[SemanticEvent] = []
    clocked(one, TokenEvent(0, cause=FinishCause.DEADLINE), 2, found)
    assert (said(found), end(found).cause) == ("abc", FinishCause.DEADLINE)
    assert (end(found).usage.output, end(found).first_token, end(found).decode) == (0, 0.0, 0.0)
    assert not any(isinstance(event, Started) for event in found)


def test_times_are_from_admission_to_the_first_token_and_on_to_the_last() -> None:
    one = choice()
    found = play(one, ids("abc"))
    clocked(one, TokenEvent(0, cause=FinishCause.DEADLINE), 30, found)
    assert (end(found).first_token, end(found).decode) == (1.0, 2.0)


SCORES = [TokenScore(token, -float(token), 1) for token in range(4)]


def test_prompt_scores_begin_with_none_once() -> None:
    one = choice(scores_prompt=True)
    found: list[SemanticEvent] = []
    one.take(TokenEvent(0, prompt_scores=SCORES[:1]), found)
    one.take(TokenEvent(0, prompt_scores=SCORES[1:]), found)
    one.take(TokenEvent(0, A, 0), found)
    usage = Usage(10, 0, 0)
    assert found[:2] == [
        PromptScored((None, SCORES[0]), usage),
        PromptScored(tuple(SCORES[1:]), usage),
    ]
    assert sum(isinstance(event, PromptScored) for event in found) == 2


@pytest.mark.parametrize("token", [A, None])
def test_a_prompt_of_one_token_has_a_place_without_a_score(token: int | None) -> None:
    one = choice(scores_prompt=True)
    found: list[SemanticEvent] = []
    one.take(TokenEvent(0, token, 0, cause=FinishCause.LIMIT), found)
    scored = [event.scores for event in found if isinstance(event, PromptScored)]
    assert scored == [(None,)]


def test_a_request_for_scores_alone_starts_echoes_and_ends() -> None:
    one = choice(echo="ab", scores_prompt=True)
    found: list[SemanticEvent] = []
    one.take(TokenEvent(0, prompt_scores=SCORES[:1]), found)
    clocked(one, TokenEvent(0, cached=0, cause=FinishCause.LIMIT), 3, found)
    usage = Usage(10, 0, 0)
    assert found[1:-1] == [Started(usage), TextDelta("ab", usage, echoed=2)]
    assert (end(found).cause, end(found).first_token) == (FinishCause.LIMIT, 3.0)
