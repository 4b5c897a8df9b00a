"""The structures of native.h, made from arrays that are checked first.

Each keeps the arrays that it points into alive. Constructors raise ValueError for an array that C
would read past, or read as something else.
"""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_int64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engine.backend.backend import PAGE_TOKENS, Int32, Int64
from engine.backend.native.pack import (
    PackedMatrix,
    blocks_shape,
)
from engine.model.numbers import Floats

Array = NDArray[Any]
Halves16 = NDArray[np.uint16]  # bf16
MAX_HEADS_PER_GROUP = 16
MAX_HEAD_DIM = 256


def pointer(array: Array, dtype: DTypeLike, size: int, *, written: bool = False) -> int:
    """Return the address of at least `size` numbers of a type, in one piece.

    The caller keeps the array alive. `written`: C writes there. Raises ValueError.
    """
    wanted = np.dtype(dtype)
    if array.dtype != wanted:
        raise ValueError(f"an array is {array.dtype}, not {wanted}")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError("an array is not contiguous and aligned")
    if written and not array.flags.writeable:
        raise ValueError("an array may not be written")
    if array.size < size:
        raise ValueError(f"an array has {array.size} numbers, fewer than {size}")
    return array.ctypes.data


def require(true: bool, what: str) -> None:
    """Raise ValueError, which says what, unless it is true."""
    if not true:
        raise ValueError(what)


class Structure(ctypes.Structure):
    """A structure of C, and what it points into."""

    kept: tuple[object, ...] = ()


class Matrix(Structure):
    """A weight [rows, columns] in blocks, with its bias."""

    _fields_ = (
        ("form", c_int32),
        ("rows", c_int32),
        ("columns", c_int32),
        ("pad", c_int32),
        ("blocks", c_void_p),
        ("bias", c_void_p),
    )

    @classmethod
    def of(cls, packed: PackedMatrix) -> Matrix:
        rows, columns, bias = packed.padded_rows, packed.padded_columns, packed.bias
        count = int(np.prod(blocks_shape(packed.form, rows, columns)))
        made = cls(
            form=packed.form,
            rows=rows,
            columns=columns,
            blocks=pointer(packed.blocks, np.uint8, count),
            bias=None if bias is None else pointer(bias, np.float32, rows),
        )
        made.kept = (packed,)
        return made


class Pages(Structure):
    """Keys [pages, kv_heads, head_dim / 2, 16, 2] and values [pages, kv_heads, 8, head_dim, 2] of
    one layer, bf16.
    """

    count: int
    head: tuple[int, int]  # key/value heads and their numbers
    _fields_ = (("keys", c_void_p), ("values", c_void_p))

    @classmethod
    def of(cls, keys: Halves16, values: Halves16) -> Pages:
        pages, kv_heads, half = keys.shape[:3]
        require(keys.shape == (pages, kv_heads, half, PAGE_TOKENS, 2), "keys have another shape")
        wanted = (pages, kv_heads, PAGE_TOKENS // 2, 2 * half, 2)
        require(values.shape == wanted, f"values are {values.shape}, not {wanted}")
        made = cls(
            keys=pointer(keys, np.uint16, keys.size, written=True),
            values=pointer(values, np.uint16, values.size, written=True),
        )
        made.count, made.head = pages, (kv_heads, 2 * half)
        made.kept = (keys, values)
        return made


class Attention(Structure):
    """Heads of attention, and the cosines and sines [max_context, head_dim / 2] of positions."""

    context: int  # positions that have cosines
    _fields_ = (
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("window", c_int32),
        ("scale", c_float),
        ("soft_cap", c_float),
        ("cosines", c_void_p),
        ("sines", c_void_p),
    )

    @classmethod
    def of(
        cls,
        heads: int,
        kv_heads: int,
        head_dim: int,
        cosines: Floats,
        sines: Floats,
        *,
        scale: float,
        window: int = 0,
        soft_cap: float = 0.0,
    ) -> Attention:
        """`window` 0 looks back at all tokens; `soft_cap` 0 caps no score."""
        grouped = heads > 0 and kv_heads > 0 and heads % kv_heads == 0
        require(grouped, f"{kv_heads} key/value heads do not divide {heads} heads")
        require(heads // kv_heads <= MAX_HEADS_PER_GROUP, "too many heads read one key/value head")
        fits = 0 < head_dim <= MAX_HEAD_DIM and head_dim % 16 == 0
        require(fits, f"heads of {head_dim} numbers are not a multiple of 16 up to {MAX_HEAD_DIM}")
        require(window >= 0, "the window is negative")
        require(cosines.shape == sines.shape, "there are more cosines than sines, or fewer")
        require(cosines.shape[1:] == (head_dim // 2,), f"angles are {cosines.shape}")
        made = cls(
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            window=window,
            scale=scale,
            soft_cap=soft_cap,
            cosines=pointer(cosines, np.float32, cosines.size),
            sines=pointer(sines, np.float32, sines.size),
        )
        made.context = len(cosines)
        made.kept = (cosines, sines)
        return made


class Step(Structure):
    """N rows of B sequences, and which rows are selected."""

    indices: int  # length of kv_indices
    _fields_ = (
        ("rows", c_int32),
        ("sequences", c_int32),
        ("selected_rows", c_int32),
        ("pad", c_int32),
        ("ids", c_void_p),
        ("positions", c_void_p),
        ("slots", c_void_p),
        ("qo_indptr", c_void_p),
        ("kv_indptr", c_void_p),
        ("kv_indices", c_void_p),
        ("selected", c_void_p),
    )

    @classmethod
    def of(
        cls,
        ids: Int64,
        positions: Int64,
        slots: Int64,
        qo_indptr: Int32,
        kv_indptr: Int32,
        kv_indices: Int32,
        selected: Int64,
    ) -> Step:
        """The columns of a StepPlan, whose values `Pool.run` checks."""
        rows, sequences = len(ids), len(qo_indptr) - 1
        made = cls(rows=rows, sequences=sequences, selected_rows=len(selected))
        made.ids = pointer(ids, np.int64, rows)
        made.positions = pointer(positions, np.int64, rows)
        made.slots = pointer(slots, np.int64, rows)
        made.qo_indptr = pointer(qo_indptr, np.int32, sequences + 1)
        made.kv_indptr = pointer(kv_indptr, np.int32, sequences + 1)
        made.kv_indices = pointer(kv_indices, np.int32, 0)
        made.selected = pointer(selected, np.int64, 0)
        made.indices = len(kv_indices)
        made.kept = (ids, positions, slots, qo_indptr, kv_indptr, kv_indices, selected)
        return made


class Limits(Structure):
    """What a step's tables are checked against; `indices` is the length of `kv_indices`."""

    _fields_ = (
        ("max_rows", c_int32),
        ("vocab", c_int32),
        ("pages", c_int64),
        ("max_context", c_int64),
        ("indices", c_int64),
    )
