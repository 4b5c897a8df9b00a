"""Keeps client text from becoming control tokens on its way through a chat template.

A template writes its control tokens and the client's text into one string. A guard character
that occurs in no text of the request is put into every spelling of a control token in client text,
so that only the template's own spellings are whole; `Tokenizer.encode_rendered` takes it out again.
Only such places are touched: templates look at the text (they trim it, split it, compare it), and
ordinary text must reach them as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from engine.errors import RequestError
from engine.text.control import Spellings

# Noncharacters, which Unicode reserves for such internal use, then the private use areas
_CANDIDATES = (range(0xFDD0, 0xFDEE), range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))
_WORD = re.compile(r"\w+")
# What a template may ask of a schema, and the types that it may compare.
_SCHEMA_WORDS = frozenset(
    (
        "type", "properties", "required", "items", "enum", "const", "default", "description",
        "title", "format", "nullable", "anyOf", "oneOf", "allOf", "additionalProperties",
        "string", "number", "integer", "boolean", "object", "array", "null",
    )
)  # fmt: skip


def unused_characters(texts: Iterable[str], count: int) -> list[str]:
    """Characters that occur in none of the texts."""
    used: set[str] = set().union(*texts)
    found = []
    for code in (code for block in _CANDIDATES for code in block):
        if chr(code) not in used:
            found.append(chr(code))
            if len(found) == count:
                return found
    raise RequestError("the text uses every private-use character", "messages")


@dataclass(frozen=True, slots=True)
class Guard:
    """Protects client text. `spellings` are all control tokens, `markup` those not special."""

    char: str
    spellings: Spellings
    markup: Spellings

    def text(self, text: str) -> str:
        """Text with a guard in every spelling, and at an edge that could be half of one.

        The edge is inside the surrounding white space, since most templates trim it.
        """
        cuts = {start + 1 for start, _ in self.spellings.starts(text)}
        core = text.strip()
        left = len(text) - len(text.lstrip())
        if self.spellings.open_left(core):
            cuts.add(left)
        if self.spellings.open_right(core):
            cuts.add(left + len(core))
        if not cuts and self.spellings.within(core):
            cuts.add(left)
        return self._inserted(text, sorted(cuts)) if cuts else text

    def answer(self, text: str) -> str:
        """Text of an assistant turn: markup that is not special, such as `</think>`, stays whole.

        Templates split the history there, to drop old reasoning or to find calls. The text between
        is protected piece by piece, because the split gives it new edges.
        """
        pieces: list[str] = []
        reached = 0
        for start, end in self.markup.find(text):
            pieces += (self.text(text[reached:start]), text[start:end])
            reached = end
        return "".join((*pieces, self.text(text[reached:])))

    def value(self, value: object) -> object:
        """A deep copy of a JSON value with its strings protected.

        Plain words keep their edges: templates compare them (`reasoning_effort == "high"`).
        """
        return copied(value, lambda text: text if self._is_word(text) else self.text(text))

    def schema(self, value: object) -> object:
        """A deep copy of a JSON Schema with the client's strings protected.

        The words of the schema language keep their edges: templates look for them.
        """

        def protect(text: str) -> str:
            return text if text in _SCHEMA_WORDS and self._is_word(text) else self.text(text)

        return copied(value, protect)

    def arguments(self, value: object) -> object:
        """A deep copy of a JSON value with every string protected, whatever it is."""
        return copied(value, self.text)

    def _is_word(self, text: str) -> bool:
        return bool(_WORD.fullmatch(text)) and not any(self.spellings.starts(text))

    def _inserted(self, text: str, cuts: list[int]) -> str:
        edges = [0, *cuts, len(text)]
        pieces = [text[a:b] for a, b in pairwise(edges)]
        return self.char.join(pieces)


UNGUARDED = Guard("", Spellings(()), Spellings(()))
"""For text that no client wrote."""


def copied(value: object, change: Callable[[str], str]) -> object:
    """A deep copy of a JSON value with each string changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {copied(key, change): copied(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copied(item, change) for item in value]
    return value


def strings(value: object) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)
