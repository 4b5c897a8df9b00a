from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.detokenizer import Detokenizer
from engine.text.tokenizer import Tokenizer


def pieces_of(tokenizer: Tokenizer, chunks: list[list[int]], skip: bool = False) -> list[str]:
    detokenizer = Detokenizer(tokenizer, skip_control=skip)
    return [*(detokenizer.push(chunk) for chunk in chunks), detokenizer.flush()]


@given(
    ids=st.lists(st.integers(0, 49151), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    skip=st.booleans(),
)
def test_any_ids_in_any_chunks_equal_the_whole(
    smollm: Tokenizer, ids: list[int], cuts: list[int], skip: bool
) -> None:
    edges = sorted({0, len(ids), *(cut for cut in cuts if cut < len(ids))})
    chunks = [ids[start:end] for start, end in pairwise(edges)]
    shown = [token for token in ids if not (skip and token in smollm.special_ids)]
    whole = b"".join(map(smollm.token_bytes, shown)).decode("utf-8", "replace")
    assert "".join(pieces_of(smollm, chunks, skip)) == whole


@given(text=st.text(max_size=40).filter(lambda text: "\ufffd" not in text))
def test_split_characters_are_never_replaced(markup: Tokenizer, text: str) -> None:
    ids = markup.encode(text, add_special_tokens=False)
    pieces = pieces_of(markup, [[token] for token in ids])
    assert "".join(pieces) == text
    assert all("\ufffd" not in piece for piece in pieces)


@given(data=st.binary(max_size=30))
def test_every_piece_is_final(markup: Tokenizer, data: bytes) -> None:
    by_byte = {markup.token_bytes(token): token for token in range(256)}
    pieces = pieces_of(markup, [[by_byte[bytes([byte])]] for byte in data])
    assert "".join(pieces) == data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        (b"hi\xf0", ["h", "i", "", "\ufffd"]),  # D151: the limit falls inside a character
        (b"\xf0\x9f\x98\x80", ["", "", "", "😀", ""]),
        (b"\xf0\x9f(", ["", "", "\ufffd(", ""]),
        (b"\xff!", ["\ufffd", "!", ""]),
    ],
)
def test_invalid_bytes_are_replaced_once_certain(
    markup: Tokenizer, data: bytes, pieces: list[str]
) -> None:
    by_byte = {markup.token_bytes(token): token for token in range(256)}
    assert pieces_of(markup, [[by_byte[bytes([byte])]] for byte in data]) == pieces


def test_special_tokens_are_skipped_and_other_markup_is_shown(markup: Tokenizer) -> None:
    control = markup.control_tokens
    ids = [control["<think>"], control["<|im_end|>"], control["</think>"]]
    assert "".join(pieces_of(markup, [ids], skip=True)) == "<think></think>"
    assert "".join(pieces_of(markup, [ids])) == "<think><|im_end|></think>"


def test_ids_of_a_padded_vocabulary_say_nothing(markup: Tokenizer) -> None:
    assert "".join(pieces_of(markup, [[markup.vocab_size, 10**6]])) == ""
