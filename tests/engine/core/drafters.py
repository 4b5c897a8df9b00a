"""Drafters whose luck a test decides, and what a run shows of its sequences."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.backend.backend import StepPlan
from engine.core.draft import Wish, shared
from engine.core.speculation import Speculation
from engine.messages import TokenRequest
from tests.engine.core.sequences import (
    Harness,
    PageReader,
    bias_of,
    continuation,
)


class Prophet:
    """Drafts what a sequence will say, each token wrong with a given chance."""

    steps = 0
    kernel_ns = 0

    def __init__(self, outputs: Mapping[int, list[int]], wrong: float, seed: int = 0) -> None:
        self._outputs = outputs
        self._wrong = wrong
        self._draw = random.Random(seed)
        self.known: set[int] = set()

    def propose(self, wishes: Sequence[Wish], room: int) -> list[list[int]]:
        grants = shared([wish.most for wish in wishes], room)
        return [self._drafts(wish, grant) for wish, grant in zip(wishes, grants, strict=True)]

    def close(self, key: int) -> None:
        self.known.discard(key)

    def _drafts(self, wish: Wish, count: int) -> list[int]:
        sequence = wish.sequence
        self.known.add(sequence.key)
        place = sequence.output_len
        said = self._outputs.get(sequence.key, [])[place : place + count]
        return [
            self._draw.randrange(2, 900) if self._draw.random() < self._wrong else token
            for token in said
        ]


class Mindful(PageReader):
    """A backend whose draws also hang on all that a plan says of a row: bias and seen tokens."""

    def wanted(self, plan: StepPlan, row: int, held: list[int]) -> int:
        ids, values = bias_of(plan, row)
        finite = np.isfinite(values)
        first, end = plan.seen_indptr[row], plan.seen_indptr[row + 1]
        ids_seen, counts = plan.seen_ids[first:end].tolist(), plan.seen_counts[first:end].tolist()
        seen = sorted(zip(ids_seen, counts, strict=True))
        sums = [int(ids[finite].sum()), round(float(values[finite].sum()) * 1000)]
        told = [number % 99_991 for pair in seen for number in pair]
        return continuation([*held, *(number % 99_991 for number in sums), *told],
                            int(plan.seeds[row]), int(plan.positions_drawn[row]))  # fmt: skip


def seen_of(harness: Harness, asked: Sequence[TokenRequest]) -> dict[int, Any]:
    """All that drafts must not change about each sequence."""
    return {
        one.key: (
            harness.tokens.get(one.key),
            harness.scores.get(one.key),
            harness.prompt_scores.get(one.key),
            harness.causes[one.key],
            harness.reasons[one.key],
        )
        for one in asked
    }


def totals(harness: Harness) -> tuple[int, ...]:
    """The counts that drafts must not change."""
    stats = harness.loop.stats()
    return (
        stats.generated_tokens, stats.forced_tokens, stats.repetition_cuts,
        stats.reasoning_budget_cuts, stats.reasoning_loop_cuts,
    )  # fmt: skip


def prophesied(
    plain: Harness, wrong: float, *, most: int = 8, rows: int = 64, seed: int = 0
) -> Speculation:
    """Drafts from what a run without drafts has said."""
    return Speculation([Prophet(plain.tokens, wrong, seed)], most, rows)


def again(asked: Sequence[TokenRequest], **changes: Any) -> list[TokenRequest]:
    return [replace(one, **changes) for one in asked]
