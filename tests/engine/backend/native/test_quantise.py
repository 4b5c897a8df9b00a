"""Floats in each form: how far they are from what they were, and what cannot be one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ml_dtypes import bfloat16
from torch import Tensor

from engine.backend.native.pack import (
    FORM_BF16,
    FORM_INT4,
    FORM_INT8,
    FORM_NAMES,
    GROUP,
    PackedMatrix,
    WeightArena,
    blocks_shape,
)
from engine.backend.native.quantise import dequantise, quantise
from engine.model.numbers import Numbers

SIZES = [(64, 256), (1, 1), (17, 33), (100, 95)]


def weights(rows: int, columns: int, scale: float = 0.02) -> Tensor:
    generator = torch.Generator().manual_seed(rows * columns)
    return torch.randn(rows, columns, generator=generator) * scale


def numbers(given: Tensor) -> Numbers:
    bits = given.view(torch.int16) if given.dtype == torch.bfloat16 else given
    made: Numbers = bits.numpy()
    return made.view(bfloat16) if given.dtype == torch.bfloat16 else made


def rounded(form: int, given: Tensor) -> Tensor:
    groups = quantise(form, numbers(given))
    assert groups.finite()
    rows, columns = given.shape
    size = blocks_shape(form, rows, columns)
    matrix = PackedMatrix(form, rows, columns, WeightArena([size]).take(size), None)
    matrix.write(0, groups)
    return torch.from_numpy(dequantise(matrix))


def grouped(given: Tensor) -> Tensor:
    """Groups [rows, groups, 32], padded with zeros."""
    return torch.nn.functional.pad(given, (0, -given.shape[1] % GROUP)).unflatten(1, (-1, GROUP))


@pytest.mark.parametrize("size", SIZES)
def test_bf16(size: tuple[int, int]) -> None:
    given = weights(*size)
    assert torch.equal(rounded(FORM_BF16, given), given.to(torch.bfloat16).float())
    assert torch.equal(rounded(FORM_BF16, given.bfloat16()), given.to(torch.bfloat16).float())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_int8_is_within_half_a_step(size: tuple[int, int], dtype: torch.dtype) -> None:
    given = weights(*size).to(dtype).float()
    error = (grouped(rounded(FORM_INT8, given.to(dtype))) - grouped(given)).abs().amax(-1)
    most = grouped(given).abs().amax(-1)
    assert (error <= most / 254 * (1 + 2**-10) + most * 2**-11 + 1e-7).all()


@pytest.mark.parametrize("size", SIZES)
def test_int4_is_within_a_step(size: tuple[int, int]) -> None:
    given = weights(*size)
    spread = grouped(given).amax(-1) - grouped(given).amin(-1)
    error = (grouped(rounded(FORM_INT4, given)) - grouped(given)).abs()
    inside = torch.nn.functional.pad(torch.ones_like(given), (0, -given.shape[1] % GROUP))
    assert ((error * grouped(inside)).amax(-1) <= spread / 14 + 1e-4).all()


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "shifted"])
def test_int4_beats_the_plain_range(kind: str) -> None:
    given = weights(256, 1024)
    if kind == "heavy tails":
        given = given * given.abs() * 50
    if kind == "shifted":
        given = given + 0.1
    groups = grouped(given)
    low = groups.amin(-1, keepdim=True)
    step = (groups.amax(-1, keepdim=True) - low) / 15
    plain = ((groups - low) / step).round() * step + low
    error = (rounded(FORM_INT4, given) - given).square().sum()
    assert error < 0.85 * (plain - groups).square().sum()


def test_weights_of_16_levels_are_kept() -> None:
    levels = torch.randint(0, 16, (64, 8, GROUP), generator=torch.Generator().manual_seed(0))
    levels[..., 0], levels[..., 1] = 0, 15
    scales = weights(64, 8).abs().half().float()[..., None] + 2**-8
    given = (scales * levels - 4 * scales).flatten(1)
    assert torch.allclose(rounded(FORM_INT4, given), given, rtol=2**-10, atol=float(2**-12))


def test_one_row_is_rounded_as_among_others() -> None:
    given = weights(300, 512)
    for form in (FORM_INT4, FORM_INT8):
        alone = torch.cat([rounded(form, row[None]) for row in given[::50]])
        assert torch.equal(alone, rounded(form, given)[::50])


@pytest.mark.parametrize("form", range(3), ids=FORM_NAMES)
@pytest.mark.parametrize("value", [0.0, 0.25, -3.0, 0.1])
def test_equal_weights_stay_equal(form: int, value: float) -> None:
    given = torch.full((3, 64), value)
    assert torch.allclose(rounded(form, given), given, rtol=2**-8, atol=0)


def test_no_int8_padding_is_seen_by_a_norm() -> None:
    given = weights(17, 33)
    words = quantise(FORM_INT8, numbers(given)).words
    assert (words.view(np.uint8)[:, 1, 1:] == 128).all()


@pytest.mark.parametrize("form", range(3), ids=FORM_NAMES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_told(form: int, value: float) -> None:
    given = weights(40, 96)
    given[33, 70] = value
    assert not quantise(form, numbers(given)).finite()


@pytest.mark.parametrize("form", [FORM_INT4, FORM_INT8])
@pytest.mark.parametrize("value", [1e8, -1e8, 1e30])
def test_what_no_scale_holds_is_told(form: int, value: float) -> None:
    given = weights(40, 96)
    given[33, 70] = value
    assert not quantise(form, numbers(given)).finite()
    assert quantise(FORM_BF16, numbers(given)).finite()
