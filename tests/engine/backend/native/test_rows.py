"""Operations on rows of activations, against what they are in fp64."""

from __future__ import annotations

import numpy as np
import pytest

from engine.backend.backend import PAGE_TOKENS
from engine.backend.native.library import Library, Pool
from engine.backend.native.operations import Op, OpCode, Program
from engine.backend.native.pack import FORM_BF16, FORM_INT4, FORM_INT8, FORM_NAMES, GROUP
from engine.backend.native.quantise import dequantise
from engine.backend.native.structures import Attention, Matrix, Pages
from tests.engine.backend.native.programs import (
    acts,
    computed,
    draws,
    limits,
    numbers,
    packed,
    step,
)

FORMS = pytest.mark.parametrize("form", [FORM_INT4, FORM_INT8, FORM_BF16], ids=FORM_NAMES)
SILU, GELU_TANH = 0, 1


def close(found: np.ndarray, wanted: np.ndarray, form: int) -> bool:
    """Whether numbers agree within what the form's activations can hold."""
    groups = np.abs(wanted).reshape(len(wanted), -1, GROUP).max(-1, keepdims=True)
    error = np.abs(found - wanted).reshape(len(wanted), -1, GROUP)
    return bool((error <= groups / (256 if form == FORM_BF16 else 253) + 1e-6).all())


@FORMS
@pytest.mark.parametrize("factor", [1.0, 24.0])
def test_an_embedding_is_a_row_of_the_matrix(library: Library, form: int, factor: float) -> None:
    matrix = packed(form, draws(1, 100, 320))
    ids = [0, 99, 17, 16, 15, 50, 17]
    out = np.zeros((len(ids), 320), np.float32)
    made = Matrix.of(matrix)
    op = Op.of(OpCode.EMBED, len(ids), columns=320, factor=factor, matrix=made, output=out)
    computed(library, [op], step(len(ids), ids=ids), limits(len(ids), vocab=100))
    wanted = dequantise(matrix)[ids] * np.float32(factor)
    assert np.allclose(out, wanted, rtol=3e-7, atol=0)


def test_an_id_outside_the_vocabulary_is_refused(library: Library) -> None:
    matrix, out = Matrix.of(packed(FORM_INT8, draws(1, 96, 32))), np.zeros((1, 32), np.float32)
    op = Op.of(OpCode.EMBED, 1, columns=32, factor=1.0, matrix=matrix, output=out)
    with Pool(library, 1) as pool:
        for wrong in (-1, 96, 1 << 40):
            with pytest.raises(ValueError, match="token id"):
                pool.run(Program([op], limits(1, vocab=96)), step(1, ids=[wrong]))
    assert not out.any()


@FORMS
@pytest.mark.parametrize("columns", [32, 576, 2048])
def test_a_norm_has_unit_mean_square(library: Library, form: int, columns: int) -> None:
    x, weight, rows = draws(2, 5, columns), draws(3, columns), 5
    x[3] *= 1e4
    act = acts(rows, form, columns)
    op = Op.of(
        OpCode.NORM, rows, columns=columns, form=form, factor=1e-5, weight=weight, input=x, act=act
    )
    computed(library, [op], step(rows), limits(rows))
    exact = x.astype(np.float64)
    wanted = exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-5) * weight
    assert close(numbers(act, rows, form, columns, library.variant), wanted, form)


def test_a_norm_can_stay_in_fp32(library: Library) -> None:
    x, weight, out = draws(2, 5, 96), draws(3, 96), np.zeros((5, 96), np.float32)
    op = Op.of(OpCode.NORM, 5, columns=96, flag=1, factor=1e-6, weight=weight, input=x, output=out)
    computed(library, [op], step(5), limits(5))
    exact = x.astype(np.float64)
    wanted = exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-6) * weight
    assert np.allclose(out, wanted, rtol=1e-6)


@FORMS
def test_rows_of_zeros_stay_zeros(library: Library, form: int) -> None:
    x, act = np.zeros((2, 64), np.float32), acts(2, form, 64)
    op = Op.of(OpCode.QUANTISE, 2, columns=64, form=form, input=x, act=act)
    computed(library, [op], step(2), limits(2))
    assert not numbers(act, 2, form, 64, library.variant).any()


