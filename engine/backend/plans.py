"""Plans that no request asked for."""

from __future__ import annotations

import numpy as np

from engine.backend.backend import StepPlan


def warm_up_plan(rows: int) -> StepPlan:
    """One greedy sequence of `rows` tokens 0 on page 0."""
    steps, none = np.arange(rows, dtype=np.int64), np.zeros(0, np.int64)
    zeros, ones = np.zeros(1, np.float32), np.ones(1, np.float32)
    return StepPlan(
        ids=np.zeros(rows, np.int64),
        positions=steps,
        slots=steps,
        qo_indptr=np.array([0, rows], np.int32),
        kv_indptr=np.array([0, 1], np.int32),
        kv_indices=np.zeros(1, np.int32),
        sequence_keys=np.zeros(1, np.int64),
        logit_rows=steps[-1:],
        logit_sequences=np.zeros(1, np.int32),
        temperature=zeros,
        top_p=ones,
        top_k=np.zeros(1, np.int32),
        min_p=zeros,
        repetition_penalty=ones,
        presence_penalty=zeros,
        frequency_penalty=zeros,
        seeds=np.zeros(1, np.uint64),
        positions_drawn=np.zeros(1, np.int64),
        bias_indptr=np.zeros(2, np.int32),
        bias_ids=none,
        bias_values=zeros[:0],
        seen_indptr=np.zeros(2, np.int32),
        seen_ids=none,
        seen_counts=none.astype(np.int32),
        top_n_sigma=zeros,
        mask_rows=np.full(1, -1, np.int32),
        masks=np.zeros((0, 0), np.uint32),
        logprob_top=np.full(1, -1, np.int32),
        logprob_indptr=np.zeros(2, np.int32),
        logprob_ids=none,
        score_rows=none,
        score_targets=none,
        score_top=none.astype(np.int32),
    )
