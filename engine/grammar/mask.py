"""Which tokens may come next: one matcher per constrained sequence, bit masks for a whole step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from numpy.typing import NDArray

Mask = NDArray[np.uint32]
"""[words] or [rows, words]: bit i % 32 of word i // 32 is set when token i is allowed."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What masks are made over; can be sent to another process.

    `json` is the vocabulary as tokenizer.json has it, with every control token flagged special.
    `size` is the model's, padding included. `eos_ids` end a document; the first must exist.
    """

    json: str
    size: int
    eos_ids: tuple[int, ...]

    @property
    def words(self) -> int:
        """Length of a mask row."""
        return (self.size + 31) // 32

    def build(self) -> LLTokenizer:
        """Takes 0.3 s for 49,152 tokens and holds the GIL meanwhile: call it before serving.

        Raises ValueError for a vocabulary that llguidance does not know.
        """
        return LLTokenizer(self.json, n_vocab=self.size, eos_token=list(self.eos_ids))


class Matcher:
    """The state of one constrained sequence. One thread at a time may use it.

    Control tokens are never allowed. End tokens are, exactly when the document may end.
    """

    def __init__(self, inner: LLMatcher, vocabulary: Vocabulary) -> None:
        self.inner = inner
        self.vocabulary = vocabulary
        self._ended = 0

    def copy(self) -> Matcher:
        """An independent matcher in the same state; takes microseconds."""
        other = Matcher(self.inner.deep_copy(), self.vocabulary)
        other._ended = self._ended
        return other

    @property
    def error(self) -> str | None:
        """Why this matcher cannot go on: a limit of the parser, or a token that was not allowed.

        Its masks allow the end tokens alone from then on.
        """
        if not self.inner.is_error():
            return None
        return self.inner.get_error().split("\n", 1)[0] or "the parser stopped"

    @property
    def is_finished(self) -> bool:
        """Whether the document is complete and nothing but an end token can follow."""
        return self.inner.is_accepting() and self.inner.is_stopped()

    @property
    def may_end(self) -> bool:
        """Whether the document is complete, although it may go on."""
        return self.inner.is_accepting()

    def fill(self, row: Mask) -> None:
        """Write the mask of the next token. `row` is [words] and contiguous."""
        self.inner.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
        _allow_ends(row, self.vocabulary.eos_ids)

    def consume(self, token: int) -> bool:
        """Take a token. False when it was not allowed: see `error`, nothing leaves that state."""
        if token in self.vocabulary.eos_ids and self.inner.is_accepting():
            self._ended += 1
            return True
        return self.inner.consume_token(token)

    def forced(self) -> list[int]:
        """The tokens that must come next; often none."""
        return self.inner.compute_ff_tokens()

    def accepts(self, tokens: Sequence[int]) -> int:
        """How many of these tokens could come next, in order; the state stays as it is."""
        return self.inner.validate_tokens(list(tokens))

    def rollback(self, count: int) -> None:
        """Take back the last `count` tokens. Raises ValueError when there were fewer."""
        ends = min(count, self._ended)
        self._ended -= ends
        if count > ends and not self.inner.rollback(count - ends):
            raise ValueError(f"cannot take back {count} tokens: {self.error}")


def allocate(rows: int, vocabulary: Vocabulary) -> Mask:
    """Masks [rows, words] that allow everything, for use in every step."""
    return np.full((rows, vocabulary.words), 0xFFFFFFFF, np.uint32)


def fill_masks(executor: LLExecutor, matchers: Sequence[Matcher], masks: Mask) -> None:
    """Write the mask of matcher i into row i of masks [at least G, words], in parallel.

    The matchers must be distinct. The GIL is free meanwhile.
    """
    if not masks.flags["C_CONTIGUOUS"] or masks.dtype != np.uint32:
        raise ValueError("masks must be contiguous rows of uint32")
    if not matchers:
        return
    jobs = [(matcher.inner, row) for row, matcher in enumerate(matchers)]
    rows, words = masks.shape
    executor.unsafe_compute_mask_ptr(jobs, masks.ctypes.data, 4 * words, rows)
    _allow_ends(masks[: len(matchers)], matchers[0].vocabulary.eos_ids)


def fill_draft_masks(
    executor: LLExecutor, jobs: Sequence[tuple[Matcher, int, Sequence[int]]], masks: Mask
) -> None:
    """Write the masks of the next token and of that after each draft, in parallel.

    A job is a matcher, its first row in masks [rows, words], and drafts, at least one, all of which
    the matcher accepts. The matchers must be distinct, and stay as they are. The GIL is free
    meanwhile.
    """
    if not masks.flags["C_CONTIGUOUS"] or masks.dtype != np.uint32:
        raise ValueError("masks must be contiguous rows of uint32")
    if not jobs:
        return
    inner = [(matcher.inner, row, list(drafts)) for matcher, row, drafts in jobs]
    rows, words = masks.shape
    executor.unsafe_compute_mask_ptr_with_draft_token(inner, masks.ctypes.data, 4 * words, rows)
    for matcher, row, drafts in jobs:
        _allow_ends(masks[row : row + len(drafts) + 1], matcher.vocabulary.eos_ids)


def mask_of(ids: Iterable[int], vocabulary: Vocabulary) -> Mask:
    """The mask [words] of `allowed_token_ids`; combine masks by `&=`."""
    tokens = np.fromiter(ids, np.int64)
    bits = np.zeros(32 * vocabulary.words, np.uint8)
    bits[tokens[(tokens >= 0) & (tokens < vocabulary.size)]] = 1
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


def _allow_ends(masks: Mask, eos_ids: Sequence[int]) -> None:
    """Give every end token the bit of the first; llguidance writes only that one."""
    first, *others = eos_ids
    for token in others:
        bit = masks[..., first >> 5] >> np.uint32(first & 31) & np.uint32(1)
        word = masks[..., token >> 5] & ~np.uint32(1 << (token & 31))
        masks[..., token >> 5] = word | bit << np.uint32(token & 31)
