"""Draws and scores a step's tokens in the native library. Needs no torch.

Tokens are those of engine/backend/sampling.py, up to fp32 rounding of chances, and scores those of
engine/backend/scores.py, up to one unit in the last place. Each row is one thread's: its results
have the same bits whatever rows and threads there are.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, byref, c_char, c_int32, c_int64, c_void_p
from itertools import pairwise
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.backend.backend import ALL_BANNED, NOT_FINITE, Float32, Int32, Int64, StepPlan
from engine.backend.native.library import Library, Pool
from engine.backend.scores import scored_rows, wanted_score
from engine.events import TokenScore

_FLOAT32, _INT32, _INT64 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_WISH_KINDS: tuple[np.dtype[Any], ...] = (
    *[_FLOAT32] * 2, _INT32, *[_FLOAT32] * 5, _UINT64,
)  # fmt: skip
GIVEN = -1  # in place of a number of alternatives: their ids are given


class DrawPlan(ctypes.Structure):
    """A token for each of R rows of logits: draw.h's `DrawPlan`."""

    _fields_ = (
        ("rows", c_int32),
        ("vocab", c_int32),
        ("stride", c_int64),
        ("logits", c_void_p),
        ("temperature", c_void_p),
        ("top_p", c_void_p),
        ("top_k", c_void_p),
        ("min_p", c_void_p),
        ("top_n_sigma", c_void_p),
        ("repetition_penalty", c_void_p),
        ("presence_penalty", c_void_p),
        ("frequency_penalty", c_void_p),
        ("seeds", c_void_p),
        ("positions", c_void_p),
        ("biases", c_int64),
        ("bias_indptr", c_void_p),
        ("bias_ids", c_void_p),
        ("bias_values", c_void_p),
        ("seen", c_int64),
        ("seen_indptr", c_void_p),
        ("seen_ids", c_void_p),
        ("seen_counts", c_void_p),
        ("masks", c_int32),
        ("words", c_int32),
        ("mask_rows", c_void_p),
        ("mask_bits", c_void_p),
        ("tokens", c_void_p),
        ("outcomes", c_void_p),
    )


class ScorePlan(ctypes.Structure):
    """Log probabilities of some rows of logits: draw.h's `ScorePlan`."""

    _fields_ = (
        ("rows", c_int32),
        ("vocab", c_int32),
        ("stride", c_int64),
        ("logit_rows", c_int64),
        ("logits", c_void_p),
        ("sources", c_void_p),
        ("tokens", c_void_p),
        ("tops", c_void_p),
        ("indptr", c_void_p),
        ("entries", c_int64),
        ("ids", c_void_p),
        ("values", c_void_p),
        ("logprobs", c_void_p),
        ("ranks", c_void_p),
    )


_FAULTS = (
    "",
    "there is no vocabulary, or no such row of logits",
    "a list does not rise to the number of its entries",
    "a token is outside the vocabulary",
    "there is no such mask",
)


