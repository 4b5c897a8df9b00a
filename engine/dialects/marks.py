"""Delimiters that are one token, told apart from the same characters in ordinary pieces.

A model that explains its own format writes `<tool_call>` with ordinary tokens; a model that makes a
call generates the one token. In the text that a parser reads, such a token is one lone surrogate,
which no decoded text can hold; where the vocabulary lacks the token, the delimiter is its
characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import regex

_FIRST = 0xD800
_MOST = 0x800


class Marks:
    """The delimiters of a dialect in one vocabulary.

    `tokens` maps the spelling of each delimiter that is one control token to its id, `chars` to the
    character that stands for it; `of_token` gives that character for the id.
    """

    def __init__(self, spellings: Iterable[str], control_tokens: Mapping[str, int]) -> None:
        spellings = tuple(dict.fromkeys(spellings))
        assert len(spellings) <= _MOST
        self.tokens = {s: control_tokens[s] for s in spellings if s in control_tokens}
        self.chars = {
            spelling: chr(_FIRST + place)
            for place, spelling in enumerate(spellings)
            if spelling in self.tokens
        }
        self.of_token = {self.tokens[s]: char for s, char in self.chars.items()}
        self._spelt = {ord(char): spelling for spelling, char in self.chars.items()}
        longest_first = sorted(self.chars, key=len, reverse=True)
        self._spellings = regex.compile("|".join(map(regex.escape, longest_first)) or r"(?!)")

    def __getitem__(self, spelling: str) -> str:
        """A delimiter as it stands in the text of a parser: tokens, text, or both."""
        return self.chars.get(spelling) or self.marked(spelling)

    def re(self, *spellings: str) -> str:
        """A regular expression for any of some delimiters."""
        return "|".join(regex.escape(self[spelling]) for spelling in spellings)

    def marked(self, text: str) -> str:
        """Text in which every spelling of a token stands for the token, as in a template."""
        return self._spellings.sub(lambda found: self.chars[found[0]], text)

    def plain(self, text: str) -> str:
        """Text of a parser as a client sees it, tokens spelt out."""
        return text.translate(self._spelt) if self._spelt else text
