"""What each sequence may say next: grammars and allowed tokens as bit masks of a step."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future

import numpy as np

from engine.backend.backend import UInt32
from engine.core.batch import Masks
from engine.errors import GenerationFailed
from engine.grammar.mask import Matcher, Vocabulary, allocate, mask_of
from engine.grammar.pool import MatcherPool
from engine.messages import TokenRequest

NO_MASKS = Masks({}, np.zeros((0, 1), np.uint32))


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

    def masks(self, keys: Sequence[int]) -> Masks:
        """The masks of the sequences that draw a token in this step."""
        masked = [key for key in keys if key in self._matchers]
        only_allowed = [key for key in keys if key in self._allowed and key not in self._matchers]
        if not masked and not only_allowed:
            return NO_MASKS
        rows = {key: row for row, key in enumerate((*masked, *only_allowed))}
        if len(rows) > len(self._buffer):
            self._buffer = allocate(2 * len(rows), self._vocabulary)
        self._pool.fill([self._matchers[key] for key in masked], self._buffer)
        for key, row in rows.items():
            allowed = self._allowed.get(key)
            if allowed is not None and key in self._matchers:
                self._buffer[row] &= allowed
            elif allowed is not None:
                self._buffer[row] = allowed
        return Masks(rows, self._buffer[: len(rows)])

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
