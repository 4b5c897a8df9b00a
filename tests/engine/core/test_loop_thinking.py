"""Thoughts that the loop closes: by budget, by loop, and where something is against it."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from engine.events import FinishCause
from engine.messages import ThinkingLimits, TokenRequest
from engine.types import LogprobOptions, RepetitionDetection
from tests.engine.core.sequences import (
    END,
    Harness,
    Speaker,
    allowed_ids,
    byte_ids,
    continuation,
    expected,
    regex,
    request,
    text_of,
)

OPEN, CLOSE, CALL = 950, 951, 952
X = byte_ids("x")[0]  # closes thoughts that a grammar describes
LOOP = RepetitionDetection(4, 1, 3)


def limits(close: int = CLOSE, *, starts_open: bool = True, **options: Any) -> ThinkingLimits:
    return ThinkingLimits(close, (OPEN,), (close, CALL), starts_open, **options)


def speak(said: list[int], asked: TokenRequest) -> Harness:
    """Serve a request whose model wants to say this."""
    harness = Harness(backend=Speaker(said))
    harness.run([asked])
    return harness


def cuts(harness: Harness) -> tuple[int, int]:
    stats = harness.loop.stats()
    return stats.reasoning_budget_cuts, stats.reasoning_loop_cuts


@pytest.mark.parametrize("budget", [0, 1, 2, 7])
def test_the_close_comes_right_after_as_many_tokens_as_the_budget_has(budget: int) -> None:
    said = list(range(10, 40))
    asked = request([5, 6], 12, thinking=limits(budget=budget))
    harness = speak(said, asked)
    assert harness.tokens[asked.key] == [*said[:budget], CLOSE, *said[budget + 1 : 12]]
    assert harness.causes == {asked.key: FinishCause.LIMIT}
    assert cuts(harness) == (1, 0)
    assert harness.loop.stats().generated_tokens == 12
    assert harness.loop.stats().forced_tokens == 0
    for place, plan in enumerate(harness.backend.plans):
        is_forced = place == budget
        assert plan.mask_rows.tolist() == [0 if is_forced else -1]
        assert not is_forced or allowed_ids(plan, 0).tolist() == [CLOSE]


@pytest.mark.parametrize(("end", "budget"), [(CLOSE, 4), (CALL, 4), (CLOSE, None), (END, 4)])
def test_what_the_model_ends_itself_is_no_cut(end: int, budget: int | None) -> None:
    said = [10, 11, 12, end, 13, 14, 15, 16, 17]
    asked = request([5], 20, thinking=limits(budget=budget))
    harness = speak(said, asked)
    whole = said[:4] if end == END else [*said, END]
    assert harness.tokens[asked.key] == whole
    assert harness.causes == {asked.key: FinishCause.END}
    assert cuts(harness) == (0, 0)


def test_an_answer_without_thoughts_has_no_budget() -> None:
    said = [10, 11, CLOSE, 12, 13]
    asked = request([5], 20, thinking=limits(starts_open=False, budget=1))
    harness = speak(said, asked)
    assert harness.tokens[asked.key] == [*said, END]
    assert cuts(harness) == (0, 0)


def test_a_later_thought_has_what_the_budget_still_holds() -> None:
    said = [10, 11, CLOSE, 20, OPEN, 12, 13, 14, 21, OPEN, 15, 22]
    asked = request([5], 20, thinking=limits(budget=4))
    harness = speak(said, asked)
    closed = [10, 11, CLOSE, 20, OPEN, 12, 13, CLOSE, 21, OPEN, CLOSE, 22, END]
    assert harness.tokens[asked.key] == closed
    assert cuts(harness) == (2, 0)


@pytest.mark.parametrize(
    ("max_tokens", "tokens", "count"),
    [(3, [10, 11, 12], 0), (4, [10, 11, 12, CLOSE], 1), (2, [10, 11], 0)],
)
def test_the_close_counts_as_output_and_needs_room(
    max_tokens: int, tokens: list[int], count: int
) -> None:
    asked = request([5], max_tokens, thinking=limits(budget=3))
    harness = speak(list(range(10, 30)), asked)
    assert harness.tokens[asked.key] == tokens
    assert harness.causes == {asked.key: FinishCause.LIMIT}
    assert cuts(harness) == (count, 0)


def test_a_forced_close_has_no_score_and_all_else_has() -> None:
    asked = request([5], 8, thinking=limits(budget=3), logprobs=LogprobOptions(2))
    plain = request([6], 8, logprobs=LogprobOptions(2))
    harness = Harness(backend=Speaker(list(range(10, 30)), list(range(40, 60))))
    harness.run([asked, plain])
    tokens = harness.tokens[asked.key]
    assert tokens[3] == CLOSE
    assert [score.token for score in harness.scores[asked.key]] == tokens[:3] + tokens[4:]
    assert [score.token for score in harness.scores[plain.key]] == harness.tokens[plain.key]


def test_a_close_that_the_model_chose_has_its_score() -> None:
    asked = request([5], 8, thinking=limits(budget=3), logprobs=LogprobOptions())
    harness = speak([10, CLOSE, 12, 13, 14, 15], asked)
    assert [score.token for score in harness.scores[asked.key]] == harness.tokens[asked.key]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"logit_bias": {CLOSE: -math.inf}}, None),
        ({"logit_bias": {CLOSE: -100.0}}, 2),
        ({"allowed_token_ids": tuple(range(10, 30))}, None),
        ({"allowed_token_ids": (*range(10, 30), CLOSE)}, 2),
        ({"bad_words": ((CLOSE,),)}, None),
        ({"bad_words": ((11, CLOSE),)}, 3),  # only after 11
        ({"min_tokens": 4, "stop_ids": (CLOSE,)}, 4),
    ],
    ids=str,
)
def test_a_close_that_is_banned_waits_until_it_is_not(
    options: dict[str, Any], place: int | None
) -> None:
    said = list(range(10, 20))
    asked = request([5], 8, thinking=limits(budget=2), **options)
    harness = speak(said, asked)
    if place is None:
        assert harness.tokens[asked.key] == said[:8]
    else:
        assert harness.tokens[asked.key][: place + 1] == [*said[:place], CLOSE]
    stops = "stop_ids" in options
    assert harness.causes == {asked.key: FinishCause.STOP_TOKEN if stops else FinishCause.LIMIT}
    assert cuts(harness) == (int(place is not None), 0)


@pytest.mark.parametrize(
    ("grammar", "text", "count"),
    [
        ("[ab]+x[cd]{3}", "aaxccc", 1),
        ("[ab]{5}x?[cd]{3}", "aaaaaxccc", 1),  # not before the grammar allows it
        ("[ab]{8}", "aaaaaaaa", 0),
        ("[ab]x[cd]{6}", "axcccccc", 0),  # the grammar closes it first
    ],
)
@pytest.mark.parametrize("logprobs", [None, LogprobOptions()], ids=["plain", "scored"])
def test_a_thought_is_closed_where_the_grammar_allows_it(
    grammar: str, text: str, count: int, logprobs: LogprobOptions | None
) -> None:
    asked = request(
        [5], 20, thinking=limits(X, budget=2), grammar=regex(grammar), logprobs=logprobs
    )
    harness = speak(byte_ids("a" * 20), asked)
    assert text_of(harness.tokens[asked.key]) == text
    assert harness.causes == {asked.key: FinishCause.COMPLETE}
    assert cuts(harness) == (count, 0)
    if logprobs is not None:
        assert len(harness.scores[asked.key]) == len(text) - count


@pytest.mark.parametrize(("budget", "count"), [(2, 1), (3, 1), (4, 1), (5, 0)])
def test_tokens_that_a_grammar_forces_are_thoughts_and_end_thoughts(
    budget: int, count: int
) -> None:
    """The model has no choice until the close; only the budgets that were used up count."""
    asked = request([5], 30, thinking=limits(X, budget=budget), grammar=regex("abcdx[ef]{9}"))
    harness = speak(byte_ids("eeeeeeeeeeeeeeee"), asked)
    assert text_of(harness.tokens[asked.key]) == "abcdxeeeeeeeee"
    assert cuts(harness) == (count, 0)


def test_forced_tokens_stop_where_the_budget_does() -> None:
    """What the grammar forces comes in one step, up to the token that uses the budget up."""
    asked = request([5], 40, thinking=limits(X, budget=6), grammar=regex("[ab](c{5})+x?[de]{2}"))
    harness = speak(byte_ids("a" + "c" * 20 + "dd"), asked)
    assert text_of(harness.tokens[asked.key]) == "acccccxdd"
    assert cuts(harness) == (1, 0)
    assert harness.loop.stats().forced_tokens == 5


def test_a_loop_closes_the_thought_and_the_answer_goes_on() -> None:
    said = [10, 11] * 3 + [12, 20, 21, 20, 22, 23]
    asked = request([5], 40, thinking=limits(repetition=LOOP), repetition=LOOP)
    harness = speak(said, asked)
    assert harness.tokens[asked.key] == [*said[:6], CLOSE, *said[7:], END]
    assert harness.causes == {asked.key: FinishCause.END}
    assert cuts(harness) == (0, 1)
    assert harness.loop.stats().repetition_cuts == 0


def test_a_second_thought_may_begin_like_the_first_that_looped() -> None:
    said = [10, 10, 10, 12, 20, OPEN, 10, 10, CLOSE, 21, OPEN, 10, 10, 10, 12, 22]
    asked = request([5], 40, thinking=limits(repetition=LOOP))
    harness = speak(said, asked)
    closed = [10, 10, 10, CLOSE, 20, OPEN, 10, 10, CLOSE, 21, OPEN, 10, 10, 10, CLOSE, 22, END]
    assert harness.tokens[asked.key] == closed
    assert cuts(harness) == (0, 2)


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ([20, 20, 20, 21], 6),  # the answer's own loop, after the close
        ([20, 20, OPEN, 10, CLOSE, 20, 20, 21], None),  # a thought stands between
        ([20, 20, OPEN, 10, 10, CLOSE, 20, 20, 20, 21], 12),
        ([20, OPEN, 10, CLOSE, 20, OPEN, 11, CLOSE, 20, OPEN, 12, CLOSE, 21], None),
        ([OPEN, CLOSE, OPEN, CLOSE, OPEN, CLOSE, 21], 8),  # nothing is thought
    ],
    ids=str,
)
def test_the_answers_own_detector_sees_answers_only(said: list[int], length: int | None) -> None:
    whole = [10, 11, CLOSE, *said]
    asked = request([5], 40, thinking=limits(repetition=LOOP), repetition=LOOP)
    harness = speak(whole, asked)
    assert harness.tokens[asked.key] == ([*whole, END] if length is None else whole[:length])
    cause = FinishCause.END if length is None else FinishCause.REPETITION
    assert harness.causes == {asked.key: cause}
    assert cuts(harness) == (0, 0)
    assert harness.loop.stats().repetition_cuts == int(length is not None)


@pytest.mark.parametrize("own", [None, RepetitionDetection(0)], ids=str)
def test_without_a_detector_of_thoughts_a_loop_in_one_ends_the_sequence(
    own: RepetitionDetection | None,
) -> None:
    asked = request([5], 40, thinking=limits(repetition=own), repetition=LOOP)
    harness = speak([10] * 9, asked)
    assert harness.tokens[asked.key] == [10, 10, 10]
    assert harness.causes == {asked.key: FinishCause.REPETITION}
    assert cuts(harness) == (0, 0)


def bounded(asked: TokenRequest) -> list[int]:
    """`expected`, with the open thought closed by its budget."""
    assert asked.thinking is not None and asked.thinking.budget is not None
    context = list(asked.token_ids)
    for place in range(asked.max_tokens):
        is_cut = place == asked.thinking.budget
        context.append(CLOSE if is_cut else continuation(context, asked.seed, place))
    return context[len(asked.token_ids) :]


@pytest.mark.parametrize("seed", range(4))
def test_thoughts_are_bounded_beside_others_in_chunks_and_when_preempted(seed: int) -> None:
    """The backend draws from what its pages hold: a lost or doubled close would change all."""
    harness = Harness(num_pages=16, chunk=7)  # 240 tokens for eight sequences
    draw = random.Random(seed)
    shared = [draw.randrange(2, 900) for _ in range(33)]
    asked = [
        request(
            [*shared[: draw.choice([0, 33])], place + 2, draw.randrange(2, 900)],
            40,
            thinking=draw.choice([None, limits(budget=draw.randrange(38))]),
            seed=place,
        )
        for place in range(12)
    ]
    harness.run(asked)
    assert harness.loop.scheduler.preemptions > 0
    for one in asked:
        whole = expected(one) if one.thinking is None else bounded(one)
        assert harness.tokens[one.key] == whole
    assert cuts(harness) == (sum(one.thinking is not None for one in asked), 0)
