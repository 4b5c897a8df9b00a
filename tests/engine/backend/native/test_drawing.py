"""The native sampler against fp64 formulas and the torch sampler: every transform, and together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine.backend.backend import Float32
from engine.backend.native.drawing import Drawing
from engine.backend.native.library import Library, Pool
from engine.backend.sampling import sample, uniforms
from tests.engine.backend.native.drawings import LAST, WORD, chosen, normal, seed_of
from tests.engine.plans import Draw, sampling_plan

BRINK = 1e-6  # how near a point of [0, 1) may be to a part's end for both neighbours to be right

T = TypeVar("T")


@pytest.fixture
def drawing(library: Library) -> Iterator[Drawing]:
    with Pool(library, 2) as pool:
        yield Drawing(library, pool)


@dataclass
class Parts:
    """Where in [0, 1) each token of a row's vocabulary has its part; fp64."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]

    @classmethod
    def of(cls, logits: Float32, draw: Draw, nudge: float) -> Parts:
        """By one full sort of adjusted logits, with limits that are wider by a factor."""
        exact = logits.astype(np.float64)
        if draw.top_n_sigma:
            finite = exact[np.isfinite(exact)]
            reach = float(np.float32(draw.top_n_sigma)) * finite.std() * nudge
            exact[exact < exact.max() - reach] = -np.inf
        chances = np.exp((exact - exact.max()) / float(np.float32(draw.temperature)))
        chances /= chances.sum()
        order = np.arange(len(exact))
        if draw.top_k or draw.min_p or draw.top_p < 1:
            order = np.argsort(-exact, kind="stable")
            chances = chances[order]
            chances[chances < min(1.0, float(np.float32(draw.min_p)) / nudge) * chances[0]] = 0
            if draw.top_k:
                chances[draw.top_k :] = 0
            chances /= chances.sum()
            before = np.cumsum(chances) - chances
            if draw.top_p < 1:
                chances[1:][before[1:] >= float(np.float32(draw.top_p)) * nudge] = 0
        ends = np.cumsum(chances) / chances.sum()
        made = cls(np.zeros(len(exact)), np.zeros(len(exact)))
        made.starts[order], made.ends[order] = ends - chances / chances.sum(), ends
        return made

    def holds(self, token: int, point: float) -> bool:
        width = self.ends[token] - self.starts[token]
        inside = self.starts[token] - BRINK <= point <= self.ends[token] + BRINK
        return bool(width > 0 and inside)


def adjusted(logits: Float32, draw: Draw) -> Float32:
    """The logits [vocab] after mask, bias and penalties, in fp32."""
    row = logits.copy()
    if draw.mask is not None:
        row[~np.isin(np.arange(len(row)), list(draw.mask))] = -np.inf
    for id, value in draw.bias.items():
        row[id] += np.float32(value)
    for id, count in draw.seen.items():
        scale = np.float32(draw.repetition_penalty)
        row[id] = row[id] / scale if row[id] > 0 else row[id] * scale
        row[id] -= np.float32(draw.frequency_penalty) * np.float32(count)
        row[id] -= np.float32(draw.presence_penalty) * np.float32(count > 0)
    return row


def right(logits: Float32, draw: Draw, token: int) -> bool:
    """Whether a token may be drawn, but for what fp32 decides on the brink of a limit."""
    row = adjusted(logits, draw)
    if not draw.temperature:
        return token == row.argmax()
    seeds, positions = np.array([draw.seed], np.uint64), np.array([draw.position])
    point = uniforms(seeds, positions)[0]
    nudges = (1.0, 1 + BRINK, 1 - BRINK)
    return any(Parts.of(row, draw, nudge).holds(token, point) for nudge in nudges)


