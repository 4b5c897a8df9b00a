"""Weights in the blocks that native.h describes, and the memory that they lie in."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.model.numbers import Floats

FORM_INT4, FORM_INT8, FORM_BF16 = range(3)  # `Form` of native.h; a higher form loses less
FORM_NAMES = ("int4", "int8", "bf16")
BLOCK_ROWS = 16
GROUP = 32  # columns that share a scale
WORDS = (4, 8, 16)  # 32-bit words of weights that a row has in a group, by form
HALVES = (2, 1, 0)  # fp16 numbers that a row has in a group: scale and minimum, scale, none
LOW_HALVES = np.uint32(0x0F0F0F0F)  # of the bytes of a word
ALIGNMENT = 64
HUGE_PAGE = 2 * 1024 * 1024

Blocks: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint32]
Halves: TypeAlias = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Groups:
    """Some rows of a matrix, not yet in blocks, with the padding of their columns.

    A row's words in a group stand in the order of native.h's index j.
    """

    form: int
    words: Words  # [rows, groups, WORDS]
    halves: Halves  # [rows, groups, HALVES]

    def finite(self) -> bool:
        """Tell whether every weight is a number: one that is none spoils its group's scale."""
        numbers, exponent = (
            (self.words.view(np.uint16), np.uint16(0x7F80))
            if self.form == FORM_BF16
            else (self.halves.view(np.uint16), np.uint16(0x7C00))
        )
        return not bool(((numbers & exponent) == exponent).any())


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """A weight [rows, columns] and a bias, as `Matrix` of native.h has them."""

    form: int
    rows: int
    columns: int
    blocks: Blocks  # [padded_rows / 16, padded_columns / 32, bytes of a group], 64-byte aligned
    bias: Floats | None  # [padded_rows]

    @property
    def padded_rows(self) -> int:
        return len(self.blocks) * BLOCK_ROWS

    @property
    def padded_columns(self) -> int:
        return int(self.blocks.shape[1]) * GROUP

    def write(self, start: int, groups: Groups) -> None:
        """Fill the rows from `start` on; whole blocks are four times as fast."""
        words, halves = _rows_of(self.form, self.blocks)
        stop = start + len(groups.words)
        if start % BLOCK_ROWS == 0 and stop % BLOCK_ROWS == 0:
            part = slice(start // BLOCK_ROWS, stop // BLOCK_ROWS)
            words[part] = groups.words.reshape(words[part].shape)
            halves[part] = groups.halves.reshape(halves[part].shape)
        else:
            place = np.divmod(np.arange(start, stop), BLOCK_ROWS)
            words[place] = groups.words
            halves[place] = groups.halves

    def read(self, start: int, stop: int) -> Groups:
        """Return the rows of some blocks: `start` and `stop` are multiples of 16."""
        part = self.blocks[start // BLOCK_ROWS : stop // BLOCK_ROWS]
        words, halves = map(np.ascontiguousarray, _rows_of(self.form, part))
        return Groups(
            self.form,
            words.reshape(stop - start, *words.shape[2:]),
            halves.reshape(stop - start, *halves.shape[2:]),
        )


def _rows_of(form: int, blocks: Blocks) -> tuple[Words, Halves]:
    """View blocks as words [blocks, 16, groups, WORDS] and halves [blocks, 16, groups, HALVES]."""
    count, groups = blocks.shape[:2]
    border = 4 * BLOCK_ROWS * WORDS[form]
    words = blocks[..., :border].view(np.uint32).reshape(count, groups, WORDS[form], BLOCK_ROWS)
    halves = blocks[..., border:].view(np.float16).reshape(count, groups, HALVES[form], BLOCK_ROWS)
    return words.transpose(0, 3, 1, 2), halves.transpose(0, 3, 1, 2)


def blocks_shape(form: int, rows: int, columns: int) -> tuple[int, int, int]:
    """Return blocks, groups and bytes of a group of a weight [rows, columns]."""
    group_bytes = BLOCK_ROWS * (4 * WORDS[form] + 2 * HALVES[form])
    return -(-rows // BLOCK_ROWS), -(-columns // GROUP), group_bytes


class WeightArena:
    """One piece of memory for all matrices, zeroed, in huge pages where the system has them.

    Every product reads all weights of a matrix once, so that with pages of 4 KiB most of them are
    missing from the address cache. Arrays that were taken keep the memory alive.
    """

    def __init__(self, sizes: Sequence[tuple[int, int, int]]) -> None:
        """`sizes`: the shapes of the blocks that will be taken, in that order."""
        self._used = 0
        length = sum(_aligned(int(np.prod(size))) for size in sizes) + HUGE_PAGE
        # mmap's default is shared memory, which has no huge pages on most systems.
        private = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
        memory = mmap.mmap(-1, length, flags=private) if private else mmap.mmap(-1, length)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without them
                memory.madvise(mmap.MADV_HUGEPAGE)
        whole = np.frombuffer(memory, np.uint8)
        self._bytes = whole[-whole.ctypes.data % HUGE_PAGE :]

    def take(self, size: tuple[int, int, int]) -> Blocks:
        """Return the next blocks, of zeros and 64-byte aligned."""
        count = int(np.prod(size))
        start, self._used = self._used, self._used + _aligned(count)
        return self._bytes[start : start + count].reshape(size)


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT
