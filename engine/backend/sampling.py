"""Draws the next tokens in torch; a row's token depends on its own logits, seed and position only.

Transforms apply in vLLM's order: mask, bias and bans, repetition, frequency and presence penalties,
top-n-sigma, temperature, min-p, top-k, top-p, one draw. No row is sorted: the largest 64 tokens
decide almost always, then the largest 1,024, and the whole vocabulary only when a limit lets more
of it through.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.backend.backend import ALL_BANNED, NOT_FINITE, Int64, StepPlan, UInt64

CANDIDATES = (64, 1024)
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def sample(logits: Tensor, plan: StepPlan) -> tuple[Int64, dict[int, str]]:
    """Return a token [R] for each row of fp32 logits [R, vocab], which are left as they are.

    Rows without a token to choose (all banned, or logits that are not finite) are in the second
    result with the reason; their tokens mean nothing.
    """
    logits = _penalised(_masked(logits, plan), plan)
    best, tokens = logits.max(-1)  # [R]; the lowest id of equals
    failed = _failures(best)
    drawn = torch.from_numpy(plan.temperature > 0)
    if failed:
        drawn[list(failed)] = False
    rows = drawn.nonzero()[:, 0]  # [rows that are not greedy]
    if len(rows):
        tokens[rows] = _draw(logits[rows], best[rows], plan, rows.numpy())
    return tokens.numpy(), failed


def uniforms(seeds: UInt64, positions: Int64) -> NDArray[np.float64]:
    """Return numbers in [0, 1) for (seed, position): two rounds of splitmix64 (Steele 2014)."""
    with np.errstate(over="ignore"):
        stream = _mix(seeds + GOLDEN_GAMMA)
        mixed = _mix(stream + (positions.astype(np.uint64) + np.uint64(1)) * GOLDEN_GAMMA)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(state: UInt64) -> UInt64:
    """The finaliser of splitmix64."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def _failures(best: Tensor) -> dict[int, str]:
    failed = {}
    for row in (~best.isfinite()).nonzero()[:, 0].tolist():
        banned = bool(best[row] == -torch.inf)
        failed[row] = ALL_BANNED if banned else NOT_FINITE
    return failed


def _masked(logits: Tensor, plan: StepPlan) -> Tensor:
    """Ban what the rows' masks leave out, tokens behind a mask's end too; copies only then."""
    rows = np.flatnonzero(plan.mask_rows >= 0)
    if not len(rows):
        return logits
    logits = logits.clone()
    masks = plan.masks[plan.mask_rows[rows]]  # [rows, words]
    bits = np.unpackbits(masks.astype("<u4").view(np.uint8), axis=1, bitorder="little")
    banned = torch.from_numpy(bits[:, : logits.shape[1]] == 0)  # [rows, at most vocab]
    for row, own in zip(rows.tolist(), banned, strict=True):
        logits[row, : len(own)].masked_fill_(own, -torch.inf)
        logits[row, len(own) :] = -torch.inf
    return logits


def _penalised(logits: Tensor, plan: StepPlan) -> Tensor:
    """Apply bias and penalties; copies only when there are any."""
    seen_rows = _csr_rows(plan.seen_indptr)
    active = (
        (plan.repetition_penalty != 1)
        | (plan.frequency_penalty != 0)
        | (plan.presence_penalty != 0)
    )
    touched = active[seen_rows]
    if not len(plan.bias_ids) and not touched.any():
        return logits
    logits = logits.clone()
    if len(plan.bias_ids):
        places = (torch.from_numpy(_csr_rows(plan.bias_indptr)), torch.from_numpy(plan.bias_ids))
        logits.index_put_(places, torch.from_numpy(plan.bias_values), accumulate=True)
    if touched.any():
        rows = torch.from_numpy(seen_rows[touched])
        ids = torch.from_numpy(plan.seen_ids[touched])
        counts = torch.from_numpy(plan.seen_counts[touched])

        def column(values: NDArray[np.float32]) -> Tensor:
            return torch.from_numpy(values)[rows]

        values = logits[rows, ids]
        repetition = column(plan.repetition_penalty)
        values = torch.where(values > 0, values / repetition, values * repetition)
        values = values - column(plan.frequency_penalty) * counts
        values = values - column(plan.presence_penalty) * (counts > 0)
        logits[rows, ids] = values
    return logits


