"""Small vocabularies for the tests, and the files that hold them."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from engine.text.token_bytes import byte_alphabet
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary import Vocabulary


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: object) -> bytes:
    """A value with its type: bool, int (u32), float (f32), str, or a list of one of these."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    assert isinstance(value, list)
    items = [_typed(item) for item in value]
    kind = items[0][:4] if items else struct.pack("<I", 4)
    return (
        struct.pack("<I", 9)
        + kind
        + struct.pack("<Q", len(items))
        + b"".join(item[4:] for item in items)
    )


def write_gguf(path: Path, metadata: Mapping[str, object]) -> Path:
    """A GGUF file of key-values alone."""
    body = b"".join(_string(key) + _typed(value) for key, value in metadata.items())
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata)) + body)
    return path


def byte_level_core(
    added: tuple[AddedToken, ...] = (), words: tuple[str, ...] = ()
) -> tokenizers.Tokenizer:
    """A byte-level BPE of single bytes, with `words` in its vocabulary and `added` tokens."""
    vocab = {char: number for number, char in enumerate([*byte_alphabet(), *words])}
    core = tokenizers.Tokenizer(models.BPE(vocab, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    for token in added:
        core.add_tokens([token])
    return core


MARKUP = (
    AddedToken("<s>", special=True, normalized=False),
    AddedToken("<|im_start|>", special=True, normalized=False),
    AddedToken("<|im_end|>", special=True, normalized=False),
    AddedToken("[INST]", special=True, normalized=False),
    AddedToken("[/INST]", special=True, normalized=False),
    AddedToken("<think>", special=False, normalized=False),
    AddedToken("</think>", special=False, normalized=False),
    AddedToken("<tool_call>", special=False, normalized=False),
    AddedToken("\n\n\n", special=False, normalized=False),
)


def small(add_bos: bool = False, added: tuple[AddedToken, ...] = MARKUP) -> Tokenizer:
    """A tokenizer of single bytes with the control tokens of several model families."""
    core = byte_level_core(added)
    bos, eos = core.token_to_id("<s>"), core.token_to_id("<|im_end|>")
    names = {"bos_token": "<s>", "eos_token": "<|im_end|>"}
    prefix = (bos,) if add_bos and bos is not None else ()
    return Tokenizer(Vocabulary(core, prefix, (), bos, () if eos is None else (eos,), names))


def write_folder(path: Path, core: tokenizers.Tokenizer, **files: Mapping[str, object]) -> Path:
    """A Hugging Face folder of tokenizer.json and the given JSON files."""
    path.mkdir(exist_ok=True)
    (path / "tokenizer.json").write_text(core.to_str(), "utf-8")
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return path


SPM_TOKENS = [
    "<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)),
    "▁h", "el", "lo", "ello", "▁hello", "▁w", "or", "▁wor", "ld", "▁world",
    "▁", "h", "e", "l", "o", "w", "r", "d", "s", ">", "<", "s>", "<tool>",
]  # fmt: skip


def spm_metadata(**changes: object) -> dict[str, object]:
    """The metadata of a sentencepiece vocabulary; scores fall with the id."""
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(SPM_TOKENS) - 260) + [4]
    base = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": SPM_TOKENS,
        "tokenizer.ggml.scores": [-float(number) for number in range(len(SPM_TOKENS))],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    return base | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
