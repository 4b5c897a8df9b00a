"""Drafts: guesses at a sequence's next tokens, which a step then checks all at once.

The n-gram drafter is prompt lookup (Saxena 2023): where the last tokens have occurred before, what
followed them may follow again. It needs no weights.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence as Ordered
from typing import NamedTuple, Protocol

import numpy as np

from engine.backend.backend import Int64, UInt64
from engine.core.sequence import Sequence

SIZES = (4, 3, 2)
"""Lengths of the runs that are looked up, the surest first."""

_FACTOR = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Wish(NamedTuple):
    """A sequence that could use up to `most` drafts."""

    sequence: Sequence
    most: int


class Drafter(Protocol):
    """Where drafts come from. All calls come from the engine's step thread."""

    steps: int
    """Tokens that a model has drafted since the start."""

    @property
    def kernel_ns(self) -> int:
        """That of the model's backend; 0 without one."""

    def propose(self, wishes: Ordered[Wish], room: int) -> list[list[int]]:
        """Drafts for each wish, perhaps none; no more than `room` altogether."""

    def close(self, key: int) -> None:
        """Forget a sequence, whether or not it was ever asked about."""


def shared(wanted: Ordered[int], room: int) -> list[int]:
    """Grants of at most `room` altogether: small wants whole, the others as evenly as can be."""
    grants = [0] * len(wanted)
    for served, place in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        grants[place] = min(wanted[place], room // (len(wanted) - served))
        room -= grants[place]
    return grants


class NgramDrafter:
    """Copies what followed the last tokens of a sequence where they occurred before in it."""

    steps = 0
    kernel_ns = 0

    def __init__(self) -> None:
        self._texts: dict[int, _Text] = {}

    def propose(self, wishes: Ordered[Wish], room: int) -> list[list[int]]:
        found = [self._text(wish.sequence).copy(wish.most) for wish in wishes]
        grants = shared([len(drafts) for drafts in found], room)
        return [drafts[:grant] for drafts, grant in zip(found, grants, strict=True)]

    def close(self, key: int) -> None:
        self._texts.pop(key, None)

    def _text(self, sequence: Sequence) -> _Text:
        """The text of a sequence with all its tokens; most were in it the last time."""
        text = self._texts.get(sequence.key)
        if text is None:
            text = self._texts[sequence.key] = _Text(sequence)
        text.extend(sequence)
        return text


class _Text:
    """The predicted output, if the client sent one, and then the tokens of a sequence.

    `_source` is the place of the token that comes next if the copy that was begun goes on.
    """

    def __init__(self, sequence: Sequence) -> None:
        prediction = sequence.request.prediction
        self._before = len(prediction)
        self._ids = array("q", (*prediction, *sequence.request.token_ids))
        self._source: int | None = 0 if prediction else None
        known = np.array(self._ids, np.int64)[:-1]  # the last run's continuation is not known yet
        self._runs = [_Runs(size, known) for size in SIZES]
        self._indexed = len(known)

    def extend(self, sequence: Sequence) -> None:
        """Take the tokens that are new, and see whether the copy was right about them."""
        start = len(self._ids)
        new = sequence.token_ids[start - self._before :]
        self._ids.extend(new)
        if self._source is not None:
            end = self._source + len(new)
            self._source = end if self._ids[self._source : end] == new else None

    def copy(self, count: int) -> list[int]:
        """The `count` tokens that follow in the source; none where there is none.

        A source that reaches the end of the text goes on with its own copy.
        """
        if self._source is None:
            self._source = self._find()
        if self._source is None:
            return []
        followers = self._ids[self._source : self._source + count].tolist()
        return (followers * -(-count // len(followers)))[:count]

    def _find(self) -> int | None:
        """The place behind the last occurrence of the longest run that the text ends with."""
        length = len(self._ids)
        while self._indexed < length - 1:
            self._indexed += 1
            for runs in self._runs:
                runs.add(self._ids, self._indexed)
        found = (runs.find(self._ids) for runs in self._runs)
        return next((end for end in found if end is not None), None)


class _Runs:
    """Where each run of `size` tokens has ended last, by a hash of it.

    Two runs of one hash only make a bad guess. What the prompt has is in two sorted arrays: a
    dictionary of a long prompt would take ten times the memory.
    """

    def __init__(self, size: int, ids: Int64) -> None:
        self._size = size
        keys, last = np.unique(_hashes(ids, size)[::-1], return_index=True)
        self._keys = keys
        self._ends = len(ids) - last
        self._recent: dict[int, int] = {}

    def add(self, ids: array[int], end: int) -> None:
        """Note the run before `end`."""
        if end >= self._size:
            self._recent[self._hash(ids, end)] = end

    def find(self, ids: array[int]) -> int | None:
        """The end of the last noted run that equals the last tokens."""
        if len(ids) < self._size:
            return None
        key = self._hash(ids, len(ids))
        recent = self._recent.get(key)
        if recent is not None:
            return recent
        place = int(np.searchsorted(self._keys, np.uint64(key)))
        known = place < len(self._keys) and int(self._keys[place]) == key
        return int(self._ends[place]) if known else None

    def _hash(self, ids: array[int], end: int) -> int:
        key = 0
        for token in ids[end - self._size : end]:
            key = (key * _FACTOR + token) & _MASK
        return key


def _hashes(ids: Int64, size: int) -> UInt64:
    """The hash of every run of `size` ids, by its first place [len(ids) - size + 1, at least 0]."""
    count = max(0, len(ids) - size + 1)
    keys = np.zeros(count, np.uint64)
    with np.errstate(over="ignore"):
        for offset in range(size):
            keys = keys * np.uint64(_FACTOR) + ids[offset : offset + count].astype(np.uint64)
    return keys
