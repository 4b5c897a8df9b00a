"""Repeats in a sequence's own tokens: what they cost the next token, and when they are a loop."""

from __future__ import annotations

import numpy as np

from engine.backend.backend import Float32, Int64
from engine.types import RepetitionDetection, Sampling

LZ_WINDOW = 256
_LONGEST = 1024  # a longer repeat costs no more
_MOST = 1e30  # stays finite in fp32


def dry_penalties(ids: Int64, sampling: Sampling) -> tuple[Int64, Float32]:
    """Token ids and what DRY adds to their logits (negative), by the formula of `Sampling`."""
    breakers = sampling.dry_breakers
    reach = 0  # tokens at the end without a breaker
    for token in ids[::-1][:_LONGEST].tolist():
        if token in breakers:
            break
        reach += 1
    tokens, lengths = repeats(ids, reach)
    kept = lengths >= sampling.dry_allowed_length
    kept &= ~np.isin(tokens, np.fromiter(breakers, np.int64, len(breakers)))
    tokens, lengths = tokens[kept], lengths[kept]
    with np.errstate(over="ignore"):
        growth = np.power(sampling.dry_base, (lengths - sampling.dry_allowed_length).astype(float))
    costs = np.minimum(sampling.dry_multiplier * growth, _MOST)
    return tokens, (-costs).astype(np.float32)


def lz_penalties(ids: Int64, sampling: Sampling) -> tuple[Int64, Float32]:
    """Token ids and what the LZ penalty adds to their logits (negative)."""
    tokens, lengths = repeats(ids[-LZ_WINDOW:], LZ_WINDOW)
    return tokens, (-sampling.lz_penalty * np.log2(2.0 + lengths)).astype(np.float32)


def repeats(ids: Int64, longest: int) -> tuple[Int64, Int64]:
    """Tokens that would continue a repeat, each once, with the length of the longest one.

    A token t continues a repeat of length l when t followed, somewhere before, the same l tokens
    that the sequence ends with. Lengths are cut at `longest`.
    """
    if len(ids) < 2 or longest < 1:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ends = np.flatnonzero(ids[:-1] == ids[-1])  # places that the last token has had before
    lengths = np.ones(len(ends), np.int64)
    growing = np.arange(len(ends))
    for length in range(1, longest):
        growing = growing[ends[growing] >= length]
        growing = growing[ids[ends[growing] - length] == ids[-1 - length]]
        if not len(growing):
            break
        lengths[growing] += 1
    tokens, which = np.unique(ids[ends + 1], return_inverse=True)
    best = np.zeros(len(tokens), np.int64)
    np.maximum.at(best, which, lengths)
    return tokens, best


class LoopDetector:
    """Tells when the output ends in copies of one pattern; a constant cost per token."""

    def __init__(self, detection: RepetitionDetection) -> None:
        sizes = np.arange(1, detection.max_pattern_size + 1)
        self._needed = np.where(
            sizes >= detection.min_pattern_size, sizes * (detection.min_count - 1), np.inf
        )
        self._recent = np.full(len(sizes), -1, np.int64)  # the latest tokens, newest first
        self._matched = np.zeros(len(sizes), np.int64)  # tokens that equal the one `size` before

    def add(self, token: int) -> bool:
        """Take the next token; True when it completes a loop."""
        self._matched = np.where(self._recent == token, self._matched + 1, 0)
        self._recent = np.roll(self._recent, 1)
        self._recent[:1] = token
        return bool((self._matched >= self._needed).any())

    def reset(self) -> None:
        """Forget all tokens: those that come now follow on none of them."""
        self._recent.fill(-1)
        self._matched.fill(0)


def loop_detector(detection: RepetitionDetection | None) -> LoopDetector | None:
    """A detector, or None where the detection is off."""
    return LoopDetector(detection) if detection and detection.max_pattern_size else None
