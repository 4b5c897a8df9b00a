"""The sampler against a naive one that sorts whole rows; the tokens it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.backend.backend import Int64, StepPlan
from engine.backend.sampling import sample, uniforms
from tests.engine.plans import Draw, Rows, plan_of, sampling_plan

VOCAB = 3001
DRAWS = 1000


def logits_of(seed: int, spread: float, vocab: int = VOCAB, step: float = 0.0) -> Tensor:
    """One random row [vocab]; `step` rounds it so that many tokens are equal."""
    row = torch.randn(vocab, generator=torch.Generator().manual_seed(seed)) * spread
    return (row / step).round() * step if step else row


def chosen(logits: Tensor, plan: StepPlan) -> Int64:
    """The tokens of rows that must not fail."""
    tokens, failed = sample(logits, plan)
    assert not failed
    return tokens


def penalised(logits: Tensor, draw: Draw) -> Tensor:
    row = logits.clone()
    if draw.mask is not None:
        row = torch.full_like(row, -math.inf).index_copy(
            0, torch.tensor(list(draw.mask)), row[list(draw.mask)]
        )
    for id, value in draw.bias.items():
        row[id] += value
    for id, count in draw.seen.items():
        scale = draw.repetition_penalty
        row[id] = row[id] / scale if row[id] > 0 else row[id] * scale
        row[id] -= draw.frequency_penalty * count + draw.presence_penalty * (count > 0)
    if draw.top_n_sigma:
        row[row < row.max() - draw.top_n_sigma * row[row.isfinite()].std(correction=0)] = -math.inf
    return row


def naive_chances(logits: Tensor, draw: Draw) -> Tensor:
    """The distribution [vocab] that a row should be drawn from, by one full sort."""
    chances = torch.softmax(penalised(logits, draw).double() / draw.temperature, -1)
    values, ids = torch.sort(chances, descending=True, stable=True)
    values[values < draw.min_p * values[0]] = 0
    if draw.top_k:
        values[draw.top_k :] = 0
    values = values / values.sum()
    before = values.cumsum(-1) - values
    if draw.top_p < 1:
        values[(before >= draw.top_p) & (torch.arange(len(values)) > 0)] = 0
    return torch.zeros_like(chances).scatter(0, ids, values / values.sum())


def frequencies(logits: Tensor, draw: Draw) -> Tensor:
    """How often each token comes in `DRAWS` draws; [vocab]."""
    counts = torch.zeros(len(logits))
    for start in range(0, DRAWS, 500):
        plan = sampling_plan([replace(draw, position=start + i) for i in range(500)])
        tokens = torch.from_numpy(chosen(logits.expand(500, -1), plan))
        counts += torch.bincount(tokens, minlength=len(logits))
    return counts


SETTINGS: dict[str, Draw] = {
    "temperature": Draw(0.7),
    "hot": Draw(2.0),
    "top-k": Draw(1.0, top_k=5),
    "top-k above the first candidates": Draw(1.5, top_k=200),
    "top-k of all": Draw(1.0, top_k=VOCAB),
    "top-p": Draw(1.0, top_p=0.6),
    "top-p above the first candidates": Draw(1.3, top_p=0.97),
    "top-p of nearly all": Draw(1.5, top_p=0.999999),
    "top-p zero": Draw(1.0, top_p=0.0),
    "min-p": Draw(1.0, min_p=0.1),
    "min-p lets thousands through": Draw(3.0, min_p=1e-4),
    "min-p one": Draw(1.0, min_p=1.0),
    "all": Draw(0.9, top_k=40, top_p=0.8, min_p=0.02),
    "penalties": Draw(
        1.0,
        top_k=20,
        repetition_penalty=1.3,
        frequency_penalty=0.4,
        presence_penalty=0.3,
        seen={id: id % 4 for id in range(0, VOCAB, 3)},
    ),
    "bias": Draw(1.0, top_p=0.9, bias={3: 20.0, 4: 20.5, 5: -math.inf, 6: -100.0}),
    "top-n-sigma": Draw(1.5, top_n_sigma=1.5),
    "mask": Draw(1.2, top_p=0.9, mask=range(0, 2900, 7)),
}


@pytest.mark.parametrize("step", [0.0, 0.5], ids=["distinct", "many equals"])
@pytest.mark.parametrize("name", SETTINGS)
def test_draws_follow_the_naive_distribution(name: str, step: float) -> None:
    draw = replace(SETTINGS[name], seed=11)
    logits = logits_of(5, 3.0, step=step)
    wanted = naive_chances(logits, draw)
    counts = frequencies(logits, draw)
    assert not counts[wanted == 0].any(), "a token outside the support"
    expected = wanted * DRAWS
    often = expected >= 5
    observed = torch.cat([counts[often], counts[~often].sum()[None]]).double()
    ideal = torch.cat([expected[often], expected[~often].sum()[None]])
    observed, ideal = observed[ideal > 0], ideal[ideal > 0]
    chi_square = float(((observed - ideal) ** 2 / ideal).sum())
    freedom = len(ideal) - 1
    assert chi_square < freedom + 5 * math.sqrt(2 * freedom) + 1


def test_a_row_does_not_depend_on_the_others() -> None:
    draws = [
        replace(draw, seed=seed, position=seed % 5)
        for seed, draw in enumerate([Draw(), *SETTINGS.values()] * 4)
    ]
    rows = torch.stack([logits_of(seed, 2.5, step=seed % 2 / 4) for seed in range(len(draws))])
    together = chosen(rows, sampling_plan(draws))
    for row in range(len(draws)):
        assert chosen(rows[row : row + 1], sampling_plan(draws[row : row + 1]))[0] == together[row]
    order = np.random.default_rng(0).permutation(len(draws))
    shuffled = chosen(rows[order], sampling_plan([draws[row] for row in order]))
    assert (shuffled == together[order]).all()


def test_uniforms_differ_by_seed_and_position_and_fill_the_interval() -> None:
    seeds = np.repeat(np.arange(100, dtype=np.uint64), 100)
    positions = np.tile(np.arange(100, dtype=np.int64), 100)
    values = uniforms(seeds, positions)
    assert len(np.unique(values)) == 10_000
    assert ((values >= 0) & (values < 1)).all()
    assert np.abs(np.histogram(values, 20, (0, 1))[0] - 500).max() < 110
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(values[:-100], values[100:])[0, 1]) < 0.03


def test_the_seed_is_64_bits_wide() -> None:
    seeds = np.array([0, 2**63, 2**64 - 1], np.uint64)
    assert len(set(uniforms(seeds, np.zeros(3, np.int64)))) == 3


@pytest.mark.parametrize(
    ("bias", "seen", "penalties", "token"),
    [
        ({}, {}, {}, 2),
        ({2: -math.inf}, {}, {}, 4),
        ({7: 100.0}, {}, {}, 7),
        ({}, {2: 0}, {"repetition_penalty": 2.0}, 4),
        ({}, {2: 0}, {"presence_penalty": 2.0}, 2),
        ({}, {2: 1}, {"presence_penalty": 2.0}, 4),
        ({}, {2: 1, 4: 3}, {"frequency_penalty": 0.1}, 2),
        ({}, {2: 2, 4: 1}, {"frequency_penalty": 1.0}, 5),
        ({}, {2: 5}, {}, 2),
    ],
)
def test_greedy_takes_the_best_after_bias_and_penalties(
    bias: Mapping[int, float], seen: Mapping[int, int], penalties: Mapping[str, float], token: int
) -> None:
    logits = torch.tensor([[0.0, 1.0, 5.0, -1.0, 4.5, 4.5, 0.0, 0.0]])
    before = logits.clone()
    draw = replace(Draw(bias=bias, seen=seen), **penalties)  # type: ignore[arg-type]
    assert chosen(logits, sampling_plan([draw]))[0] == token
    assert torch.equal(logits, before)


def test_equals_go_to_the_lowest_id() -> None:
    logits = torch.zeros(1, 70_000)
    assert chosen(logits, sampling_plan([Draw()]))[0] == 0
    for draw in (Draw(1.0, top_k=1), Draw(1.0, top_p=1e-9), Draw(1.0, top_k=1, min_p=0.5)):
        assert chosen(logits, sampling_plan([draw]))[0] == 0


def test_a_negative_logit_is_penalised_downwards() -> None:
    logits = torch.tensor([[-1.0, -1.5]])
    draw = Draw(repetition_penalty=2.0, seen={0: 1})
    assert chosen(logits, sampling_plan([draw]))[0] == 1


def test_a_tiny_temperature_is_greedy() -> None:
    logits = logits_of(3, 2.0)[None]
    for draw in (Draw(1e-30), Draw(1e-6, top_p=0.9), Draw(1e-6, top_k=50)):
        assert chosen(logits, sampling_plan([draw]))[0] == logits.argmax()


def test_rows_without_a_choice_fail_alone() -> None:
    logits = logits_of(1, 1.0, vocab=8).repeat(4, 1)
    logits[2, 3] = math.nan
    banned = Draw(1.0, bias=dict.fromkeys(range(8), -math.inf))
    masked = Draw(1.0, top_n_sigma=1.0, mask={3}, bias={3: -math.inf})
    tokens, failed = sample(
        logits[[0, 1, 2, 3, 0]], sampling_plan([Draw(), banned, Draw(1.0), Draw(), masked])
    )
    assert failed == {
        1: "every token is banned",
        2: "the model returned no finite logits",
        4: "every token is banned",
    }
    assert tokens[0] == tokens[3] == logits[0].argmax()


def test_no_rows_no_tokens() -> None:
    plan = plan_of([Rows([0], 0, [1], sampled=False)])
    assert chosen(torch.zeros(0, 9), plan).shape == (0,)


def test_greedy_takes_the_best_that_its_mask_allows() -> None:
    logits = torch.tensor([0.0, 1.0, 5.0, -1.0, 4.5, 4.5, 0.0, 0.0]).expand(4, -1)
    draws = [
        Draw(mask={0, 3}),
        Draw(),
        Draw(mask={4, 5}, bias={4: -math.inf, 2: 100.0}),
        Draw(mask={4, 1}, repetition_penalty=10.0, seen={4: 1}),
    ]
    assert chosen(logits, sampling_plan(draws)).tolist() == [0, 2, 5, 1]


@pytest.mark.parametrize("draw", [Draw(), Draw(1.0), Draw(1.0, top_k=3), Draw(1.0, top_n_sigma=9)])
def test_a_mask_may_be_shorter_or_longer_than_the_vocabulary(draw: Draw) -> None:
    logits = torch.zeros(1, 70)
    logits[0, 40:] = 9.0
    assert chosen(logits, sampling_plan([replace(draw, mask={5})])).tolist() == [5]
    assert chosen(logits[:, :40], sampling_plan([replace(draw, mask={5, 66})])).tolist() == [5]