class Drawing:
    """Draws and scores on the threads of a pool; one call at a time."""

    def __init__(self, library: Library, pool: Pool) -> None:
        self.library = library
        self.pool = pool
        self._wishes: tuple[NDArray[Any], ...] = ()  # the columns that have these addresses
        self._addresses: tuple[int, ...] = ()

    def draw(self, logits: Float32, plan: StepPlan) -> tuple[Int64, dict[int, str]]:
        """Return a token [R] for each row of fp32 logits [R, vocab], which are left as they are.

        Rows without a token to choose (all banned, or logits that are not finite) are in the second
        result with the reason; their tokens mean nothing. Raises ValueError for columns of another
        type or length and for ids and masks that are not there.
        """
        tokens, outcomes = np.empty(len(logits), np.int64), np.empty(len(logits), np.int32)
        packed = self._draw_plan(logits, plan, tokens, outcomes)
        self._run(self.library.functions.heliograph_draw, packed)
        failed = {
            row: ALL_BANNED if outcomes[row] == 1 else NOT_FINITE
            for row in outcomes.nonzero()[0].tolist()
        }
        return tokens, failed

    def sampled_scores(
        self, logits: Float32, plan: StepPlan, tokens: Int64, failed: Mapping[int, str]
    ) -> dict[int, TokenScore]:
        """Score the tokens [R] of the sampled rows that want it and did not fail.

        `logits` are the raw ones [R, vocab]. Raises ValueError for a token that is not there.
        """
        rows = [row for row in scored_rows(plan) if row not in failed]
        if not rows:
            return {}
        wanted = [_wanted(plan, row, int(tokens[row])) for row in rows]
        made = self._score(logits, np.array(rows, np.int64), tokens[rows], wanted)
        return dict(zip(rows, made, strict=True))

    def target_scores(self, logits: Float32, targets: Int64, tops: Int32) -> list[TokenScore]:
        """Score each row of logits [n, vocab] as the target [n], with `tops` [n] alternatives.

        Raises ValueError for a target that is not there.
        """
        return self._score(logits, np.arange(len(logits)), targets, tops.tolist())

    def _score(
        self, logits: Float32, rows: Int64, tokens: Int64, wanted: Sequence[int | Int64]
    ) -> list[TokenScore]:
        """Score tokens [n] of rows [n] of the logits, with as many alternatives, or these."""
        vocab = logits.shape[1]
        counts = [min(own, vocab) if isinstance(own, int) else len(own) for own in wanted]
        indptr = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(counts, out=indptr[1:])
        ids, values = np.empty(indptr[-1], np.int64), np.empty(indptr[-1], np.float32)
        logprobs, ranks = np.empty(len(rows), np.float32), np.empty(len(rows), np.int32)
        tops = np.array(counts, np.int32)
        for place, own in enumerate(wanted):
            if not isinstance(own, int):
                tops[place] = GIVEN
                ids[indptr[place] : indptr[place + 1]] = own
        packed = ScorePlan(
            len(rows),
            vocab,
            _stride(logits),
            len(logits),
            logits.ctypes.data,
            _address(rows, _INT64, len(rows)),
            _address(tokens, _INT64, len(rows)),
            tops.ctypes.data,
            indptr.ctypes.data,
            len(ids),
            ids.ctypes.data,
            values.ctypes.data,
            logprobs.ctypes.data,
            ranks.ctypes.data,
        )
        self._run(self.library.functions.heliograph_score, packed)
        pairs = list(zip(ids.tolist(), values.tolist(), strict=True))
        tables = [tuple(pairs[first:end]) for first, end in pairwise(indptr.tolist())]
        columns = (tokens.tolist(), logprobs.tolist(), ranks.tolist(), tables)
        return [TokenScore(*score) for score in zip(*columns, strict=True)]

    def _draw_plan(
        self, logits: Float32, plan: StepPlan, tokens: Int64, outcomes: Int32
    ) -> DrawPlan:
        """The addresses of a plan's columns; they hold while the plan does."""
        rows, vocab = logits.shape
        masks, words = plan.masks.shape
        biases, seen = len(plan.bias_ids), len(plan.seen_ids)
        return DrawPlan(
            rows,
            vocab,
            _stride(logits),
            logits.ctypes.data,
            *self._wish_addresses(plan, rows),
            _address(plan.positions_drawn, _INT64, rows),
            biases,
            _address(plan.bias_indptr, _INT32, rows + 1),
            _address(plan.bias_ids, _INT64, biases),
            _address(plan.bias_values, _FLOAT32, biases),
            seen,
            _address(plan.seen_indptr, _INT32, rows + 1),
            _address(plan.seen_ids, _INT64, seen),
            _address(plan.seen_counts, _INT32, seen),
            masks,
            words,
            _address(plan.mask_rows, _INT32, rows),
            _address(plan.masks, _UINT32, masks * words),
            tokens.ctypes.data,
            outcomes.ctypes.data,
        )

    def _wish_addresses(self, plan: StepPlan, rows: int) -> tuple[int, ...]:
        """The addresses of the columns that steps have in common while the same requests draw."""
        wishes: tuple[NDArray[Any], ...] = (
            plan.temperature,
            plan.top_p,
            plan.top_k,
            plan.min_p,
            plan.top_n_sigma,
            plan.repetition_penalty,
            plan.presence_penalty,
            plan.frequency_penalty,
            plan.seeds,
        )
        known = len(self._wishes) == len(wishes) and all(map(is_, wishes, self._wishes))
        if not known or len(plan.seeds) != rows:
            self._addresses = tuple(
                _address(column, kind, rows)
                for column, kind in zip(wishes, _WISH_KINDS, strict=True)
            )
            self._wishes = wishes
        return self._addresses

    def _run(self, function: Callable[..., int], packed: DrawPlan | ScorePlan) -> None:
        """Run a plan, or raise what it is not run for."""
        if self.pool.address is None:
            raise ValueError("the pool is closed")
        begun = time.perf_counter_ns()
        fault = function(c_void_p(self.pool.address), self.library.index, byref(packed))
        self.pool.busy_ns += time.perf_counter_ns() - begun
        if fault >= len(_FAULTS):
            raise MemoryError("no memory for a row of logits")
        if fault:
            raise ValueError(_FAULTS[fault])


def _wanted(plan: StepPlan, row: int, token: int) -> int | Int64:
    """How many alternatives a sampled row wants, or which: the named ones and its token."""
    top, ids = wanted_score(plan, row)
    if not len(ids):
        return top
    return ids if token in ids else np.append(ids, token)


def _address(column: NDArray[Any], dtype: np.dtype[np.generic], count: int) -> int:
    flags = column.flags
    if column.dtype != dtype or column.size != count or not flags.c_contiguous:
        raise ValueError(f"a column of {count} {dtype} is {column.dtype} {column.shape}")
    if count and flags.writeable:  # a third of the time of the other way
        return addressof(c_char.from_buffer(column.data))
    return column.ctypes.data if count else 0


def _stride(logits: Float32) -> int:
    """Floats from one row of logits [n, vocab] to the next."""
    apart, step = logits.strides
    if logits.dtype != np.float32 or (logits.size and (step != 4 or apart % 4)):
        raise ValueError(f"logits are {logits.dtype}, {logits.strides} bytes apart")
    return apart // 4
