"""What the native sampler takes and refuses: equals, rows without a choice, points, bounds."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engine.backend.backend import Int64
from engine.backend.native.drawing import Drawing, DrawPlan, ScorePlan
from engine.backend.native.library import Library, Pool
from engine.backend.sampling import sample, uniforms
from tests.engine.backend.native.drawings import LAST, chosen, normal, seed_of
from tests.engine.plans import Draw, Rows, plan_of, sampling_plan

SIZES = (1, 2, 7, 15, 16, 17, 33, 300, 511, 513, 4099)


@pytest.fixture
def drawing(library: Library) -> Iterator[Drawing]:
    with Pool(library, 2) as pool:
        yield Drawing(library, pool)


@pytest.mark.parametrize("vocab", SIZES)
def test_greedy_takes_the_lowest_of_the_best(drawing: Drawing, vocab: int) -> None:
    places = range(vocab) if vocab < 40 else [0, 1, 15, 16, 255, vocab // 2, vocab - 2, vocab - 1]
    below = np.nextafter(np.float32(3), np.float32(0))
    logits = np.full((len(places), vocab), below)
    for row, place in enumerate(places):
        logits[row, [place, vocab - 1]] = [3.0, 3.0]
        logits[row, : place % 3] = -np.inf
        logits[row, place] = 3.0
    assert chosen(drawing, logits, sampling_plan([Draw()] * len(places))) == list(places)
    zeros = np.where(np.arange(vocab) % 2, 0.0, -0.0).astype(np.float32)[None]
    assert chosen(drawing, zeros, sampling_plan([Draw()])) == [0]


@pytest.mark.parametrize("vocab", SIZES)
@pytest.mark.parametrize("draw", [Draw(), Draw(1.0), Draw(1.0, top_p=0.9, top_n_sigma=1.0)])
def test_rows_without_a_choice_fail_alone(drawing: Drawing, vocab: int, draw: Draw) -> None:
    places = sorted({0, 1 % vocab, vocab // 2, vocab - 1})
    rows = [normal(1, vocab)[0]]
    for value in (np.nan, np.inf):
        for place in places:
            rows += [normal(1, vocab)[0], np.full(vocab, -np.inf, np.float32)]
            rows[-2][place] = rows[-1][place] = value
    rows += [np.full(vocab, -np.inf, np.float32), normal(1, vocab)[0], normal(1, vocab)[0]]
    draws = [draw] * (len(rows) - 2)
    draws += [replace(draw, bias=dict.fromkeys(range(vocab), -math.inf)), replace(draw, mask=())]
    plan = sampling_plan(draws)
    logits = np.stack(rows)
    tokens, failed = drawing.draw(logits, plan)
    reference, wanted = sample(torch.from_numpy(logits), plan)
    assert failed == wanted
    assert tokens[0] == reference[0]
    assert ((tokens >= 0) & (tokens < vocab)).all()


@pytest.mark.parametrize("position", [0, 1, 2**40, 2**63 - 1])
def test_the_point_is_that_of_seed_and_position(drawing: Drawing, position: int) -> None:
    """Of equal tokens each has an equal part, in fp64 exactly."""
    count = 1024
    points = np.arange(count) / count
    seeds = [0, 1, 2**63, 2**64 - 1, *(seed_of(point, position) for point in points)]
    seeds += [seed_of(point + 1 / count - 2**-53, position) for point in points]
    draws = [Draw(1.0, seed=seed, position=position) for seed in seeds]
    plan = sampling_plan(draws)
    wanted = (uniforms(plan.seeds, plan.positions_drawn) * count).astype(int).tolist()
    assert wanted[4:] == [*range(count), *range(count)]
    equals = np.broadcast_to(np.full(count, 2.5, np.float32), (len(seeds), count))
    assert chosen(drawing, equals, plan) == wanted


@pytest.mark.parametrize("kept", [1, 5, 63, 64, 65, 300, 1024, 1025, 9000])
@pytest.mark.parametrize("limit", [{}, {"min_p": 0.5}, {"top_p": 0.9999999}])
def test_equals_are_cut_by_id(drawing: Drawing, kept: int, limit: dict[str, Any]) -> None:
    points = np.arange(0, kept, max(1, kept // 9)) / kept
    draws = [Draw(0.5, top_k=kept, seed=seed_of(point + 0.5 / kept), **limit) for point in points]
    logits = np.zeros((len(draws), 10_007), np.float32)
    wanted = (points * kept + 0.5).astype(int).tolist()
    assert chosen(drawing, logits, sampling_plan(draws)) == wanted


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.0, 1), (0.25, 1), (0.375, 2), (0.5, 2), (0.75, 3), (0.875, 4)]
)
@pytest.mark.parametrize("limit", [{}, {"min_p": 0.5}, {"top_k": 4}])
def test_the_nucleus_ends_with_the_token_that_reaches_top_p(
    drawing: Drawing, top_p: float, kept: int, limit: dict[str, Any]
) -> None:
    draw = Draw(1.0, top_p=top_p, **limit)
    plan = sampling_plan([replace(draw, seed=seed_of(point)) for point in (0.0, LAST)])
    assert chosen(drawing, np.zeros((2, 4), np.float32), plan) == [0, kept - 1]


@pytest.mark.parametrize("draw", [Draw(), Draw(1.0), Draw(1.0, top_k=3), Draw(1.0, top_n_sigma=9)])
def test_a_mask_may_be_shorter_or_longer_than_the_vocabulary(drawing: Drawing, draw: Draw) -> None:
    logits = np.zeros((1, 70), np.float32)
    logits[0, 40:] = 9.0
    assert chosen(drawing, logits, sampling_plan([replace(draw, mask={5})])) == [5]
    assert chosen(drawing, logits[:, :40], sampling_plan([replace(draw, mask={5, 66})])) == [5]


def test_no_rows_no_tokens(drawing: Drawing) -> None:
    plan = plan_of([Rows([0], 0, [1], sampled=False)])
    assert chosen(drawing, np.zeros((0, 9), np.float32), plan) == []


def _ids(*ids: int) -> Int64:
    return np.array(ids, np.int64)


@pytest.mark.parametrize(
    "changes",
    [
        {"bias_ids": _ids(9, 0)},
        {"bias_ids": _ids(0, -1)},
        {"bias_ids": _ids(0)},
        {"seen_ids": _ids(9)},
        {"seen_ids": np.array([1], np.int32)},
        {"bias_indptr": np.array([0, 3, 2], np.int32)},
        {"bias_indptr": np.array([1, 2, 2], np.int32)},
        {"seen_indptr": np.array([0, 1, 0], np.int32)},
        {"mask_rows": np.array([1, -1], np.int32)},
        {"mask_rows": np.array([0, -2], np.int32)},
        {"temperature": np.zeros(3, np.float32)},
        {"temperature": np.zeros(2)},
        {"seeds": np.zeros(4, np.uint64)[::2]},
    ],
)
def test_what_does_not_fit_is_refused(drawing: Drawing, changes: dict[str, Any]) -> None:
    plan = sampling_plan([Draw(bias={1: 2.0, 2: 1.0}, seen={1: 1}, mask={1}), Draw()])
    logits = np.zeros((2, 9), np.float32)
    chosen(drawing, logits, plan)
    with pytest.raises(ValueError, match=r"token|list|mask|column"):
        drawing.draw(logits, replace(plan, **changes))


def test_logits_of_another_kind_are_refused(drawing: Drawing) -> None:
    plan = sampling_plan([Draw()] * 4)
    wrong: list[Any] = [np.zeros((4, 4)), np.zeros((4, 8), np.float32)[:, ::2]]
    for logits in wrong:
        with pytest.raises(ValueError, match="logits"):
            drawing.draw(logits, plan)
    drawing.pool.close()
    with pytest.raises(ValueError, match="closed"):
        drawing.draw(np.zeros((4, 8), np.float32), plan)


def test_structures_are_those_of_the_library(library: Library) -> None:
    sizes = [library.functions.heliograph_size(which) for which in (6, 7)]
    assert sizes == [ctypes.sizeof(DrawPlan), ctypes.sizeof(ScorePlan)]
