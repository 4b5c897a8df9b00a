"""Matrix products whose every row has the same bits whatever rows stand beside it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

ROW_COUNTS = (1, 2, 3, 5, 8, 13, 16, 31)
PADDED_ROWS = 16


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight [out, in], packed for oneDNN where that is possible, and a bias [out]."""

    weight: Tensor
    bias: Tensor | None
    packed: bool

    @classmethod
    def pack(cls, weight: Tensor, bias: Tensor | None, packed: bool) -> Linear:
        """Take over a weight; a packed one is a copy, so that the given one can be dropped."""
        if packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight)
        return cls(weight, bias, packed)

    def __call__(self, x: Tensor) -> Tensor:
        """Return x [rows, in] times the transposed weight: [rows, out]."""
        if self.packed:
            product: Tensor = torch.ops.mkldnn._linear_pointwise(
                x, self.weight, self.bias, "none", [], ""
            )
            return product
        rows = x.shape[0]
        padding = -rows % PADDED_ROWS
        return F.linear(F.pad(x, (0, 0, 0, padding)), self.weight, self.bias)[:rows]


def packing_is_exact(sizes: list[tuple[int, int]], dtype: torch.dtype) -> bool:
    """Tell whether oneDNN's packed product exists here and gives each row its own bits.

    `sizes` are the (out, in) of the model's matrices. `F.linear` is 1.5 to 4 times slower and its
    rows depend on their number where that is no multiple of 4, so it is only the fallback. The
    packing operations are private to torch: hence a test, not a version check.
    """
    generator = torch.Generator().manual_seed(0)
    try:
        return all(_rows_are_independent(size, dtype, generator) for size in set(sizes))
    except (AttributeError, RuntimeError):
        return False


def _rows_are_independent(
    size: tuple[int, int], dtype: torch.dtype, generator: torch.Generator
) -> bool:
    weight = torch.randn(size, generator=generator).to(dtype)
    x = torch.randn(2 * max(ROW_COUNTS), size[1], generator=generator).to(dtype)  # [rows, in]
    linear = Linear.pack(weight, None, packed=True)
    product = linear(x)  # [rows, out]
    close = torch.allclose(product.float(), F.linear(x, weight).float(), rtol=0.05, atol=0.05)
    return close and all(
        torch.equal(linear(x[rows : 2 * rows]), product[rows : 2 * rows]) for rows in ROW_COUNTS
    )
