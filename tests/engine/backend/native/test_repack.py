"""Quantised GGUF tensors keep their weights; gguf's own dequantiser is the judge."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as QuantType
from numpy.typing import NDArray

from engine.backend.native.pack import Blocks, PackedMatrix, WeightArena, blocks_shape
from engine.backend.native.quantise import dequantise
from engine.backend.native.repack import REPACKED, repack
from engine.model.numbers import Floats

ROWS, COLUMNS = 40, 512
SCALES = {  # bytes of a block that are fp16 numbers
    QuantType.Q4_0: 2,
    QuantType.Q4_1: 4,
    QuantType.Q8_0: 2,
    QuantType.Q4_K: 4,
}


def random_blocks(kind: QuantType, seed: int = 0) -> Blocks:
    """Any bits as weights, and any sign and size of scales."""
    generator = np.random.default_rng(seed)
    weights, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (ROWS * COLUMNS // weights, size), np.uint8)
    scales = generator.normal(0, 0.02, (len(blocks), SCALES[kind] // 2)).astype(np.float16)
    blocks[:, : SCALES[kind]] = scales.view(np.uint8)
    return blocks.reshape(ROWS, -1)


def repacked(kind: QuantType, rows: Blocks) -> Floats:
    groups = repack(kind, rows)
    assert groups.form == REPACKED[kind] and groups.finite()
    size = blocks_shape(groups.form, ROWS, COLUMNS)
    matrix = PackedMatrix(groups.form, ROWS, COLUMNS, WeightArena([size]).take(size), None)
    matrix.write(0, groups)
    return dequantise(matrix)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0"])
def test_weights_are_the_same_to_the_bit(kind: str) -> None:
    rows = random_blocks(QuantType[kind])
    wanted: NDArray[np.float32] = gguf.dequantize(rows, QuantType[kind])
    assert np.array_equal(repacked(QuantType[kind], rows), wanted)


def test_q4_k_is_rounded_by_its_scales_alone() -> None:
    rows = random_blocks(QuantType.Q4_K)
    wanted: NDArray[np.float32] = gguf.dequantize(rows, QuantType.Q4_K)
    groups = wanted.reshape(-1, 32)
    most = np.abs(groups).max(axis=1) + np.ptp(groups, axis=1)  # of scale * 15 and minimum together
    error = np.abs(repacked(QuantType.Q4_K, rows) - wanted).reshape(-1, 32).max(axis=1)
    assert (error <= 2 * most * 2.0**-11 + 16 * 2.0**-25).all()
    assert error.max() > 0


@pytest.mark.parametrize("kind", REPACKED)
def test_a_row_may_be_taken_from_anywhere_in_a_file(kind: QuantType) -> None:
    rows = random_blocks(kind)
    file = np.concatenate([np.zeros(3, np.uint8), rows.reshape(-1)])  # aligned to nothing
    assert np.array_equal(repacked(kind, file[3:].reshape(rows.shape)), repacked(kind, rows))


@pytest.mark.parametrize("kind", REPACKED)
@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_broken_scales_are_told(kind: QuantType, scale: float) -> None:
    rows = random_blocks(kind)
    rows[7, :2] = np.array([scale], np.float16).view(np.uint8)
    assert not repack(kind, rows).finite()


@pytest.mark.parametrize("kind", [QuantType.Q4_0, QuantType.Q4_K])
def test_scales_beyond_fp16_are_told(kind: QuantType) -> None:
    rows = random_blocks(kind)
    rows[7, :2] = np.array([60000], np.float16).view(np.uint8)
    assert not repack(kind, rows).finite()
