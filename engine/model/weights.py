"""Checkpoint files become a decoder: every tensor is read, checked, packed and dropped in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from engine.errors import StartupError
from engine.model.decoder import Decoder, Layer
from engine.model.gguf import GgufFile
from engine.model.safetensors import SafetensorsFolder
from engine.model.shape import Shape

Matrix = TypeVar("Matrix")
Pack = Callable[[Tensor, Tensor | None], Matrix]

ROPE_FACTORS = "rope_freqs.weight"  # llama.cpp keeps Llama 3.1's frequency divisors as a tensor
HEAD = "lm_head.weight"
MOST_LOADERS = 8


class Checkpoint(Protocol):
    """An opened checkpoint; tensors have transformers' names whatever the file format."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Every tensor of the files."""

    def read(self, name: str) -> Tensor:
        """Return one tensor in a floating type; raises `StartupError` when it is unreadable."""


def open_checkpoint(path: Path, shape: Shape) -> Checkpoint:
    """Open a model folder or `.gguf` file and check that it holds exactly the model's tensors."""
    checkpoint: Checkpoint = SafetensorsFolder(path) if path.is_dir() else GgufFile(path, shape)
    wanted = expected_shapes(shape)
    for name, size in wanted.items():
        if name not in checkpoint.shapes:
            raise StartupError(f"{path}: the tensor {name} is missing")
        if checkpoint.shapes[name] != size:
            raise StartupError(
                f"{path}: the tensor {name} has shape {list(checkpoint.shapes[name])}, "
                f"not {list(size)}"
            )
    for name in checkpoint.shapes:
        if name not in wanted and not _harmless(name):
            raise StartupError(f"{path}: the tensor {name} does not belong to this architecture")
    return checkpoint


def load_decoder(
    checkpoint: Checkpoint, shape: Shape, dtype: torch.dtype, pack: Pack[Matrix]
) -> Decoder[Tensor, Matrix]:
    """Read every weight as `dtype` and hand the matrices to `pack(weight, bias)`.

    Only the tensors in work are held twice.
    """

    def read(name: str) -> Tensor:
        return checkpoint.read(name).to(dtype).contiguous()

    def matrix(*names: str) -> Matrix:
        weight = torch.cat([read(f"{name}.weight") for name in names])  # [out, in]
        biases = [f"{name}.bias" for name in names]
        has_bias = biases[0] in checkpoint.shapes
        return pack(weight, torch.cat([read(name) for name in biases]) if has_bias else None)

    def layer(index: int) -> Layer[Tensor, Matrix]:
        prefix = f"model.layers.{index}"
        attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
        return Layer(
            attention_norm=read(f"{prefix}.input_layernorm.weight"),
            qkv=matrix(*(f"{attention}.{part}_proj" for part in "qkv")),
            attention_output=matrix(f"{attention}.o_proj"),
            mlp_norm=read(f"{prefix}.post_attention_layernorm.weight"),
            gate_up=matrix(f"{mlp}.gate_proj", f"{mlp}.up_proj"),
            down=matrix(f"{mlp}.down_proj"),
        )

    with _layers_in_parallel() as pool:
        layers = pool.map(layer, range(shape.layers))
        embedding = read("model.embed_tokens.weight")
        return Decoder(
            embedding=embedding,
            layers=tuple(layers),
            norm=read("model.norm.weight"),
            head=pack(embedding if shape.tied_embeddings else read(HEAD), None),
        )


@contextmanager
def _layers_in_parallel() -> Iterator[ThreadPoolExecutor]:
    """A pool whose threads each run torch on one core: half the time of one call on all cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(min(threads, MOST_LOADERS)) as pool:
            yield pool
    finally:
        torch.set_num_threads(threads)


def rotary_frequencies(checkpoint: Checkpoint, shape: Shape) -> Tensor:
    """Return the radians per position of each rotary pair, fp32 [head_dim / 2]."""
    frequencies = torch.tensor(shape.inverse_frequencies(), dtype=torch.float64)
    if ROPE_FACTORS in checkpoint.shapes:
        factors = checkpoint.read(ROPE_FACTORS).double()
        if factors.shape != frequencies.shape or not bool((factors > 0).all()):
            raise StartupError(f"the tensor {ROPE_FACTORS} is broken")
        frequencies = frequencies / factors
    return frequencies.float()


def expected_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Return every tensor of a Llama checkpoint, by transformers' name."""
    hidden, inner = shape.hidden, shape.intermediate
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (shape.vocab, hidden),
        "model.norm.weight": (hidden,),
    }
    if not shape.tied_embeddings:
        sizes[HEAD] = (shape.vocab, hidden)
    for index in range(shape.layers):
        prefix = f"model.layers.{index}"
        sizes[f"{prefix}.input_layernorm.weight"] = (hidden,)
        sizes[f"{prefix}.post_attention_layernorm.weight"] = (hidden,)
        projections = (
            ("self_attn.q_proj", queries, hidden, shape.attention_bias),
            ("self_attn.k_proj", keys, hidden, shape.attention_bias),
            ("self_attn.v_proj", keys, hidden, shape.attention_bias),
            ("self_attn.o_proj", hidden, queries, shape.attention_bias),
            ("mlp.gate_proj", inner, hidden, shape.mlp_bias),
            ("mlp.up_proj", inner, hidden, shape.mlp_bias),
            ("mlp.down_proj", hidden, inner, shape.mlp_bias),
        )
        for name, rows, columns, bias in projections:
            sizes[f"{prefix}.{name}.weight"] = (rows, columns)
            if bias:
                sizes[f"{prefix}.{name}.bias"] = (rows,)
    return sizes


def _harmless(name: str) -> bool:
    """Tensors that some writers add and that change nothing, or are read elsewhere."""
    return name in (HEAD, ROPE_FACTORS) or name.endswith("rotary_emb.inv_freq")
