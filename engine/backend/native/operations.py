"""Operations of native.h and programs of them, made from arrays that are checked first."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_float, c_int32, c_void_p
from enum import IntEnum
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from engine.backend.native.pack import FORM_BF16, GROUP
from engine.backend.native.structures import (
    Attention,
    Limits,
    Matrix,
    Pages,
    Step,
    Structure,
    pointer,
    require,
)
from engine.model.numbers import Floats


class OpCode(IntEnum):
    """What an operation does; see native.h."""

    EMBED = 0
    NORM = 1
    QUANTISE = 2
    LINEAR = 3
    ROPE = 4
    ATTEND = 5
    GATE = 6
    SELECT = 7
    ADD = 8


def act_stride(form: int, columns: int) -> int:
    """Bytes of a row of activations that meets weights of a form, as native.h has them."""
    size = 4 * columns if form == FORM_BF16 else columns + 12 * (columns // GROUP)
    return -(-size // 64) * 64


class Operands(TypedDict, total=False):
    """What an operation works on, by the names of `Op.of`."""

    columns: int
    form: int
    flag: int
    factor: float
    matrix: Matrix | None
    weight: Floats | None
    attention: Attention | None
    pages: Pages | None
    input: Floats | None
    output: Floats | None
    act: NDArray[np.uint8] | None


class Op(Structure):
    """One operation; see native.h for what each reads and writes."""

    room: int  # rows that its buffers hold
    _fields_ = (
        ("code", c_int32),
        ("columns", c_int32),
        ("form", c_int32),
        ("flag", c_int32),
        ("factor", c_float),
        ("selected", c_int32),
        ("matrix", POINTER(Matrix)),
        ("weight", c_void_p),
        ("attention", POINTER(Attention)),
        ("pages", POINTER(Pages)),
        ("input", c_void_p),
        ("output", c_void_p),
        ("act", c_void_p),
    )

    @classmethod
    def of(
        cls,
        code: OpCode,
        rows: int,
        *,
        columns: int = 0,
        form: int = 0,
        flag: int = 0,
        factor: float = 0.0,
        selected: bool = False,
        matrix: Matrix | None = None,
        weight: Floats | None = None,
        attention: Attention | None = None,
        pages: Pages | None = None,
        input: Floats | None = None,
        output: Floats | None = None,
        act: NDArray[np.uint8] | None = None,
    ) -> Op:
        """`rows`: how many rows its buffers must hold, the most that a step has, or selects.

        Raises ValueError for a buffer that is missing, too small, of another type or not wanted.
        """
        made = cls(code=code, columns=columns, form=form, flag=flag, factor=factor)
        made.selected = int(selected or code == OpCode.SELECT)
        made.room = rows
        made.kept = (matrix, weight, attention, pages, input, output, act)
        for name, structure in (("matrix", matrix), ("attention", attention), ("pages", pages)):
            if structure is not None:
                setattr(made, name, ctypes.pointer(structure))
        arrays = {"weight": weight, "input": input, "output": output, "act": act}
        for name, size in _sizes(made, matrix, attention, pages).items():
            array = arrays.pop(name)
            if array is None:
                raise ValueError(f"{code.name} lacks its {name}")
            kind = np.uint8 if name == "act" else np.float32
            once = name == "weight" or (code, name) == (OpCode.SELECT, "input")
            whole = size if once else size * rows
            setattr(made, name, pointer(array, kind, whole, written=name in ("output", "act")))
        if unused := [name for name, array in arrays.items() if array is not None]:
            raise ValueError(f"{code.name} takes no {unused[0]}")
        return made


def _sizes(
    op: Op, matrix: Matrix | None, attention: Attention | None, pages: Pages | None
) -> dict[str, int]:
    """Numbers that a row of each buffer of an operation has, and its weight as a whole.

    How many rows a selection takes from is known to its program only.
    """
    code, columns = OpCode(op.code), op.columns
    if code in (OpCode.EMBED, OpCode.LINEAR):
        if matrix is None:
            raise ValueError(f"{code.name} lacks its matrix")
        if code == OpCode.EMBED:
            return {"output": matrix.columns}
        return {"act": act_stride(matrix.form, matrix.columns), "output": matrix.rows}
    if code in (OpCode.ROPE, OpCode.ATTEND):
        if attention is None or pages is None:
            raise ValueError(f"{code.name} lacks its attention or pages")
        wanted = (attention.kv_heads, attention.head_dim)
        require(pages.head == wanted, f"pages have heads {pages.head}, not {wanted}")
        queries = attention.heads * attention.head_dim
        both = queries + 2 * attention.kv_heads * attention.head_dim
        return {"input": both} | ({"output": queries} if code == OpCode.ATTEND else {})
    if code in (OpCode.SELECT, OpCode.ADD):
        return {"input": columns, "output": columns}
    into = {"act": act_stride(op.form, columns)}
    if code == OpCode.NORM:
        return {"input": columns, "weight": columns} | ({"output": columns} if op.flag else into)
    return {"input": 2 * columns if code == OpCode.GATE else columns} | into


class Program:
    """Operations in the order in which they run, and what steps they can take."""

    def __init__(self, ops: Sequence[Op], limits: Limits) -> None:
        """`limits`: of every step. Raises ValueError where an operation has not room for them."""
        self.ops = tuple(ops)
        self.array = (Op * len(self.ops))(*self.ops)
        self._limits = limits
        self._selected = min((op.room for op in self.ops if op.selected), default=limits.max_rows)
        for op in self.ops:
            name = OpCode(op.code).name
            enough = op.selected or op.room >= limits.max_rows
            require(enough, f"{name} has room for {op.room} rows of {limits.max_rows}")
            _check_reach(op, limits)

    def limits_for(self, step: Step) -> Limits:
        """What a step's tables are checked against. Raises ValueError for too many selected."""
        limits = self._limits
        require(step.selected_rows <= self._selected, f"{step.selected_rows} rows are selected")
        return Limits(limits.max_rows, limits.vocab, limits.pages, limits.max_context, step.indices)


def _check_reach(op: Op, limits: Limits) -> None:
    """Raise ValueError where a step within the limits makes the operation read past an array."""
    if op.code == OpCode.EMBED:
        rows = op.matrix.contents.rows
        require(rows >= limits.vocab, f"the embedding has {rows} rows of {limits.vocab}")
    if op.code == OpCode.SELECT:
        held = op.kept[4]
        assert isinstance(held, np.ndarray)
        require(held.size >= limits.max_rows * op.columns, "SELECT takes from fewer rows")
    if op.code in (OpCode.ROPE, OpCode.ATTEND):
        attention, pages = op.kept[2:4]
        assert isinstance(attention, Attention) and isinstance(pages, Pages)
        require(attention.context >= limits.max_context, "positions outnumber their cosines")
        require(pages.count >= limits.pages, f"there are {pages.count} pages of {limits.pages}")
