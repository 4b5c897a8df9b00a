"""Slices of sequences become one flat `StepPlan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Columns
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engine.backend.backend import PAGE_TOKENS, Float32, Int32, Int64, StepPlan, UInt32
from engine.core.scheduler import Slice
from engine.core.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Masks:
    """The masks of a step: `rows` maps a sequence's key to its row in `bits` [G, words].

    The masks of the tokens after its drafts are in the rows that follow.
    """

    rows: Mapping[int, int]
    bits: UInt32


class _Draw(NamedTuple):
    """What the draw of a sampled row depends on beside the request: where drafts stand before it,
    they are supposed to be right.
    """

    place: int  # of its slice
    sequence: Sequence
    position: int
    bias: tuple[Int64, Float32]
    seen: tuple[Int64, Int32]
    mask_row: int


def build_plan(slices: list[Slice], masks: Masks) -> StepPlan:
    """Lay out one step; the order of sequences and of sampled rows is that of `slices`.

    The last `1 + len(drafts)` rows of a slice that samples are sampled.
    """
    counts = np.array([piece.count + len(piece.drafts) for piece in slices], np.int32)
    starts = np.array([piece.sequence.computed for piece in slices], np.int64)
    pages = [_pages_after(piece) for piece in slices]
    qo_indptr = _indptr(counts)
    draws = [draw for place, piece in enumerate(slices) for draw in _draws(place, piece, masks)]
    sequences = [draw.sequence for draw in draws]
    positions = np.concatenate(
        [np.arange(start, start + count) for start, count in zip(starts, counts, strict=True)]
    )
    bias = [draw.bias for draw in draws]
    seen = [draw.seen for draw in draws]
    wanted = [sequence.request.logprobs for sequence in sequences]
    scored = [piece.sequence.to_score(piece.count) for piece in slices]
    return StepPlan(
        ids=np.concatenate([_ids(piece) for piece in slices]),
        positions=positions,
        slots=np.concatenate([_slots(piece) for piece in slices]),
        qo_indptr=qo_indptr,
        kv_indptr=_indptr(np.array([len(own) for own in pages], np.int32)),
        kv_indices=np.concatenate([np.asarray(own, np.int32) for own in pages]),
        sequence_keys=np.array([piece.sequence.key for piece in slices], np.int64),
        logit_rows=_logit_rows(slices, qo_indptr),
        logit_sequences=np.array([draw.place for draw in draws], np.int32),
        temperature=_column(sequences, lambda s: s.request.sampling.temperature),
        top_p=_column(sequences, lambda s: s.request.sampling.top_p),
        top_k=_column(sequences, lambda s: s.request.sampling.top_k, np.int32),
        min_p=_column(sequences, lambda s: s.request.sampling.min_p),
        repetition_penalty=_column(sequences, lambda s: s.request.sampling.repetition_penalty),
        presence_penalty=_column(sequences, lambda s: s.request.sampling.presence_penalty),
        frequency_penalty=_column(sequences, lambda s: s.request.sampling.frequency_penalty),
        seeds=_column(sequences, lambda s: s.request.seed, np.uint64),
        positions_drawn=np.array([draw.position for draw in draws], np.int64),
        bias_indptr=_lengths(bias),
        bias_ids=_joined([ids for ids, _ in bias], np.int64),
        bias_values=_joined([values for _, values in bias], np.float32),
        seen_indptr=_lengths(seen),
        seen_ids=_joined([ids for ids, _ in seen], np.int64),
        seen_counts=_joined([counts for _, counts in seen], np.int32),
        top_n_sigma=_column(sequences, lambda s: s.request.sampling.top_n_sigma),
        mask_rows=np.array([draw.mask_row for draw in draws], np.int32),
        masks=masks.bits,
        logprob_top=np.array([options.top if options else -1 for options in wanted], np.int32),
        logprob_indptr=_indptr(
            np.array([len(options.token_ids) if options else 0 for options in wanted], np.int32)
        ),
        logprob_ids=np.array(
            [token for options in wanted if options for token in options.token_ids], np.int64
        ),
        score_rows=_score_rows(slices, scored, qo_indptr),
        score_targets=_score_targets(slices, scored),
        score_top=_score_top(slices, scored),
    )


def _draws(place: int, piece: Slice, masks: Masks) -> list[_Draw]:
    """The draws of a slice: the next token's, and that of the token after each draft."""
    sequence = piece.sequence
    masked = sequence.key in masks.rows
    draws: list[_Draw] = []
    for draft in (*piece.drafts, None) if piece.samples else ():
        mask_row = masks.rows[sequence.key] + len(draws) if masked else -1
        position, bias = sequence.output_len, sequence.bias()
        draws.append(_Draw(place, sequence, position, bias, _seen(sequence), mask_row))
        if draft is not None:
            sequence.suppose(draft)
    sequence.retract(len(piece.drafts))
    return draws


