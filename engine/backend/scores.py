"""Scores tokens by the raw distribution: the log probabilities that clients see. Needs no torch.

A row's log probabilities are its logits less their logsumexp, in fp32 with the sum in fp64, before
any transform. Order, ties and ranks are decided on these reported numbers, not on the logits, since
rounding makes equals of different logits. Rows are scored one by one: a row's numbers have the same
bits whatever rows stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.backend.backend import Float32, Int64, StepPlan
from engine.events import TokenScore

NO_CHANCE = -9999.0  # what is reported for a log probability that is not finite

_NO_IDS: Int64 = np.zeros(0, np.int64)


def sampled_scores(
    logits: Float32, plan: StepPlan, tokens: Int64, failed: Mapping[int, str]
) -> dict[int, TokenScore]:
    """Score the tokens [R] of the sampled rows that want it and did not fail.

    `logits` are the raw ones [R, vocab].
    """
    return {
        row: score(log_softmax(logits[row]), int(tokens[row]), *wanted_score(plan, row))
        for row in scored_rows(plan)
        if row not in failed
    }


def scored_rows(plan: StepPlan) -> list[int]:
    """The sampled rows that want a score."""
    return [row for row, top in enumerate(plan.logprob_top.tolist()) if top >= 0]


def wanted_score(plan: StepPlan, row: int) -> tuple[int, Int64]:
    """How many alternatives a sampled row wants, and which where a client named them."""
    first, end = plan.logprob_indptr[row], plan.logprob_indptr[row + 1]
    return int(plan.logprob_top[row]), plan.logprob_ids[first:end]


def log_softmax(logits: Float32) -> Float32:
    """The log probabilities [vocab] of one row of logits [vocab]."""
    with np.errstate(invalid="ignore"):
        best = logits.max()
        total = np.exp(logits - best).sum(dtype=np.float64)
        logprobs: Float32 = logits - np.float32(best + np.log(total))
    if not np.isfinite(logprobs.min()):
        logprobs[~np.isfinite(logprobs)] = NO_CHANCE
    return logprobs


def score(logprobs: Float32, token: int, top: int, ids: Int64 = _NO_IDS) -> TokenScore:
    """Score a token by logprobs [vocab], with the `top` likeliest tokens as alternatives.

    Where `ids` are given, the alternatives are exactly these, in this order, and the token at the
    end when it is not among them.
    """
    if len(ids):
        chosen = ids if token in ids else np.append(ids, token)
    else:
        chosen = _likeliest(logprobs, min(top, len(logprobs)))
    alternatives = zip(chosen.tolist(), logprobs[chosen].tolist(), strict=True)
    logprob = logprobs[token]
    rank = int(np.count_nonzero(logprobs > logprob)) + 1
    return TokenScore(token, float(logprob), rank, tuple(alternatives))


def _likeliest(logprobs: Float32, count: int) -> Int64:
    """The first `count` tokens of logprobs [vocab] by falling value, then rising id."""
    if not count:
        return _NO_IDS
    least = np.partition(logprobs, -count)[-count]
    tokens = np.flatnonzero(logprobs >= least)  # by rising id; more than `count` where some equal
    order = np.argsort(-logprobs[tokens], kind="stable")[:count]
    chosen: Int64 = tokens[order]
    return chosen
