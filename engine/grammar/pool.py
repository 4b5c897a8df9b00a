"""Matchers on demand, compiled beside the step thread."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b

from llguidance import LLExecutor, LLMatcher

from engine.errors import GenerationFailed
from engine.grammar.compile import LIMITS
from engine.grammar.mask import Mask, Matcher, Vocabulary, fill_draft_masks, fill_masks

_STACK_BYTES = 64 * 1024 * 1024  # llguidance recurses; see engine.grammar.schema.MAX_NESTING


class MatcherPool:
    """One per engine. Builds the vocabulary when it is made; see `Vocabulary.build`.

    A grammar that was used before, or that another request waits for, is not compiled again: its
    first matcher stays as a prototype that is never advanced, and every request gets a copy of it.
    """

    def __init__(self, vocabulary: Vocabulary, threads: int = 2, capacity: int = 64) -> None:
        self.vocabulary = vocabulary
        self._tokenizer = vocabulary.build()
        self._capacity = capacity
        self._prototypes: OrderedDict[bytes, Future[Matcher]] = OrderedDict()
        self._lock = threading.Lock()
        self._workers = ThreadPoolExecutor(threads, "grammar")
        self._masks = LLExecutor(threads)
        self._start_workers(threads)
        self.compiled = 0

    def open(self, grammar: str) -> Future[Matcher]:
        """A matcher of its own, warm: its first mask is computed.

        The future is done at once when the grammar is known. It can be cancelled at any time. Its
        callbacks run in a worker thread, or in the caller's. Fails with GenerationFailed.
        """
        mine: Future[Matcher] = Future()
        self._prototype(grammar).add_done_callback(lambda made: self._hand_over(made, mine))
        return mine

    def fill(self, matchers: Sequence[Matcher], masks: Mask) -> None:
        """See `fill_masks`."""
        fill_masks(self._masks, matchers, masks)

    def fill_drafts(self, jobs: Sequence[tuple[Matcher, int, Sequence[int]]], masks: Mask) -> None:
        """See `fill_draft_masks`."""
        fill_draft_masks(self._masks, jobs, masks)

    def close(self) -> None:
        """Stop. What is not compiled yet is cancelled."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _start_workers(self, threads: int) -> None:
        """Have all threads made now, with stacks that are large enough."""
        ready = threading.Barrier(threads)
        before = threading.stack_size(_STACK_BYTES)
        try:
            started = [self._workers.submit(ready.wait) for _ in range(threads)]
        finally:
            threading.stack_size(before)
        for future in started:
            future.result()

    def _prototype(self, grammar: str) -> Future[Matcher]:
        key = blake2b(grammar.encode(), digest_size=16).digest()
        with self._lock:
            known = self._prototypes.get(key)
            if known is None or known.cancelled() or _failed(known):
                known = self._workers.submit(self._compile, grammar)
                self._prototypes[key] = known
            self._prototypes.move_to_end(key)
            while len(self._prototypes) > self._capacity:
                self._prototypes.popitem(last=False)
        return known

    def _compile(self, grammar: str) -> Matcher:
        inner = LLMatcher(self._tokenizer, grammar, log_level=0, limits=LIMITS)
        self.compiled += 1
        matcher = Matcher(inner, self.vocabulary)
        if matcher.error is None:
            inner.compute_bitmask()
        if matcher.error is not None:
            raise GenerationFailed(f"the grammar cannot be used: {matcher.error}")
        return matcher

    def _hand_over(self, made: Future[Matcher], mine: Future[Matcher]) -> None:
        if made.cancelled():
            mine.cancel()
        if not mine.set_running_or_notify_cancel():
            return
        error = made.exception()
        if error is not None:
            mine.set_exception(_as_failure(error))
            return
        with self._lock:  # two threads must not copy one prototype at a time
            copy = made.result().copy()
        mine.set_result(copy)


def _failed(future: Future[Matcher]) -> bool:
    return future.done() and future.exception() is not None


def _as_failure(error: BaseException) -> GenerationFailed:
    if isinstance(error, GenerationFailed):
        return error
    return GenerationFailed(f"the grammar cannot be used: {error!r}")
