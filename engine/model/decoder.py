"""The Llama decoder, once for every device: weights and a step's operations in, logits out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from engine.backend.ops import Ops

Array = TypeVar("Array")
Vector = TypeVar("Vector")
Matrix = TypeVar("Matrix")
Table = TypeVar("Table")


@dataclass(frozen=True, slots=True)
class Layer(Generic[Vector, Matrix]):
    """One block's weights; matrices that read the same input are one matrix."""

    attention_norm: Vector  # [hidden]
    qkv: Matrix  # [(heads + 2 * kv_heads) * head_dim, hidden]
    attention_output: Matrix  # [hidden, heads * head_dim]
    mlp_norm: Vector  # [hidden]
    gate_up: Matrix  # [2 * intermediate, hidden]
    down: Matrix  # [hidden, intermediate]


@dataclass(frozen=True, slots=True)
class Decoder(Generic[Vector, Matrix, Table]):
    """A Llama model (Touvron et al. 2023; grouped queries: Ainslie et al. 2023)."""

    embedding: Table  # [vocab, hidden]
    layers: tuple[Layer[Vector, Matrix], ...]
    norm: Vector  # [hidden]
    head: Matrix  # [vocab, hidden]

    def forward(self, ops: Ops[Array, Vector, Matrix, Table]) -> Array:
        """Compute one step and return its rows [N, hidden] as `logits` takes them."""
        x = ops.embed(self.embedding)  # [N, hidden]
        for index, layer in enumerate(self.layers):
            q, k, v = ops.rope(ops.linear(ops.rms_norm(x, layer.attention_norm), layer.qkv))
            ops.append_kv(index, k, v)
            x = ops.linear(ops.attention(index, q), layer.attention_output, residual=x)
            gate_up = ops.linear(ops.rms_norm(x, layer.mlp_norm), layer.gate_up)
            x = ops.linear(ops.silu_mul(gate_up), layer.down, residual=x)
        return x

    def logits(self, ops: Ops[Array, Vector, Matrix, Table], rows: Array) -> Array:
        """Return the logits [R, vocab] of some rows [R, hidden] of `forward`.

        The head is a fifth of a small model: it is for the rows alone whose logits somebody wants.
        """
        return ops.linear(ops.rms_norm(rows, self.norm), self.head)
