"""The operations that a model file is written in, so that it is written once for every device."""

from __future__ import annotations

from typing import Protocol, TypeVar

Array = TypeVar("Array")
Vector_contra = TypeVar("Vector_contra", contravariant=True)
Matrix_contra = TypeVar("Matrix_contra", contravariant=True)
Table_contra = TypeVar("Table_contra", contravariant=True)


class Ops(Protocol[Array, Vector_contra, Matrix_contra, Table_contra]):
    """The operations of one step. `Array` is a device's activations; of its weights,
    `Vector_contra` are those of norms, `Matrix_contra` packed ones, and `Table_contra` is what it
    looks rows up in.

    A step has N rows of B sequences. The step's own tables (ids, positions, pages) are inside: a
    model passes activations and weights only.
    """

    def embed(self, table: Table_contra) -> Array:
        """Return the table's rows [N, hidden] for the step's token ids."""

    def rms_norm(self, x: Array, weight: Vector_contra) -> Array:
        """Scale each row to unit mean square, then by `weight` [hidden] (Zhang, Sennrich 2019)."""

    def linear(self, x: Array, weight: Matrix_contra, residual: Array | None = None) -> Array:
        """Return x [N, in] times weight [out, in] transposed, plus its bias, plus `residual`."""

    def rope(self, qkv: Array) -> tuple[Array, Array, Array]:
        """Split rows [N, (heads + 2 kv_heads) * head_dim] and rotate q and k (RoFormer).

        Returns q [N, heads, head_dim], k and v [N, kv_heads, head_dim].
        """

    def append_kv(self, layer: int, k: Array, v: Array) -> None:
        """Write each row's key and value [N, kv_heads, head_dim] to its slot of a layer's pages."""

    def attention(self, layer: int, q: Array) -> Array:
        """Attend each row of q to its sequence's pages up to itself; [N, heads * head_dim]."""

    def silu_mul(self, gate_up: Array) -> Array:
        """Return silu(gate) * up [N, intermediate] of the halves of [N, 2 * intermediate]."""
