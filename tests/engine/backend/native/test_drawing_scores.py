"""Native scores against those of scores.py: values, order, ties and ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from engine.backend.backend import Float32
from engine.backend.native.drawing import Drawing
from engine.backend.native.library import Library, Pool
from engine.backend.scores import NO_CHANCE, log_softmax, sampled_scores, score
from engine.events import TokenScore
from tests.engine.plans import Draw, sampling_plan

NEAR = 1e-5
SIZES = (1, 2, 5, 16, 21, 97, 4099, 49_153)


@pytest.fixture
def drawing(library: Library) -> Iterator[Drawing]:
    with Pool(library, 2) as pool:
        yield Drawing(library, pool)


def logits_of(rows: int, vocab: int, step: float = 2.0**-10) -> Float32:
    """Random logits in steps that no rounding of the log probabilities makes equal."""
    values = np.random.default_rng(vocab).normal(0, 4, (rows, vocab))
    return (np.round(values / step) * step).astype(np.float32)


def assert_same(made: TokenScore, wanted: TokenScore, near: float = NEAR) -> None:
    assert (made.token, made.rank) == (wanted.token, wanted.rank)
    assert [id for id, _ in made.top] == [id for id, _ in wanted.top]
    pairs = zip(made.top, wanted.top, strict=True)
    assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=near) for (_, a), (_, b) in pairs)
    assert math.isclose(made.logprob, wanted.logprob, rel_tol=1e-6, abs_tol=near)
    assert dict(made.top).get(made.token, made.logprob) == made.logprob


@pytest.mark.parametrize("vocab", SIZES)
@pytest.mark.parametrize("step", [2.0**-10, 0.25, 8.0])
def test_scores_of_targets_are_those_of_numpy(drawing: Drawing, vocab: int, step: float) -> None:
    tops = np.array([0, 1, 5, 20, 64, 65, 300, 10**6][: 8 if vocab < 5000 else 6], np.int32)
    logits = logits_of(len(tops), vocab, step)
    before = logits.copy()
    for targets in (logits.argmax(1), logits.argmin(1), np.arange(len(tops)) * 31 % vocab):
        made = drawing.target_scores(logits, targets, tops)
        assert (logits == before).all()
        for row, own in enumerate(made):
            wanted = score(log_softmax(logits[row]), int(targets[row]), int(tops[row]))
            assert_same(own, wanted)


def test_sampled_rows_get_what_they_want(drawing: Drawing) -> None:
    wide = logits_of(7, 4099)
    logits = wide[:, 5:4000]  # rows apart, not aligned
    draws = [
        Draw(),
        Draw(logprob_top=2),
        Draw(logprob_top=20),
        Draw(logprob_top=0),
        Draw(logprob_top=0, logprob_ids=(9, 8, 3994, 0)),
        Draw(logprob_top=5, logprob_ids=(7, 5)),
        Draw(logprob_top=20, logprob_ids=tuple(range(1000, 1128))),
    ]
    plan = sampling_plan(draws)
    tokens = np.array([1, 2, 3, 4, 5, 5, 3000])
    for failed in ({}, {2: "failed"}):
        made = drawing.sampled_scores(logits, plan, tokens, failed)
        wanted = sampled_scores(logits, plan, tokens, failed)
        assert list(made) == list(wanted)
        for row in made:
            assert_same(made[row], wanted[row])
    assert [len(made[row].top) for row in (4, 5, 6)] == [5, 2, 129]
    unscored = sampling_plan([Draw(), Draw()])
    assert drawing.sampled_scores(logits[:2], unscored, tokens[:2], {}) == {}


def test_scores_do_not_depend_on_rows_and_threads(library: Library) -> None:
    logits = logits_of(9, 5003, step=2.0**-20)
    targets, tops = np.arange(9) * 99, np.arange(9, dtype=np.int32) * 40
    results = []
    for threads in (1, 2, 4):
        with Pool(library, threads) as pool:
            drawing = Drawing(library, pool)
            results.append(drawing.target_scores(logits, targets, tops))
            backwards = drawing.target_scores(logits[::-1], targets[::-1].copy(), tops[::-1])
            results.append(backwards[::-1])
            results.append([
                drawing.target_scores(logits[row:], targets[row:], tops[row:])[0]
                for row in range(9)
            ])  # fmt: skip
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("shift", [0.0, -3000.0, 3000.0])
def test_log_probabilities_are_exact_to_fp32(drawing: Drawing, shift: float) -> None:
    logits = logits_of(1, 49_153, step=2.0**-12) + np.float32(shift)
    exact = logits[0].astype(np.float64)
    exact -= exact.max() + math.log(np.exp(exact - exact.max()).sum())
    (made,) = drawing.target_scores(logits, np.zeros(1, np.int64), np.array([49_153], np.int32))
    rounding = 2 * float(np.spacing(np.abs(logits).max() + np.float32(16)))
    assert max(abs(value - exact[id]) for id, value in made.top) <= rounding


def test_many_small_chances_add_up(drawing: Drawing) -> None:
    logits = np.zeros((1, 1_000_003), np.float32)
    (made,) = drawing.target_scores(logits, np.array([7]), np.array([3], np.int32))
    assert abs(made.logprob + math.log(1_000_003)) < 1e-6
    assert (made.rank, [id for id, _ in made.top]) == (1, [0, 1, 2])


def test_ties_are_decided_on_what_is_reported(drawing: Drawing) -> None:
    logits = np.array([[16.0, 0.0, 1e-7, -4.0]], np.float32)
    (made,) = drawing.target_scores(logits, np.array([2]), np.array([4], np.int32))
    assert made.top[1][1] == made.top[2][1] == made.logprob
    assert [id for id, _ in made.top] == [0, 1, 2, 3]
    assert made.rank == 2


def test_what_is_not_finite_has_no_chance(drawing: Drawing) -> None:
    inf, nan = math.inf, math.nan
    rows = [
        [-inf, 1.0, -inf, 1.0],
        [0.0, nan, 1.0, 2.0],
        [0.0, inf, 1.0, 2.0],
        [-inf, -inf, -inf, -inf],
        [0.0, -20000.0, -inf, -3e38],  # less than what is reported for none
        [3e38, -3e38, 0.0, -inf],
    ]
    logits = np.array(rows, np.float32)
    for target in range(4):
        targets, tops = np.full(len(rows), target), np.full(len(rows), 4, np.int32)
        made = drawing.target_scores(logits, targets, tops)
        with np.errstate(over="ignore"):
            wanted = [score(log_softmax(row), target, 4) for row in logits]
        for own, other in zip(made, wanted, strict=True):
            assert_same(own, other)
    half = float(np.float32(-math.log(2)))
    assert drawing.target_scores(logits[:1], np.array([2]), np.array([4], np.int32)) == [
        TokenScore(2, NO_CHANCE, 3, ((1, half), (3, half), (0, NO_CHANCE), (2, NO_CHANCE)))
    ]


def test_no_rows_no_scores(drawing: Drawing) -> None:
    none = np.zeros(0, np.int64)
    assert drawing.target_scores(np.zeros((0, 5), np.float32), none, none.astype(np.int32)) == []


def test_tokens_that_are_not_there_are_refused(drawing: Drawing) -> None:
    logits = np.zeros((1, 5), np.float32)
    for target in (5, -1):
        with pytest.raises(ValueError, match="outside"):
            drawing.target_scores(logits, np.array([target]), np.zeros(1, np.int32))
    plan = sampling_plan([Draw(logprob_top=1, logprob_ids=(0, 5))])
    with pytest.raises(ValueError, match="outside"):
        drawing.sampled_scores(logits, plan, np.zeros(1, np.int64), {})
    with pytest.raises(ValueError, match="column"):
        drawing.target_scores(logits, np.zeros(2, np.int64), np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="negative"):
        drawing.target_scores(logits, np.zeros(1, np.int64), np.array([-3], np.int32))
    replaced = replace(plan, logprob_ids=np.array([0, -1]))
    with pytest.raises(ValueError, match="outside"):
        drawing.sampled_scores(logits, replaced, np.zeros(1, np.int64), {})
