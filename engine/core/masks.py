"""What each sequence may say next: grammars and allowed tokens as bit masks of a step."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from types import MappingProxyType

import numpy as np

from engine.backend.backend import UInt32
from engine.core.batch import Masks
from engine.errors import GenerationFailed
from engine.grammar.mask import Matcher, Vocabulary, allocate, mask_of
from engine.grammar.pool import MatcherPool
from engine.messages import TokenRequest

NO_MASKS = Masks({}, np.zeros((0, 1), np.uint32))
NO_DRAFTS: Mapping[int, Sequence[int]] = MappingProxyType({})
_ALL_ALLOWED = np.uint32(0xFFFFFFFF)


class Constraints:
    """The matchers of constrained sequences, from compilation to the last token.

    Grammars compile on the pool's threads; all else happens on the step thread.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._pool = MatcherPool(vocabulary)
        self._compiling: dict[int, Future[Matcher]] = {}
        self._compiled: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._matchers: dict[int, Matcher] = {}
        self._allowed: dict[int, UInt32] = {}
        self._buffer: UInt32 = allocate(16, vocabulary)

    def open(self, request: TokenRequest, wake: Callable[[], None]) -> bool:
        """Take a sequence in; False when it must wait for `ready`, which `wake` announces."""
        if request.sampling.allowed_token_ids is not None:
            self._allowed[request.key] = mask_of(
                request.sampling.allowed_token_ids, self._vocabulary
            )
        if request.grammar is None:
            return True
        future = self._pool.open(request.grammar)
        self._compiling[request.key] = future

        def announce(_: Future[Matcher]) -> None:
            self._compiled.put(request.key)
            wake()

        future.add_done_callback(announce)
        return False

    def ready(self) -> list[tuple[int, str | None]]:
        """Sequences whose grammar is compiled since the last call, or the reason why it is not."""
        done: list[tuple[int, str | None]] = []
        while not self._compiled.empty():
            key = self._compiled.get()
            future = self._compiling.pop(key, None)
            if future is None:
                continue
            try:
                self._matchers[key] = future.result()
                done.append((key, None))
            except CancelledError:
                continue
            except GenerationFailed as error:
                done.append((key, error.message))
        return done

    def masks(
        self,
        keys: Sequence[int],
        closes: Mapping[int, int],
        drafts: Mapping[int, Sequence[int]] = NO_DRAFTS,
    ) -> Masks:
        """The masks of the sequences that draw a token in this step, one more for each draft.

        `closes` maps sequences to the token that they draw if what else they ask for allows it;
        these have no drafts. `drafts` maps sequences to drafts that their grammars allow.
        """
        masked = [key for key in keys if key in self._matchers]
        masked.sort(key=lambda key: key in drafts)  # rows without drafts are filled in one go
        others = [
            key
            for key in keys
            if (key in self._allowed or key in closes) and key not in self._matchers
        ]
        if not masked and not others:
            return NO_MASKS
        rows: dict[int, int] = {}
        count = 0
        for key in (*masked, *others):
            rows[key] = count
            count += 1 + len(drafts.get(key, ()))
        if count > len(self._buffer):
            self._buffer = allocate(2 * count, self._vocabulary)
        self._fill({key: rows[key] for key in masked}, drafts)
        for key, row in rows.items():
            own = self._buffer[row : row + 1 + len(drafts.get(key, ()))]
            if key not in self._matchers:
                own.fill(_ALL_ALLOWED)
            if key in self._allowed:
                own &= self._allowed[key]
            if key in closes:
                _leave_only(closes[key], own[0])
        return Masks(rows, self._buffer[:count])

    def _fill(self, rows: Mapping[int, int], drafts: Mapping[int, Sequence[int]]) -> None:
        """Write what the matchers allow from these rows on; those without drafts come first."""
        plain = [self._matchers[key] for key in rows if key not in drafts]
        self._pool.fill(plain, self._buffer)
        jobs = [
            (self._matchers[key], row, drafts[key]) for key, row in rows.items() if key in drafts
        ]
        self._pool.fill_drafts(jobs, self._buffer)

    def fitting(self, key: int, drafts: Sequence[int]) -> int:
        """How many of these drafts, in order, the sequence's grammar lets come next."""
        matcher = self._matchers.get(key)
        return len(drafts) if matcher is None else matcher.accepts(drafts)

    def take(self, key: int, token: int) -> bool:
        """Advance past a token; True when the document is complete.

        Raises GenerationFailed when the grammar cannot go on.
        """
        matcher = self._matchers.get(key)
        if matcher is None:
            return False
        if not matcher.consume(token):
            raise GenerationFailed(f"the grammar cannot go on: {matcher.error}")
        return matcher.is_finished

    def forced(self, key: int) -> list[int]:
        """The tokens that must come next. Where others were banned as well, none are taken."""
        matcher = self._matchers.get(key)
        return matcher.forced() if matcher is not None and key not in self._allowed else []

    def close(self, key: int) -> None:
        """Forget a sequence."""
        self._matchers.pop(key, None)
        self._allowed.pop(key, None)
        future = self._compiling.pop(key, None)
        if future is not None:
            future.cancel()

    def stop(self) -> None:
        self._pool.close()


def _leave_only(token: int, row: UInt32) -> None:
    """Ban every other token, unless the row [words] bans this one."""
    bit = np.uint32(1 << (token & 31))
    if row[token >> 5] & bit:
        row.fill(0)
        row[token >> 5] = bit
