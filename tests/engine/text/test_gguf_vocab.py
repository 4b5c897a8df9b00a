from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StartupError
from engine.text.gguf_vocab import load_gguf
from engine.text.token_bytes import byte_alphabet
from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import SPM_TOKENS, spm_metadata, write_gguf

BYTES = list(byte_alphabet())


def byte_level(control: tuple[str, ...] = (), **changes: object) -> dict[str, object]:
    """Single bytes, then control tokens."""
    base: dict[str, Any] = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": [*BYTES, *control],
        "token_type": [1] * 256 + [3] * len(control),
        "merges": [],
    }
    return {f"tokenizer.ggml.{key}": value for key, value in (base | changes).items()}


def words(pre: str, text: str, tmp_path: Path) -> list[str]:
    core = load_gguf(write_gguf(tmp_path / "v.gguf", byte_level(pre=pre))).core
    assert core.pre_tokenizer is not None
    return [
        bytes(byte_alphabet()[char] for char in word).decode()
        for word, _ in core.pre_tokenizer.pre_tokenize_str(text)
    ]


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("gpt-2", ["I", "'ll", " pay", " 12345", "\n", " now", "!!"]),
        ("smollm", ["I", "'ll", " pay", " ", "1", "2", "3", "4", "5", "\n", " now", "!!"]),
        ("llama-bpe", ["I", "'ll", " pay", " ", "123", "45", "\n", " now", "!!"]),
        ("qwen2", ["I", "'ll", " pay", " ", "1", "2", "3", "4", "5", "\n", " now", "!!"]),
        ("default", ["I", "'", "ll", " pay", " ", "123", "45", "\n", " now", "!!"]),
    ],
)
def test_pre_tokenizers(pre: str, expected: list[str], tmp_path: Path) -> None:
    assert words(pre, "I'll pay 12345\n now!!", tmp_path) == expected


def test_qwen_normalizes_as_its_original_does(tmp_path: Path) -> None:
    core = load_gguf(write_gguf(tmp_path / "q.gguf", byte_level(pre="qwen2"))).core
    assert core.encode("e\u0301").ids == core.encode("é").ids


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pre": "unheard-of"}, "pre-tokenizer 'unheard-of'"),
        ({"model": "bert"}, "tokenizer model 'bert'"),
        ({"tokens": []}, "no vocabulary"),
        ({"tokens": [1, 2]}, "tokenizer.ggml.tokens"),
        ({"merges": ["q zz"]}, "merges"),
        ({"merges": ["single"]}, "merges"),
    ],
)
def test_what_is_not_supported_is_named(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(StartupError, match=reason):
        load_gguf(write_gguf(tmp_path / "v.gguf", byte_level(**changes)))


@pytest.mark.parametrize(
    ("changes", "eos_ids"),
    [
        ({"eos_token_id": 256}, (256, 257)),  # <|eot_id|> ends turns though no key says so
        ({"eos_token_id": 256, "eot_token_id": 258}, (256, 258)),
        ({"eos_token_id": 256, "eot_token_id": 257, "eom_token_id": 258}, (256, 257, 258)),
        ({"eos_token_id": 9999, "eot_token_id": 258}, (258,)),
    ],
)
def test_every_end_of_turn_is_found(
    changes: dict[str, object], eos_ids: tuple[int, ...], tmp_path: Path
) -> None:
    metadata = byte_level(("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"), **changes)
    assert load_gguf(write_gguf(tmp_path / "v.gguf", metadata)).eos_ids == eos_ids


@pytest.mark.parametrize(
    ("changes", "prefix", "suffix"),
    [
        ({"pre": "gpt-2"}, (), ()),
        ({"pre": "llama-bpe"}, (256,), ()),
        ({"pre": "llama-bpe", "add_bos_token": False}, (), ()),
        ({"pre": "gpt-2", "add_bos_token": True, "add_eos_token": True}, (256,), (257,)),
    ],
)
def test_what_goes_around_a_text(
    changes: dict[str, object], prefix: tuple[int, ...], suffix: tuple[int, ...], tmp_path: Path
) -> None:
    metadata = byte_level(("<s>", "</s>"), bos_token_id=256, eos_token_id=257, **changes)
    vocabulary = load_gguf(write_gguf(tmp_path / "v.gguf", metadata))
    assert (vocabulary.prefix_ids, vocabulary.suffix_ids) == (prefix, suffix)


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [SPM_TOKENS[token] for token in tokenizer.encode(text, add_special_tokens=True)]


def test_sentencepiece_merges_by_score(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(write_gguf(tmp_path / "s.gguf", spm_metadata()))
    assert tokenizer.add_bos
    assert pieces(tokenizer, "hello world") == ["<s>", "▁hello", "▁world"]
    assert pieces(tokenizer, "é") == ["<s>", "▁", "<0xC3>", "<0xA9>"]
    assert pieces(tokenizer, "<s>") == ["<s>", "▁", "<", "s>"]
    ids = tokenizer.encode("hello é", add_special_tokens=False)
    assert tokenizer.decode(ids) == "hello é"
    assert b"".join(map(tokenizer.token_bytes, ids)) == " hello é".encode()


def test_sentencepiece_without_a_space_prefix(tmp_path: Path) -> None:
    metadata = spm_metadata(add_space_prefix=False)
    tokenizer = Tokenizer.load(write_gguf(tmp_path / "g.gguf", metadata))
    assert pieces(tokenizer, "hello world") == ["<s>", "h", "ello", "▁world"]
    ids = tokenizer.encode(" world", add_special_tokens=False)
    assert tokenizer.decode(ids) == " world"


def test_sentencepiece_needs_scores(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="a score and a type"):
        load_gguf(write_gguf(tmp_path / "s.gguf", spm_metadata(scores=[])))


def test_sentencepiece_merges_as_transformers_makes_them(tmp_path: Path) -> None:
    convert = pytest.importorskip("transformers.convert_slow_tokenizer")
    core = load_gguf(write_gguf(tmp_path / "s.gguf", spm_metadata())).core
    vocab = {token: number for number, token in enumerate(SPM_TOKENS)}
    scores = [(token, -float(number)) for token, number in vocab.items()]
    skip = [SPM_TOKENS[number] for number in (0, 1, 2, len(SPM_TOKENS) - 1)]
    merges = convert.generate_merges(vocab, scores, skip)
    assert [tuple(merge) for merge in json.loads(core.to_str())["model"]["merges"]] == merges