def _csr_rows(indptr: NDArray[np.int32]) -> NDArray[np.int64]:
    """The row of each entry of a CSR list."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _draw(logits: Tensor, best: Tensor, plan: StepPlan, rows: NDArray[np.int64]) -> Tensor:
    """Draw a token for rows of logits [S, vocab], which are `rows` of the plan."""
    temperature = torch.from_numpy(plan.temperature[rows])[:, None]
    _cut_below_sigma(logits, best, plan.top_n_sigma[rows])
    scaled = (logits - best[:, None]).div_(temperature)  # at most 0: a tiny temperature is safe
    chances = torch.softmax(scaled, -1)  # [S, vocab]
    limits = _Limits(plan, rows)
    points = torch.from_numpy(uniforms(plan.seeds[rows], plan.positions_drawn[rows]))  # [S]
    tokens = torch.empty(len(rows), dtype=torch.int64)
    free = ~limits.restricted
    if free.any():
        tokens[free] = _invert(chances[free].cumsum(-1, dtype=torch.float64), points[free])
    pending = limits.restricted.nonzero()[:, 0]
    for size in (*CANDIDATES, chances.shape[1]):
        if len(pending):
            done, found = _draw_limited(chances[pending], limits, pending, points[pending], size)
            tokens[pending[done]] = found[done]
            pending = pending[~done]
    return tokens


def _cut_below_sigma(logits: Tensor, best: Tensor, sigmas: NDArray[np.float32]) -> None:
    """Ban, in place, logits [S, vocab] that lie more than n standard deviations below the best.

    As in llama.cpp, the deviation is the population's: the root of the mean squared deviation of
    the row's finite logits. Row by row, since torch sums a lone row in another order than several.
    """
    for row in np.flatnonzero(sigmas > 0).tolist():
        line = logits[row]
        deviation = line[line.isfinite()].double().std(correction=0)
        line.masked_fill_(line < best[row] - float(sigmas[row]) * deviation, -torch.inf)


class _Limits:
    """What restricts each drawn row; columns [S, 1]."""

    def __init__(self, plan: StepPlan, rows: NDArray[np.int64]) -> None:
        self.top_k = torch.from_numpy(plan.top_k[rows].astype(np.int64))[:, None]
        self.top_p = torch.from_numpy(plan.top_p[rows].astype(np.float64))[:, None]
        self.min_p = torch.from_numpy(plan.min_p[rows])[:, None]
        self.filtered = (self.top_k > 0) | (self.min_p > 0)  # before top-p
        self.restricted = (self.filtered | (self.top_p < 1))[:, 0]  # [S]


def _draw_limited(
    chances: Tensor, limits: _Limits, rows: Tensor, points: Tensor, size: int
) -> tuple[Tensor, Tensor]:
    """Draw from the `size` likeliest tokens of chances [S, vocab].

    Returns which rows are done [S] and their tokens [S]; the others' limits let more tokens
    through than are known here. Equals are taken by the lower id. As the cut may run through a
    run of equals, only tokens above the last candidate's chance count as known.
    """
    values, ids = _largest(chances, size)  # [S, K]
    whole = values.shape[1] == chances.shape[1]
    last = values[:, -1:]  # [S, 1]
    known = torch.ones_like(values, dtype=torch.bool) if whole else values > last
    top_k, top_p, min_p = limits.top_k[rows], limits.top_p[rows], limits.min_p[rows]
    filtered = limits.filtered[rows]
    floor = (min_p * values[:, :1]).clamp_max(values[:, :1])
    kept = known & ((top_k == 0) | (torch.arange(values.shape[1]) < top_k)) & (values >= floor)
    weights = torch.where(kept, values, 0).double()
    sums = weights.cumsum(-1)  # [S, K]
    target = top_p * torch.where(filtered, sums[:, -1:], 1.0)
    nucleus = (sums - weights < target) | (top_p >= 1)
    nucleus[:, 0] = True
    every_kept_known = ((top_k > 0) & (top_k <= known.sum(-1, keepdim=True))) | (last < floor)
    mass_known = ~filtered & (sums[:, -1:] >= target)
    done = known[:, :1] & ((filtered & every_kept_known) | mass_known | (last == 0))
    places = _invert(torch.where(nucleus, weights, 0).cumsum(-1), points)  # [S]
    return done[:, 0] | whole, ids.gather(1, places[:, None])[:, 0]


def _largest(chances: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the `size` largest chances of each row and their ids, equals by rising id."""
    if size >= chances.shape[1]:
        values, ids = torch.sort(chances, dim=-1, descending=True, stable=True)
        return values, ids
    ids = chances.topk(size, dim=-1, sorted=False).indices.sort(-1).values
    values, order = torch.sort(chances.gather(1, ids), dim=-1, descending=True, stable=True)
    return values, ids.gather(1, order)


def _invert(sums: Tensor, points: Tensor) -> Tensor:
    """Return the first place of each row whose running sum [S, n] exceeds point [S] times all."""
    total = sums[:, -1]
    below = torch.nextafter(total, torch.zeros_like(total))
    targets = torch.minimum(points * total, below)[:, None]
    places = torch.searchsorted(sums, targets, right=True)[:, 0]
    return places.clamp_max(sums.shape[1] - 1)  # rows of zeros, which are not done, have no place
