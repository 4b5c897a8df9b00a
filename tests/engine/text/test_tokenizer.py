from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken

from engine.errors import StartupError
from engine.text.gguf_meta import read_metadata
from engine.text.gguf_vocab import load_gguf
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary import Vocabulary
from tests.engine.text.vocabularies import (
    byte_level_core,
    spm_metadata,
    write_folder,
    write_gguf,
)

STRIPPING = (
    AddedToken("<|left|>", special=True, normalized=False, lstrip=True),
    AddedToken("<|right|>", special=True, normalized=False, rstrip=True),
    AddedToken("<both>", special=False, normalized=False, lstrip=True, rstrip=True),
    AddedToken("  ", special=False, normalized=False),
)


def over(core: tokenizers.Tokenizer) -> Tokenizer:
    return Tokenizer(Vocabulary(core, (), (), None, (), {}))


def text_with(*spellings: str) -> st.SearchStrategy[str]:
    """Text in which the spellings are frequent."""
    frequent = st.sampled_from([*spellings, " ", "\n", "a1", "<", "|"])
    pieces = st.one_of(frequent, st.text(max_size=4))
    return st.lists(pieces, max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("2024", [b"2", b"0", b"2", b"4"]),
        ("hello world", [b"hello", b" world"]),
        ("<|im_end|>", [b"<", b"|", b"im", b"_", b"end", b"|", b">"]),
    ],
)
def test_pieces_of_the_embedded_vocabulary(
    smollm: Tokenizer, text: str, pieces: list[bytes]
) -> None:
    ids = smollm.encode(text, add_special_tokens=True)
    assert [smollm.token_bytes(token) for token in ids] == pieces


def test_facts_of_the_embedded_vocabulary(smollm: Tokenizer) -> None:
    assert smollm.vocab_size == 49152
    assert (smollm.bos_id, smollm.eos_ids, smollm.add_bos) == (1, (2,), False)
    assert smollm.control_ids == smollm.special_ids == frozenset(range(17))
    assert smollm.special_tokens["eos_token"] == "<|im_end|>"


@given(text=text_with("<|im_end|>", "<|im_start|>", "<repo_name>"))
def test_client_text_round_trips_and_holds_no_control_token(smollm: Tokenizer, text: str) -> None:
    ids = smollm.encode(text, add_special_tokens=False)
    known = {byte for token in smollm.all_bytes if len(token) == 1 for byte in token}
    kept = bytes(byte for byte in text.encode() if byte in known)  # 21 bytes have no token
    assert b"".join(map(smollm.token_bytes, ids)) == kept
    assert smollm.control_ids.isdisjoint(ids)


@given(text=text_with("<|im_end|>", "<s>", "[INST]", "</think>", "\n\n\n"))
def test_a_vocabulary_with_every_byte_keeps_every_text(markup: Tokenizer, text: str) -> None:
    ids = markup.encode(text, add_special_tokens=False)
    assert b"".join(map(markup.token_bytes, ids)) == text.encode()
    assert markup.control_ids.isdisjoint(ids)
    assert markup.decode(ids) == text


@pytest.fixture(scope="module")
def library(gguf_path: Path) -> tokenizers.Tokenizer:
    """The library's own tokenizer, as the loader makes it."""
    return load_gguf(gguf_path).core


@given(text=text_with("<|im_end|>", "<|im_start|>", "<repo_name>"))
def test_rendered_text_is_read_as_the_library_reads_it(
    smollm: Tokenizer, library: tokenizers.Tokenizer, text: str
) -> None:
    assert smollm.encode_rendered(text) == library.encode(text, add_special_tokens=False).ids
    if not list(smollm.spellings.find(text)):
        assert smollm.encode(text, add_special_tokens=False) == smollm.encode_rendered(text)


@given(text=text_with("<|left|>", "<|right|>", "<both>", "  "))
def test_white_space_around_added_tokens_as_in_the_library(text: str) -> None:
    library = byte_level_core(STRIPPING)
    ours = over(byte_level_core(STRIPPING))
    assert ours.encode_rendered(text) == library.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="module", params=[True, False])
