"""Slices of sequences become one flat `StepPlan`.

A step of one token a sequence is over in milliseconds, and each small array costs microseconds:
columns are gathered as lists, those that nothing goes into are made once, and those that follow
from the requests alone are kept while the same sequences draw.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Columns
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.backend.backend import PAGE_TOKENS, Float32, Int32, Int64, StepPlan, UInt32, UInt64
from engine.core.scheduler import Slice
from engine.core.sequence import Sequence

_NO_INT32 = np.zeros(0, np.int32)
_NO_INT64 = np.zeros(0, np.int64)
_NO_FLOAT32 = np.zeros(0, np.float32)


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
    seen: tuple[Int64, Int32] | None
    mask_row: int


class _Wishes(NamedTuple):
    """The columns of a plan that follow from the requests of its sampled rows."""

    temperature: Float32
    top_p: Float32
    top_k: Int32
    min_p: Float32
    repetition_penalty: Float32
    presence_penalty: Float32
    frequency_penalty: Float32
    seeds: UInt64
    top_n_sigma: Float32
    logprob_top: Int32
    logprob_indptr: Int32
    logprob_ids: Int64


class PlanBuilder:
    """Lays out one step after another; plans share arrays, which nobody writes."""

    def __init__(self) -> None:
        self._drawing: list[Sequence] = []
        self._wishes = _wishes_of([])

    def build(self, slices: list[Slice], masks: Masks) -> StepPlan:
        """Lay out one step; the order of sequences and of sampled rows is that of `slices`.

        The last `1 + len(drafts)` rows of a slice that samples are sampled.
        """
        draws = [draw for place, piece in enumerate(slices) for draw in _draws(place, piece, masks)]
        drawing = [draw.sequence for draw in draws]
        if drawing != self._drawing:
            self._drawing, self._wishes = drawing, _wishes_of(drawing)
        ends = [*accumulate(map(_count, slices))]
        ids = array("q")
        for piece in slices:
            first = piece.sequence.computed
            ids.extend(piece.sequence.token_ids[first : first + piece.count])
            ids.extend(piece.drafts)
        pages = [piece.sequence.pages[: -(-_end(piece) // PAGE_TOKENS)] for piece in slices]
        bias, seen = [draw.bias for draw in draws], [draw.seen for draw in draws]
        return StepPlan(
            ids=np.frombuffer(ids, np.int64),
            positions=_int64(chain.from_iterable(map(_positions, slices))),
            slots=_int64(chain.from_iterable(map(_slots, slices))),
            qo_indptr=np.array([0, *ends], np.int32),
            kv_indptr=np.array([0, *accumulate(map(len, pages))], np.int32),
            kv_indices=np.array([*chain.from_iterable(pages)], np.int32),
            sequence_keys=_int64(piece.sequence.key for piece in slices),
            logit_rows=_int64(chain.from_iterable(map(_sampled, slices, ends))),
            logit_sequences=np.array([draw.place for draw in draws], np.int32),
            positions_drawn=_int64(draw.position for draw in draws),
            bias_indptr=_indptr([len(values) for _, values in bias]),
            bias_ids=_joined([ids for ids, _ in bias], _NO_INT64),
            bias_values=_joined([values for _, values in bias], _NO_FLOAT32),
            seen_indptr=_indptr([len(own[0]) if own else 0 for own in seen]),
            seen_ids=_joined([own[0] for own in seen if own], _NO_INT64),
            seen_counts=_joined([own[1] for own in seen if own], _NO_INT32),
            mask_rows=np.array([draw.mask_row for draw in draws], np.int32),
            masks=masks.bits,
            **self._wishes._asdict(),
            **_scored(slices, ends),
        )


def _wishes_of(sequences: list[Sequence]) -> _Wishes:
    samplings = [sequence.request.sampling for sequence in sequences]
    wanted = [sequence.request.logprobs for sequence in sequences]
    return _Wishes(
        temperature=np.array([own.temperature for own in samplings], np.float32),
        top_p=np.array([own.top_p for own in samplings], np.float32),
        top_k=np.array([own.top_k for own in samplings], np.int32),
        min_p=np.array([own.min_p for own in samplings], np.float32),
        repetition_penalty=np.array([own.repetition_penalty for own in samplings], np.float32),
        presence_penalty=np.array([own.presence_penalty for own in samplings], np.float32),
        frequency_penalty=np.array([own.frequency_penalty for own in samplings], np.float32),
        seeds=np.array([sequence.request.seed for sequence in sequences], np.uint64),
        top_n_sigma=np.array([own.top_n_sigma for own in samplings], np.float32),
        logprob_top=np.array([own.top if own else -1 for own in wanted], np.int32),
        logprob_indptr=_indptr([len(own.token_ids) if own else 0 for own in wanted]),
        logprob_ids=_int64(token for own in wanted if own for token in own.token_ids),
    )


def _draws(place: int, piece: Slice, masks: Masks) -> list[_Draw]:
    """The draws of a slice: the next token's, and that of the token after each draft."""
    sequence = piece.sequence
    masked = sequence.key in masks.rows
    draws: list[_Draw] = []
    for draft in (*piece.drafts, None) if piece.samples else ():
        mask_row = masks.rows[sequence.key] + len(draws) if masked else -1
        position, bias = sequence.output_len, sequence.bias()
        seen = sequence.seen.columns() if sequence.seen is not None else None
        draws.append(_Draw(place, sequence, position, bias, seen, mask_row))
        if draft is not None:
            sequence.suppose(draft)
    sequence.retract(len(piece.drafts))
    return draws


