"""A decoder's forward pass, run once against buffers to be recorded as a program of operations."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from engine.backend.native.library import Pool
from engine.backend.native.operations import Op, OpCode, Operands, Program, act_stride
from engine.backend.native.pack import ALIGNMENT, PackedMatrix
from engine.backend.native.structures import Attention, Limits, Matrix, Pages, Step
from engine.backend.ops import Ops
from engine.model.decoder import Decoder
from engine.model.numbers import Floats

NativeDecoder = Decoder[Floats, PackedMatrix, PackedMatrix]


def matrices(decoder: NativeDecoder) -> Iterator[PackedMatrix]:
    """Those of the layers."""
    for layer in decoder.layers:
        yield from (layer.qkv, layer.attention_output, layer.gate_up, layer.down)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Rows:
    """Numbers [rows, width] that operations have written."""

    array: Floats

    @property
    def width(self) -> int:
        return int(self.array.shape[1])


@dataclass(frozen=True, slots=True)
class Normed:
    """Rows that are scaled and weighted when a product reads them."""

    rows: Rows
    weight: Floats


@dataclass(frozen=True, slots=True)
class Gated:
    """Halves of rows that are gated when a product reads them."""

    rows: Rows


@dataclass(frozen=True, slots=True)
class Heads:
    """q, k or v among the rows [rows, heads + 2 kv_heads, head_dim] of all three."""

    rows: Rows


Value = Rows | Normed | Gated | Heads
"""What stands for a tensor: memory that is written, or what is left to the reader of it."""


class Buffers:
    """Arrays of so many rows. One that nothing refers to any more is used again."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._free: defaultdict[int, list[Floats]] = defaultdict(list)
        self._acts: dict[int, NDArray[np.uint8]] = {}

    def take(self, width: int) -> Rows:
        """Memory of fp32 [rows, width]."""
        free = self._free[width]
        array = free.pop() if free else _aligned(4 * self.rows * width).view(np.float32)
        taken = Rows(array.reshape(self.rows, width))
        weakref.finalize(taken, free.append, array).atexit = False
        return taken

    def act(self, stride: int) -> NDArray[np.uint8]:
        """Memory of activations: what is written there is read by the next operation only."""
        if stride not in self._acts:
            self._acts[stride] = _aligned(self.rows * stride)
        return self._acts[stride]


def _aligned(count: int) -> NDArray[np.uint8]:
    memory = np.zeros(count + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count]


class Recorder:
    """`Ops` that computes nothing and notes what to compute.

    Norms, gates and the quantisation of activations are recorded with the product that reads them,
    in the form that its weights want.
    """

    def __init__(
        self, buffers: Buffers, attention: Attention, pages: list[Pages], epsilon: float
    ) -> None:
        self.ops: list[Op] = []
        self._buffers = buffers
        self._attention = attention
        self._pages = pages
        self._epsilon = epsilon
        self._selects = False

    def embed(self, table: PackedMatrix) -> Value:
        matrix = Matrix.of(table)
        out = self._buffers.take(matrix.columns)
        self._note(
            OpCode.EMBED, columns=matrix.columns, factor=1.0, matrix=matrix, output=out.array
        )
        return out

    def rms_norm(self, x: Value, weight: Floats) -> Value:
        assert isinstance(x, Rows)
        return Normed(x, weight)

    def linear(self, x: Value, weight: PackedMatrix, residual: Value | None = None) -> Value:
        matrix = Matrix.of(weight)
        act = self._activations(x, matrix.columns, matrix.form)
        assert residual is None or isinstance(residual, Rows)
        out = residual or self._buffers.take(matrix.rows)
        add = residual is not None
        self._note(
            OpCode.LINEAR, form=matrix.form, flag=int(add), matrix=matrix, output=out.array, act=act
        )
        return out

    def rope(self, qkv: Value) -> tuple[Value, Value, Value]:
        assert isinstance(qkv, Rows)
        return Heads(qkv), Heads(qkv), Heads(qkv)

    def append_kv(self, layer: int, k: Value, v: Value) -> None:
        """Rotates q and k too: one pass over the rows does all of it."""
        assert isinstance(k, Heads) and k == v
        pages = self._pages[layer]
        self._note(OpCode.ROPE, attention=self._attention, pages=pages, input=k.rows.array)

    def attention(self, layer: int, q: Value) -> Value:
        assert isinstance(q, Heads)
        out = self._buffers.take(self._attention.heads * self._attention.head_dim)
        self._note(
            OpCode.ATTEND,
            attention=self._attention,
            pages=self._pages[layer],
            input=q.rows.array,
            output=out.array,
        )
        return out

    def silu_mul(self, gate_up: Value) -> Value:
        assert isinstance(gate_up, Rows)
        return Gated(gate_up)

    def select(self, x: Value, buffers: Buffers) -> Rows:
        """The rows of x that a step selects; what follows works on them, in other buffers."""
        assert isinstance(x, Rows)
        self._buffers, self._selects = buffers, True
        out = buffers.take(x.width)
        self._note(OpCode.SELECT, columns=x.width, input=x.array, output=out.array)
        return out

    def _activations(self, x: Value, columns: int, form: int) -> NDArray[np.uint8]:
        """Record what makes x a product's activations, in the form of its weights."""
        act = self._buffers.act(act_stride(form, columns))
        match x:
            case Normed(rows, weight):
                self._note(
                    OpCode.NORM,
                    columns=columns,
                    form=form,
                    factor=self._epsilon,
                    weight=weight,
                    input=rows.array,
                    act=act,
                )
            case Gated(rows):
                self._note(OpCode.GATE, columns=columns, form=form, input=rows.array, act=act)
            case Rows(array):
                self._note(OpCode.QUANTISE, columns=columns, form=form, input=array, act=act)
            case _:
                raise TypeError(f"no product reads a {type(x).__name__}")
        return act

    def _note(self, code: OpCode, **operands: Unpack[Operands]) -> None:
        self.ops.append(Op.of(code, self._buffers.rows, selected=self._selects, **operands))


@dataclass(frozen=True, slots=True)
class Recording:
    """The programs of one decoder, whose logits are those of the selected rows."""

    hidden: Program  # computes the rows' last hidden states
    head: Program  # their logits, for the selected rows
    whole: Program  # both
    logits: Floats  # [selected, padded vocabulary]

    @classmethod
    def of(
        cls, recorder: Recorder, decoder: NativeDecoder, limits: Limits, selected: int
    ) -> Recording:
        """Record a decoder for the steps that `limits` allow."""
        ops: Ops[Value, Floats, PackedMatrix, PackedMatrix] = recorder
        hidden = decoder.forward(ops)
        border = len(recorder.ops)
        logits = decoder.logits(ops, recorder.select(hidden, Buffers(selected)))
        assert isinstance(logits, Rows)
        return cls(
            hidden=Program(recorder.ops[:border], limits),
            head=Program(recorder.ops[border:], limits),
            whole=Program(recorder.ops, limits),
            logits=logits.array,
        )

    def forward(self, pool: Pool, step: Step) -> None:
        """Compute the rows' last hidden states, for the head to read."""
        pool.run(self.hidden, step)
