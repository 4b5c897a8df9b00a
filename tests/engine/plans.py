"""Builds the `StepPlan` of a test by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engine.backend.backend import PAGE_TOKENS, Int32, StepPlan, UInt32

FLOATS = (
    "temperature",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "top_n_sigma",
)
INTEGERS = ("top_k", "logprob_top")


@dataclass
class Rows:
    """Consecutive tokens of one sequence; its last row is sampled when `sampled`.

    `pages` may be longer than the context. With `scored`, each row is scored with so many
    alternatives whose next token is in `ids`, or is `next_id`.
    """

    ids: Sequence[int]
    start: int
    pages: Sequence[int]
    sampled: bool = True
    every_row: bool = False
    scored: int | None = None
    next_id: int | None = None

    @property
    def targets(self) -> list[int]:
        """The next tokens of the scored rows, which are the first ones."""
        if self.scored is None:
            return []
        return [*self.ids[1:], *([] if self.next_id is None else [self.next_id])]


@dataclass
class Draw:
    """The sampling columns of one sampled row; `mask` holds the only tokens allowed."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0
    position: int = 0
    bias: Mapping[int, float] = field(default_factory=dict)
    seen: Mapping[int, int] = field(default_factory=dict)
    top_n_sigma: float = 0.0
    mask: Collection[int] | None = None
    logprob_top: int = -1
    logprob_ids: Sequence[int] = ()


def plan_of(rows: Sequence[Rows], draws: Sequence[Draw] | None = None) -> StepPlan:
    """Lay out one step; without `draws`, every sampled row is greedy."""
    counts = [len(part.ids) for part in rows]
    starts = np.concatenate([[0], np.cumsum(counts)])
    logit_rows: list[int] = []
    owners: list[int] = []
    for index, part in enumerate(rows):
        first = starts[index] if part.every_row else starts[index + 1] - 1
        own = range(first, starts[index + 1]) if part.sampled else range(0)
        logit_rows.extend(own)
        owners.extend([index] * len(own))
    positions = [np.arange(part.start, part.start + len(part.ids)) for part in rows]
    slots = [
        np.asarray(part.pages)[own // PAGE_TOKENS] * PAGE_TOKENS + own % PAGE_TOKENS
        for part, own in zip(rows, positions, strict=True)
    ]
    draws = [Draw()] * len(logit_rows) if draws is None else draws
    mask_rows, masks = _masks(draws)
    targets = [part.targets for part in rows]
    scored = [np.arange(len(own)) + start for own, start in zip(targets, starts[:-1], strict=True)]
    tops = [[part.scored or 0] * len(own) for part, own in zip(rows, targets, strict=True)]
    return StepPlan(
        ids=np.concatenate([np.asarray(part.ids, np.int64) for part in rows]),
        positions=np.concatenate(positions).astype(np.int64),
        slots=np.concatenate(slots).astype(np.int64),
        qo_indptr=starts.astype(np.int32),
        kv_indptr=_indptr([len(part.pages) for part in rows]),
        kv_indices=np.concatenate([np.asarray(part.pages, np.int32) for part in rows]),
        sequence_keys=np.arange(len(rows)),
        logit_rows=np.array(logit_rows, np.int64),
        logit_sequences=np.array(owners, np.int32),
        seeds=np.array([draw.seed for draw in draws], np.uint64),
        positions_drawn=np.array([draw.position for draw in draws], np.int64),
        bias_indptr=_indptr([len(draw.bias) for draw in draws]),
        bias_ids=np.array([id for draw in draws for id in draw.bias], np.int64),
        bias_values=np.array([v for draw in draws for v in draw.bias.values()], np.float32),
        seen_indptr=_indptr([len(draw.seen) for draw in draws]),
        seen_ids=np.array([id for draw in draws for id in draw.seen], np.int64),
        seen_counts=np.array([n for draw in draws for n in draw.seen.values()], np.int32),
        mask_rows=mask_rows,
        masks=masks,
        logprob_indptr=_indptr([len(draw.logprob_ids) for draw in draws]),
        logprob_ids=np.array([id for draw in draws for id in draw.logprob_ids], np.int64),
        score_rows=np.concatenate(scored).astype(np.int64),
        score_targets=np.array([id for own in targets for id in own], np.int64),
        score_top=np.array([top for own in tops for top in own], np.int32),
        **_columns(draws, FLOATS, np.float32),
        **_columns(draws, INTEGERS, np.int32),
    )


def sampling_plan(draws: Sequence[Draw]) -> StepPlan:
    """A plan for `sample` alone: one row of one sequence for each draw."""
    return plan_of([Rows([0], 0, [1]) for _ in draws], draws)


def _columns(
    draws: Sequence[Draw], names: Sequence[str], dtype: DTypeLike
) -> dict[str, NDArray[Any]]:
    """The plan's columns that are a field of each draw."""
    return {name: np.array([getattr(draw, name) for draw in draws], dtype) for name in names}


def _masks(draws: Sequence[Draw]) -> tuple[Int32, UInt32]:
    """Mask rows [R] and bit masks [G, words], as wide as the highest allowed token needs."""
    allowed = [list(draw.mask) for draw in draws if draw.mask is not None]
    words = max((id // 32 + 1 for own in allowed for id in own), default=1)
    bits = np.zeros((len(allowed), words * 32), np.uint8)
    for row, own in zip(bits, allowed, strict=True):
        row[own] = 1
    masked = np.array([draw.mask is not None for draw in draws], bool)
    mask_rows = np.where(masked, np.cumsum(masked) - 1, -1).astype(np.int32)
    return mask_rows, np.packbits(bits, axis=1, bitorder="little").view("<u4")


def _indptr(counts: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
