"""Shapes read from configurations, sound and broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import StartupError
from engine.model.checkpoint import locate
from engine.model.shape import RopeScaling, Shape

CONFIG: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 99,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 512,
    "rope_theta": 5e5,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}


def shape_of(folder: Path, **changes: object) -> Shape:
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    return Shape.load(folder)


def test_a_folder(tmp_path: Path) -> None:
    shape = shape_of(tmp_path)
    assert (shape.heads, shape.kv_heads, shape.head_dim, shape.vocab) == (4, 2, 16, 99)
    assert shape.rope_theta == 5e5
    assert shape.rope_scaling is None
    assert not shape.tied_embeddings


def test_defaults_of_old_configurations(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, num_key_value_heads=None, head_dim=None, rope_theta=None)
    assert (shape.kv_heads, shape.head_dim, shape.rope_theta) == (4, 16, 10000.0)


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_scaling": LLAMA3},
        {"rope_parameters": {**LLAMA3, "rope_theta": 5e5}},
        {"rope_parameters": {**LLAMA3, "rope_theta": 5e5}, "rope_theta": None},
    ],
)
def test_llama3_scaling_in_both_spellings(tmp_path: Path, rope: dict[str, object]) -> None:
    shape = shape_of(tmp_path, **rope)
    assert shape.rope_scaling == RopeScaling("llama3", 8.0, 1.0, 4.0, 256)
    assert shape.rope_theta == 5e5
    fast, slow = shape.inverse_frequencies()[0], shape.inverse_frequencies()[-1]
    assert fast == 1.0
    assert slow == pytest.approx(5e5 ** -(14 / 16) / 8)


def test_linear_scaling(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, rope_scaling={"type": "linear", "factor": 2})
    assert shape.inverse_frequencies()[0] == 0.5


def test_the_embedded_file() -> None:
    shape = Shape.load(locate(None, print))
    assert (shape.layers, shape.hidden, shape.heads, shape.kv_heads) == (30, 576, 9, 3)
    assert (shape.max_context, shape.vocab, shape.tied_embeddings) == (8192, 49152, True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "MambaForCausalLM.*LlamaForCausalLM"),
        ({"architectures": None}, "not supported"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, "yarn.*llama3"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 4}}, "low_freq_factor"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantised"),
        ({"num_hidden_layers": 0}, "number of layers is 0"),
        ({"num_attention_heads": 0}, "number of heads"),
        ({"num_attention_heads": 3}, "share"),
        ({"num_key_value_heads": 0}, "key/value"),
        ({"hidden_size": -64}, "hidden size"),
        ({"head_dim": 15}, "odd"),
        ({"vocab_size": "many"}, "broken"),
        ({"hidden_size": None}, "hidden_size"),
        ({"rms_norm_eps": 0}, "epsilon"),
        ({"rope_theta": float("nan")}, "theta"),
        ({"num_hidden_layers": float("inf")}, "broken"),
    ],
)
def test_broken_configurations(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    with pytest.raises(StartupError, match=reason) as failure:
        shape_of(tmp_path, **changes)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_unreadable_configurations(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(StartupError):
        Shape.load(tmp_path)
