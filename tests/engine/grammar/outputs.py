"""Drives grammars of whole outputs token by token, over vocabularies of bytes and delimiters."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from llguidance import LLMatcher, LLTokenizer
from tokenizers import AddedToken

from engine.conversation import Tool, ToolCall
from engine.dialects.dialect import Dialect
from engine.dialects.marks import Marks
from engine.dialects.pieces import Arguments, Closed, Expected, Opened, Piece, Said
from engine.events import Channel
from engine.grammar.compile import LIMITS
from engine.grammar.form import OutputForm
from engine.grammar.mask import Matcher, Vocabulary, allocate
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary import Vocabulary as Loaded
from tests.engine.text.vocabularies import byte_level_core

END, OTHER = "<|im_end|>", "<|other|>"
_WIDE = 100  # more allowed tokens than any delimiter, name or number leaves
_CLOSERS = ("</", "/", "}", "]", ")", ">", '"', "<", "\n", ":", ",")


class Said_(NamedTuple):
    """What a parser read."""

    thought: str
    text: str
    calls: list[tuple[str, str]]
    is_open: bool


@cache
def tokenizer_of(spellings: tuple[str, ...]) -> Tokenizer:
    """Single bytes, some words, and these control tokens."""
    added = [AddedToken(text, special=True, normalized=False) for text in (END, OTHER, *spellings)]
    core = byte_level_core(tuple(added), ("hello", '{"', '":', "Ġ1", "</", "ame"))
    return Tokenizer(Loaded(core, (), (), None, (core.get_vocab()[END],), {}))


@cache
def _built(spellings: tuple[str, ...]) -> tuple[Vocabulary, LLTokenizer]:
    tokenizer = tokenizer_of(spellings)
    vocabulary = Vocabulary(tokenizer.vocabulary_json, tokenizer.vocab_size, tokenizer.eos_ids)
    return vocabulary, vocabulary.build()


class Outputs:
    """A dialect in a vocabulary that has its delimiters as tokens, or has not."""

    def __init__(self, dialect: Dialect, *, has_tokens: bool = True) -> None:
        spellings = dialect.spellings if has_tokens else ()
        self.dialect = dialect
        self.tokenizer = tokenizer_of(spellings)
        self.vocabulary, self._built = _built(spellings)
        self.marks = Marks(dialect.spellings, self.tokenizer.control_tokens)
        self.end = self.tokenizer.control_tokens[END]
        self.other = self.tokenizer.control_tokens[OTHER]

    def form(self, tools: Sequence[Tool] = (), **changes: Any) -> OutputForm:
        dialect, parser = self.dialect, self.dialect.parser
        known: dict[str, Any] = {
            "tokens": self.marks.tokens, "tools": tools, "calls": dialect.grammar,
            "opener": dialect.opener, "headers": dialect.headers, "others": (self.other,),
            "compose": dialect.compose, "think_open": parser.think_open,
            "think_close": parser.think_close,
        }  # fmt: skip
        return OutputForm(**(known | changes))

    def ids(self, text: str) -> list[int]:
        """A text in which every spelling of a token is the token."""
        return self.tokenizer.encode_rendered(text)

    def spelt(self, token: int) -> list[int]:
        """The characters of a token, each for itself."""
        return [byte for char in self.tokenizer.decode([token])
                for byte in self.tokenizer.encode(char, add_special_tokens=False)]  # fmt: skip

    def matcher(self, grammar: str) -> Matcher:
        matcher = Matcher(
            LLMatcher(self._built, grammar, log_level=0, limits=LIMITS), self.vocabulary
        )
        assert matcher.error is None
        return matcher

    def allowed(self, matcher: Matcher) -> set[int]:
        row = allocate(1, self.vocabulary)[0]
        matcher.fill(row)
        assert matcher.error is None, matcher.error
        return {
            token for token in range(self.vocabulary.size) if row[token >> 5] >> (token & 31) & 1
        }

    def refused_at(self, grammar: str, text: str) -> str | None:
        """What of a text is left where the mask forbids it; None when all is allowed."""
        matcher = self.matcher(grammar)
        ids = self.ids(text)
        for at, token in enumerate(ids):
            if token not in self.allowed(matcher):
                return self.tokenizer.decode(ids[at:])
            assert matcher.consume(token)
        return None

    def accepts(self, grammar: str, text: str) -> bool:
        """Whether the grammar allows exactly this text, by mask before every token."""
        matcher = self.matcher(grammar)
        return self.fed(matcher, text) and self.end in self.allowed(matcher)

    def fed(self, matcher: Matcher, text: str) -> bool:
        for token in self.ids(text):
            if token not in self.allowed(matcher):
                return False
            assert matcher.consume(token)
        return True

    def walk(self, grammar: str, seed: int, endings: Sequence[str], budget: int = 150) -> list[int]:
        """Random tokens that the grammar allows; past the budget, `endings` close free text.

        Raises AssertionError when it comes to no end or gets stuck.
        """
        choose = random.Random(seed)
        matcher, ids, planned = self.matcher(grammar), list[int](), list[int]()
        while len(ids) < 30 * budget:
            allowed = self.allowed(matcher)
            assert allowed, self.tokenizer.decode(ids)
            closing = len(ids) > budget
            if self.end in allowed and (closing or len(allowed) == 1 or choose.random() < 0.3):
                return ids
            if not planned and len(allowed) > _WIDE and (closing or choose.random() < 0.1):
                planned = self.ids(choose.choice(endings))
            if planned and planned[0] not in allowed:
                planned = []
            token = planned.pop(0) if planned else self._pick(allowed, choose, closing)
            assert matcher.consume(token)
            ids.append(token)
        raise AssertionError(f"no end: {self.tokenizer.decode(ids)[-300:]!r}")

    def _pick(self, allowed: set[int], choose: random.Random, closing: bool) -> int:
        allowed = allowed - {self.end} or allowed
        known = self.tokenizer.all_bytes
        closers = [known.index(text.encode()) for text in _CLOSERS]
        closers = [token for token in closers if token in allowed]
        if closing and closers and len(allowed) <= _WIDE and known[closers[0]] in (b"</", b"/"):
            return closers[0]
        marks = [token for token in self.marks.of_token if token in allowed]
        if marks and choose.random() < (0.9 if closing else 0.3):
            return choose.choice(marks)
        if closers and len(allowed) <= _WIDE and choose.random() < (0.8 if closing else 0.3):
            return closers[0] if closing else choose.choice(closers)
        if closing and closers and choose.random() < 0.2:
            return choose.choice(closers)
        plain = [token for token in self.ids('abz019.-{[" \n') if token in allowed]
        return choose.choice(plain if plain and choose.random() < 0.5 else sorted(allowed))

    def read(
        self, ids: Sequence[int], tools: Sequence[Tool], *, trusted: bool, **known: Any
    ) -> Said_:
        """What the dialect's parser makes of an output."""
        named = {tool.name: tool for tool in tools}
        parser = self.dialect.parser(self.marks, Expected(named, trusted=trusted, **known))
        pieces = parser.feed(self._marked(ids)) + parser.finish(cut=False)
        return _joined(pieces)

    def _marked(self, ids: Sequence[int]) -> str:
        text, run = "", list[int]()
        for token in (*ids, None):
            if token is not None and token not in self.marks.of_token:
                run.append(token)
                continue
            text += self.tokenizer.decode(run) + (self.marks.of_token[token] if token else "")
            run = []
        return text


def _joined(pieces: Sequence[Piece]) -> Said_:
    texts = {Channel.TEXT: "", Channel.REASONING: ""}
    calls: list[tuple[str, str]] = []
    is_open = False
    for piece in pieces:
        if isinstance(piece, Said):
            texts[piece.channel] += piece.text
        elif isinstance(piece, Opened):
            calls.append((piece.name, ""))
            is_open = True
        elif isinstance(piece, Arguments):
            calls[-1] = (calls[-1][0], calls[-1][1] + piece.text)
        elif isinstance(piece, Closed):
            is_open = False
    return Said_(texts[Channel.REASONING], texts[Channel.TEXT], calls, is_open)


def endings_of(dialect: Dialect) -> list[str]:
    """What ends free text: the end of a thought, and what follows a string in a call."""
    shown = dialect.rendering.calls([ToolCall("call_1", "f", '{"VALUE": "VALUE", "n": 1}')])
    close = dialect.parser.think_close
    return [shown.rpartition("VALUE")[2], '"', *([close] if close else [])]
