"""Blocks of weights against the words of native.h, and the memory that they lie in."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch

from engine.backend.native.pack import (
    ALIGNMENT,
    BLOCK_ROWS,
    FORM_BF16,
    FORM_INT4,
    FORM_INT8,
    FORM_NAMES,
    GROUP,
    HALVES,
    HUGE_PAGE,
    WORDS,
    Groups,
    PackedMatrix,
    WeightArena,
    blocks_shape,
)
from engine.backend.native.quantise import dequantise, to_bfloat16
from engine.backend.torch_weights import as_tensor
from engine.model.numbers import Floats

FORMS = pytest.mark.parametrize("form", range(3), ids=FORM_NAMES)
SIZES = pytest.mark.parametrize(
    ("rows", "columns"), [(16, 32), (1, 1), (17, 33), (48, 96), (250, 160), (15, 2048)]
)


def random_groups(form: int, rows: int, columns: int) -> Groups:
    """Any bits as weights, and scales between 0 and 1."""
    generator = np.random.default_rng(rows * columns)
    groups = -(-columns // GROUP)
    words = generator.integers(0, 1 << 32, (rows, groups, WORDS[form]), np.uint32)
    if form == FORM_BF16:
        words &= np.uint32(0xBFFFBFFF)  # below 2 in size
    return Groups(form, words, generator.random((rows, groups, HALVES[form])).astype(np.float16))


def packed(groups: Groups, rows: int, columns: int) -> PackedMatrix:
    size = blocks_shape(groups.form, rows, columns)
    matrix = PackedMatrix(groups.form, rows, columns, WeightArena([size]).take(size), None)
    matrix.write(0, groups)
    return matrix


def as_described(matrix: PackedMatrix) -> Floats:
    """Every weight [padded rows, padded columns], read as the comment in native.h says."""
    out = np.full((matrix.padded_rows, matrix.padded_columns), np.nan, np.float32)
    for block in range(matrix.padded_rows // 16):
        for group in range(matrix.padded_columns // 32):
            content = matrix.blocks[block, group].tobytes()
            tile = out[16 * block :, 32 * group :]
            for row in range(16):
                one_row_as_described(matrix.form, content, row, tile)
    return out


def one_row_as_described(form: int, content: bytes, row: int, tile: Floats) -> None:
    def half(at: int) -> np.float32:
        return np.float32(struct.unpack_from("<e", content, at)[0])

    if form == FORM_INT4:
        assert len(content) == 320
        scale, minimum = half(256 + 2 * row), half(256 + 32 + 2 * row)
        for j in range(4):
            for c in range(4):
                byte = content[64 * j + 4 * row + c]
                tile[row, 8 * j + c] = scale * np.float32(byte % 16) + minimum
                tile[row, 8 * j + 4 + c] = scale * np.float32(byte // 16) + minimum
    elif form == FORM_INT8:
        assert len(content) == 544
        for j in range(8):
            for c in range(4):
                byte = content[64 * j + 4 * row + c]
                tile[row, 4 * j + c] = half(512 + 2 * row) * np.float32(byte - 128)
    else:
        assert len(content) == 1024
        for j in range(16):
            for c in range(2):
                high = content[2 * (32 * j + 2 * row + c) :][:2]
                tile[row, 2 * j + c] = struct.unpack("<f", b"\0\0" + high)[0]


@FORMS
@SIZES
def test_the_blocks_are_those_of_the_header(form: int, rows: int, columns: int) -> None:
    matrix = packed(random_groups(form, rows, columns), rows, columns)
    wanted = as_described(matrix)
    assert np.array_equal(dequantise(matrix), wanted[:rows, :columns])
    assert not wanted[rows:].any()
    assert (matrix.padded_rows % 16, matrix.padded_columns % 32) == (0, 0)
    assert (matrix.padded_rows - rows, matrix.padded_columns - columns) < (16, 32)


@FORMS
@SIZES
def test_the_bf16_copy_is_the_rounded_weight(form: int, rows: int, columns: int) -> None:
    matrix = packed(random_groups(form, rows, columns), rows, columns)
    wanted = torch.from_numpy(dequantise(matrix)).to(torch.bfloat16)
    assert torch.equal(as_tensor(to_bfloat16(matrix)), wanted)


@FORMS
@pytest.mark.parametrize("borders", [[16, 48], [5, 21, 22], [1, 2, 3, 4]])
def test_rows_may_come_in_pieces(form: int, borders: list[int]) -> None:
    rows, columns = 75, 96
    groups = random_groups(form, rows, columns)
    size = blocks_shape(form, rows, columns)
    matrix = PackedMatrix(form, rows, columns, WeightArena([size]).take(size), None)
    for start, stop in zip([0, *borders], [*borders, rows], strict=True):
        matrix.write(start, Groups(form, groups.words[start:stop], groups.halves[start:stop]))
    assert np.array_equal(matrix.blocks, packed(groups, rows, columns).blocks)


@FORMS
def test_what_is_read_is_what_was_written(form: int) -> None:
    groups = random_groups(form, 64, 96)
    read = packed(groups, 64, 96).read(16, 48)
    assert np.array_equal(read.words, groups.words[16:48])
    assert np.array_equal(read.halves, groups.halves[16:48])


def test_the_arena_is_aligned_zeroed_and_gives_each_its_own() -> None:
    sizes = [blocks_shape(form, rows, 32) for form in range(3) for rows in (16, 48, 80)]
    arena = WeightArena(sizes)
    taken = [arena.take(size) for size in sizes]
    assert taken[0].ctypes.data % HUGE_PAGE == 0
    for number, blocks in enumerate(taken, 1):
        assert blocks.ctypes.data % ALIGNMENT == 0 and blocks.flags.c_contiguous
        assert not blocks.any()
        blocks[:] = number
    assert [blocks.shape for blocks in taken] == sizes
    assert all((blocks == number).all() for number, blocks in enumerate(taken, 1))
    assert blocks_shape(FORM_INT4, BLOCK_ROWS + 1, GROUP + 1) == (2, 2, 320)
