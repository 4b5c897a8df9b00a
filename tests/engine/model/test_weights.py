"""Weights from every supported file, and files that do not hold together."""

from __future__ import annotations

import shutil
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as QuantType
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaForCausalLM

from engine.backend.torch_weights import TorchWeights, as_tensor
from engine.errors import StartupError
from engine.model.decoder import Decoder
from engine.model.shape import Shape
from engine.model.weights import (
    ROPE_FACTORS,
    load_decoder,
    open_checkpoint,
    rotary_frequencies,
)
from tests.engine.models import encoded, llama_cpp_tensors, save_folder, tiny_llama, write_gguf

QUANTISED = {"hidden_size": 256, "intermediate_size": 512, "max_position_embeddings": 64}


def keep(weight: Tensor, bias: Tensor | None) -> Tensor:
    return weight


def decoder_of(path: Path, dtype: torch.dtype = torch.float32) -> Decoder[Tensor, Tensor, Tensor]:
    shape = Shape.load(path)
    return load_decoder(TorchWeights(open_checkpoint(path, shape), dtype, keep), shape)


def assert_equal(
    one: Decoder[Tensor, Tensor, Tensor], other: Decoder[Tensor, Tensor, Tensor]
) -> None:
    for name in ("embedding", "norm", "head"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    for left, right in zip(one.layers, other.layers, strict=True):
        for name in ("attention_norm", "qkv", "attention_output", "mlp_norm", "gate_up", "down"):
            assert torch.equal(getattr(left, name), getattr(right, name)), name


@pytest.mark.parametrize(
    "kind", ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
)
def test_every_quantisation_is_dequantised_as_gguf_does(tmp_path: Path, kind: str) -> None:
    model = tiny_llama(**QUANTISED)
    tensors = {
        name: encoded(rows, QuantType[kind]) for name, rows in llama_cpp_tensors(model).items()
    }
    plain = {
        name: (gguf.dequantize(data, own), QuantType.F32) for name, (data, own) in tensors.items()
    }
    quantised = decoder_of(write_gguf(tmp_path / "quantised.gguf", model, tensors))
    assert_equal(quantised, decoder_of(write_gguf(tmp_path / "plain.gguf", model, plain)))


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": False, "head_dim": 32}])
def test_gguf_and_safetensors_give_the_same_decoder(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    model = tiny_llama(**changes)
    tensors = {name: (rows, QuantType.F32) for name, rows in llama_cpp_tensors(model).items()}
    file = write_gguf(tmp_path / "model.gguf", model, tensors)
    assert_equal(decoder_of(file), decoder_of(save_folder(model, tmp_path / "folder")))


def test_gguf_biases(tmp_path: Path) -> None:
    model = tiny_llama(attention_bias=True)
    tensors = {name: (rows, QuantType.F32) for name, rows in llama_cpp_tensors(model).items()}
    file = write_gguf(tmp_path / "model.gguf", model, tensors)
    checkpoint = open_checkpoint(file, Shape.load(file))
    for name, tensor in model.state_dict().items():
        if name.endswith(".bias"):
            assert torch.equal(as_tensor(checkpoint.read(name)), tensor), name


def test_gguf_rope_factors_divide_the_frequencies(tmp_path: Path) -> None:
    model = tiny_llama()
    tensors = {name: (rows, QuantType.F32) for name, rows in llama_cpp_tensors(model).items()}
    tensors[ROPE_FACTORS] = (np.arange(1, 9, dtype=np.float32), QuantType.F32)
    file = write_gguf(tmp_path / "model.gguf", model, tensors)
    shape = Shape.load(file)
    wanted = torch.tensor(shape.inverse_frequencies()) / torch.arange(1, 9)
    assert torch.allclose(
        as_tensor(rotary_frequencies(open_checkpoint(file, shape), shape)), wanted
    )


def test_shards(tmp_path: Path) -> None:
    model = tiny_llama()
    whole = save_folder(model, tmp_path / "whole")
    sharded = save_folder(model, tmp_path / "sharded", max_shard_size="60KB")
    assert len(list(sharded.glob("*.safetensors"))) > 2
    assert_equal(decoder_of(sharded), decoder_of(whole))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_files(tmp_path: Path, dtype: torch.dtype) -> None:
    folder = save_folder(tiny_llama().to(dtype), tmp_path)
    assert decoder_of(folder).embedding.dtype == torch.float32
    assert decoder_of(folder, torch.bfloat16).layers[0].qkv.dtype == torch.bfloat16


def saved(tmp_path: Path) -> tuple[Path, dict[str, Tensor]]:
    folder = save_folder(tiny_llama(), tmp_path / "folder")
    return folder, load_file(folder / "model.safetensors")


def assert_refused(path: Path, reason: str) -> None:
    with pytest.raises(StartupError, match=reason) as failure:
        decoder_of(path)
    assert "\n" not in str(failure.value)


def test_a_missing_tensor(tmp_path: Path) -> None:
    folder, tensors = saved(tmp_path)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors")
    assert_refused(folder, r"model\.layers\.1\.mlp\.up_proj\.weight is missing")


def test_a_foreign_tensor(tmp_path: Path) -> None:
    folder, tensors = saved(tmp_path)
    tensors["model.layers.0.q_norm.weight"] = torch.ones(4)
    save_file(tensors, folder / "model.safetensors")
    assert_refused(folder, "q_norm.weight does not belong")


def test_a_wrong_shape(tmp_path: Path) -> None:
    folder, tensors = saved(tmp_path)
    save_file({**tensors, "model.norm.weight": torch.ones(4)}, folder / "model.safetensors")
    assert_refused(folder, r"model.norm.weight has shape \[4\], not \[64\]")


def test_a_wrong_type(tmp_path: Path) -> None:
    folder, tensors = saved(tmp_path)
    norm = torch.ones(64, dtype=torch.int32)
    save_file({**tensors, "model.norm.weight": norm}, folder / "model.safetensors")
    assert_refused(folder, "type I32; supported")


@pytest.mark.parametrize("keep_bytes", [0, 5, 100, 20_000])
def test_truncated_safetensors(tmp_path: Path, keep_bytes: int) -> None:
    folder, _ = saved(tmp_path)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep_bytes])
    assert_refused(folder, "cannot read it")