def random_draw(random: np.random.Generator, vocab: int) -> Draw:
    """Some transforms, none more often than not; seeds of the whole range."""

    def maybe(value: T, *others: T) -> T:
        return value if random.random() < 0.6 else others[random.integers(len(others))]

    ids = random.choice(vocab, min(vocab, 40), replace=False).tolist()
    few = dict.fromkeys(ids[1:], 0)  # one token is always left
    return Draw(
        temperature=maybe(1.0, 0.0, 0.25, 0.7, 2.0, 1e-30, 1e-45, 30.0),
        top_k=maybe(0, 1, 2, 40, 64, 65, 500, 1024, 1025, 10**6),
        top_p=maybe(1.0, 0.0, 1e-9, 0.3, 0.9, 0.99, 0.99999),
        min_p=maybe(0.0, 1e-6, 1e-3, 0.1, 1.0),
        top_n_sigma=maybe(0.0, 0.5, 1.5, 4.0),
        repetition_penalty=maybe(1.0, 1.3, 0.5),
        frequency_penalty=maybe(0.0, 0.4, -0.5),
        presence_penalty=maybe(0.0, 0.3, -2.0),
        seen=maybe({}, {id: int(random.integers(0, 4)) for id in few}),
        bias=maybe({}, {id: float(random.choice([-np.inf, -1, 0.5, 9])) for id in few}),
        mask=maybe(None, set(ids), set(range(vocab // 3, vocab)) | {ids[0]}),
        seed=int(random.integers(0, WORD, dtype=np.uint64)),
        position=int(random.choice([0, 1, 77, 2**40])),
    )


@pytest.mark.parametrize(
    ("vocab", "rows"),
    [(1, 20), (2, 60), (7, 200), (70, 300), (300, 300), (3001, 300), (49_153, 24)],
)
@pytest.mark.parametrize("step", [0.0, 0.25], ids=["distinct", "many equals"])
def test_draws_are_right_and_torch_agrees(
    drawing: Drawing, vocab: int, rows: int, step: float
) -> None:
    random = np.random.default_rng(vocab)
    draws = [random_draw(random, vocab) for _ in range(rows)]
    logits = normal(rows, vocab, spread=3.0)
    logits = np.round(logits / step).astype(np.float32) * np.float32(step) if step else logits
    before = logits.copy()
    plan = sampling_plan(draws)
    tokens = chosen(drawing, logits, plan)
    assert (logits == before).all()
    for row in range(rows):
        assert right(logits[row], draws[row], tokens[row]), (row, draws[row])
    reference = sample(torch.from_numpy(logits), plan)[0].tolist()
    assert sum(a != b for a, b in zip(tokens, reference, strict=True)) <= max(1, rows // 100)


def test_a_row_depends_on_nothing_beside_it(library: Library) -> None:
    random = np.random.default_rng(5)
    draws = [random_draw(random, 5000) for _ in range(40)]
    wide = normal(40, 5011, seed=2)
    logits = wide[:, 3:5003]  # rows that are neither aligned nor next to each other
    order = random.permutation(40)
    results = []
    for threads in (1, 2, 5):
        with Pool(library, threads) as pool:
            drawing = Drawing(library, pool)
            results.append(chosen(drawing, logits, sampling_plan(draws)))
            shuffled = sampling_plan([draws[row] for row in order])
            made = chosen(drawing, np.ascontiguousarray(logits[order]), shuffled)
            results.append(np.array(made)[np.argsort(order)].tolist())
    with Pool(library, 2) as pool:
        alone = [
            chosen(Drawing(library, pool), logits[row : row + 1], sampling_plan([draw]))[0]
            for row, draw in enumerate(draws)
        ]
    assert all(result == alone for result in results)


@pytest.mark.parametrize("point", [0.0, LAST])
@pytest.mark.parametrize("draw", [Draw(1.0), Draw(1.0, top_p=0.999999), Draw(3.0, min_p=1e-9)])
def test_the_ends_of_the_interval_are_tokens_with_a_chance(
    drawing: Drawing, point: float, draw: Draw
) -> None:
    logits = normal(1, 4099)
    logits[0, :9] = logits[0, -9:] = -np.inf
    (token,) = chosen(drawing, logits, sampling_plan([replace(draw, seed=seed_of(point))]))
    assert np.isfinite(logits[0, token])
    assert right(logits[0], replace(draw, seed=seed_of(point)), token)
