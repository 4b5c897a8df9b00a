"""N-gram drafts: what is copied, from where, and what it costs to look."""

from __future__ import annotations

import random

import pytest

from engine.core.draft import SIZES, NgramDrafter, Wish, shared
from engine.core.sequence import Sequence
from tests.engine.core.sequences import request


def drafted(drafter: NgramDrafter, sequence: Sequence, most: int = 5) -> list[int]:
    [drafts] = drafter.propose([Wish(sequence, most)], 100)
    return drafts


def grown(prompt: list[int], *output: int, prediction: tuple[int, ...] = ()) -> Sequence:
    sequence = Sequence(request(prompt, 100, prediction=prediction))
    for token in output:
        sequence.append(token)
    return sequence


def naive(ids: list[int], most: int) -> list[int]:
    """What followed the last occurrence of the longest run that the ids end with."""
    for size in SIZES:
        for end in range(len(ids) - 1, size - 1, -1):
            if len(ids) > size and ids[end - size : end] == ids[-size:]:
                copy = ids[end : end + most]
                return (copy * most)[:most]
    return []


@pytest.mark.parametrize(
    ("prompt", "output", "drafts"),
    [
        ([10, 11, 12, 13, 14, 15, 16, 20], (10, 11), [12, 13, 14, 15, 16]),
        ([10, 11, 12, 30, 11, 12, 40, 41, 42, 43, 44], (10, 11, 12), [30, 11, 12, 40, 41]),  # 3 > 2
        ([11, 12, 30, 11, 12, 40, 41, 42, 43, 44], (5, 11, 12), [40, 41, 42, 43, 44]),  # the last
        ([10, 11, 12], (20, 21, 20, 21), [20, 21, 20, 21, 20]),  # a copy of the copy
        ([10, 11, 12, 13, 14], (11,), []),  # one token is no run
        ([10], (11,), []),
        ([10, 11, 12], (20, 21), []),
    ],
)
def test_what_followed_the_longest_run_before_follows_again(
    prompt: list[int], output: tuple[int, ...], drafts: list[int]
) -> None:
    assert drafted(NgramDrafter(), grown(prompt, *output)) == drafts


@pytest.mark.parametrize("seed", range(8))
def test_looking_up_is_the_same_as_reading_everything(seed: int) -> None:
    """With fresh drafters no copy goes on: each look-up stands alone."""
    draw = random.Random(seed)
    prompt = [draw.randrange(5) for _ in range(draw.randrange(1, 60))]
    sequence, one = grown(prompt), NgramDrafter()
    for _ in range(60):
        sequence.append(draw.randrange(5))
        wanted = naive(sequence.token_ids.tolist(), 5)
        assert drafted(NgramDrafter(), sequence) == wanted
        one._text(sequence)._source = None  # the kept index must say the same
        if draw.random() < 0.7:  # it may miss steps
            assert drafted(one, sequence) == wanted


def test_a_copy_goes_on_where_a_later_run_would_lead_elsewhere() -> None:
    prompt = [1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 4, 5, 6, 7, 60, 61, 62, 63, 64, 1, 2]
    drafter, sequence = NgramDrafter(), grown(prompt, 3)
    assert drafted(drafter, sequence, 3) == [4, 5, 6]
    for token in (4, 5, 6, 7):
        sequence.append(token)
    assert drafted(NgramDrafter(), sequence, 2) == [60, 61]
    assert drafted(drafter, sequence, 2) == [8, 9]
    sequence.append(60)  # the copy was wrong
    assert drafted(drafter, sequence, 2) == [61, 62]


def test_a_prediction_is_copied_from_its_start_and_where_it_fits_again() -> None:
    prediction = (70, 71, 72, 73, 74, 75)
    drafter, sequence = NgramDrafter(), grown([1, 2, 3], 70, prediction=prediction)
    assert drafted(drafter, sequence, 3) == [71, 72, 73]
    for token in (71, 99, 73, 74):
        sequence.append(token)
    assert drafted(drafter, sequence, 3) == [75, 1, 2]  # what follows it is the prompt
    other = grown([1, 2, 3], 9, prediction=prediction)
    assert drafted(NgramDrafter(), other) == []


def test_sequences_share_the_room_and_are_forgotten() -> None:
    drafter = NgramDrafter()
    first, second = grown([1, 2, 3, 4, 5], 1, 2), grown([1, 2, 3, 4, 5], 2, 3)
    none = grown([1, 2, 3], 9)
    wishes = [Wish(first, 4), Wish(none, 4), Wish(second, 2)]
    assert drafter.propose(wishes, 5) == [[3, 4, 5], [], [4, 5]]
    assert drafter.propose(wishes, 1) == [[3], [], []]
    for sequence in (first, second, none):
        drafter.close(sequence.key)
        drafter.close(sequence.key)
    assert drafter._texts == {}


@pytest.mark.parametrize(
    ("wanted", "room", "grants"),
    [
        ([], 4, []),
        ([3], 2, [2]),
        ([3, 3], 100, [3, 3]),
        ([8, 1, 8], 9, [4, 1, 4]),
        ([0, 5, 5], 4, [0, 2, 2]),
        ([5, 5, 5], 2, [0, 1, 1]),
        ([5, 5], 0, [0, 0]),
    ],
)
def test_small_wants_are_granted_whole_and_the_others_evenly(
    wanted: list[int], room: int, grants: list[int]
) -> None:
    assert shared(wanted, room) == grants


def test_a_long_prompt_is_read_once_and_not_in_every_step() -> None:
    """Counted, not timed: a step adds its own tokens only."""
    draw = random.Random(0)
    drafter, sequence = NgramDrafter(), grown([draw.randrange(10**6) for _ in range(50_000)], 1)
    drafted(drafter, sequence)
    text = drafter._texts[sequence.key]
    for place in range(20):
        assert [len(runs._recent) for runs in text._runs] == [place + 1] * len(SIZES)
        sequence.append(2_000_000 + place)
        drafted(drafter, sequence)