def test_a_missing_shard_and_a_broken_index(tmp_path: Path) -> None:
    folder = save_folder(tiny_llama(), tmp_path, max_shard_size="60KB")
    sorted(folder.glob("*.safetensors"))[0].unlink()
    assert_refused(folder, "shard .* is missing")
    index = folder / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "../b.safetensors"}}')
    assert_refused(folder, "leaves the folder")
    index.write_text("{}")
    assert_refused(folder, "index is broken")


def test_no_weights(tmp_path: Path) -> None:
    folder, _ = saved(tmp_path)
    (folder / "model.safetensors").unlink()
    assert_refused(folder, "neither model.safetensors nor")


def plain_gguf(tmp_path: Path, model: LlamaForCausalLM, **options: str) -> Path:
    tensors = {name: (rows, QuantType.F32) for name, rows in llama_cpp_tensors(model).items()}
    return write_gguf(tmp_path / "model.gguf", model, tensors, **options)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.5, 0.99])
def test_truncated_gguf(tmp_path: Path, share: float) -> None:
    file = plain_gguf(tmp_path, tiny_llama())
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(StartupError) as failure:
        decoder_of(file)
    assert "\n" not in str(failure.value)


def test_an_unknown_gguf_architecture(tmp_path: Path) -> None:
    assert_refused(plain_gguf(tmp_path, tiny_llama(), architecture="mamba"), "mamba.*llama")


def test_an_unsupported_quantisation(tmp_path: Path) -> None:
    model = tiny_llama(**QUANTISED)
    tensors = {
        name: (rows, QuantType.F32) if rows.ndim == 1 else encoded(rows, QuantType.Q5_0)
        for name, rows in llama_cpp_tensors(model).items()
    }
    assert_refused(write_gguf(tmp_path / "model.gguf", model, tensors), "type Q5_0; supported")


def test_a_missing_gguf_tensor(tmp_path: Path) -> None:
    model = tiny_llama()
    tensors = {name: (rows, QuantType.F32) for name, rows in llama_cpp_tensors(model).items()}
    del tensors["blk.1.ffn_down.weight"]
    file = write_gguf(tmp_path / "model.gguf", model, tensors)
    assert_refused(file, "layers.1.mlp.down_proj.weight is missing")


def test_a_loaded_folder_may_move(tmp_path: Path) -> None:
    folder, _ = saved(tmp_path)
    decoder = decoder_of(folder)
    before = decoder.embedding.clone()
    shutil.rmtree(folder)
    assert torch.equal(decoder.embedding, before)