@FORMS
@pytest.mark.parametrize("kind", [SILU, GELU_TANH], ids=["silu", "gelu"])
@pytest.mark.parametrize("columns", [32, 288, 1536])
def test_a_gate(library: Library, form: int, kind: int, columns: int) -> None:
    x, act = draws(4, 3, 2 * columns), acts(3, form, columns)
    x[0, :8] = [0, -0.0, 88, -88, 1000, -1000, 1e-20, -1e-20]
    op = Op.of(OpCode.GATE, 3, columns=columns, form=form, flag=kind, input=x, act=act)
    computed(library, [op], step(3), limits(3))
    gate, up = np.split(x.astype(np.float64), 2, axis=1)
    with np.errstate(over="ignore"):
        silu = gate / (1 + np.exp(-gate))
    gelu = gate / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
    wanted = (gelu if kind else silu) * up
    assert close(numbers(act, 3, form, columns, library.variant), wanted, form)


def test_selected_rows_and_sums(library: Library) -> None:
    x, picked = draws(5, 6, 32), np.zeros((3, 32), np.float32)
    op = Op.of(OpCode.SELECT, 3, columns=32, input=x, output=picked)
    computed(library, [op], step(6, selected=[5, 0, 5]), limits(6))
    assert np.array_equal(picked, x[[5, 0, 5]])
    total = draws(6, 6, 32)
    before = total.copy()
    computed(library, [Op.of(OpCode.ADD, 6, columns=32, input=x, output=total)], step(6), limits(6))
    assert np.array_equal(total, before + x)


@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(3, 1, 16), (9, 3, 64), (4, 4, 128)])
def test_heads_are_rotated_and_kept(library: Library, heads: int, kv_heads: int, dim: int) -> None:
    rows, first, pages = 21, 30, 8
    angles = np.outer(np.arange(64), 1e4 ** (-np.arange(dim // 2) / (dim / 2)))
    cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    x = draws(7, rows, heads + 2 * kv_heads, dim)
    before = x.astype(np.float64)
    keys = np.full((pages, kv_heads, dim // 2, PAGE_TOKENS, 2), 0xABCD, np.uint16)
    values = np.full((pages, kv_heads, PAGE_TOKENS // 2, dim, 2), 0xABCD, np.uint16)
    attention = Attention.of(heads, kv_heads, dim, cosines, sines, scale=1.0)
    op = Op.of(
        OpCode.ROPE, rows, attention=attention, pages=Pages.of(keys, values),
        input=x.reshape(rows, -1),
    )  # fmt: skip
    computed(library, [op], step(rows, first=first), limits(rows, pages=pages, context=64))
    places = np.arange(first, first + rows)
    low, high = np.split(before, 2, axis=-1)
    c, s = cosines[places][:, None], sines[places][:, None]
    turned = np.concatenate([low * c - high * s, high * c + low * s], -1)
    assert np.allclose(x[:, :heads], turned[:, :heads], rtol=1e-5, atol=1e-5)
    assert np.array_equal(x[:, heads + kv_heads :], before[:, heads + kv_heads :])
    page, place = places // PAGE_TOKENS, places % PAGE_TOKENS
    kept_keys = as_floats(keys)[page, :, :, place].reshape(rows, kv_heads, dim)
    kept_values = as_floats(values)[page, :, place // 2, :, place % 2]
    assert np.allclose(kept_keys, turned[:, heads : heads + kv_heads], rtol=1 / 250, atol=1e-6)
    assert np.allclose(kept_values, before[:, heads + kv_heads :], rtol=1 / 250, atol=1e-6)
    written = 2 * rows * kv_heads * dim
    assert (keys != 0xABCD).sum() + (values != 0xABCD).sum() <= written
    untouched = [number for number in range(pages) if number not in page]
    assert (keys[untouched] == 0xABCD).all() and (values[untouched] == 0xABCD).all()


def as_floats(halves: np.ndarray) -> np.ndarray:
    return (halves.astype(np.uint32) << 16).view(np.float32)
