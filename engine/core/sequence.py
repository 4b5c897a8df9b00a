"""One choice while it is generated: its tokens, its pages, and how far they are computed."""

from __future__ import annotations

from array import array

import numpy as np

from engine.backend.backend import Float32, Int32, Int64
from engine.core.prefix import PAGE_TOKENS, page_hash, root_hash
from engine.types import TokenRequest

_NO_IDS: Int64 = np.zeros(0, np.int64)
_NO_VALUES: Float32 = np.zeros(0, np.float32)


class SeenTokens:
    """The distinct tokens of prompt and output with their output counts, for the penalties."""

    def __init__(self, prompt: tuple[int, ...]) -> None:
        distinct = np.unique(np.asarray(prompt, np.int64))
        self._ids = np.zeros(len(distinct) + 64, np.int64)
        self._ids[: len(distinct)] = distinct
        self._counts = np.zeros(len(self._ids), np.int32)
        self._length = len(distinct)
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

    def columns(self) -> tuple[Int64, Int32]:
        """Token ids and output counts, equally long."""
        return self._ids[: self._length], self._counts[: self._length]


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

    @property
    def output_len(self) -> int:
        return len(self.token_ids) - self.prompt_len

    @property
    def remaining(self) -> int:
        """Tokens that must be computed before the next one can be drawn."""
        return len(self.token_ids) - self.computed

    @property
    def in_prefill(self) -> bool:
        return self.remaining > 1 or self.output_len == 0

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

    def append(self, token: int) -> None:
        """Take a drawn token."""
        self.token_ids.append(token)
        if self.seen is not None:
            self.seen.add(token)

    def restart(self) -> None:
        """Forget the pages after they were released; everything is computed again."""
        self.pages = []
        self.computed = 0
        self.sealed = 0

    def bias(self) -> tuple[Int64, Float32]:
        """Token ids and what is added to their logits now; -inf bans."""
        short = self.output_len < self.request.sampling.min_tokens
        return self._bias_while_short if short else self._bias

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
