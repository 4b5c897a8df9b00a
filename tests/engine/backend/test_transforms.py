"""Each transform of the sampler, and all together, against their formulas in NumPy.

A drawn row's possible tokens share the interval [0, 1). The test computes who owns which part, then
hands the sampler points of every part: a token too many, too few or too likely moves the parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.backend.backend import Float32, Int64
from engine.backend.sampling import sample
from tests.engine.plans import Draw, sampling_plan

Float64 = NDArray[np.float64]
EXAMPLES = 100  # rows for each transform
WIDE = 1e-4  # a part of [0, 1) that fp32 chances surely hit
MOST_PARTS = 40
SIZES = (2, 33, 200, 1500)  # one size below, one between and two above the sampler's candidates

EIGHTHS = st.integers(-16, 16).map(lambda number: number / 8)
TRANSFORMS: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "mask": {"mask": st.sets(st.integers(0, 1499), min_size=1, max_size=150)},
    "bias": {
        "bias": st.dictionaries(
            st.integers(0, 39), EIGHTHS | st.sampled_from([-100.0, 100.0, -np.inf]), max_size=20
        )
    },
    "repetition": {"repetition_penalty": st.floats(0.25, 3.0, width=32)},
    "frequency": {"frequency_penalty": EIGHTHS},
    "presence": {"presence_penalty": EIGHTHS},
    "top_n_sigma": {"top_n_sigma": st.floats(0.125, 4.0, width=32)},
    "temperature": {"temperature": st.floats(0.125, 3.0, width=32)},
    "min_p": {"min_p": st.floats(2**-16, 1.0, width=32)},
    "top_k": {"top_k": st.integers(1, 1600)},
    "top_p": {"top_p": st.floats(0.0, 1.0, width=32)},
}
SEEN = st.dictionaries(st.integers(0, 1499), st.integers(0, 5), max_size=40)


@dataclass
class Row:
    """Logits [vocab], and how a token is drawn from them."""

    logits: Float32
    draw: Draw


@st.composite
def rows(draw: st.DrawFn, choice: st.SearchStrategy[set[str]]) -> Row:
    """A row that some transforms apply to; its logits are multiples of 1/64, so many are equal."""
    vocab = draw(st.sampled_from(SIZES))
    spread = draw(st.sampled_from([0.5, 2.0, 5.0]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    logits = np.round(random.normal(0, spread, vocab) * 64) / 64
    seen = draw(SEEN)
    made = Draw(1.0, seen={id: count for id, count in seen.items() if id < vocab})
    for name in sorted(draw(choice)):
        made = replace(made, **{k: draw(value) for k, value in TRANSFORMS[name].items()})  # type: ignore[arg-type]
    mask = None if made.mask is None else {id % vocab for id in made.mask}
    bias = {id: value for id, value in made.bias.items() if id < vocab}
    return Row(logits.astype(np.float32), replace(made, mask=mask, bias=bias))


def adjusted(row: Row) -> Float32:
    """The logits [vocab] after all that comes before the temperature."""
    draw, logits = row.draw, row.logits.copy()
    if draw.mask is not None:
        logits[[id for id in range(len(logits)) if id not in draw.mask]] = -np.inf
    for id, value in draw.bias.items():
        logits[id] += np.float32(value)
    for id, count in draw.seen.items():
        scale = np.float32(draw.repetition_penalty)
        logits[id] = logits[id] / scale if logits[id] > 0 else logits[id] * scale
        logits[id] -= np.float32(draw.frequency_penalty) * np.float32(count)
        logits[id] -= np.float32(draw.presence_penalty) * np.float32(count > 0)
    assume(np.isfinite(logits).any())
    if draw.top_n_sigma > 0:
        finite = logits[np.isfinite(logits)].astype(np.float64)
        deviation = np.sqrt(np.mean((finite - finite.mean()) ** 2))
        floor = finite.max() - np.float32(draw.top_n_sigma) * deviation
        assume((np.abs(finite - floor) > 1e-6).all())
        logits[logits < floor] = -np.inf
    return logits


def chances_of(logits: Float32, draw: Draw) -> tuple[Int64, Float64]:
    """Tokens in the order in which they share [0, 1), and their parts of it.

    Rows on the brink of a limit are not assumed, for there fp32 decides.
    """
    scaled = logits.astype(np.float64) / np.float32(draw.temperature)
    chances = np.exp(scaled - scaled.max())
    chances /= chances.sum()
    restricted = draw.top_k > 0 or draw.min_p > 0 or draw.top_p < 1
    if not restricted:
        return np.arange(len(chances)), chances
    order = np.argsort(-chances, kind="stable")
    chances = chances[order]
    steps = chances[:-1] - chances[1:]
    assume(((steps == 0) | (steps > 1e-5 * chances[:-1]) | (chances[:-1] < 1e-12)).all())
    ratios = chances / chances[0]
    assume(((ratios == draw.min_p) | (np.abs(ratios / max(draw.min_p, 1e-9) - 1) > 1e-5)).all())
    chances[ratios < draw.min_p] = 0
    if draw.top_k:
        chances[draw.top_k :] = 0
    chances /= chances.sum()
    before = np.cumsum(chances) - chances
    if draw.top_p < 1:
        assume((np.abs(before[1:] - draw.top_p) > 1e-5).all())
        chances[1:][before[1:] >= draw.top_p] = 0
    return order, chances / chances.sum()


def points_of(chances: Float64) -> tuple[Float64, Int64]:
    """Points in [0, 1) and the place of the part that each lies in."""
    ends = np.cumsum(chances)
    wide = np.flatnonzero(chances > WIDE)
    wide = wide[:: -(-len(wide) // MOST_PARTS)]
    shares = np.array([0.02, 0.5, 0.98])
    points = (ends - chances)[wide, None] + chances[wide, None] * shares  # [wide, 3]
    return points.ravel(), np.repeat(wide, len(shares))


def drawn(row: Row, points: Float64) -> Int64:
    """What the sampler draws at these points of [0, 1)."""
    plan = sampling_plan([row.draw] * len(points))
    logits = torch.from_numpy(row.logits).expand(len(points), -1)
    with patch("engine.backend.sampling.uniforms", lambda seeds, positions: points):
        tokens, failed = sample(logits, plan)
    assert not failed
    return tokens


def check(row: Row) -> None:
    """The sampler draws from the row as the formulas say, and is greedy where they say so."""
    logits = adjusted(row)
    order, chances = chances_of(logits, row.draw)
    points, places = points_of(chances)
    np.testing.assert_array_equal(drawn(row, points), order[places])
    ends = drawn(row, np.array([0.0, 1.0 - 2.0**-53]))
    assert np.isin(ends, order[chances > 0]).all()
    greedy = Row(row.logits, replace(row.draw, temperature=0.0))
    assert drawn(greedy, np.zeros(1)).tolist() == [logits.argmax()]


CHOICES: dict[str, st.SearchStrategy[set[str]]] = {
    **{name: st.just({name}) for name in TRANSFORMS},
    "some": st.sets(st.sampled_from(sorted(TRANSFORMS)), min_size=2, max_size=4),
    "all": st.just(set(TRANSFORMS)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_transforms_are_their_formulas(name: str) -> None:
    seen = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )
    @given(rows(CHOICES[name]))
    def run(row: Row) -> None:
        nonlocal seen
        check(row)
        seen += 1

    run()
    assert seen >= EXAMPLES
