"""Floats become the weights of a form, and back."""

from __future__ import annotations

import numpy as np

from engine.backend.native.pack import (
    BLOCK_ROWS,
    FORM_BF16,
    FORM_INT8,
    GROUP,
    HALVES,
    LOW_HALVES,
    WORDS,
    Blocks,
    Groups,
    Halves,
    PackedMatrix,
)
from engine.model.numbers import BFLOAT16, Floats, Numbers

MOST_INT8 = 127
MOST_INT4 = 15
FITTED_GROUPS = 4096  # that are fitted at once: more leave the caches, fewer are all overhead
# Steps that a group's range has in a try. With more than 15 a level is wanted that does not exist:
# the far end is cut off, and what lies between has finer steps.
LEVELS = (14.25, 14.85, 15.4, 16.0)
SLAB_WEIGHTS = 1 << 17  # weights that are unpacked at once


def quantise(form: int, weights: Numbers) -> Groups:
    """Round weights [rows, columns] of any floating type; columns are padded with zeros.

    Weights that are not finite, and those that the form's scales cannot hold, spoil their groups:
    see `Groups.finite`.
    """
    padding = -weights.shape[1] % GROUP
    padded = np.pad(weights, ((0, 0), (0, padding))) if padding else weights
    if form == FORM_BF16:
        bits = np.ascontiguousarray(padded.astype(BFLOAT16, copy=False))
        words = bits.view(np.uint32).reshape(len(bits), -1, GROUP // 2)
        return Groups(form, words, np.empty((*words.shape[:2], 0), np.float16))
    groups = np.ascontiguousarray(padded, np.float32).reshape(-1, GROUP)
    q = np.empty((len(groups), 4 * WORDS[form]), np.uint8)
    halves: Halves = np.empty((len(groups), HALVES[form]), np.float16)
    with np.errstate(all="ignore"):
        for start in range(0, len(groups), FITTED_GROUPS):
            part = slice(start, start + FITTED_GROUPS)
            columns = np.ascontiguousarray(groups[part].T)  # sums run over whole vectors
            q[part], halves[part] = _int8(columns) if form == FORM_INT8 else _int4(columns)
    shape = (len(padded), -1)
    return Groups(
        form,
        q.view(np.uint32).reshape(*shape, WORDS[form]),
        halves.reshape(*shape, HALVES[form]),
    )


def _int8(weights: Floats) -> tuple[Blocks, Halves]:
    """Round weights [32, groups] to bytes [groups, 32] and scales [groups, 1].

    The largest weight of a group is 127 times its scale.
    """
    most = np.maximum(weights.max(axis=0), -weights.min(axis=0))
    scales = (most / MOST_INT8).astype(np.float16)
    q = weights * _inverse(scales.astype(np.float32))
    np.clip(np.rint(q, out=q), -MOST_INT8, MOST_INT8, out=q)
    q += 128
    return q.astype(np.uint8).T, scales[:, None]


def _int4(weights: Floats) -> tuple[Blocks, Halves]:
    """Round weights [32, groups] to pairs [groups, 16] and scales and minimums [groups, 2]."""
    halves = _fit(weights)
    scale, minimum = halves.astype(np.float32)
    q = (weights - minimum) * _inverse(scale)
    _round(q, 0.0)
    fours = q.astype(np.uint8).reshape(4, 2, 4, -1)  # columns 8 j + c and 8 j + 4 + c
    pairs: Blocks = fours[:, 0] | fours[:, 1] << np.uint8(4)
    return pairs.reshape(16, -1).T, halves.T


def _fit(weights: Floats) -> Halves:
    """Choose the scale and minimum [2, groups] that reproduce weights [32, groups] best.

    Each try lays a grid over the group's range, from its smallest weight up or from its largest
    down; least squares then move the grid to its weights (as `make_qkx2_quants` of ggml does).
    Eight tries leave a fifth less squared error than the plain range.
    """
    means = weights.mean(axis=0)
    low, high = weights.min(axis=0), weights.max(axis=0)
    span = high - low
    unit = (weights - means) * _inverse(span)
    bottom = (low - means) * _inverse(span)
    scale, minimum, most = (np.zeros_like(span) for _ in range(3))
    q = np.empty_like(unit)
    for levels in LEVELS:
        for below in (0.0, MOST_INT4 - levels):
            np.multiply(unit, levels, out=q)
            _round(q, below - levels * bottom)
            sums = q.sum(axis=0)
            spread = GROUP * np.einsum("ij,ij->j", q, q) - sums * sums
            product = np.einsum("ij,ij->j", q, unit)
            slope = GROUP * product * _inverse(spread)
            gain = slope * product  # by which the squared error is less than that of the mean
            better = gain > most
            most = np.where(better, gain, most)
            scale = np.where(better, slope, scale)
            minimum = np.where(better, -slope * sums / GROUP, minimum)
    return np.stack([scale * span, minimum * span + means]).astype(np.float16)


def _round(levels: Floats, offset: Floats | float) -> None:
    """Shift levels and make them whole and between 0 and 15."""
    levels += offset
    np.clip(np.rint(levels, out=levels), 0, MOST_INT4, out=levels)


def _inverse(numbers: Floats) -> Floats:
    """1 / x, and 0 for 0."""
    return np.divide(1, numbers, out=np.zeros_like(numbers), where=numbers != 0)


def dequantise(matrix: PackedMatrix) -> Floats:
    """Return the weight in fp32 [rows, columns], each number as the kernels see it."""
    out = np.empty((matrix.rows, matrix.columns), np.float32)
    for part in _slabs(matrix):
        rows = out[part]
        rows[:] = _floats(matrix.read(part.start, part.stop))[: len(rows), : matrix.columns]
    return out


def to_bfloat16(matrix: PackedMatrix) -> Numbers:
    """Return the weight in bf16 [rows, columns]: its own bits, or rounded from another form."""
    out = np.empty((matrix.rows, matrix.columns), BFLOAT16)
    for part in _slabs(matrix):
        rows = out[part]
        groups = matrix.read(part.start, part.stop)
        if matrix.form == FORM_BF16:
            unpacked: Numbers = groups.words.view(BFLOAT16).reshape(len(groups.words), -1)
        else:
            unpacked = _floats(groups)
        rows[:] = unpacked[: len(rows), : matrix.columns]
    return out


def _slabs(matrix: PackedMatrix) -> list[slice]:
    """Ranges of rows, in whole blocks, that are unpacked at once."""
    blocks = max(1, SLAB_WEIGHTS // (BLOCK_ROWS * matrix.padded_columns))
    return [
        slice(start, min(start + blocks * BLOCK_ROWS, matrix.padded_rows))
        for start in range(0, matrix.padded_rows, blocks * BLOCK_ROWS)
    ]


def _floats(groups: Groups) -> Floats:
    """Unpack to fp32 [rows, padded columns]."""
    rows = len(groups.words)
    if groups.form == FORM_BF16:
        bits = groups.words.view(np.uint16).astype(np.uint32)
        return (bits << 16).view(np.float32).reshape(rows, -1)
    scales = groups.halves.astype(np.float32)  # [rows, groups, 1 or 2]
    if groups.form == FORM_INT8:
        weights = groups.words.view(np.uint8).astype(np.float32)  # [rows, groups, 32]
        weights -= 128
        weights *= scales[..., :1]
        return weights.reshape(rows, -1)
    fours = np.empty((*groups.words.shape, 2), np.uint32)
    np.bitwise_and(groups.words, LOW_HALVES, out=fours[..., 0])
    np.bitwise_and(groups.words >> np.uint32(4), LOW_HALVES, out=fours[..., 1])
    weights = fours.view(np.uint8).reshape(rows, -1, GROUP).astype(np.float32)
    weights *= scales[..., :1]
    weights += scales[..., 1:]
    return weights.reshape(rows, -1)
