"""Prefill where the processor multiplies bf16: products of many rows in torch, the rest natively.

With few rows a product waits for memory, and small weights win; with many it waits for arithmetic,
and a matrix unit does more of it. oneDNN, which torch brings, has the kernels for these units.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.backend.linear import Linear, packing_is_exact
from engine.backend.native.library import Pool
from engine.backend.native.operations import Program, act_stride
from engine.backend.native.pack import FORM_BF16, PackedMatrix
from engine.backend.native.quantise import to_bfloat16
from engine.backend.native.record import Buffers, NativeDecoder, Recorder, Rows, Value, matrices
from engine.backend.native.structures import Attention, Limits, Pages, Step
from engine.backend.ops import Ops
from engine.backend.torch_weights import as_tensor
from engine.model.numbers import Floats


class Copies:
    """The weights of layers once more, in bf16 as oneDNN packs them."""

    least_rows = 64  # fewer are computed sooner by the native operations

    def __init__(self, decoder: NativeDecoder, threads: int) -> None:
        torch.set_num_threads(threads)
        self._linears: dict[int, Linear] = {}
        sizes = [(matrix.rows, matrix.columns) for matrix in matrices(decoder)]
        with torch.inference_mode():
            packed = packing_is_exact(sizes, torch.bfloat16)
            for matrix in matrices(decoder):
                weight = as_tensor(to_bfloat16(matrix))
                self._linears[id(matrix)] = Linear.pack(weight, _bias(matrix), packed)

    def record(
        self,
        given: tuple[Buffers, Attention, list[Pages], float],
        width: int,
        decoder: NativeDecoder,
        limits: Limits,
        selected: int,
    ) -> Prefill:
        """Record a decoder with what a `Recorder` is given; an activation has `width` bytes."""
        return Prefill(MixedRecorder(*given, self, width), decoder, limits, selected)

    def of(self, matrix: PackedMatrix) -> Linear:
        return self._linears[id(matrix)]


def _bias(matrix: PackedMatrix) -> Tensor | None:
    if matrix.bias is None:
        return None
    return torch.from_numpy(matrix.bias[: matrix.rows]).to(torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Product:
    """One product in torch: activations as the native operations left them, fp32 out."""

    linear: Linear
    act: NDArray[np.uint8]
    columns: int
    out: Floats  # [room, padded rows]
    add: bool
    width: int  # bytes of an activation: 2 or 4

    def run(self, rows: int) -> None:
        stride = act_stride(FORM_BF16, self.columns)
        lines = torch.from_numpy(self.act).view(-1, stride)[:rows, : self.width * self.columns]
        kind = torch.bfloat16 if self.width == 2 else torch.float32
        product = self.linear(lines.contiguous().view(kind).to(torch.bfloat16)).float()
        out = torch.from_numpy(self.out)[:rows, : product.shape[1]]
        if self.add:
            out += product
        else:
            out.copy_(product)


class MixedRecorder(Recorder):
    """Records the layers' products for torch, and for the native operations what is between."""

    def __init__(
        self,
        buffers: Buffers,
        attention: Attention,
        pages: list[Pages],
        epsilon: float,
        copies: Copies,
        width: int,
    ) -> None:
        super().__init__(buffers, attention, pages, epsilon)
        self._copies, self._width = copies, width
        self.products: list[Product] = []
        self.between: list[int] = []  # how many operations come before each product

    def linear(self, x: Value, weight: PackedMatrix, residual: Value | None = None) -> Value:
        if self._selects:
            return super().linear(x, weight, residual)
        act = self._activations(x, weight.columns, FORM_BF16)
        assert residual is None or isinstance(residual, Rows)
        out = residual or self._buffers.take(weight.padded_rows)
        add = residual is not None
        linear = self._copies.of(weight)
        self.products.append(Product(linear, act, weight.columns, out.array, add, self._width))
        self.between.append(len(self.ops))
        return out


class Prefill:
    """Steps of up to `rows` rows through torch's products, with logits of selected rows."""

    def __init__(
        self, recorder: MixedRecorder, decoder: NativeDecoder, limits: Limits, selected: int
    ) -> None:
        ops: Ops[Value, Floats, PackedMatrix, PackedMatrix] = recorder
        hidden = decoder.forward(ops)
        ends = recorder.between
        pieces = [recorder.ops[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        self._steps = [
            (Program(piece, limits), product)
            for piece, product in zip(pieces, recorder.products, strict=True)
        ]
        border = len(recorder.ops)
        logits = decoder.logits(ops, recorder.select(hidden, Buffers(selected)))
        assert isinstance(logits, Rows)
        self.head = Program(recorder.ops[border:], limits)
        self.logits = logits.array

    def forward(self, pool: Pool, step: Step) -> None:
        """Compute the rows' last hidden states, for the head to read."""
        with torch.inference_mode():
            for program, product in self._steps:
                pool.run(program, step)
                begun = time.perf_counter_ns()
                product.run(step.rows)
                pool.busy_ns += time.perf_counter_ns() - begun
