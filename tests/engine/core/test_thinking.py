"""Where thoughts begin and end by tokens, what counts as one, and when it must end."""

from __future__ import annotations

from typing import Any

import pytest

from engine.core.thinking import Cut, Thoughts
from engine.messages import ThinkingLimits
from engine.types import RepetitionDetection

OPEN, CLOSE, CALL = 900, 901, 902


def thoughts(*, starts_open: bool = True, **options: Any) -> Thoughts:
    return Thoughts(ThinkingLimits(CLOSE, (OPEN,), (CLOSE, CALL), starts_open, **options))


def due_after(one: Thoughts, *tokens: int) -> list[Cut | None]:
    """What is due at the start and after each token."""
    due = [one.due]
    for token in tokens:
        one.add(token)
        due.append(one.due)
    return due


@pytest.mark.parametrize(
    ("starts_open", "tokens", "is_open"),
    [
        (True, [], True),
        (False, [], False),
        (True, [5, 6], True),
        (True, [5, CLOSE], False),
        (True, [5, CALL], False),
        (True, [CLOSE, OPEN], True),
        (True, [OPEN], True),
        (False, [5, CLOSE], False),
        (False, [5, OPEN, 6], True),
        (False, [OPEN, OPEN, CLOSE], False),
    ],
    ids=str,
)
def test_a_thought_lies_between_a_token_that_opens_and_one_that_ends(
    starts_open: bool, tokens: list[int], is_open: bool
) -> None:
    one = thoughts(starts_open=starts_open)
    for token in tokens:
        one.add(token)
    assert one.is_open == is_open


def test_a_close_is_due_when_the_budget_is_used_up_and_until_it_comes() -> None:
    b = Cut.BUDGET
    assert due_after(thoughts(budget=2), 5, 6, 7, CLOSE, 8) == [None, None, b, b, None, None]


def test_a_budget_of_nothing_is_used_up_where_the_thought_opens() -> None:
    b = Cut.BUDGET
    assert due_after(thoughts(budget=0), CLOSE, 5) == [b, None, None]
    assert due_after(thoughts(starts_open=False, budget=0), 5, OPEN) == [None, None, b]


def test_the_budget_is_one_for_all_thoughts_and_counts_no_delimiters_or_answers() -> None:
    one = thoughts(budget=3)
    assert set(due_after(one, 5, 6, CLOSE, 7, 7, 7, 7, OPEN)) == {None}
    assert due_after(one, 8, CALL, 7, OPEN) == [None, Cut.BUDGET, None, None, Cut.BUDGET]


def test_an_opening_token_within_a_thought_is_part_of_it() -> None:
    assert due_after(thoughts(budget=1), OPEN)[-1] is Cut.BUDGET


def test_a_loop_is_due_as_long_as_the_thought_ends_in_it() -> None:
    one = thoughts(repetition=RepetitionDetection(2, 1, 3))
    cut = Cut.LOOP
    assert due_after(one, 5, 5, 5, 5, 6) == [None, None, None, cut, cut, None]


def test_a_loop_lies_in_one_thought() -> None:
    one = thoughts(repetition=RepetitionDetection(1, 1, 3))
    assert set(due_after(one, 5, 5, CLOSE, OPEN, 5, 5, CALL, 5, 5, 5, 5)) == {None}
    assert due_after(one, OPEN, 5, 5, 5)[-1] is Cut.LOOP


def test_the_budget_is_the_cause_before_a_loop() -> None:
    one = thoughts(budget=3, repetition=RepetitionDetection(1, 1, 3))
    assert due_after(one, 5, 5, 5)[-1] is Cut.BUDGET


@pytest.mark.parametrize(
    ("repetition", "watched"),
    [
        (RepetitionDetection(2), [True, False, False, False, True]),
        (RepetitionDetection(0), [False] * 5),
        (None, [False] * 5),
    ],
    ids=str,
)
def test_a_detector_looks_at_nothing_but_what_is_within_a_thought(
    repetition: RepetitionDetection | None, watched: list[bool]
) -> None:
    one = thoughts(repetition=repetition)
    assert [one.add(token) for token in (5, CLOSE, 6, OPEN, 7)] == watched
