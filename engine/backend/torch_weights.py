"""A checkpoint's tensors in torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from engine.model.numbers import Numbers
from engine.model.weights import Checkpoint, bias_names

Matrix = TypeVar("Matrix")
Pack = Callable[[Tensor, Tensor | None], Matrix]


class TorchWeights(Generic[Matrix]):
    """`Weights` as torch tensors of one type, whose matrices `pack(weight, bias)` makes."""

    def __init__(self, checkpoint: Checkpoint, dtype: torch.dtype, pack: Pack[Matrix]) -> None:
        self._checkpoint = checkpoint
        self._dtype = dtype
        self._pack = pack

    def vector(self, name: str) -> Tensor:
        return as_tensor(self._checkpoint.read(name)).to(self._dtype)

    table = vector

    def matrix(self, names: Sequence[str]) -> Matrix:
        weight = torch.cat([self.vector(name) for name in names])  # [out, in]
        biases = bias_names(self._checkpoint, names)
        return self._pack(
            weight, torch.cat([self.vector(name) for name in biases]) if biases else None
        )

    def tied(self, table: Tensor) -> Matrix:
        return self._pack(table, None)


def as_tensor(numbers: Numbers) -> Tensor:
    """Return numbers in their own type; a copy where torch could otherwise write to a file."""
    held = np.require(numbers, requirements=("C", "W"))
    if held.dtype.itemsize == 2 and held.dtype != np.float16:
        return torch.from_numpy(held.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(held)


@contextmanager
def single_threaded() -> Iterator[int]:
    """Each call of torch on one core; yields the threads to call it from instead.

    Half the time of one call on all cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
