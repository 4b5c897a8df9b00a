"""One choice while it is generated: its tokens, its pages, and how far they are computed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence as Ordered

import numpy as np

from engine.backend.backend import Float32, Int32, Int64
from engine.core.prefix import PAGE_TOKENS, page_hash, root_hash
from engine.core.repeats import dry_penalties, loop_detector, lz_penalties
from engine.core.thinking import Cut, Thoughts
from engine.messages import TokenRequest

_NO_IDS: Int64 = np.zeros(0, np.int64)
_MOST_FORCED = 64  # rows in a decode step of tokens that a grammar forced
_LONGEST_WORD = 256  # tokens of a bad word that are looked at
_NO_VALUES: Float32 = np.zeros(0, np.float32)


def count_alike(one: Ordered[int], other: Ordered[int]) -> int:
    """How many tokens two runs begin with that are the same."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


class SeenTokens:
    """The distinct tokens of prompt and output with their output counts, for the penalties."""

    def __init__(self, prompt: tuple[int, ...]) -> None:
        distinct = np.unique(np.asarray(prompt, np.int64))
        self._ids = np.zeros(len(distinct) + 64, np.int64)
        self._ids[: len(distinct)] = distinct
        self._counts = np.zeros(len(self._ids), np.int32)
        self._length = self._of_prompt = len(distinct)
        self._place = {int(token): place for place, token in enumerate(distinct)}

    def add(self, token: int) -> None:
        """Count one output token."""
        place = self._place.get(token)
        if place is None:
            if self._length == len(self._ids):
                self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])
                self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            place = self._place[token] = self._length
            self._ids[place] = token
            self._length += 1
        self._counts[place] += 1

    def remove(self, token: int) -> None:
        """Take back the output token that was counted last."""
        place = self._place[token]
        self._counts[place] -= 1
        if place >= self._of_prompt and not self._counts[place]:
            del self._place[token]
            self._length -= 1

    def columns(self) -> tuple[Int64, Int32]:
        """Token ids and output counts, equally long; later changes do not show in them."""
        return self._ids[: self._length].copy(), self._counts[: self._length].copy()


