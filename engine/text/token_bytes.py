"""The exact bytes of every token of a vocabulary."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import tokenizers

from engine.errors import StartupError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "▁"


def byte_table(core: tokenizers.Tokenizer) -> list[bytes]:
    """Bytes by token id; ids that stand for nothing have none.

    Raises StartupError when the decoder is of a kind whose bytes are not known.
    """
    kinds = {step["type"] for step in decoder_steps(core)}
    vocab = core.get_vocab(with_added_tokens=True)
    added = {token.content for token in core.get_added_tokens_decoder().values()}
    table = [b""] * (max(vocab.values(), default=-1) + 1)
    if "ByteLevel" in kinds:
        _fill_byte_level(table, vocab)
    elif kinds & {"ByteFallback", "Metaspace", "Replace"}:
        _fill_sentencepiece(table, vocab)
    else:
        raise StartupError(f"the tokenizer's decoder {sorted(kinds)} is not supported")
    for content in added:
        # Spelt as it is, except where sentencepiece's space is part of a vocabulary word
        spelt = content if "ByteLevel" in kinds else content.replace(_SPACE, " ")
        table[vocab[content]] = spelt.encode()
    return table


def strips_first_space(core: tokenizers.Tokenizer) -> bool:
    """Whether decoding drops the space that encoding put before the first word."""
    return any(
        (step["type"] == "Strip" and step["content"] == " " and step["start"] > 0)
        or (step["type"] == "Metaspace" and step.get("prepend_scheme") != "never")
        for step in decoder_steps(core)
    )


def decoder_steps(core: tokenizers.Tokenizer) -> Iterator[dict[str, Any]]:
    """The decoder's steps, flattened."""
    if core.decoder is None:
        return
    pending = [json.loads(core.decoder.__getstate__())]
    while pending:
        step = pending.pop()
        pending += step.get("decoders", ())
        yield step


def byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for each byte: printable bytes themselves, others from U+0100."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(256 + at): byte for at, byte in enumerate(hidden)}


def _fill_byte_level(table: list[bytes], vocab: dict[str, int]) -> None:
    alphabet = byte_alphabet()
    foreign = set("".join(vocab)) - set(alphabet)
    words = []
    for token, number in vocab.items():
        if foreign and not foreign.isdisjoint(token):
            table[number] = token.encode()
        else:
            words.append(token)
    # All at once, and through Latin-1, which maps code points below 256 to the same bytes
    to_latin = {ord(char): byte for char, byte in alphabet.items()}
    spelt = "\uffff".join(words).translate(to_latin).split("\uffff")
    for token, text in zip(words, spelt, strict=True):
        table[vocab[token]] = text.encode("latin-1")


def _fill_sentencepiece(table: list[bytes], vocab: dict[str, int]) -> None:
    for token, number in vocab.items():
        byte = _BYTE_TOKEN.fullmatch(token)
        table[number] = bytes([int(byte[1], 16)]) if byte else token.replace(_SPACE, " ").encode()
