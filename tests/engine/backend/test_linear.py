"""Both kinds of matrix product give each row its own bits."""

from __future__ import annotations

import pytest
import torch

from engine.backend import linear
from engine.backend.linear import Linear, packing_is_exact


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("size", [(48, 64), (99, 96), (960, 576)])
def test_rows_do_not_depend_on_their_number(packed: bool, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    if packed and not packing_is_exact([size], torch.float32):
        pytest.skip("this build of torch cannot pack")
    weight, bias, x = torch.randn(size), torch.randn(size[0]), torch.randn(120, size[1])
    product = Linear.pack(weight, bias, packed)
    whole = product(x)
    assert torch.allclose(whole, x @ weight.T + bias, atol=1e-3)
    for first in (0, 1, 17):
        for rows in (1, 2, 3, 5, 16, 33, 100):
            assert torch.equal(product(x[first : first + rows]), whole[first : first + rows])


def test_no_packing_where_the_private_operation_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> Linear:
        raise AttributeError("no such operation")

    monkeypatch.setattr(linear.Linear, "pack", gone)
    assert not packing_is_exact([(16, 16)], torch.float32)