def _logit_rows(slices: list[Slice], qo_indptr: NDArray[np.int32]) -> NDArray[np.int64]:
    """The last row of each slice that samples, after one for each of its drafts."""
    rows = [
        np.arange(end - len(piece.drafts) - 1, end)
        for piece, end in zip(slices, qo_indptr[1:].tolist(), strict=True)
        if piece.samples
    ]
    return _joined(rows, np.int64)


def _score_rows(
    slices: list[Slice], scored: list[tuple[int, int]], qo_indptr: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The row before each prompt token that is to be scored."""
    rows = [
        int(start) + np.arange(first, end) - 1 - piece.sequence.computed
        for piece, (first, end), start in zip(slices, scored, qo_indptr[:-1], strict=True)
    ]
    return _joined(rows, np.int64).astype(np.int64)


def _score_targets(slices: list[Slice], scored: list[tuple[int, int]]) -> NDArray[np.int64]:
    targets = [
        np.array(piece.sequence.token_ids[first:end], np.int64)
        for piece, (first, end) in zip(slices, scored, strict=True)
    ]
    return _joined(targets, np.int64)


def _score_top(slices: list[Slice], scored: list[tuple[int, int]]) -> NDArray[np.int32]:
    tops = [
        np.full(end - first, piece.sequence.request.prompt_top or 0, np.int32)
        for piece, (first, end) in zip(slices, scored, strict=True)
    ]
    return _joined(tops, np.int32)


def _pages_after(piece: Slice) -> list[int]:
    """The pages that hold the context up to the end of the slice."""
    end = piece.sequence.computed + piece.count + len(piece.drafts)
    return piece.sequence.pages[: -(-end // PAGE_TOKENS)]


def _ids(piece: Slice) -> NDArray[np.int64]:
    first = piece.sequence.computed
    ids = np.array(piece.sequence.token_ids[first : first + piece.count], np.int64)
    return np.concatenate([ids, np.array(piece.drafts, np.int64)]) if piece.drafts else ids


def _slots(piece: Slice) -> NDArray[np.int64]:
    first = piece.sequence.computed
    positions = np.arange(first, first + piece.count + len(piece.drafts))
    page_of = np.asarray(piece.sequence.pages, np.int64)
    return page_of[positions // PAGE_TOKENS] * PAGE_TOKENS + positions % PAGE_TOKENS


def _seen(sequence: Sequence) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    if sequence.seen is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    return sequence.seen.columns()


def _indptr(counts: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])


def _lengths(columns: Columns[tuple[NDArray[np.int64], NDArray[Any]]]) -> NDArray[np.int32]:
    return _indptr(np.array([len(ids) for ids, _ in columns], np.int32))


def _column(
    sequences: list[Sequence], value: Callable[[Sequence], float], dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    return np.array([value(sequence) for sequence in sequences], dtype)


def _joined(parts: Columns[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
