"""Control tokens: which added tokens steer the model, and where a text spells one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tokenizers import AddedToken

_MARKUP = re.compile(r"<\S.*>|\[\S.*\]|｜\S.*｜", re.DOTALL)


def is_control(token: AddedToken) -> bool:
    """Whether client text must never become this added token.

    Special tokens are, and markup such as `<tool_call>`, `[INST]` or `｜DSML｜`, which some
    vocabularies do not flag. Runs of white space and plain words are vocabulary like any other. A
    single character steers nothing.
    """
    content: str = token.content
    if len(content) < 2 or content.isspace():
        return False
    return bool(token.special or _MARKUP.fullmatch(content))


class Spellings:
    """Finds the spellings of a set of tokens, each two characters or longer, in linear time."""

    def __init__(self, contents: Iterable[str]) -> None:
        self._contents = frozenset(contents)
        heads: dict[str, set[int]] = {}
        for content in self._contents:
            heads.setdefault(content[:2], set()).add(len(content))
        # Vocabularies have up to thousands of such tokens, too many for one regular expression.
        self._lengths = {head: sorted(sizes, reverse=True) for head, sizes in heads.items()}
        first = "".join(re.escape(char) for char in sorted({head[0] for head in heads}))
        self._candidates = re.compile(f"[{first}]" if first else r"(?!)")
        self._prefixes = {text[:end] for text in self._contents for end in range(1, len(text))}
        self._suffixes = {text[start:] for text in self._contents for start in range(1, len(text))}
        self._longest = max(map(len, self._contents), default=0)
        self._joined = "\n".join(self._contents)

    def starts(self, text: str) -> Iterator[tuple[int, int]]:
        """(start, end) of the longest spelling wherever one starts; they may overlap."""
        for candidate in self._candidates.finditer(text):
            start = candidate.start()
            for length in self._lengths.get(text[start : start + 2], ()):
                end = start + length
                if end <= len(text) and text[start:end] in self._contents:
                    yield start, end
                    break

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """(start, end) of every spelling, leftmost then longest, none overlapping another."""
        reached = 0
        for start, end in self.starts(text):
            if start >= reached:
                yield start, end
                reached = end

    def open_left(self, text: str) -> bool:
        """Whether text before this one could complete a spelling that ends inside it."""
        limit = min(self._longest, len(text) + 1)
        return any(text[:size] in self._suffixes for size in range(1, limit))

    def open_right(self, text: str) -> bool:
        """Whether text behind this one could complete a spelling that starts inside it."""
        limit = min(self._longest, len(text) + 1)
        return any(text[-size:] in self._prefixes for size in range(1, limit))

    def within(self, text: str) -> bool:
        """Whether the whole of this text is a part of a spelling."""
        return 0 < len(text) < self._longest and text in self._joined
