"""Reads the weights of a GGUF file, under transformers' names and in transformers' row order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from gguf import quants
from gguf.constants import GGMLQuantizationType as QuantType
from numpy.typing import NDArray
from torch import Tensor

from engine.errors import StartupError
from engine.model.shape import Shape
from engine.text.gguf_meta import TensorInfo, read_tensor_infos

Rows = TypeVar("Rows", Tensor, NDArray[np.uint8])

FLOATS = (QuantType.F32, QuantType.F16, QuantType.BF16)
QUANT_TYPES = (
    *FLOATS,
    QuantType.Q4_0,
    QuantType.Q4_1,
    QuantType.Q8_0,
    QuantType.Q4_K,
    QuantType.Q5_K,
    QuantType.Q6_K,
)
OUTER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True, slots=True)
class RawTensor:
    """A matrix as the file quantised it; `blocks` are mapped memory, nothing of it is read yet."""

    kind: QuantType
    blocks: NDArray[np.uint8]  # [rows, bytes of a row], in the file's row order
    heads: int | None  # of a projection whose rows llama.cpp reorders within each head

    def rows(self) -> NDArray[np.uint8]:
        """The blocks in transformers' row order."""
        return _unpermuted(self.blocks, self.heads) if self.heads else self.blocks


class GgufFile:
    """The tensors of a file, memory-mapped; nothing is dequantised before `read`."""

    def __init__(self, path: Path, shape: Shape) -> None:
        self._path = path
        self._infos = {_name(info.name): info for info in read_tensor_infos(path)}
        self._heads = {"q_proj": shape.heads, "k_proj": shape.kv_heads}
        self.shapes = {name: info.shape for name, info in self._infos.items()}
        for info in self._infos.values():
            self._check(info)
        self._bytes = np.asarray(np.memmap(path, np.uint8, mode="r"))  # slices are made faster

    def _check(self, info: TensorInfo) -> None:
        if info.ggml_type not in QUANT_TYPES:
            known = {int(kind): kind.name for kind in QuantType}
            raise StartupError(
                f"{self._path}: the tensor {info.name} has type "
                f"{known.get(info.ggml_type, info.ggml_type)}; "
                f"supported: {', '.join(kind.name for kind in QUANT_TYPES)}"
            )

    def read(self, name: str) -> Tensor:
        """Return a tensor in fp32, or in fp16 or bf16 where the file keeps it so."""
        info = self._infos[name]
        raw = self._bytes[info.offset : info.offset + info.nbytes]
        kind = QuantType(info.ggml_type)
        tensor = DEQUANTISERS.get(kind, _by_gguf)(raw, kind).reshape(info.shape)
        heads = self._heads_of(name)
        return _unpermuted(tensor, heads) if heads else tensor

    def raw(self, name: str) -> RawTensor | None:
        """Return the blocks of a quantised matrix; None for one of floats."""
        info = self._infos[name]
        kind = QuantType(info.ggml_type)
        if kind in FLOATS:
            return None
        raw = self._bytes[info.offset : info.offset + info.nbytes]
        return RawTensor(kind, raw.reshape(info.shape[0], -1), self._heads_of(name))

    def _heads_of(self, name: str) -> int | None:
        return self._heads.get(name.split(".")[-2])


def _name(name: str) -> str:
    """Translate llama.cpp's tensor name to transformers'; an unknown one is kept."""
    if name in OUTER_NAMES:
        return OUTER_NAMES[name]
    match name.split("."):
        case ["blk", index, part, kind] if part in LAYER_NAMES:
            return f"model.layers.{index}.{LAYER_NAMES[part]}.{kind}"
    return name


def dequantise(kind: QuantType, rows: NDArray[np.uint8]) -> Tensor:
    """Return the weights [rows, columns] of whole rows [rows, bytes of a row], in fp32."""
    return DEQUANTISERS.get(kind, _by_gguf)(rows.reshape(-1), kind).reshape(len(rows), -1)


def _unpermuted(rows: Rows, heads: int) -> Rows:
    """Undo `LlamaModel.permute` of llama.cpp's converter.

    llama.cpp rotates neighbouring rows, transformers rows half a head apart.
    """
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])  # [heads, head_dim / 2, 2, ...]
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _blocks(raw: NDArray[np.uint8], size: int) -> Tensor:
    """View the file's bytes as blocks [blocks, size]; the copy makes them writable for torch."""
    return torch.from_numpy(np.array(raw)).view(-1, size)


def _half(blocks: Tensor, start: int) -> Tensor:
    """Read the little-endian fp16 at `start` of every block; fp32 [blocks, 1]."""
    return blocks[:, start : start + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: Tensor) -> Tensor:
    """Unpack bytes [blocks, 16]: the low halves are weights 0-15, the high ones 16-31."""
    return torch.cat([packed & 15, packed >> 4], dim=1).float()


def _q4_0(raw: NDArray[np.uint8], _: QuantType) -> Tensor:
    """Blocks of 32: fp16 scale d, 16 bytes of q; w = d * (q - 8) (ggml, `block_q4_0`)."""
    blocks = _blocks(raw, 18)
    return _nibbles(blocks[:, 2:]).sub_(8).mul_(_half(blocks, 0))


def _q4_1(raw: NDArray[np.uint8], _: QuantType) -> Tensor:
    """Blocks of 32: fp16 scale d and minimum m, 16 bytes of q; w = d * q + m (`block_q4_1`)."""
    blocks = _blocks(raw, 20)
    return _nibbles(blocks[:, 4:]).mul_(_half(blocks, 0)).add_(_half(blocks, 2))


def _q8_0(raw: NDArray[np.uint8], _: QuantType) -> Tensor:
    """Blocks of 32: fp16 scale d, 32 bytes of q; w = d * q (`block_q8_0`)."""
    blocks = _blocks(raw, 34)
    return blocks[:, 2:].view(torch.int8).float().mul_(_half(blocks, 0))


def _plain(raw: NDArray[np.uint8], kind: QuantType) -> Tensor:
    dtypes = {QuantType.F32: torch.float32, QuantType.F16: torch.float16}
    return torch.from_numpy(np.array(raw)).view(dtypes.get(kind, torch.bfloat16))


def _by_gguf(raw: NDArray[np.uint8], kind: QuantType) -> Tensor:
    """The K-quants: about 100 million weights a second."""
    return torch.from_numpy(quants.dequantize(raw, kind))


DEQUANTISERS: dict[QuantType, Callable[[NDArray[np.uint8], QuantType], Tensor]] = {
    QuantType.F32: _plain,
    QuantType.F16: _plain,
    QuantType.BF16: _plain,
    QuantType.Q4_0: _q4_0,
    QuantType.Q4_1: _q4_1,
    QuantType.Q8_0: _q8_0,
}
