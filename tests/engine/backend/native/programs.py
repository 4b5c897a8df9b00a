"""Programs of one or two operations over arrays of the tests' own, and steps to run them with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.backend.backend import PAGE_TOKENS
from engine.backend.native.library import Library, Pool
from engine.backend.native.operations import Op, OpCode, Program, act_stride
from engine.backend.native.pack import (
    BLOCK_ROWS,
    FORM_BF16,
    GROUP,
    PackedMatrix,
    WeightArena,
    blocks_shape,
)
from engine.backend.native.quantise import quantise
from engine.backend.native.structures import Limits, Matrix, Step
from engine.model.numbers import Floats

VOCAB, CONTEXT = 1 << 16, 1 << 16
THREADS = 3


def packed(form: int, weights: Floats, bias: Floats | None = None) -> PackedMatrix:
    """A matrix of these weights [rows, columns], rounded as the form rounds them."""
    rows, columns = weights.shape
    size = blocks_shape(form, rows, columns)
    made = PackedMatrix(form, rows, columns, WeightArena([size]).take(size), None)
    made.write(0, quantise(form, weights))
    if bias is None:
        return made
    padded = np.zeros(made.padded_rows, np.float32)
    padded[: len(bias)] = bias
    return PackedMatrix(form, rows, columns, made.blocks, padded)


def step(
    rows: int,
    *,
    ids: Sequence[int] | None = None,
    selected: Sequence[int] = (),
    first: int = 0,
) -> Step:
    """One sequence of `rows` tokens from position `first` on, on the pages 0, 1, ..."""
    positions = np.arange(first, first + rows)
    return Step.of(
        np.zeros(rows, np.int64) if ids is None else np.array(ids, np.int64),
        positions,
        positions.copy(),
        np.array([0, rows], np.int32),
        np.array([0, -(-(first + rows) // PAGE_TOKENS)], np.int32),
        np.arange(-(-(first + rows) // PAGE_TOKENS), dtype=np.int32),
        np.array(selected, np.int64),
    )


def limits(rows: int, vocab: int = VOCAB, pages: int = 1 << 12, context: int = CONTEXT) -> Limits:
    return Limits(rows, vocab, pages, context, 0)


def computed(
    library: Library, ops: Sequence[Op], given: Step, bounds: Limits, threads: int = THREADS
) -> None:
    """Run a program once."""
    with Pool(library, threads) as pool:
        pool.run(Program(ops, bounds), given)


def acts(rows: int, form: int, columns: int) -> NDArray[np.uint8]:
    """Memory for activations, of bytes that nobody wrote."""
    return np.full(rows * act_stride(form, columns), 0xEE, np.uint8)


def numbers(act: NDArray[np.uint8], rows: int, form: int, columns: int, variant: str) -> Floats:
    """What activations [rows, columns] stand for, read as native.h describes them."""
    lines = act.reshape(rows, act_stride(form, columns))
    if form == FORM_BF16:
        if variant != "avx512":
            return lines[:, : 4 * columns].copy().view(np.float32)
        halves = lines[:, : 2 * columns].copy().view(np.uint16)
        return (halves.astype(np.uint32) << 16).view(np.float32)
    groups = columns // GROUP
    q = lines[:, :columns].copy().view(np.int8).reshape(rows, groups, GROUP)
    rest = lines[:, columns : columns + 12 * groups].copy()
    scales, sums, counts = np.split(rest, 3, axis=1)
    scale = scales.copy().view(np.float32)
    count = counts.copy().view(np.int32)
    assert np.array_equal(count, q.sum(-1, dtype=np.int64))
    assert np.array_equal(
        sums.copy().view(np.float32), scale * count.astype(np.float32), equal_nan=True
    )
    return (q * scale[..., None]).reshape(rows, columns).astype(np.float32)


def product(
    library: Library,
    matrix: PackedMatrix,
    x: Floats,
    onto: Floats | None = None,
    threads: int = THREADS,
) -> tuple[Floats, Floats]:
    """x [rows, columns] times the matrix, added to `onto`; and x as the product saw it.

    Few rows are quantised by each thread for itself where a product follows: in the same bits.
    """
    rows, columns, made = len(x), x.shape[1], Matrix.of(matrix)
    act = acts(rows, matrix.form, columns)
    out = np.full((rows, matrix.padded_rows), 7.5, np.float32) if onto is None else onto.copy()
    ops = [
        Op.of(OpCode.QUANTISE, rows, columns=columns, form=matrix.form, input=x, act=act),
        Op.of(
            OpCode.LINEAR,
            rows,
            form=matrix.form,
            flag=int(onto is not None),
            matrix=made,
            act=act,
            output=out,
        ),
    ]
    start = out.copy()
    for op in ops:
        computed(library, [op], step(rows), limits(rows), threads)
    apart = out.copy()
    out[:] = start
    computed(library, ops, step(rows), limits(rows), threads)
    assert np.array_equal(out, apart, equal_nan=True)
    return out, numbers(act, rows, matrix.form, columns, library.variant)


def draws(seed: int, *size: int) -> Floats:
    """Normal numbers, one in fifty of them large, as activations are."""
    generator = np.random.default_rng(seed)
    made = generator.standard_normal(size)
    return (made * np.where(generator.random(size) < 0.02, 30, 1)).astype(np.float32)


def rounded_up(rows: int) -> int:
    return -(-rows // BLOCK_ROWS) * BLOCK_ROWS
