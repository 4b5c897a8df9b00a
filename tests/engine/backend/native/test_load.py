"""Checkpoints in packed matrices: which form each has, and that its weights are the file's."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as QuantType
from torch import Tensor
from transformers import LlamaForCausalLM

from engine.backend.native.load import NativeModel, load_native
from engine.backend.native.pack import FORM_BF16, FORM_INT4, FORM_INT8, FORM_NAMES, PackedMatrix
from engine.backend.native.quantise import dequantise
from engine.backend.torch_weights import TorchWeights
from engine.config import Quantization
from engine.errors import StartupError
from engine.model.checkpoint import locate
from engine.model.decoder import Decoder
from engine.model.shape import Shape
from engine.model.weights import load_decoder, open_checkpoint
from tests.engine.models import encoded, llama_cpp_tensors, save_folder, tiny_llama, write_gguf

QUANTISED = {"hidden_size": 256, "intermediate_size": 512, "max_position_embeddings": 64}
MATRICES = ("qkv", "attention_output", "gate_up", "down")
UNTIED = {"tie_word_embeddings": False}


def silent(_: str) -> None:
    """Progress that nobody reads."""


def load(path: Path, quantization: Quantization = "auto") -> NativeModel:
    return load_native(path, Shape.load(path), quantization, 2, silent)


def reference(path: Path) -> Decoder[Tensor, Tensor, Tensor]:
    shape = Shape.load(path)
    weights = TorchWeights(open_checkpoint(path, shape), torch.float32, lambda weight, _: weight)
    return load_decoder(weights, shape)


def matrices(
    packed: NativeModel, exact: Decoder[Tensor, Tensor, Tensor]
) -> list[tuple[PackedMatrix, Tensor]]:
    """Every matrix beside what the file says it is."""
    pairs = [(packed.decoder.embedding, exact.embedding), (packed.decoder.head, exact.head)]
    for ours, theirs in zip(packed.decoder.layers, exact.layers, strict=True):
        pairs += [(getattr(ours, name), getattr(theirs, name)) for name in MATRICES]
    return pairs


def forms(model: NativeModel) -> list[str]:
    """Of the embedding, the head and a layer's four matrices."""
    first = model.decoder.layers[0]
    found = [model.decoder.embedding, model.decoder.head, *(getattr(first, n) for n in MATRICES)]
    return [FORM_NAMES[matrix.form] for matrix in found]


def gguf_of(path: Path, model: LlamaForCausalLM, kind: str, **others: str) -> Path:
    """A file of one type, but for the tensors whose llama.cpp names have one of `others` in it."""
    tensors = {}
    for name, rows in llama_cpp_tensors(model).items():
        own = next((other for part, other in others.items() if part in name), kind)
        tensors[name] = encoded(rows, QuantType[own])
    return write_gguf(path / "model.gguf", model, tensors)


@pytest.mark.parametrize(("kind", "form"), [("Q4_0", "int4"), ("Q4_1", "int4"), ("Q8_0", "int8")])
def test_a_quantised_file_is_kept_to_the_bit(tmp_path: Path, kind: str, form: str) -> None:
    file = gguf_of(tmp_path, tiny_llama(**QUANTISED, **UNTIED), kind)
    packed = load(file)
    assert forms(packed) == [form] * 6
    for ours, theirs in matrices(packed, reference(file)):
        assert np.array_equal(dequantise(ours), theirs.numpy())


@pytest.mark.parametrize(
    ("kind", "form", "error"),
    [
        ("Q4_K", "int4", 0.0005),
        ("Q5_K", "int8", 0.005),
        ("Q6_K", "int8", 0.005),
        ("F32", "bf16", 0.004),
        ("F16", "bf16", 0.004),
        ("BF16", "bf16", 0),
    ],
)
def test_other_files_are_nearly_kept(tmp_path: Path, kind: str, form: str, error: float) -> None:
    file = gguf_of(tmp_path, tiny_llama(**QUANTISED), kind)
    packed = load(file)
    assert set(forms(packed)) == {form} and FORM_NAMES[packed.form] == form
    for ours, theirs in matrices(packed, reference(file)):
        most = float(theirs.abs().max())
        assert np.abs(dequantise(ours) - theirs.numpy()).max() <= error * most


def test_the_most_precise_part_decides_for_a_joined_matrix(tmp_path: Path) -> None:
    others = {"attn_v": "Q6_K", "ffn_down": "Q6_K", "token_embd": "F16", "ffn_up": "Q4_0"}
    file = gguf_of(tmp_path, tiny_llama(**QUANTISED), "Q4_K", **others)
    packed = load(file)
    assert forms(packed) == ["int8", "int8", "int8", "int4", "int4", "int8"]
    for ours, theirs in matrices(packed, reference(file)):
        groups = theirs.unflatten(1, (-1, 32))
        step = groups.abs().amax(-1).max() / 127
        assert np.abs(dequantise(ours) - theirs.numpy()).max() <= step


