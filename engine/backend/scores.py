"""Scores tokens by the raw distribution: the log probabilities that clients see.

A row's log probabilities are log-softmax of its logits in fp32, before any transform. Order, ties
and ranks are decided on these reported numbers, not on the logits, since rounding makes equals of
different logits. A row's numbers have the same bits whatever rows stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.backend.backend import Int32, Int64, StepPlan
from engine.backend.sampling import largest
from engine.types import TokenScore

SLAB_ROWS = 64  # rows that are scored at once: bounds the memory
NO_CHANCE = -9999.0  # what is reported for a log probability that is not finite

Alternatives = tuple[tuple[int, float], ...]


def sampled_scores(
    logits: Tensor, plan: StepPlan, tokens: Int64, failed: Mapping[int, str]
) -> dict[int, TokenScore]:
    """Score the tokens [R] of the sampled rows that want it and did not fail.

    `logits` are the raw ones, fp32 [R, vocab].
    """
    wanted = [row for row in np.flatnonzero(plan.logprob_top >= 0).tolist() if row not in failed]
    scores: dict[int, TokenScore] = {}
    for start in range(0, len(wanted), SLAB_ROWS):
        rows = wanted[start : start + SLAB_ROWS]
        ids = [plan.logprob_ids[slice(*plan.logprob_indptr[row : row + 2])] for row in rows]
        made = score(logits[rows], tokens[rows], plan.logprob_top[rows], ids)
        scores.update(zip(rows, made, strict=True))
    return scores


def score(
    logits: Tensor, tokens: Int64, tops: Int32, ids: list[Int64] | None = None
) -> list[TokenScore]:
    """Score tokens [S] by logits, fp32 [S, vocab], with `tops` [S] alternatives each.

    A row whose `ids` are not empty has exactly these as alternatives, in this order, and its token
    at the end when it is not among them.
    """
    logprobs = torch.log_softmax(logits, -1).nan_to_num_(NO_CHANCE, NO_CHANCE, NO_CHANCE)
    chosen = logprobs.gather(1, torch.from_numpy(tokens)[:, None])  # [S, 1]
    ranks = (logprobs > chosen).count_nonzero(-1) + 1  # [S]
    explicit = [own if len(own) else None for own in ids or [tokens[:0]] * len(tokens)]
    natural = np.array([own is None for own in explicit])
    found = _likeliest(logprobs, np.where(natural, tops, 0))
    scores = []
    columns = zip(tokens.tolist(), chosen[:, 0].tolist(), ranks.tolist(), strict=True)
    for row, (token, logprob, rank) in enumerate(columns):
        own = explicit[row]
        top = found[row] if own is None else _named(logprobs[row], own, token)
        scores.append(TokenScore(token, logprob, rank, top))
    return scores


def _named(logprobs: Tensor, ids: Int64, token: int) -> Alternatives:
    """The alternatives that a client named, from one row [vocab]."""
    named = ids if token in ids else np.append(ids, token)
    return tuple(zip(named.tolist(), logprobs[torch.from_numpy(named)].tolist(), strict=True))


def _likeliest(logprobs: Tensor, tops: NDArray[np.int32]) -> list[Alternatives]:
    """The first `tops` [S] tokens of each row [S, vocab] by falling value, then rising id."""
    vocab = logprobs.shape[1]
    if not tops.any():
        return [()] * len(tops)
    size = min(int(tops.max()) + 1, vocab)  # the one more shows whether a cut runs through equals
    values, ids = largest(logprobs, size)  # [S, size]
    found = []
    for row, (top, own, own_ids) in enumerate(
        zip(np.minimum(tops, vocab).tolist(), values.tolist(), ids.tolist(), strict=True)
    ):
        if top and size < vocab and own[top - 1] == own[-1]:
            above = own.index(own[-1])
            equals = (logprobs[row] == own[-1]).nonzero()[: top - above, 0]
            own_ids = own_ids[:above] + equals.tolist()
        found.append(tuple(zip(own_ids[:top], own[:top], strict=True)))
    return found
