from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from llguidance import LLExecutor, LLMatcher, LLTokenizer

from engine.grammar.mask import Mask, Matcher, Vocabulary, allocate, fill_masks, mask_of
from engine.text.tokenizer import Tokenizer
from tests.engine.grammar.drive import schema_grammar
from tests.engine.text.vocabularies import spm_metadata, write_gguf

ONE = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}},
       "required": ["a"], "additionalProperties": False}  # fmt: skip


def allowed(row: Mask) -> set[int]:
    bits = np.unpackbits(row.astype("<u4").view(np.uint8), bitorder="little")
    return {int(token) for token in np.flatnonzero(bits)}


@pytest.fixture(scope="module")
def built(vocabulary: Vocabulary) -> LLTokenizer:
    return vocabulary.build()


def opened(built: LLTokenizer, vocabulary: Vocabulary, schema: object = ONE) -> Matcher:
    return Matcher(LLMatcher(built, schema_grammar(schema), log_level=0), vocabulary)


def fed(matcher: Matcher, tokenizer: Tokenizer, text: str) -> Matcher:
    for token in tokenizer.encode(text, add_special_tokens=False):
        assert matcher.consume(token)
    return matcher


def row_of(matcher: Matcher) -> set[int]:
    row = allocate(1, matcher.vocabulary)[0]
    matcher.fill(row)
    return allowed(row)


def test_a_vocabulary_crosses_processes(vocabulary: Vocabulary) -> None:
    assert "\ufdee" not in vocabulary.json  # the tokenizer's own stand-ins for control tokens
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary
    assert vocabulary.build().vocab_size == vocabulary.size == 300
    assert vocabulary.words == 10


@pytest.mark.parametrize("kind", ["byte_level", "sentencepiece", "bare_sentencepiece"])
def test_the_library_sees_every_token_as_the_tokenizer_does(
    kind: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    if kind != "byte_level":
        metadata = spm_metadata(add_space_prefix=kind == "sentencepiece")
        tokenizer = Tokenizer.load(write_gguf(tmp_path / "v.gguf", metadata))
    assert_same_view(tokenizer)


def test_the_library_sees_every_token_of_the_embedded_model(embedded: Tokenizer) -> None:
    assert_same_view(embedded)


def assert_same_view(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocab_size
    seen = Vocabulary(tokenizer.vocabulary_json, size + 7, tokenizer.eos_ids).build()
    for token in range(size):
        special = seen.is_special_token(token)
        if tokenizer.all_bytes[token] == b"\xff":  # no text has this byte
            continue
        assert special == (token in tokenizer.control_ids), token
        if not special:
            assert seen.decode_bytes([token]) == tokenizer.all_bytes[token]


def test_only_fitting_text_is_allowed(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    matcher = opened(built, vocabulary)
    texts = {tokenizer.token_bytes(token) for token in row_of(matcher)}
    assert texts == {b"{", b'{"'}
    fed(matcher, tokenizer, '{"a":')
    assert {tokenizer.token_bytes(token) for token in row_of(matcher)} == {
        *(str(digit).encode() for digit in range(10)), b" ", b" 1", b"\n"
    }  # fmt: skip


def test_control_and_padding_ids_are_never_part_of_a_document(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    matcher = opened(built, vocabulary, {"type": "object", "minProperties": 1})
    inside = row_of(fed(matcher, tokenizer, '{"'))
    assert len(inside) > 100
    assert inside.isdisjoint(tokenizer.control_ids)
    assert max(inside) < tokenizer.vocab_size


def test_every_end_token_is_allowed_exactly_when_the_document_may_end(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    ends = set(tokenizer.eos_ids)
    assert len(ends) == 2
    matcher = opened(built, vocabulary)
    for token in tokenizer.encode('{"a":1}', add_special_tokens=False):
        assert row_of(matcher).isdisjoint(ends)
        assert not (matcher.may_end or matcher.is_finished)
        assert matcher.consume(token)
    assert row_of(matcher) == ends
    assert matcher.is_finished
    for token in ends:
        assert matcher.consume(token)
    assert matcher.error is None
    assert matcher.is_finished


def test_a_document_that_may_go_on_is_not_finished(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    matcher = fed(opened(built, vocabulary, {"type": "integer"}), tokenizer, "12")
    assert matcher.may_end
    assert not matcher.is_finished
    assert set(tokenizer.eos_ids) < row_of(matcher)


def test_a_token_that_is_not_allowed_is_an_error(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    matcher = opened(built, vocabulary)
    assert matcher.error is None
    assert not matcher.consume(tokenizer.eos_ids[0])
    assert matcher.error
    assert "\n" not in matcher.error
    assert row_of(matcher) == set(tokenizer.eos_ids)
    assert not matcher.consume(tokenizer.encode("{", add_special_tokens=False)[0])


def test_forced_tokens_are_those_of_the_only_text(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    schema = {"const": {"hello": True}}
    matcher = fed(opened(built, vocabulary, schema), tokenizer, "{")
    forced = matcher.forced()
    assert matcher.accepts(forced) == len(forced)
    assert matcher.accepts([*forced, tokenizer.eos_ids[0]]) == len(forced)
    for token in forced:
        assert row_of(matcher) >= {token}
        assert matcher.consume(token)


def test_tokens_can_be_taken_back(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    matcher = fed(opened(built, vocabulary), tokenizer, '{"a":')
    before = row_of(matcher)
    fed(matcher, tokenizer, "12}").consume(tokenizer.eos_ids[1])
    assert matcher.is_finished
    matcher.rollback(4)
    assert row_of(matcher) == before
    assert not matcher.is_finished
    with pytest.raises(ValueError, match="cannot take back 99"):
        matcher.rollback(99)


def test_copies_are_independent(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    matcher = fed(opened(built, vocabulary), tokenizer, '{"a":')
    copies = [matcher.copy() for _ in range(3)]
    for copy, text in zip(copies, ("1}", "23}", "4"), strict=True):
        fed(copy, tokenizer, text)
    assert [copy.is_finished for copy in (matcher, *copies)] == [False, True, True, False]


def test_all_masks_of_a_step_at_once(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    executor = LLExecutor(2)
    matchers = [
        fed(opened(built, vocabulary), tokenizer, text) for text in ("", "{", '{"a":1', '{"a":1}')
    ]
    matchers += [opened(built, vocabulary, {"type": "string"})]
    masks = allocate(8, vocabulary)
    for _ in range(2):  # buffers are used again
        fill_masks(executor, matchers, masks)
        assert [allowed(masks[row]) for row in range(5)] == [row_of(one) for one in matchers]
    assert (masks[5:] == 0xFFFFFFFF).all()
    fill_masks(executor, [], masks)
    with pytest.raises(ValueError, match="contiguous"):
        fill_masks(executor, matchers, masks.T)


def test_a_mask_of_ids_and_both_together(
    built: LLTokenizer, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    ids = [0, 31, 32, 299, *tokenizer.encode("{", add_special_tokens=False)]
    mask = mask_of([*ids, -1, 300, 10**9], vocabulary)
    assert mask.dtype == np.uint32
    assert allowed(mask) == set(ids)
    row = allocate(1, vocabulary)[0]
    opened(built, vocabulary).fill(row)
    row &= mask
    assert allowed(row) == {ids[-1]}


def test_a_parser_that_gives_up_says_why(built: LLTokenizer, vocabulary: Vocabulary) -> None:
    bad = json.dumps({"grammars": [{"lark_grammar": "start: nothing"}]})
    assert "nothing" in (Matcher(LLMatcher(built, bad, log_level=0), vocabulary).error or "")
