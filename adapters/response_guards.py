"""What tells a note from a failed attempt at one: copies, of the instruction or of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_COPIED_WORDS = 5  # a shorter line may share its words with the instruction by chance
_LINE_WORDS = 3
_REPEATED_LINES = 3
_PHRASE = 6
_FEW_PHRASES = 24  # fewer tell nothing
_TAIL_WORDS = 120


def without_copies(text: str, instruction: str) -> str:
    """The text without the lines that stand in the instruction as well."""
    told = _spaced(_words(instruction))
    kept = (line for line in text.splitlines() if not _is_copied(_words(line), told))
    return "\n".join(kept).strip()


def _is_copied(words: Sequence[str], told: str) -> bool:
    return len(words) >= _COPIED_WORDS and _spaced(words) in told


def is_looping(text: str) -> bool:
    """Whether a text says the same again and again, all of it or its last part."""
    lines = [
        tuple(words) for line in text.splitlines() if len(words := _words(line)) >= _LINE_WORDS
    ]
    again = len(lines) - len(set(lines))
    if again >= _REPEATED_LINES and again * 3 > len(lines):
        return True
    words = _words(text)
    return any(_is_repetitive(_phrases(part)) for part in (words, words[-_TAIL_WORDS:]))


def _is_repetitive(phrases: Sequence[Sequence[str]]) -> bool:
    return len(phrases) >= _FEW_PHRASES and len(set(phrases)) * 2 < len(phrases)


def is_copying(text: str, material: str) -> bool:
    """Whether a text hands its material on instead of condensing it."""
    phrases = _phrases(_words(text))
    if len(phrases) < _FEW_PHRASES:
        return False
    known = set(_phrases(_words(material)))
    return sum(phrase in known for phrase in phrases) * 5 > len(phrases) * 4


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _phrases(words: Sequence[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[place:] for place in range(_PHRASE)), strict=False))


def _spaced(words: Iterable[str]) -> str:
    """Words that begin and end where those of another text do, if they stand in it."""
    return f" {' '.join(words)} "
