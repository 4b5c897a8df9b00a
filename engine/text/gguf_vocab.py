"""The vocabulary of a GGUF file: the same tokenizer that its Hugging Face original has.

The names of models and pre-tokenizers, and the defaults of absent keys, are llama.cpp's
(`src/llama-vocab.cpp`); the steps behind the names are those of the originals' tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from engine.errors import StartupError
from engine.text.gguf_meta import read_metadata
from engine.text.vocabulary import Vocabulary

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # tokenizer.ggml.token_type

_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# What ends a turn in files that name no such token, as llama.cpp finds it
_TURN_ENDS = ("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>")


def load_gguf(path: Path) -> Vocabulary:
    """Build the tokenizer from the metadata. Raises StartupError for a kind that is not known."""
    metadata = read_metadata(path)
    prefix = "tokenizer.ggml."
    meta = {key.removeprefix(prefix): metadata[key] for key in metadata if key.startswith(prefix)}
    tokens: list[str] = _list(path, meta, "tokens", str)
    if not tokens:
        raise StartupError(f"{path} holds no vocabulary (tokenizer.ggml.tokens)")
    kinds: list[int] = _list(path, meta, "token_type", int) or [1] * len(tokens)
    model, pre = meta.get("model"), meta.get("pre", "default")
    if model == "gpt2":
        core = _byte_level(path, meta, tokens, pre)
    elif model == "llama":
        core = _sentencepiece(path, meta, tokens, kinds)
    else:
        raise StartupError(f"{path} has the tokenizer model {model!r}, which is not supported")
    _add_tokens(core, tokens, kinds)
    return _with_policy(core, meta, tokens, starts_text=model == "llama" or pre in _LLAMA_3)


def _with_policy(
    core: tokenizers.Tokenizer, meta: Mapping[str, Any], tokens: list[str], starts_text: bool
) -> Vocabulary:
    def token(name: str) -> int | None:
        value = meta.get(f"{name}_token_id")
        return value if isinstance(value, int) and 0 <= value < len(tokens) else None

    bos, eos = token("bos"), token("eos")
    ends = [eos, token("eot"), token("eom")]
    if ends[1] is None:
        added = core.get_added_tokens_decoder()
        ends += [number for number, entry in added.items() if entry.content in _TURN_ENDS]
    ids = {f"{name}_token": token(name) for name in ("bos", "eos", "eot", "sep", "mask")}
    ids |= {"unk_token": token("unknown"), "pad_token": token("padding")}
    add_bos = meta.get("add_bos_token", starts_text) and bos is not None
    add_eos = meta.get("add_eos_token", False) and eos is not None
    return Vocabulary(
        core=core,
        prefix_ids=(bos,) if add_bos and bos is not None else (),
        suffix_ids=(eos,) if add_eos and eos is not None else (),
        bos_id=bos,
        eos_ids=tuple(dict.fromkeys(number for number in ends if number is not None)),
        special_tokens={name: tokens[at] for name, at in ids.items() if at is not None},
    )


def _byte_level(
    path: Path, meta: Mapping[str, Any], tokens: list[str], pre: object
) -> tokenizers.Tokenizer:
    if pre not in _PRE_TOKENIZERS:
        raise StartupError(f"{path} has the pre-tokenizer {pre!r}, which is not supported")
    merges = [tuple(merge.split(" ", 1)) for merge in _list(path, meta, "merges", str)]
    vocab = {token: number for number, token in enumerate(tokens)}
    try:
        bpe = models.BPE(vocab, merges, ignore_merges=pre in _LLAMA_3)
    except Exception as error:  # the library raises nothing narrower
        raise StartupError(f"{path} has unusable merges: {error}") from None
    core = tokenizers.Tokenizer(bpe)
    core.pre_tokenizer = _PRE_TOKENIZERS[pre]
    core.decoder = decoders.ByteLevel()
    if pre in _QWEN_2:
        core.normalizer = normalizers.NFC()
    return core


def _sentencepiece(
    path: Path, meta: Mapping[str, Any], tokens: list[str], kinds: list[int]
) -> tokenizers.Tokenizer:
    """As transformers converts Llama's and Gemma's sentencepiece models."""
    scores: list[float] = _list(path, meta, "scores", float)
    if not len(scores) == len(kinds) == len(tokens):
        raise StartupError(f"{path} has a vocabulary without a score and a type for each token")
    vocab = {token: number for number, token in enumerate(tokens)}
    unknown = meta.get("unknown_token_id", 0)
    bpe = models.BPE(
        vocab,
        _merges(vocab, tokens, kinds, scores),
        unk_token=tokens[unknown] if unknown < len(tokens) else None,
        fuse_unk=True,
        byte_fallback="<0x00>" in vocab,
    )
    core = tokenizers.Tokenizer(bpe)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if meta.get("add_space_prefix", True):
        core.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
        steps.append(decoders.Strip(" ", 1, 0))
    else:
        core.normalizer = normalizers.Replace(" ", "▁")
    core.decoder = decoders.Sequence(steps)
    return core


def _merges(
    vocab: Mapping[str, int], tokens: list[str], kinds: list[int], scores: list[float]
) -> list[tuple[str, str]]:
    """Every way to make a token of two others, the best score first."""
    usable = {token: number for token, number in vocab.items() if kinds[number] == 1}
    found = []
    for token, number in usable.items():
        splits = [(token[:at], token[at:]) for at in range(1, len(token))]
        pairs = [pair for pair in splits if pair[0] in usable and pair[1] in usable]
        pairs.sort(key=lambda pair: (usable[pair[0]], usable[pair[1]]))
        found += [(scores[number], left, right) for left, right in pairs]
    found.sort(key=lambda merge: (merge[0], len(merge[1]), len(merge[2])), reverse=True)
    return [(left, right) for _, left, right in found]


def _add_tokens(core: tokenizers.Tokenizer, tokens: list[str], kinds: list[int]) -> None:
    normalized = core.normalizer is not None
    special = [
        AddedToken(token, normalized=False)
        for token, kind in zip(tokens, kinds, strict=False)
        if kind in (_UNKNOWN, _CONTROL)
    ]
    plain = [
        AddedToken(token, normalized=normalized, special=False)
        for token, kind in zip(tokens, kinds, strict=False)
        if kind == _USER_DEFINED
    ]
    core.add_special_tokens(special)
    core.add_tokens(plain)


def _list(path: Path, meta: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    value = meta.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise StartupError(f"{path} has an unusable tokenizer.ggml.{key}")
    return value


def _split(*patterns: str) -> pre_tokenizers.PreTokenizer:
    steps: list[Any] = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(False, use_regex=False)])


_GPT_2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
_DIGITS = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _GPT_2])
_DEFAULT = _split(
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
)
_LLAMA_3 = ("llama-bpe", "llama-v3", "llama3")
_QWEN_2 = ("qwen2", "deepseek-r1-qwen")
_PRE_TOKENIZERS: dict[object, pre_tokenizers.PreTokenizer] = {
    "default": _DEFAULT,
    "gpt-2": _GPT_2,
    **dict.fromkeys(("smollm", "starcoder", "refact"), _DIGITS),
    **dict.fromkeys(_LLAMA_3, _split(_CL100K % "{1,3}")),
    **dict.fromkeys(_QWEN_2, _split(_CL100K % "")),
}
