"""A checkpoint becomes a decoder of packed matrices.

`auto` keeps the precision of the file: GGUF's 4-bit weights in int4 and its 8-bit ones in int8, bit
for bit, 5- and 6-bit ones rounded to int8, floats rounded to bf16. In a file of 4-bit weights the
floats that stand beside them, mostly embeddings, are rounded to int8. The other choices set the
most that is kept: `none` bf16 for everything, `int8`, or `int4`, where the embedding and the head
stay int8: with a 4-bit head the divergence from the reference was 13 times as large (0.066 nats
instead of 0.005, on the embedded model).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from gguf.constants import GGMLQuantizationType as QuantType

from engine.backend.backend import Progress
from engine.backend.native.pack import (
    BLOCK_ROWS,
    FORM_BF16,
    FORM_INT4,
    FORM_INT8,
    FORM_NAMES,
    Groups,
    PackedMatrix,
    WeightArena,
    blocks_shape,
)
from engine.backend.native.quantise import quantise
from engine.backend.native.repack import REPACKED, repack
from engine.config import Quantization
from engine.errors import StartupError
from engine.model.decoder import Decoder
from engine.model.gguf import dequantise
from engine.model.numbers import Floats, Numbers
from engine.model.shape import Shape
from engine.model.weights import (
    EMBEDDING,
    HEAD,
    Checkpoint,
    bias_names,
    layer_matrices,
    load_decoder,
    open_checkpoint,
    rotary_frequencies,
)

FOUR_BITS = (QuantType.Q4_0, QuantType.Q4_1, QuantType.Q4_K)
SLAB_WEIGHTS = 1 << 18  # weights that are converted at once: they, and what they become, are cached


@dataclass(frozen=True, slots=True)
class NativeModel:
    """What the native backend needs of a checkpoint. `form` is that of most weights of layers."""

    shape: Shape
    decoder: Decoder[Floats, PackedMatrix, PackedMatrix]
    frequencies: Floats  # radians per position [head_dim / 2]
    form: int


def load_native(
    path: Path, shape: Shape, quantization: Quantization, threads: int, progress: Progress
) -> NativeModel:
    """Read a model folder or `.gguf` file of a known shape, on so many threads.

    Raises `StartupError` for anything about the files that does not hold together, and for weights
    that are not finite or too large for their form.
    """
    start = time.perf_counter()
    checkpoint = open_checkpoint(path, shape)
    weights = PackedWeights(checkpoint, shape, quantization)
    progress(f"loading {shape.layers} layers as {FORM_NAMES[weights.form]}")
    decoder = load_decoder(weights, shape, threads)
    frequencies = rotary_frequencies(checkpoint, shape)
    progress(f"loaded in {time.perf_counter() - start:.1f} s")
    return NativeModel(shape, decoder, frequencies, weights.form)


class PackedWeights:
    """`Weights` as packed matrices, whose memory is laid out before any is read.

    A head that is tied to the embedding is the same matrix.
    """

    def __init__(self, checkpoint: Checkpoint, shape: Shape, quantization: Quantization) -> None:
        self._checkpoint = checkpoint
        self._quantization = quantization
        layers = [names for index in range(shape.layers) for names in layer_matrices(index)]
        ends = [[EMBEDDING]] if shape.tied_embeddings else [[EMBEDDING], [HEAD]]
        four_bit = self._is_four_bit([name for names in layers for name in names])
        plan: dict[str, tuple[int, tuple[int, int, int]]] = {}
        for names in (*ends, *layers):
            most = _most(quantization, four_bit, names in ends)
            form = min(most, max(map(self._form_of_file, names)))
            plan[names[0]] = form, blocks_shape(form, *self._size(names))
        arena = WeightArena([size for _, size in plan.values()])
        self._places = {name: (form, arena.take(size)) for name, (form, size) in plan.items()}
        self.form = self._usual_form(layers)

    def _is_four_bit(self, names: Sequence[str]) -> bool:
        """Tell whether most weights of some matrices have four bits in the file."""
        signs = Counter[bool]()
        for name in names:
            raw = self._checkpoint.raw(name)
            signs[raw is not None and raw.kind in FOUR_BITS] += prod(self._checkpoint.shapes[name])
        return signs[True] > signs[False]

    def _form_of_file(self, name: str) -> int:
        """The form that keeps what the file has."""
        raw = self._checkpoint.raw(name)
        if raw is None or self._quantization == "none":
            return FORM_BF16
        return FORM_INT4 if raw.kind in FOUR_BITS else FORM_INT8

    def _usual_form(self, layers: Sequence[Sequence[str]]) -> int:
        weights = Counter[int]()
        for names in layers:
            weights[self._places[names[0]][0]] += prod(self._size(names))
        return weights.most_common(1)[0][0]

    def _size(self, names: Sequence[str]) -> tuple[int, int]:
        """Rows of all, and columns."""
        shapes = [self._checkpoint.shapes[name] for name in names]
        return sum(rows for rows, _ in shapes), shapes[0][1]

    def vector(self, name: str) -> Floats:
        return self._numbers([name])

    def matrix(self, names: Sequence[str]) -> PackedMatrix:
        form, blocks = self._places[names[0]]
        biases = bias_names(self._checkpoint, names)
        bias = self._numbers(biases, len(blocks) * BLOCK_ROWS) if biases else None
        matrix = PackedMatrix(form, *self._size(names), blocks, bias)
        start = 0
        for name in names:
            for groups in self._slabs(name, form):
                matrix.write(start, groups)
                start += len(groups.words)
        return matrix

    def table(self, name: str) -> PackedMatrix:
        return self.matrix([name])

    def tied(self, table: PackedMatrix) -> PackedMatrix:
        return table

    def _numbers(self, names: Sequence[str], length: int = 0) -> Floats:
        """Join vectors in fp32, with zeros up to a length."""
        parts = [self._checkpoint.read(name) for name in names]
        joined: Floats = np.concatenate(parts, dtype=np.float32)
        if not np.isfinite(joined).all():
            raise StartupError(f"the tensor {names[0]} has weights that are not finite")
        return np.pad(joined, (0, max(0, length - len(joined))))

    def _slabs(self, name: str, form: int) -> Iterator[Groups]:
        """Convert a weight, some rows at a time."""
        raw = self._checkpoint.raw(name)
        rows = self._checkpoint.read(name) if raw is None else raw.rows()
        step = max(1, SLAB_WEIGHTS // self._checkpoint.shapes[name][1] // BLOCK_ROWS) * BLOCK_ROWS
        for start in range(0, len(rows), step):
            groups = _converted(form, raw.kind if raw else None, rows[start : start + step])
            if not groups.finite():
                raise StartupError(
                    f"the tensor {name} has weights that are not finite, "
                    f"or too large for {FORM_NAMES[form]}"
                )
            yield groups


def _most(quantization: Quantization, four_bit: bool, end: bool) -> int:
    """The highest form that a matrix may have; the embedding and the head are an `end`."""
    if quantization == "auto":
        return FORM_INT8 if four_bit else FORM_BF16
    if quantization == "int4":
        return FORM_INT8 if end else FORM_INT4
    return FORM_INT8 if quantization == "int8" else FORM_BF16


def _converted(form: int, kind: QuantType | None, rows: Numbers) -> Groups:
    """Bring rows into a form: floats, where `kind` is None, or blocks of a quantisation."""
    if kind is None:
        return quantise(form, rows)
    if REPACKED.get(kind) == form:
        return repack(kind, rows)
    return quantise(form, dequantise(kind, rows))
