"""Reads the weights of a GGUF file, under transformers' names and in transformers' row order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import quants
from gguf.constants import GGMLQuantizationType as QuantType
from numpy.typing import NDArray

from engine.errors import StartupError
from engine.model.numbers import BFLOAT16, Floats, Number, Numbers
from engine.model.shape import Shape
from engine.text.gguf_meta import TensorInfo, read_header

FLOATS = {
    QuantType.F32: np.dtype(np.float32),
    QuantType.F16: np.dtype(np.float16),
    QuantType.BF16: BFLOAT16,
}
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
        _, infos = read_header(path)
        self._infos = {_name(info.name): info for info in infos}
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

    def read(self, name: str) -> Numbers:
        """Return a tensor in fp32, or in fp16 or bf16 where the file keeps it so."""
        info = self._infos[name]
        raw = self._bytes[info.offset : info.offset + info.nbytes]
        kind = QuantType(info.ggml_type)
        numbers: Numbers = raw.view(FLOATS[kind]) if kind in FLOATS else dequantise(kind, raw)
        heads = self._heads_of(name)
        shaped = numbers.reshape(info.shape)
        return _unpermuted(shaped, heads) if heads else shaped

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


def dequantise(kind: QuantType, blocks: NDArray[np.uint8]) -> Floats:
    """Return the weights in fp32 of whole rows [rows, bytes of a row], or of a run of blocks.

    About 100 million weights a second.
    """
    weights: Floats = quants.dequantize(blocks, kind)
    return weights


def _unpermuted(rows: NDArray[Number], heads: int) -> NDArray[Number]:
    """Undo `LlamaModel.permute` of llama.cpp's converter.

    llama.cpp rotates neighbouring rows, transformers rows half a head apart.
    """
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])  # [heads, head_dim / 2, 2, ...]
    return pairs.swapaxes(1, 2).reshape(rows.shape)
