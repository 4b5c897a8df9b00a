"""The numbers of a decoder, read from `config.json` or from GGUF metadata; loads no torch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import StartupError
from engine.text.gguf_meta import read_header

HUGGING_FACE_ARCHITECTURES = ("LlamaForCausalLM",)
GGUF_ARCHITECTURES = ("llama",)


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How rotary frequencies are stretched past the trained window.

    `linear` divides every frequency by `factor`. `llama3` divides the low ones, keeps the high
    ones and blends between (Llama 3.1 model card; `original_context` is the trained window).
    """

    kind: str
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context: int = 8192

    def stretch(self, frequency: float) -> float:
        """Scale one rotary frequency, in radians per position."""
        if self.kind == "linear":
            return frequency / self.factor
        turns = self.original_context * frequency / (2 * math.pi)
        band = self.high_frequency_factor - self.low_frequency_factor
        keep = min(1.0, max(0.0, (turns - self.low_frequency_factor) / band))
        return frequency * (keep + (1 - keep) / self.factor)


@dataclass(frozen=True, slots=True)
class Shape:
    """A Llama-shaped decoder. `head_dim` need not be `hidden / heads`."""

    architecture: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    norm_epsilon: float
    rope_theta: float
    rope_scaling: RopeScaling | None
    max_context: int
    tied_embeddings: bool
    attention_bias: bool = False
    mlp_bias: bool = False

    def __post_init__(self) -> None:
        counts = {
            "hidden size": self.hidden,
            "number of layers": self.layers,
            "number of heads": self.heads,
            "number of key/value heads": self.kv_heads,
            "head size": self.head_dim,
            "feed-forward size": self.intermediate,
            "vocabulary size": self.vocab,
            "context length": self.max_context,
        }
        for name, value in counts.items():
            if value < 1:
                raise StartupError(f"the model's {name} is {value}; its configuration is broken")
        if self.heads % self.kv_heads:
            raise StartupError(
                f"{self.heads} heads cannot share {self.kv_heads} key/value heads evenly; "
                "the model's configuration is broken"
            )
        if self.head_dim % 2:
            raise StartupError(
                f"the head size {self.head_dim} is odd; rotary embedding needs pairs"
            )
        for name, number in (("rope theta", self.rope_theta), ("norm epsilon", self.norm_epsilon)):
            if not (math.isfinite(number) and number > 0):
                raise StartupError(f"the model's {name} is {number}; its configuration is broken")

    def inverse_frequencies(self) -> list[float]:
        """Radians per position of each of the `head_dim / 2` rotary pairs (RoFormer; Llama 3.1)."""
        pairs = range(0, self.head_dim, 2)
        plain = [self.rope_theta ** -(pair / self.head_dim) for pair in pairs]
        return [self.rope_scaling.stretch(f) for f in plain] if self.rope_scaling else plain

    @classmethod
    def load(cls, path: Path) -> Shape:
        """Read the shape of a model folder or a `.gguf` file.

        Raises `StartupError` for an unknown architecture, a missing field or a nonsense number.
        """
        try:
            return _from_config(path) if path.is_dir() else _from_gguf(path)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StartupError(f"{path}: the model's configuration is broken: {error!r}") from error


