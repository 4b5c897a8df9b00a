"""Products of packed weights with quantised rows."""

from __future__ import annotations

import numpy as np
import pytest

from engine.backend.native.library import Library
from engine.backend.native.pack import FORM_BF16, FORM_INT4, FORM_INT8, FORM_NAMES, GROUP
from engine.backend.native.quantise import dequantise
from tests.engine.backend.native.programs import draws, packed, product, rounded_up

FORMS = pytest.mark.parametrize("form", [FORM_INT4, FORM_INT8, FORM_BF16], ids=FORM_NAMES)
TOLERANCE = 1e-6  # of the sum of magnitudes: fp32 in another order


def expected(weights: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The product in fp64, and how large what is added up to it can be.

    A group's sum of a form with a minimum is the difference of two of the size of its range.
    """
    w, rows = weights.astype(np.float64), x.astype(np.float64)
    ranges = np.abs(w).reshape(len(w), -1, GROUP).max(-1)
    return rows @ w.T, np.abs(rows).reshape(len(rows), -1, GROUP).sum(-1) @ ranges.T


@FORMS
@pytest.mark.parametrize(("rows", "columns"), [(16, 32), (48, 576), (160, 96), (35, 64)])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 70])
def test_a_product_is_that_of_the_rounded_numbers(
    library: Library, form: int, rows: int, columns: int, count: int
) -> None:
    matrix = packed(form, draws(1, rows, columns))
    out, seen = product(library, matrix, draws(2, count, columns))
    wanted, magnitudes = expected(dequantise(matrix), seen)
    assert out.shape == (count, rounded_up(rows))
    assert (np.abs(out[:, :rows] - wanted) <= TOLERANCE * magnitudes + 1e-6).all()
    assert not out[:, rows:].any()  # padding is zero


@FORMS
def test_the_extremes_of_a_form_are_multiplied_exactly(library: Library, form: int) -> None:
    """All weights and activations as large as they get: no sum may run over."""
    signs = np.where(np.arange(64) % 2, 1.0, -1.0).astype(np.float32)
    weights = np.stack([np.full(64, 1), np.full(64, -1), signs, -signs] * 4).astype(np.float32)
    matrix = packed(form, weights)
    x = np.stack([np.full(64, 127), np.full(64, -127), 127 * signs]).astype(np.float32)
    out, seen = product(library, matrix, x)
    wanted, magnitudes = expected(dequantise(matrix), seen)
    assert (np.abs(out - wanted) <= TOLERANCE * magnitudes).all()
    assert out[0, 0] > 0.99 * 64 * 127 and out[1, 0] < -0.99 * 64 * 127


@FORMS
def test_bias_and_residual_are_added(library: Library, form: int) -> None:
    bias, onto = draws(3, 40), draws(4, 3, 48)
    plain = packed(form, draws(5, 40, 64))
    biased = packed(form, draws(5, 40, 64), bias)
    x = draws(6, 3, 64)
    alone, _ = product(library, plain, x)
    both, _ = product(library, biased, x, onto)
    padded = np.pad(bias, (0, 8))
    assert np.array_equal(both, (alone + padded) + onto)


@FORMS
def test_a_row_has_the_same_bits_in_any_company(library: Library, form: int) -> None:
    matrix, x = packed(form, draws(7, 80, 160)), draws(8, 67, 160)
    whole, _ = product(library, matrix, x)
    for threads in (1, 2, 4):
        again, _ = product(library, matrix, x, threads=threads)
        assert np.array_equal(again, whole)
    for first, last in ((0, 1), (1, 3), (5, 10), (3, 9), (60, 67), (2, 66)):
        part, _ = product(library, matrix, x[first:last].copy())
        assert np.array_equal(part, whole[first:last])


@FORMS
@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_hidden(library: Library, form: int, strange: float) -> None:
    x = draws(9, 3, 64)
    x[1, 40] = strange
    out, _ = product(library, packed(form, draws(10, 32, 64)), x)
    assert not np.isfinite(out[1]).any() or form == FORM_BF16
    assert not np.isfinite(out[1]).all()
    assert np.isfinite(out[[0, 2]]).all()