@pytest.mark.parametrize("kind", ["Q8_0", "F16", "Q4_1"])
def test_what_is_asked_for_is_the_most_that_is_kept(tmp_path: Path, kind: str) -> None:
    file = gguf_of(tmp_path, tiny_llama(**QUANTISED, **UNTIED), kind)
    least = "int4" if kind == "Q4_1" else "int8"
    assert forms(load(file, "none")) == ["bf16"] * 6
    assert forms(load(file, "int8")) == [least] * 6
    assert forms(load(file, "int4")) == [least, least, *["int4"] * 4]


def test_a_folder_is_bf16_unless_asked_otherwise(tmp_path: Path) -> None:
    folder = save_folder(tiny_llama(**UNTIED), tmp_path)
    assert set(forms(load(folder))) == set(forms(load(folder, "none"))) == {"bf16"}
    assert set(forms(load(folder, "int8"))) == {"int8"}
    assert forms(load(folder, "int4")) == ["int8", "int8", *["int4"] * 4]


def test_floats_stay_bf16_in_an_8_bit_file(tmp_path: Path) -> None:
    file = gguf_of(tmp_path, tiny_llama(**QUANTISED), "Q8_0", token_embd="F16")
    assert forms(load(file)) == ["bf16", "bf16", *["int8"] * 4]


@pytest.mark.parametrize("quantization", ["none", "int8", "int4"])
def test_odd_sizes_and_biases(tmp_path: Path, quantization: Quantization) -> None:
    changes = {"vocab_size": 91, "hidden_size": 60, "intermediate_size": 71, "head_dim": 10}
    model = tiny_llama(**changes, attention_bias=True, mlp_bias=True, **UNTIED)
    packed = load(save_folder(model, tmp_path), quantization)
    limit = {"none": 0.004, "int8": 0.004, "int4": 0.08}[quantization]
    for ours, theirs in matrices(packed, reference(tmp_path)):
        assert (ours.rows, ours.columns) == theirs.shape
        error = np.abs(dequantise(ours) - theirs.numpy()).max()
        assert error <= limit * float(theirs.abs().max())
    attention = model.model.layers[1].self_attn
    joined = torch.cat([getattr(attention, f"{part}_proj").bias for part in "qkv"]).detach().numpy()
    bias = packed.decoder.layers[1].qkv.bias
    assert bias is not None and bias.dtype == np.float32
    assert bias.shape == (packed.decoder.layers[1].qkv.padded_rows,)
    assert np.array_equal(bias[:80], joined) and not bias[80:].any()


def test_vectors_and_frequencies_are_fp32(tmp_path: Path) -> None:
    model = tiny_llama()
    packed = load(save_folder(model, tmp_path))
    norm = packed.decoder.layers[1].mlp_norm
    wanted = model.model.layers[1].post_attention_layernorm.weight.detach().numpy()
    assert norm.dtype == np.float32 and np.array_equal(norm, wanted)
    assert packed.frequencies.dtype == np.float32
    assert np.allclose(packed.frequencies, packed.shape.inverse_frequencies())


def test_a_tied_head_is_held_once(tmp_path: Path) -> None:
    packed = load(save_folder(tiny_llama(), tmp_path))
    assert packed.decoder.head is packed.decoder.embedding


@pytest.mark.parametrize(
    ("name", "value", "quantization"),
    [
        ("layers.1.mlp.up_proj.weight", float("nan"), "none"),
        ("layers.1.mlp.up_proj.weight", float("inf"), "int8"),
        ("embed_tokens.weight", float("nan"), "int4"),
        ("layers.0.self_attn.k_proj.weight", 1e9, "int4"),
        ("layers.0.input_layernorm.weight", float("nan"), "none"),
    ],
)
def test_weights_that_are_none(
    tmp_path: Path, name: str, value: float, quantization: Quantization
) -> None:
    model = tiny_llama()
    with torch.no_grad():
        model.model.get_parameter(name).view(-1)[-1] = value
    folder = save_folder(model, tmp_path)
    with pytest.raises(StartupError, match=f"{name} has weights that are not finite") as failure:
        load(folder, quantization)
    assert "\n" not in str(failure.value)


def test_the_embedded_model(capsys: pytest.CaptureFixture[str]) -> None:
    path = locate(None, silent)
    start = time.process_time()
    packed = load(path)
    with capsys.disabled():
        print(f"\npacked in {time.process_time() - start:.2f} s of processor time")
    pairs = matrices(packed, reference(path))
    assert (packed.form, packed.decoder.head.form) == (FORM_INT4, FORM_INT8)
    assert packed.decoder.head is packed.decoder.embedding
    assert sum(ours.blocks.nbytes for ours, _ in pairs[1:]) == 96_436_224
    for ours, theirs in pairs[1:]:
        assert ours.form != FORM_BF16
        assert np.array_equal(dequantise(ours), theirs.numpy())