def _from_config(path: Path) -> Shape:
    """Read `config.json` as transformers writes it, before and after `rope_parameters`."""
    file = path / "config.json"
    try:
        config = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise StartupError(f"{file}: cannot read it: {error.strerror}") from error
    if not isinstance(config, dict):
        raise StartupError(f"{file}: expected a JSON object")
    names = config.get("architectures") or ["(none)"]
    if names[0] not in HUGGING_FACE_ARCHITECTURES:
        raise _unknown_architecture(str(names[0]), HUGGING_FACE_ARCHITECTURES)
    if config.get("hidden_act", "silu") != "silu":
        raise StartupError(
            f"{file}: hidden_act {config['hidden_act']!r} is not supported, only silu"
        )
    if config.get("quantization_config"):
        raise StartupError(f"{file}: quantised safetensors are not supported; use a GGUF file")
    given = {key: value for key, value in config.items() if value is not None}
    rope = given.get("rope_parameters") or given.get("rope_scaling") or {}
    heads = int(given["num_attention_heads"])
    hidden = int(given["hidden_size"])
    return Shape(
        architecture="llama",
        hidden=hidden,
        layers=int(given["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(given.get("num_key_value_heads", heads)),
        head_dim=int(given.get("head_dim", hidden // max(heads, 1))),
        intermediate=int(given["intermediate_size"]),
        vocab=int(given["vocab_size"]),
        norm_epsilon=float(given.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta", given.get("rope_theta", 10000.0))),
        rope_scaling=_scaling_from_config(rope),
        max_context=int(given.get("max_position_embeddings", 2048)),
        tied_embeddings=bool(given.get("tie_word_embeddings", False)),
        attention_bias=bool(given.get("attention_bias", False)),
        mlp_bias=bool(given.get("mlp_bias", False)),
    )


def _scaling_from_config(rope: Mapping[str, object]) -> RopeScaling | None:
    kind = str(rope.get("rope_type") or rope.get("type") or "default")
    if kind == "default":
        return None
    if kind == "linear":
        return RopeScaling(kind, _number(rope["factor"]))
    if kind == "llama3":
        return RopeScaling(
            kind,
            _number(rope["factor"]),
            _number(rope["low_freq_factor"]),
            _number(rope["high_freq_factor"]),
            int(_number(rope["original_max_position_embeddings"])),
        )
    raise _unknown_scaling(kind)


def _from_gguf(path: Path) -> Shape:
    """Read the `llama.*` keys (GGUF specification, section "LLM").

    What GGUF keeps no key for is told by its tensors: tied embeddings and biases.
    """
    metadata, infos = read_header(path)
    architecture = metadata.get("general.architecture", "(none)")
    if architecture not in GGUF_ARCHITECTURES:
        raise _unknown_architecture(str(architecture), GGUF_ARCHITECTURES)

    def number(key: str, default: float | None = None) -> float:
        value = metadata.get(f"{architecture}.{key}", default)
        if value is None:
            raise StartupError(f"{path}: the metadata key {architecture}.{key} is missing")
        return _number(value)

    tensors = {info.name: info for info in infos}
    if "token_embd.weight" not in tensors:
        raise StartupError(f"{path}: the tensor token_embd.weight is missing")
    heads = int(number("attention.head_count"))
    hidden = int(number("embedding_length"))
    head_dim = int(number("attention.key_length", hidden // max(heads, 1)))
    for key in ("rope.dimension_count", "attention.value_length"):
        if int(number(key, head_dim)) != head_dim:
            raise StartupError(f"{path}: {key} differs from the head size; this is not supported")
    if int(number("expert_count", 0)):
        raise StartupError(f"{path}: mixture-of-experts models are not supported")
    scaling = str(metadata.get(f"{architecture}.rope.scaling.type", "none"))
    if scaling not in ("none", "linear"):
        raise _unknown_scaling(scaling)
    return Shape(
        architecture="llama",
        hidden=hidden,
        layers=int(number("block_count")),
        heads=heads,
        kv_heads=int(number("attention.head_count_kv", heads)),
        head_dim=head_dim,
        intermediate=int(number("feed_forward_length")),
        vocab=tensors["token_embd.weight"].shape[0],
        norm_epsilon=number("attention.layer_norm_rms_epsilon"),
        rope_theta=number("rope.freq_base", 10000.0),
        rope_scaling=(
            RopeScaling("linear", number("rope.scaling.factor")) if scaling == "linear" else None
        ),
        max_context=int(number("context_length")),
        tied_embeddings="output.weight" not in tensors,
        attention_bias="blk.0.attn_q.bias" in tensors,
        mlp_bias="blk.0.ffn_up.bias" in tensors,
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, not {value!r}")
    return float(value)


def _unknown_architecture(name: str, supported: tuple[str, ...]) -> StartupError:
    return StartupError(
        f"the architecture {name} is not supported; supported: {', '.join(supported)}"
    )


def _unknown_scaling(kind: str) -> StartupError:
    return StartupError(
        f"the rope scaling {kind} is not supported; supported: default, linear, llama3"
    )
