"""Drives a grammar byte by byte, and at random."""

from __future__ import annotations

import json
import random
from functools import cache

from llguidance import LLMatcher, LLTokenizer

from engine.errors import RequestError
from engine.grammar.compile import grammar_of
from engine.types import OutputConstraint

_END = 261  # of llguidance's vocabulary of single bytes


@cache
def byte_vocabulary() -> LLTokenizer:
    return LLTokenizer("byte")


def schema_grammar(schema: object) -> str:
    return grammar_of(OutputConstraint("json_schema", json.dumps(schema), "response_format"))


def refusal(schema: object) -> str:
    """Why a schema is refused; empty when it is not."""
    try:
        schema_grammar(schema)
    except RequestError as error:
        assert (error.param, error.code) == ("response_format", "invalid_schema")
        return error.message
    return ""


def accepts(grammar: str, text: str) -> bool:
    """Whether the grammar allows exactly this text, checked by mask before every byte."""
    matcher = LLMatcher(byte_vocabulary(), grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    for byte in text.encode():
        if not _allows(matcher.compute_bitmask(), byte):
            return False
        assert matcher.consume_token(byte)
    return matcher.is_accepting()


def walk(grammar: str, seed: int, budget: int = 120, ending: str = "") -> str:
    """A random text that the grammar allows; past the budget, it closes what is open.

    `ending` is what closes free text that does not end with a quote.

    Raises AssertionError when it comes to no end or gets stuck.
    """
    choose = random.Random(seed)
    matcher = LLMatcher(byte_vocabulary(), grammar, log_level=0)
    text, quotes, planned = bytearray(), 0, b""
    while len(text) < 20 * budget:
        mask = matcher.compute_bitmask()
        assert not matcher.is_error(), matcher.get_error()
        allowed = [byte for byte in range(256) if _allows(mask, byte)]
        if _allows(mask, _END) and (not allowed or len(text) > budget or choose.random() < 0.5):
            return text.decode()
        if len(text) > budget and (not planned or planned[0] not in allowed):
            planned = ending.encode()
        if planned and planned[0] in allowed:
            byte, planned = planned[0], planned[1:]
        else:
            byte = _pick(allowed, choose, len(text) > budget, quotes % 2 == 1)
        assert matcher.consume_token(byte)
        quotes += byte == ord('"') and (len(text) - len(text.rstrip(b"\\"))) % 2 == 0
        text.append(byte)
    raise AssertionError(f"no end: {text[-200:]!r}")


def _pick(allowed: list[int], choose: random.Random, closing: bool, in_string: bool) -> int:
    closers = [byte for byte in (b'"' if in_string else b"}],") if byte in allowed]
    if closers and (closing or choose.random() < 0.25):
        return closers[0]
    plain = [byte for byte in allowed if chr(byte) in 'abxyz019.-,:{[" \\nue\n']
    return choose.choice(plain if plain and choose.random() < 0.7 else allowed)


def _allows(mask: bytes, token: int) -> bool:
    return bool(mask[token // 8] >> (token % 8) & 1)
