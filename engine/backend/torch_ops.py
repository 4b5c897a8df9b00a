"""The operations of one step in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.backend.attention import Group, Heads, group_tiles, split_tiles
from engine.backend.backend import PAGE_TOKENS, StepPlan
from engine.backend.linear import Linear
from engine.model.shape import Shape

SERIAL_NUMBERS = 32768  # torch runs an elementwise operation of so many numbers on one thread


class KvPool:
    """Keys and values of all layers, each [kv_heads, pages, 16, head_dim], zeroed.

    Heads are outermost so that one gather yields what a batched product reads.
    """

    def __init__(self, shape: Shape, num_pages: int, dtype: torch.dtype) -> None:
        size = (shape.kv_heads, num_pages, PAGE_TOKENS, shape.head_dim)
        self.num_pages = num_pages
        self.keys = [_untouched_zeros(size, dtype) for _ in range(shape.layers)]
        self.values = [_untouched_zeros(size, dtype) for _ in range(shape.layers)]

    def clear_page(self, page: int) -> None:
        """Zero one page in every layer."""
        for pool in (*self.keys, *self.values):
            pool[:, page].zero_()


def _untouched_zeros(size: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros that take no memory before they are written; torch.zeros writes them all."""
    return (
        torch.from_numpy(np.zeros(math.prod(size) * dtype.itemsize, np.uint8))
        .view(dtype)
        .view(size)
    )


@dataclass(frozen=True, slots=True)
class Rotations:
    """Cosine and sine of every position's angles, fp32 [max_context, head_dim / 2]."""

    cosines: Tensor
    sines: Tensor

    @classmethod
    def build(cls, frequencies: Tensor, max_context: int) -> Rotations:
        """Tabulate the angles of frequencies [head_dim / 2], in radians per position."""
        angles = torch.outer(torch.arange(max_context, dtype=torch.float32), frequencies)
        return cls(angles.cos(), angles.sin())


class TorchStep:
    """`Ops` over one plan: the tables that every layer shares are made once, here."""

    def __init__(
        self, plan: StepPlan, shape: Shape, heads: Heads, pool: KvPool, rotations: Rotations
    ) -> None:
        self._shape = shape
        self._pool = pool
        self._ids = torch.from_numpy(plan.ids)
        positions = torch.from_numpy(plan.positions)
        cosines, sines = rotations.cosines[positions], rotations.sines[positions]
        self._cosines = torch.cat([cosines, cosines], 1)[:, None]  # [N, 1, D]
        self._sines = torch.cat([-sines, sines], 1)[:, None]  # [N, 1, D]
        first_slots = torch.arange(shape.kv_heads)[:, None] * (pool.num_pages * PAGE_TOKENS)
        self._slots = (first_slots + torch.from_numpy(plan.slots)).view(-1)  # [kv_heads * N]
        groups = group_tiles(split_tiles(plan))
        self._groups = [Group(tiles, heads, pool.num_pages, len(plan.ids)) for tiles in groups]

    def embed(self, table: Tensor) -> Tensor:
        return table.index_select(0, self._ids)

    def rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, weight.shape, weight, self._shape.norm_epsilon)

    def linear(self, x: Tensor, weight: Linear, residual: Tensor | None = None) -> Tensor:
        product = weight(x)
        return product if residual is None else product.add_(residual)

    def rope(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q and k stay in fp32: the tables are, and attention is."""
        shape = self._shape
        rows = qkv.view(len(qkv), -1, shape.head_dim)  # [N, heads + 2 * kv_heads, D]
        rotated_heads = shape.heads + shape.kv_heads
        qk, v = rows[:, :rotated_heads], rows[:, rotated_heads:]
        qk = (qk * self._cosines).add_(qk.roll(shape.head_dim // 2, -1) * self._sines)
        return qk[:, : shape.heads], qk[:, shape.heads :], v

    def append_kv(self, layer: int, k: Tensor, v: Tensor) -> None:
        for pool, new in ((self._pool.keys[layer], k), (self._pool.values[layer], v)):
            slots = pool.view(-1, self._shape.head_dim)  # [kv_heads * pages * 16, D]
            rows = new.transpose(0, 1).reshape(-1, self._shape.head_dim)  # [kv_heads * N, D]
            slots.index_copy_(0, self._slots, rows.to(pool.dtype))

    def attention(self, layer: int, q: Tensor) -> Tensor:
        out = torch.empty(len(q), self._shape.heads * self._shape.head_dim)  # [N, heads * D]
        for group in self._groups:
            group.attend(q, self._pool.keys[layer], self._pool.values[layer], out)
        return out.to(self._pool.keys[layer].dtype)

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """On slices that one thread computes: torch's exp differs in the last bit between vector
        lanes and the rest that a split between threads leaves over.
        """
        gate, up = gate_up.chunk(2, -1)  # [N, intermediate]
        rows = max(1, SERIAL_NUMBERS // gate.shape[1])
        if len(gate) <= rows:
            return F.silu(gate).mul_(up)
        return torch.cat([F.silu(part) for part in gate.split(rows)]).mul_(up)
