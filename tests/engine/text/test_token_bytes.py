from __future__ import annotations

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models

from engine.errors import StartupError
from engine.text.token_bytes import byte_alphabet, byte_table, strips_first_space
from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import byte_level_core


def test_the_alphabet_covers_every_byte_once() -> None:
    assert sorted(byte_alphabet().values()) == list(range(256))
    assert byte_alphabet()["Ġ"] == 32
    assert byte_alphabet()["Ċ"] == 10


def test_added_and_foreign_tokens_are_spelt_as_they_are() -> None:
    core = byte_level_core((AddedToken("<é Ġ>", special=False),), words=("Ġa", "\u4e00x"))
    assert byte_table(core)[256:] == [b" a", "\u4e00x".encode(), "<é Ġ>".encode()]


def test_agrees_with_the_definition(smollm: Tokenizer, defined_bytes: list[bytes]) -> None:
    assert list(smollm.all_bytes) == defined_bytes


@pytest.fixture(scope="module")
def defined_bytes(smollm: Tokenizer) -> list[bytes]:
    """GPT-2's definition, one character at a time."""
    alphabet = byte_alphabet()
    words = smollm._core.get_vocab(with_added_tokens=True)
    by_id = {number: word for word, number in words.items()}
    return [bytes(alphabet[char] for char in by_id[at]) for at in range(smollm.vocab_size)]


@pytest.mark.parametrize(
    ("decoder", "strips"),
    [
        (decoders.ByteLevel(), False),
        (decoders.Metaspace(prepend_scheme="always"), True),
        (decoders.Metaspace(prepend_scheme="never"), False),
        (decoders.Sequence([decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)]), True),
        (decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()]), False),
    ],
)
def test_whose_first_space_is_no_text(decoder: decoders.Decoder, strips: bool) -> None:
    core = tokenizers.Tokenizer(models.BPE({"▁a": 0}, []))
    core.decoder = decoder
    assert strips_first_space(core) is strips


@pytest.mark.parametrize("decoder", [None, decoders.WordPiece(), decoders.BPEDecoder()])
def test_unknown_decoders_are_refused(decoder: decoders.Decoder | None) -> None:
    core = tokenizers.Tokenizer(models.BPE({"a": 0}, []))
    if decoder is not None:
        core.decoder = decoder
    with pytest.raises(StartupError, match="decoder"):
        byte_table(core)
