"""Checkpoint files become a decoder: every tensor is read, checked, packed and dropped in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from engine.errors import StartupError
from engine.model.decoder import Decoder, Layer
from engine.model.gguf import GgufFile, RawTensor
from engine.model.numbers import Floats, Numbers
from engine.model.safetensors import SafetensorsFolder
from engine.model.shape import Shape

Vector = TypeVar("Vector")
Matrix = TypeVar("Matrix")
Table = TypeVar("Table")
Vector_co = TypeVar("Vector_co", covariant=True)
Matrix_co = TypeVar("Matrix_co", covariant=True)

EMBEDDING = "model.embed_tokens.weight"
ROPE_FACTORS = "rope_freqs.weight"  # llama.cpp keeps Llama 3.1's frequency divisors as a tensor
HEAD = "lm_head.weight"
MOST_LOADERS = 8


class Checkpoint(Protocol):
    """An opened checkpoint; tensors have transformers' names whatever the file format."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Every tensor of the files."""

    def read(self, name: str) -> Numbers:
        """Return one tensor in a floating type; raises `StartupError` when it is unreadable."""

    def raw(self, name: str) -> RawTensor | None:
        """Return a matrix as the file quantised it; None where the file has floats."""


class Weights(Protocol[Vector_co, Matrix_co, Table]):
    """A checkpoint's tensors in the form of a backend; called from several threads."""

    def vector(self, name: str) -> Vector_co:
        """Return the weight of a norm."""

    def matrix(self, names: Sequence[str]) -> Matrix_co:
        """Join the rows of some weights, and of their biases, to one matrix."""

    def table(self, name: str) -> Table:
        """Return a weight whose rows are looked up."""

    def tied(self, table: Table) -> Matrix_co:
        """Return the matrix whose rows are those of `table`."""


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
    weights: Weights[Vector, Matrix, Table], shape: Shape, threads: int = 1
) -> Decoder[Vector, Matrix, Table]:
    """Read every weight, on so many threads. Only the tensors in work are held twice."""

    def layer(index: int) -> Layer[Vector, Matrix]:
        prefix = f"model.layers.{index}"
        qkv, attention_output, gate_up, down = map(weights.matrix, layer_matrices(index))
        return Layer(
            attention_norm=weights.vector(f"{prefix}.input_layernorm.weight"),
            qkv=qkv,
            attention_output=attention_output,
            mlp_norm=weights.vector(f"{prefix}.post_attention_layernorm.weight"),
            gate_up=gate_up,
            down=down,
        )

    with ThreadPoolExecutor(min(threads, MOST_LOADERS)) as pool:
        layers = pool.map(layer, range(shape.layers))
        embedding = weights.table(EMBEDDING)
        return Decoder(
            embedding=embedding,
            layers=tuple(layers),
            norm=weights.vector("model.norm.weight"),
            head=weights.tied(embedding) if shape.tied_embeddings else weights.matrix([HEAD]),
        )


def layer_matrices(index: int) -> list[list[str]]:
    """Name the weights that each of a layer's four matrices joins, in the order of their use."""
    attention, mlp = f"model.layers.{index}.self_attn", f"model.layers.{index}.mlp"
    return [
        [f"{attention}.{part}_proj.weight" for part in "qkv"],
        [f"{attention}.o_proj.weight"],
        [f"{mlp}.gate_proj.weight", f"{mlp}.up_proj.weight"],
        [f"{mlp}.down_proj.weight"],
    ]


def bias_names(checkpoint: Checkpoint, names: Sequence[str]) -> list[str]:
    """Name the biases of some weights that are joined; none of them has one, or each."""
    biases = [f"{name.removesuffix('.weight')}.bias" for name in names]
    return biases if biases[0] in checkpoint.shapes else []


def rotary_frequencies(checkpoint: Checkpoint, shape: Shape) -> Floats:
    """Return the radians per position of each rotary pair, fp32 [head_dim / 2]."""
    frequencies = np.array(shape.inverse_frequencies(), np.float64)
    if ROPE_FACTORS in checkpoint.shapes:
        factors = checkpoint.read(ROPE_FACTORS).astype(np.float64)
        if factors.shape != frequencies.shape or not (factors > 0).all():
            raise StartupError(f"the tensor {ROPE_FACTORS} is broken")
        frequencies /= factors
    return frequencies.astype(np.float32)


def expected_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Return every tensor of a Llama checkpoint, by transformers' name."""
    hidden, inner = shape.hidden, shape.intermediate
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes: dict[str, tuple[int, ...]] = {
        EMBEDDING: (shape.vocab, hidden),
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
