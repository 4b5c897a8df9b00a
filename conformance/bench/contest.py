"""Servers measured in turn, round by round, so that what slows the machine slows them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.bench.figures import Figures, Ratio, Sample, figures_of, ratio_of
from conformance.bench.process import wait_for_rest
from conformance.bench.rows import WARM_UP, Row, Sizes, Target, measured

_SEEDS_A_ROUND = 64
"""More than a row has streams: no prompt of a run comes twice, so no cache knows it."""


@dataclass(frozen=True)
class Ours:
    """Our server as configured, and one without drafts; both are one where we started none."""

    given: Target
    plain: Target

    def of(self, row: Row) -> Target:
        """The server that a row is about."""
        return self.given if row.drafts else self.plain


@dataclass(frozen=True)
class Entry:
    """A row of one server. `ratio` is ours against it; None for ours and where none is known."""

    row: Row
    server: str
    samples: tuple[Sample, ...]
    figures: Figures
    ratio: Ratio | None
    weights_bytes: int | None


def contest(
    rows: Sequence[Row],
    ours: Ours,
    rivals: Sequence[Target],
    sizes: Sizes,
    rounds: int,
    seed: int,
    say: Callable[[str], None],
) -> list[Entry]:
    """Measure all rows, ours first in each round; prompts come from seeds from `seed` on."""
    entries: list[Entry] = []
    for row in rows:
        targets = [ours.of(row), *rivals]
        trees = [target.tree for target in targets if target.tree is not None]
        samples: list[list[Sample]] = [[] for _ in targets]
        for target in targets:  # what a server does once, it does now
            measured(row, target, WARM_UP, seed)
        for number in range(rounds):
            seed += _SEEDS_A_ROUND
            for target, taken in zip(targets, samples, strict=True):
                say(f"{row.name}, round {number + 1} of {rounds}: {target.name}")
                wait_for_rest(trees)
                taken.append(measured(row, target, sizes, seed))
        seed += _SEEDS_A_ROUND
        for place, (target, taken) in enumerate(zip(targets, samples, strict=True)):
            ratio = ratio_of(samples[0], taken, row.by) if place else None
            figures = figures_of(taken)
            entries.append(
                Entry(row, target.name, tuple(taken), figures, ratio, target.weights_bytes)
            )
    return entries
