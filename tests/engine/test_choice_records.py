"""Records of the tokens of one choice: which there are, when, and where in the text."""

from __future__ import annotations

import random

import pytest

from engine.client import TokenEvent
from engine.events import FinishCause, SemanticEvent, TextDelta
from engine.text.detokenizer import Detokenizer
from engine.types import Stops
from tests.engine.choices import choice, clocked, end, play, recorded, said, score_of
from tests.serving import ids, tokenizer

END_ID = tokenizer().eos_ids[0]
THINK = tokenizer().control_tokens["<think>"]  # seven characters that are shown


def test_a_record_says_where_when_and_how_likely() -> None:
    tokens = ids("aé<think>b")
    found = recorded(play(choice(records=True), tokens))
    assert [record.token for record in found] == list(tokens)
    assert [record.offset for record in found] == [0, 1, 1, 2, 9]
    assert [record.time for record in found] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [record.score for record in found] == [score_of(t, n) for n, t in enumerate(tokens)]


def test_without_asking_there_are_none() -> None:
    assert recorded(play(choice(), ids("abc"))) == []


def test_a_token_without_text_yet_is_recorded_at_once() -> None:
    found = play(choice(records=True), ids("é")[:1])
    assert isinstance(found[-1], TextDelta)
    assert (found[-1].text, len(found[-1].records)) == ("", 1)


def test_a_record_waits_while_a_stop_string_may_take_it_back() -> None:
    one = choice("END", records=True)
    counts = []
    for place, token in enumerate(ids("aENENb")):
        own: list[SemanticEvent] = []
        clocked(one, TokenEvent(0, token), place, own)
        counts.append((said(own), len(recorded(own))))
    assert counts == [("a", 1), ("", 0), ("", 0), ("EN", 2), ("", 0), ("ENb", 3)]


@pytest.mark.parametrize(
    ("stop", "text", "shown", "tokens"),
    [
        ("END", "aENDb", "a", "a"),
        ("ink", "a<think>b", "a<th", "a<think>"),  # partly clipped: kept
        ("<think>", "a<think>b", "a", "a"),
        (">b", "a<think>bc", "a<think", "a<think>"),
        ("é", "aéb", "a", "a"),
        ("XY", "aXYb", "a", "a"),
        ("😀", "é😀", "é", "é"),
    ],
)
def test_a_token_beyond_a_stop_has_no_record_and_a_clipped_one_keeps_it(
    stop: str, text: str, shown: str, tokens: str
) -> None:
    found = play(choice(stop, records=True), ids(text))
    assert (said(found), end(found).stop) == (shown, stop)
    assert [record.token for record in recorded(found)] == list(ids(tokens))


def test_a_stop_that_is_shown_keeps_the_records_of_its_tokens() -> None:
    found = play(choice(stops=Stops(("END",), include=True), records=True), ids("aENDb"))
    assert [record.token for record in recorded(found)] == list(ids("aEND"))


@pytest.mark.parametrize("cause", [FinishCause.END, FinishCause.STOP_TOKEN])
def test_the_token_that_ends_has_no_record(cause: FinishCause) -> None:
    found = play(choice(records=True), ids("abz"), cause)
    assert [record.token for record in recorded(found)] == list(ids("ab"))


def test_an_end_token_that_does_not_end_has_one() -> None:
    tokens = (*ids("a"), END_ID, *ids("b"))
    found = play(choice(records=True), tokens, FinishCause.LIMIT)
    assert said(found) == "ab"
    assert [(record.token, record.offset) for record in recorded(found)] == [
        (ids("a")[0], 0), (END_ID, 1), (ids("b")[0], 1),
    ]  # fmt: skip


def test_the_last_token_of_a_limit_keeps_its_record_though_its_character_is_cut() -> None:
    found = play(choice("X", records=True), ids("a😀")[:3], FinishCause.LIMIT)
    assert said(found) == "a\ufffd"
    assert [record.offset for record in recorded(found)] == [0, 1, 1]


def test_echoed_text_does_not_move_offsets() -> None:
    found = play(choice(echo="xyz", records=True), ids("ab"))
    assert [record.offset for record in recorded(found)] == [0, 1]


@pytest.mark.parametrize("seed", range(60))
def test_records_are_those_of_the_tokens_whose_text_begins_in_the_answer(seed: int) -> None:
    """Against the definition, for random tokens and stops; in pieces and in one batch."""
    draw = random.Random(seed)
    tokens = [draw.choice(ids("ab<think>é😀")) for _ in range(30)]
    stops = ["ab", "k>a", "é", "aa", "\ufffd", "bb"]
    stop = tuple(draw.sample(stops, draw.randrange(3)))
    pieces = play(choice(*stop, records=True), tokens, FinishCause.LIMIT)
    one, whole = choice(*stop, records=True), list[SemanticEvent]()
    for place, token in enumerate(tokens):
        if not one.finished:
            cause = FinishCause.LIMIT if place == len(tokens) - 1 else None
            one.take(TokenEvent(0, token, cause=cause), whole)
    detokenizer = Detokenizer(tokenizer(), skip_control=True)
    offsets, length = [], 0
    for token in tokens:
        offsets.append(length)
        length += len(detokenizer.push((token,)))
    shown, ended = said(pieces), end(pieces).cause is FinishCause.STOP_STRING
    expected = [
        (token, offset)
        for token, offset in zip(tokens, offsets, strict=True)
        if not ended or offset < len(shown)
    ]
    assert [(record.token, record.offset) for record in recorded(pieces)] == expected
    assert [(record.token, record.offset) for record in recorded(whole)] == expected
    assert said(whole) == shown
    times = [record.time for record in recorded(pieces)]
    assert times == sorted(times)


@pytest.mark.parametrize("kept", [False, True])
def test_the_end_token_has_a_record_where_a_harness_drops_the_last_one(kept: bool) -> None:
    one = choice(records=True, records_end=kept)
    events = play(one, ids("ab"))
    last: list[SemanticEvent] = []
    one.take(TokenEvent(0, END_ID, None, FinishCause.END), last)
    found = [record.token for record in recorded([*events, *last])]
    assert found == [*ids("ab"), *([END_ID] if kept else [])]
    assert said([*events, *last]) == "ab"
