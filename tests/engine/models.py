"""Tiny random Llama models, and the embedded one as transformers sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as QuantType
from numpy.typing import NDArray
from transformers import LlamaConfig, LlamaForCausalLM

TINY: dict[str, object] = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}


def tiny_llama(**changes: object) -> LlamaForCausalLM:
    """A random model in fp32 whose logits are far apart, biases included."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**{**TINY, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, parameter.shape[1] ** -0.5)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def save_folder(model: LlamaForCausalLM, folder: Path, max_shard_size: str = "1GB") -> Path:
    """Save as transformers does and return the folder."""
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    return folder


def llama_cpp_tensors(model: LlamaForCausalLM) -> dict[str, NDArray[np.float32]]:
    """The weights under llama.cpp's names, q and k in its row order."""
    config = model.config
    names = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    parts = {
        "input_layernorm": "attn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    for layer in range(config.num_hidden_layers):
        for theirs, ours in parts.items():
            for kind in ("weight", "bias"):
                names[f"model.layers.{layer}.{theirs}.{kind}"] = f"blk.{layer}.{ours}.{kind}"
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        rows = tensor.float().numpy()
        part = names[name].split(".")[-2]
        tensors[names[name]] = _permute(rows, heads[part]) if part in heads else rows
    return tensors


def _permute(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """`LlamaModel.permute` of llama.cpp's converter."""
    halves = rows.reshape(heads, 2, -1, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows.shape))


def encoded(rows: NDArray[np.float32], kind: QuantType) -> tuple[NDArray[np.generic], QuantType]:
    """Quantise rows; vectors stay fp32, and K-quants are random blocks with small scales."""
    if rows.ndim == 1 or kind == QuantType.F32:
        return rows, QuantType.F32
    if kind == QuantType.F16:
        return rows.astype(np.float16), kind
    if kind not in (QuantType.Q4_K, QuantType.Q5_K, QuantType.Q6_K):
        return gguf.quantize(rows, kind), kind
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(0).integers(0, 256, (rows.size // 256, size), np.uint8)
    scales = blocks[:, -2:] if kind == QuantType.Q6_K else blocks[:, :4]
    scales[:] = np.full((len(blocks), scales.shape[1] // 2), 0.01, np.float16).view(np.uint8)
    return blocks.reshape(rows.shape[0], -1), kind


def write_gguf(
    path: Path,
    model: LlamaForCausalLM,
    tensors: Mapping[str, tuple[NDArray[np.generic], gguf.GGMLQuantizationType]],
    architecture: str = "llama",
) -> Path:
    """Write a GGUF file of a model's metadata and raw tensors."""
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def embedded_in_transformers(path: Path) -> LlamaForCausalLM:
    """The embedded model with gguf's own reader and dequantiser."""
    reader = gguf.GGUFReader(path)
    number = {key: field.contents() for key, field in reader.fields.items() if "llama" in key}
    config = LlamaConfig(
        vocab_size=number["llama.vocab_size"],
        hidden_size=number["llama.embedding_length"],
        intermediate_size=number["llama.feed_forward_length"],
        num_hidden_layers=number["llama.block_count"],
        num_attention_heads=number["llama.attention.head_count"],
        num_key_value_heads=number["llama.attention.head_count_kv"],
        max_position_embeddings=number["llama.context_length"],
        rms_norm_eps=number["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": number["llama.rope.freq_base"]},
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    weights = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in reader.tensors}
    state = {}
    for name in model.state_dict():
        state[name] = torch.tensor(_unpermuted(name, weights, config))
    model.load_state_dict(state, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    model.tie_weights()
    return model.eval()


def _unpermuted(
    name: str, weights: dict[str, NDArray[np.float32]], config: LlamaConfig
) -> NDArray[np.float32]:
    outer = {
        "model.embed_tokens.weight": "token_embd.weight",
        "lm_head.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
    }
    if name in outer:
        return weights[outer[name]]
    layer, part = name.split(".")[2], name.split(".")[-2]
    parts = {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "q_proj": "attn_q",
        "k_proj": "attn_k",
        "v_proj": "attn_v",
        "o_proj": "attn_output",
        "gate_proj": "ffn_gate",
        "up_proj": "ffn_up",
        "down_proj": "ffn_down",
    }
    rows = weights[f"blk.{layer}.{parts[part]}.weight"]
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    if part not in heads:
        return rows
    pairs = rows.reshape(heads[part], rows.shape[0] // heads[part] // 2, 2, rows.shape[1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows.shape))