class Sequence:
    """Prompt and output ids with the pages that hold their keys and values.

    `token_ids[:computed]` have keys and values in `pages`; the pages `pages[:sealed]` are full and
    known to the prefix index. `output_len` tokens at the end of `token_ids` were generated here.
    """

    def __init__(self, request: TokenRequest) -> None:
        self.request = request
        self.key = request.key
        self.token_ids = array("q", request.token_ids)
        self.prompt_len = len(request.token_ids)
        self.computed = 0
        self.cached = 0
        self.pages: list[int] = []
        self.sealed = 0
        self.started = False
        self._hashes: list[bytes] = []
        self._root = root_hash(request.cache_scope)
        sampling = request.sampling
        self.ends = frozenset(() if sampling.ignore_eos else request.eos_ids)
        self.stops = frozenset(request.stop_ids)
        self._bias = self._bias_columns(())
        self._bias_while_short = self._bias_columns(tuple(self.ends | self.stops))
        self.seen = SeenTokens(request.token_ids) if self._has_penalties() else None
        self.loops = loop_detector(request.repetition)
        self.is_looping = False
        self.thoughts = Thoughts(request.thinking) if request.thinking else None
        self.scored = 1  # prompt tokens that have a score; nothing predicts the first

    @property
    def output_len(self) -> int:
        return len(self.token_ids) - self.prompt_len

    @property
    def kept_pages(self) -> int:
        """How many leading pages hold nothing but what the request wants to be kept."""
        return self.request.keep_tokens // PAGE_TOKENS

    @property
    def remaining(self) -> int:
        """Tokens that must be computed before the next one can be drawn."""
        return len(self.token_ids) - self.computed

    @property
    def in_prefill(self) -> bool:
        """Whether prompt tokens (or those of a preempted output) are still to be computed."""
        return self.computed < self.prompt_len or self.remaining > _MOST_FORCED

    @property
    def reads_cache(self) -> bool:
        """Prompt scores need every position computed."""
        return self.request.prompt_top is None

    @property
    def has_bans(self) -> bool:
        """Whether a token that a grammar forces may be banned by another field."""
        sampling = self.request.sampling
        return bool(sampling.bad_words) or self.output_len < sampling.min_tokens

    @property
    def close_due(self) -> int | None:
        """The token that must come next to close a thought, unless a mask is against it."""
        thoughts = self.thoughts
        if thoughts is None or thoughts.due is None or self.bans(thoughts.close_id):
            return None
        return thoughts.close_id

    def bans(self, token: int) -> bool:
        """Whether the request's own bias and bans keep a token from coming next."""
        ids, values = self.bias()
        return bool(np.isneginf(values[ids == token]).any())

    def cut_by(self, token: int) -> Cut | None:
        """Why a token that was drawn next was forced to close a thought; None: it was not.

        Where a close is due, it is banned or not allowed unless it is forced.
        """
        thoughts = self.thoughts
        return thoughts.due if thoughts is not None and token == thoughts.close_id else None

    def to_score(self, count: int) -> tuple[int, int]:
        """The prompt tokens, by place, that the next `count` rows predict and that lack a score."""
        if self.request.prompt_top is None:
            return 0, 0
        first = max(self.computed + 1, self.scored)
        return first, max(first, min(self.computed + count + 1, self.prompt_len))

    def hashes(self, num_pages: int) -> list[bytes]:
        """The chained hashes of the first `num_pages` pages, all of them full."""
        while len(self._hashes) < num_pages:
            first = len(self._hashes) * PAGE_TOKENS
            parent = self._hashes[-1] if self._hashes else self._root
            ids = self.token_ids[first : first + PAGE_TOKENS]
            self._hashes.append(page_hash(parent, ids))
        return self._hashes[:num_pages]

    def will_publish(self, place: int, key: bytes) -> bool:
        """Whether this prefill computes the page `key` at `place`."""
        return place < self.prompt_len // PAGE_TOKENS and self.hashes(place + 1)[place] == key

    def suppose(self, token: int) -> None:
        """Go on as if a draft were the next token, as far as the draw of the one after it goes.

        `retract` takes drafts back before anything else happens to the sequence.
        """
        self.token_ids.append(token)
        if self.seen is not None:
            self.seen.add(token)

    def retract(self, count: int) -> None:
        """Take back the last `count` drafts that were supposed."""
        for _ in range(count):
            token = self.token_ids.pop()
            if self.seen is not None:
                self.seen.remove(token)

    def agreement(self, first: int, drafts: tuple[int, ...]) -> int:
        """How many of the drafts for the places from `first` on have come true."""
        return count_alike(self.token_ids[first : first + len(drafts)], drafts)

    def append(self, token: int) -> None:
        """Take the next token of the output."""
        self.suppose(token)
        watched = self.thoughts is not None and self.thoughts.add(token)
        if self.loops is None:
            return
        if watched:  # the answer after a thought does not follow on the answer before it
            self.loops.reset()
        else:
            self.is_looping = self.loops.add(token)

    def restart(self) -> None:
        """Forget the pages after they were released; everything is computed again."""
        self.pages = []
        self.computed = 0
        self.sealed = 0

    def bias(self) -> tuple[Int64, Float32]:
        """Token ids and what is added to their logits now; -inf bans. An id may occur twice."""
        sampling = self.request.sampling
        short = self.output_len < sampling.min_tokens
        columns = [self._bias_while_short if short else self._bias]
        if sampling.bad_words:
            columns.append(self._bad_word_ends())
        if sampling.dry_multiplier > 0 or sampling.lz_penalty > 0:
            ids = np.array(self.token_ids, np.int64)
            if sampling.dry_multiplier > 0:
                columns.append(dry_penalties(ids, sampling))
            if sampling.lz_penalty > 0:
                columns.append(lz_penalties(ids, sampling))
        if len(columns) == 1:
            return columns[0]
        ids_columns, values = zip(*columns, strict=True)
        return np.concatenate(ids_columns), np.concatenate(values)

    def _bad_word_ends(self) -> tuple[Int64, Float32]:
        """The last tokens of the bad words whose other tokens the output ends with."""
        output = self.token_ids[self.prompt_len :][-_LONGEST_WORD:].tolist()
        ends = {
            word[-1]
            for word in self.request.sampling.bad_words
            if len(word) == 1 or output[-len(word) + 1 :] == list(word[:-1])
        }
        return np.fromiter(ends, np.int64, len(ends)), np.full(len(ends), -np.inf, np.float32)

    def _bias_columns(self, banned: tuple[int, ...]) -> tuple[Int64, Float32]:
        bias = {**self.request.sampling.logit_bias, **dict.fromkeys(banned, float("-inf"))}
        if not bias:
            return _NO_IDS, _NO_VALUES
        return np.fromiter(bias, np.int64), np.fromiter(bias.values(), np.float32)

    def _has_penalties(self) -> bool:
        sampling = self.request.sampling
        return (
            sampling.repetition_penalty != 1.0
            or sampling.frequency_penalty != 0.0
            or sampling.presence_penalty != 0.0
        )
