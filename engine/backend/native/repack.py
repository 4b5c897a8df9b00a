"""Quantised GGUF tensors, whose weights are kept: only their bits change places.

The blocks are those of ggml's `ggml-common.h`: `block_q4_0`, `block_q4_1`, `block_q8_0`,
`block_q4_K`. A block has its weights in two runs: byte i has weight i in its low half and weight
i + (half of the run) in its high half. Ours has two neighbouring fours in a word.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from gguf.constants import GGMLQuantizationType as QuantType

from engine.backend.native.pack import (
    FORM_INT4,
    FORM_INT8,
    LOW_HALVES,
    Blocks,
    Groups,
    Words,
)

HIGH_HALVES = ~LOW_HALVES


def repack(kind: QuantType, rows: Blocks) -> Groups:
    """Take over rows [rows, bytes of a row] of a type in `REPACKED`.

    Scales and minimums are those of the file, but for Q4_K, whose 6-bit times fp16 products are
    rounded to fp16. One that fp16 cannot hold becomes infinite: see `Groups.finite`.
    """
    with np.errstate(over="ignore"):
        return REPACKERS[kind](rows)


def _q4_0(rows: Blocks) -> Groups:
    """fp16 d, 16 bytes; w = d * (q - 8), hence a minimum of -8 d."""
    blocks = rows.view(np.dtype([("d", "<f2"), ("q", "<u4", (4,))]))  # [rows, groups]
    scales = blocks["d"].astype(np.float32)
    halves = np.stack([scales, -8 * scales], axis=-1).astype(np.float16)
    return Groups(FORM_INT4, _words_of_halves(blocks["q"]), halves)


def _q4_1(rows: Blocks) -> Groups:
    """fp16 d and m, 16 bytes; w = d * q + m."""
    blocks = rows.view(np.dtype([("dm", "<u4"), ("q", "<u4", (4,))]))  # [rows, groups]
    halves = np.ascontiguousarray(blocks["dm"])[..., None].view(np.float16)
    return Groups(FORM_INT4, _words_of_halves(blocks["q"]), halves)


def _words_of_halves(run: Words) -> Words:
    """Words of groups [rows, groups, 4] with weights 0-15 in low halves and 16-31 in high ones."""
    low, high = _fours(run.reshape(-1, 4))
    return np.concatenate([low, high]).T.reshape(run.shape)


def _fours(runs: Words) -> tuple[Words, Words]:
    """Join neighbouring words of runs [count, n]: low halves, then high ones, [n / 2, count] each.

    The count is last: numpy is fast along long axes only.
    """
    planes = np.ascontiguousarray(runs.T)
    first, second = planes[0::2], planes[1::2]
    low = (first & LOW_HALVES) | ((second & LOW_HALVES) << np.uint32(4))
    high = ((first >> np.uint32(4)) & LOW_HALVES) | (second & HIGH_HALVES)
    return low, high


def _q8_0(rows: Blocks) -> Groups:
    """fp16 d, 32 signed bytes; w = d * q."""
    blocks = rows.view(np.dtype([("d", "<f2", (1,)), ("q", np.uint8, (32,))]))  # [rows, groups]
    signs = np.uint8(0x80)  # q + 128 is q with its sign turned
    return Groups(FORM_INT8, (blocks["q"] ^ signs).view(np.uint32), blocks["d"])


def _q4_k(rows: Blocks) -> Groups:
    """256 weights: fp16 d and dmin, eight 6-bit scales and minimums, four runs of 64 weights.

    w = d * scale * q - dmin * minimum.
    """
    layout = np.dtype([("d", "<f2", (2,)), ("scales", np.uint8, (12,)), ("q", "<u4", (4, 8))])
    blocks = rows.view(layout).reshape(-1)  # [blocks]
    words = np.stack(_fours(blocks["q"].reshape(-1, 8)), axis=-1)  # [4, runs, 2]
    scale, minimum = blocks["d"].T.astype(np.float32)
    scales, minimums = _six_bits(blocks["scales"])  # [8, blocks]
    halves = np.stack([scale * scales, -minimum * minimums], axis=-1).astype(np.float16)
    return Groups(
        FORM_INT4,
        words.reshape(4, -1).T.reshape(len(rows), -1, 4),
        halves.swapaxes(0, 1).reshape(len(rows), -1, 2),
    )


def _six_bits(packed: Blocks) -> tuple[Blocks, Blocks]:
    """Unpack scales and minimums [8, blocks] from [blocks, 12] (ggml, `get_scale_min_k4`)."""
    first, second, rest = np.ascontiguousarray(packed.T).reshape(3, 4, -1)
    scales = [first & 63, (rest & 15) | (first >> 6 << 4)]
    minimums = [second & 63, (rest >> 4) | (second >> 6 << 4)]
    return np.concatenate(scales), np.concatenate(minimums)


REPACKERS: dict[QuantType, Callable[[Blocks], Groups]] = {
    QuantType.Q4_0: _q4_0,
    QuantType.Q4_1: _q4_1,
    QuantType.Q8_0: _q8_0,
    QuantType.Q4_K: _q4_k,
}
REPACKED = {
    QuantType.Q4_0: FORM_INT4,
    QuantType.Q4_1: FORM_INT4,
    QuantType.Q4_K: FORM_INT4,
    QuantType.Q8_0: FORM_INT8,
}
"""The form that each of them takes."""