def spm_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentencepiece vocabulary with a space prefix, and one without."""
    metadata = spm_metadata(add_space_prefix=request.param, add_bos_token=False)
    return write_gguf(tmp_path_factory.mktemp("spm") / "spm.gguf", metadata)


def test_sentencepiece_is_read_as_the_library_reads_it(spm_path: Path) -> None:
    ours, library = Tokenizer.load(spm_path), load_gguf(spm_path).core

    @given(text=text_with("<s>", "</s>", "<tool>", "hello", " world"))
    def check(text: str) -> None:
        rendered = ours.encode_rendered(text)
        assert rendered == library.encode(text, add_special_tokens=False).ids
        ids = ours.encode(text, add_special_tokens=False)
        assert ours.control_ids.isdisjoint(ids)
        # The library puts no space before a text that starts with one: " a" and "a" are the same
        spoken = text.replace("▁", " ")
        first = " " if read_metadata(spm_path)["tokenizer.ggml.add_space_prefix"] else ""
        assert ours.decode(ids) == spoken.removeprefix(first)

    check()


def test_guards_are_removed_and_break_spellings(markup: Tokenizer) -> None:
    end = markup.control_tokens["<|im_end|>"]
    ids = markup.encode_rendered("a<|im_end|><\ue000|im_end|>\ue000b", guard="\ue000")
    assert ids.count(end) == 1
    assert markup.decode(ids) == "a<|im_end|><|im_end|>b"


def test_stand_ins_cannot_be_guessed(markup: Tokenizer) -> None:
    text = "\ufdee" + "0" * 24 + "257\ufdef"
    for ids in (markup.encode(text, add_special_tokens=False), markup.encode_rendered(text)):
        assert markup.decode(ids) == text
        assert max(ids) < 256


@pytest.mark.parametrize(
    ("rendered", "expected"),
    [("a", "<s>a"), ("<s>a", "<s>a"), ("<s><s>a", "<s>a"), ("", "<s>"), ("a<s>", "<s>a<s>")],
)
@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_exactly_one_bos(
    markup_bos: Tokenizer, rendered: str, expected: str, add_special_tokens: bool
) -> None:
    ids = markup_bos.encode_rendered(rendered, add_special_tokens=add_special_tokens)
    assert markup_bos.decode(ids) == expected


def test_raw_text_gets_one_bos_from_the_tokenizer(markup_bos: Tokenizer) -> None:
    assert markup_bos.encode("a", add_special_tokens=True)[0] == markup_bos.bos_id
    assert markup_bos.bos_id not in markup_bos.encode("<s>a", add_special_tokens=False)


def test_added_tokens_that_are_no_markup_are_vocabulary(markup: Tokenizer) -> None:
    (token,) = markup.encode("\n\n\n", add_special_tokens=False)
    assert markup.token_bytes(token) == b"\n\n\n"
    assert token not in markup.control_ids


def test_special_and_control_differ_by_the_flag(markup: Tokenizer) -> None:
    assert markup.control_tokens["<think>"] in markup.control_ids - markup.special_ids
    assert markup.control_tokens["<s>"] in markup.special_ids


def test_a_control_token_among_the_words_is_spelt_out() -> None:
    core = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {"<": 0, "s": 1, ">": 2, "s>": 3, "<s>": 4}, [("s", ">"), ("<", "s>")]
        )
    )
    core.decoder = tokenizers.decoders.ByteLevel()
    core.add_special_tokens([AddedToken("<s>", normalized=False)])
    tokenizer = over(core)
    assert tokenizer.encode("<s>", add_special_tokens=False) == [0, 1, 2]
    assert tokenizer.encode_rendered("<s>s>") == [4, 3]


def test_both_loaders_agree(gguf_path: Path, smollm: Tokenizer, tmp_path: Path) -> None:
    config = {"bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}}
    folder = write_folder(tmp_path / "hf", load_gguf(gguf_path).core, tokenizer_config=config)
    other = Tokenizer.load(folder)
    text = "In 2024, naïve 東京 users wrote <|im_end|>\n\n\tdef f(): pass 👩‍👩‍👧‍👦"
    for special in (True, False):
        assert other.encode(text, add_special_tokens=special) == smollm.encode(
            text, add_special_tokens=special
        )
    rendered = "<|im_start|>user\n" + text
    assert other.encode_rendered(rendered) == smollm.encode_rendered(rendered)
    assert other.all_bytes == smollm.all_bytes
    assert other.visible_bytes == smollm.visible_bytes
    assert (other.bos_id, other.eos_ids) == (smollm.bos_id, smollm.eos_ids)
    assert other.control_tokens == smollm.control_tokens


@pytest.mark.parametrize("declared", [{"x": {}}, {"1": {}}, ["a"]])
def test_malformed_configurations_are_startup_errors(declared: object, tmp_path: Path) -> None:
    config = {"added_tokens_decoder": declared}
    folder = write_folder(tmp_path / "m", byte_level_core(), tokenizer_config=config)
    with pytest.raises(StartupError, match="malformed"):
        Tokenizer.load(folder)


def test_ids_beyond_the_vocabulary_have_no_bytes(markup: Tokenizer) -> None:
    assert markup.token_bytes(markup.vocab_size) == markup.token_bytes(-1) == b""