def _count(piece: Slice) -> int:
    """Rows of a slice."""
    return piece.count + len(piece.drafts)


def _end(piece: Slice) -> int:
    """Tokens of its sequence up to the end of a slice."""
    return piece.sequence.computed + _count(piece)


def _positions(piece: Slice) -> range:
    return range(piece.sequence.computed, _end(piece))


def _slots(piece: Slice) -> Iterable[int]:
    """A slice's slots: a run of them in each page."""
    first, end = piece.sequence.computed, _end(piece)
    for place in range(first // PAGE_TOKENS, -(-end // PAGE_TOKENS)):
        start = place * PAGE_TOKENS
        page = piece.sequence.pages[place] * PAGE_TOKENS
        yield from range(page + max(first - start, 0), page + min(end - start, PAGE_TOKENS))


def _sampled(piece: Slice, end: int) -> range:
    """The last row of a slice that samples, after one for each of its drafts."""
    return range(end - len(piece.drafts) - 1, end) if piece.samples else range(0)


def _scored(slices: list[Slice], ends: list[int]) -> dict[str, NDArray[Any]]:
    """The row before each prompt token that is to be scored, the token, and the alternatives."""
    rows: list[int] = []
    targets, tops = array("q"), array("i")
    for piece, stop in zip(slices, ends, strict=True):
        sequence = piece.sequence
        first, end = sequence.to_score(piece.count)
        if first < end:
            before = stop - _count(piece) - 1 - sequence.computed
            rows.extend(range(before + first, before + end))
            targets.extend(sequence.token_ids[first:end])
            tops.extend([sequence.request.prompt_top or 0] * (end - first))
    if not rows:
        return {"score_rows": _NO_INT64, "score_targets": _NO_INT64, "score_top": _NO_INT32}
    return {
        "score_rows": np.array(rows, np.int64),
        "score_targets": np.array(targets, np.int64),
        "score_top": np.array(tops, np.int32),
    }


def _int64(numbers: Iterable[int]) -> Int64:
    return np.array([*numbers], np.int64)


def _indptr(lengths: list[int]) -> Int32:
    return np.array([0, *accumulate(lengths)], np.int32)


def _joined(parts: Columns[NDArray[Any]], none: NDArray[Any]) -> NDArray[Any]:
    filled = [part for part in parts if len(part)]
    return np.concatenate(filled) if filled else none
