"""Scores against a float64 log-softmax, and the rules of order, ties and ranks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.backend.backend import Float32
from engine.backend.scores import NO_CHANCE, log_softmax, sampled_scores, score, scored_rows
from engine.events import TokenScore
from tests.engine.plans import Draw, sampling_plan

SIZES = (1, 2, 5, 20, 21, 97, 4099, 49_152)


def logits_of(vocab: int, seed: int = 0, step: float = 0.0) -> Float32:
    """One random row [vocab]; `step` rounds it so that many tokens are equal."""
    row = np.random.default_rng(seed).normal(0, 4, vocab)
    return (np.round(row / step) * step if step else row).astype(np.float32)


def oracle(logits: Float32) -> NDArray[np.float64]:
    exact = logits.astype(np.float64)
    best = exact.max()
    logprobs: NDArray[np.float64] = exact - (best + math.log(np.exp(exact - best).sum()))
    return logprobs


def by_value_then_id(logprobs: Float32) -> list[int]:
    """All tokens in the order of natural alternatives."""
    order: list[int] = np.lexsort((np.arange(len(logprobs)), -logprobs)).tolist()
    return order


@pytest.mark.parametrize("vocab", [*SIZES, 151_936])
@pytest.mark.parametrize("shift", [0.0, 3000.0])
def test_log_softmax_is_exact_to_fp32(vocab: int, shift: float) -> None:
    logits = logits_of(vocab) + np.float32(shift)
    rounding = 2 * float(np.spacing(np.abs(logits).max() + np.float32(16)))
    logprobs = log_softmax(logits)
    assert logprobs.dtype == np.float32
    assert np.abs(logprobs - oracle(logits)).max() <= rounding


def test_many_small_chances_add_up() -> None:
    logits = np.zeros(1_000_003, np.float32)
    assert np.abs(log_softmax(logits) + math.log(1_000_003)).max() < 1e-6


@pytest.mark.parametrize("vocab", SIZES)
@pytest.mark.parametrize("step", [0.0, 0.25, 8.0])
@pytest.mark.parametrize("top", [0, 1, 5, 20])
def test_natural_alternatives_follow_value_then_id(vocab: int, step: float, top: int) -> None:
    logprobs = log_softmax(logits_of(vocab, step=step))
    order = by_value_then_id(logprobs)
    for token in {order[0], order[-1], vocab // 2}:
        made = score(logprobs, token, top)
        assert made.top == tuple((id, float(logprobs[id])) for id in order[:top])
        assert (made.token, made.logprob) == (token, float(logprobs[token]))
        assert made.rank == 1 + sum(value > logprobs[token] for value in logprobs.tolist())


def test_all_equal_tokens_share_rank_one() -> None:
    made = score(log_softmax(np.full(49_152, 3.0, np.float32)), 40_000, 3)
    assert made.rank == 1
    assert [id for id, _ in made.top] == [0, 1, 2]
    assert {value for _, value in made.top} == {made.logprob}


def test_ties_are_decided_on_what_is_reported() -> None:
    logits = np.array([16.0, 0.0, 1e-7, -4.0], np.float32)
    assert logits[1] < logits[2]
    made = score(log_softmax(logits), 2, 4)
    assert made.top[1][1] == made.top[2][1] == made.logprob
    assert [id for id, _ in made.top] == [0, 1, 2, 3]
    assert made.rank == 2 == score(log_softmax(logits), 1, 0).rank


@pytest.mark.parametrize(
    ("ids", "order"),
    [([7, 3, 9], [7, 3, 9, 4]), ([4, 0], [4, 0]), ([0, 4], [0, 4]), ([4], [4]), ([2], [2, 4])],
)
def test_named_ids_keep_their_order_and_gain_the_token(ids: list[int], order: list[int]) -> None:
    logprobs = log_softmax(logits_of(10))
    made = score(logprobs, 4, 2, np.array(ids, np.int64))
    assert made.top == tuple((id, float(logprobs[id])) for id in order)
    assert made == TokenScore(4, float(logprobs[4]), score(logprobs, 4, 0).rank, made.top)


def test_128_named_ids_are_at_most_129_alternatives() -> None:
    ids = np.arange(1000, 1128)
    logprobs = log_softmax(logits_of(49_152))
    assert len(score(logprobs, 5, 20, ids).top) == 129
    assert len(score(logprobs, 1100, 20, ids).top) == 128


def test_what_is_not_finite_has_no_chance() -> None:
    logits = np.array([-np.inf, 1.0, -np.inf, 1.0], np.float32)
    half = float(np.float32(-math.log(2)))
    assert score(log_softmax(logits), 2, 4) == TokenScore(
        2, NO_CHANCE, 3, ((1, half), (3, half), (0, NO_CHANCE), (2, NO_CHANCE))
    )
    for broken in (np.nan, np.inf):
        logits = np.array([0.0, broken, 1.0], np.float32)
        assert score(log_softmax(logits), 1, 1) == TokenScore(1, NO_CHANCE, 1, ((0, NO_CHANCE),))
    silent = np.full(3, -np.inf, np.float32)
    assert score(log_softmax(silent), 1, 0) == TokenScore(1, NO_CHANCE, 1)


@pytest.mark.parametrize("vocab", [97, 49_152])
def test_a_row_has_the_same_bits_wherever_it_lies(vocab: int) -> None:
    row = logits_of(vocab, seed=3)
    alone = log_softmax(row)
    for offset in range(0, 20, 3):
        table = np.concatenate([np.zeros(offset, np.float32), row, row])
        assert (log_softmax(table[offset : offset + vocab]) == alone).all()
        assert (log_softmax(table[offset + vocab :]) == alone).all()


def test_rows_that_want_no_score_or_failed_have_none() -> None:
    logits = np.stack([logits_of(50, seed) for seed in range(5)])
    draws = [
        Draw(),
        Draw(logprob_top=2),
        Draw(logprob_top=2),
        Draw(logprob_top=0),
        Draw(logprob_top=0, logprob_ids=(9, 8)),
    ]
    plan = sampling_plan(draws)
    tokens = np.array([1, 2, 3, 4, 5])
    made = sampled_scores(logits, plan, tokens, {2: "failed"})
    assert scored_rows(plan) == [1, 2, 3, 4]
    assert made == {
        1: score(log_softmax(logits[1]), 2, 2),
        3: score(log_softmax(logits[3]), 4, 0),
        4: score(log_softmax(logits[4]), 5, 0, np.array([9, 8])),
    }
    assert [len(made[row].top) for row in (1, 3, 4)] == [2, 0, 3]
