"""Which sequences run in the next step, with how many tokens each."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

from engine.core.pages import PagePool
from engine.core.prefix import PAGE_TOKENS
from engine.core.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Slice:
    """`count` tokens of a sequence from `computed` on; `samples` when a next token is drawn.

    `drafts` are guesses at the tokens behind them: each has a row, and a token is drawn after it.
    """

    sequence: Sequence
    count: int
    samples: bool
    drafts: tuple[int, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """How many of the tokens belong to the prompt."""
        sequence = self.sequence
        return max(0, min(sequence.computed + self.count, sequence.prompt_len) - sequence.computed)


class Scheduler:
    """Continuous batching under a token budget: decode rows first, then chunks of prefill.

    Sequences run by priority (lower first), then in order of arrival. When pages run out, the last
    running one in this order gives its pages back and waits again (it is computed once more later,
    with the same tokens). A sequence is matched with the prefix index when it is admitted, not when
    it arrives, so that a burst with a common prefix computes the prefix once.
    """

    def __init__(
        self, pool: PagePool, max_sequences: int, max_batch_tokens: int, chunk: int
    ) -> None:
        self.pool = pool
        self.max_sequences = max_sequences
        self.max_batch_tokens = max(max_batch_tokens, max_sequences)
        self.chunk = chunk
        self.waiting: list[Sequence] = []  # by priority, then arrival
        self.running: dict[Sequence, None] = {}  # in order of admission
        self.preemptions = 0
        self.reused_tokens = 0

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    def add(self, sequence: Sequence) -> None:
        insort(self.waiting, sequence, key=_rank)

    def schedule(self) -> tuple[list[Slice], list[Sequence]]:
        """The slices of the next step, and the sequences that can never get the pages they need."""
        exhausted: list[Sequence] = []
        planned: dict[Sequence, Slice] = {}
        budget = self.max_batch_tokens
        preemptions = self.preemptions
        for sequence in self._in_step_order():
            if sequence not in self.running:  # preempted for one before it
                continue
            count = min(sequence.remaining, self.chunk, budget)
            if count == 0:
                break
            if self._grow(sequence, sequence.computed + count, planned):
                planned[sequence] = _slice(sequence, count)
                budget -= count
            elif sequence in self.running:
                exhausted.append(sequence)
                self.finish(sequence)
        if self.preemptions == preemptions:
            exhausted += self._admit(planned, budget)
        return list(planned.values()), exhausted

    def advance(self, sequence: Sequence, count: int) -> None:
        """Note that the next `count` tokens are computed, and publish the pages that they filled.

        A page that holds drafts is full only when all of them have come true.
        """
        sequence.computed += count
        full = sequence.computed // PAGE_TOKENS
        for place, key in enumerate(sequence.hashes(full)[sequence.sealed :], sequence.sealed):
            self.pool.index.publish(sequence.pages[place], key)
        sequence.sealed = full

    def reserve(self, sequence: Sequence, count: int) -> int:
        """Own pages for up to `count` drafts behind the tokens; how many find room.

        They get free pages only: nobody is preempted for a guess.
        """
        tokens = len(sequence.token_ids)
        while len(sequence.pages) * PAGE_TOKENS < tokens + count:
            page = self.pool.allocate()
            if page is None:
                break
            sequence.pages.append(page)
        return min(count, len(sequence.pages) * PAGE_TOKENS - tokens)

    def trim(self, sequence: Sequence) -> None:
        """Give back the pages of drafts that did not come true: others may need them."""
        kept = -(-sequence.computed // PAGE_TOKENS)
        self.pool.release(sequence.pages[kept:])
        del sequence.pages[kept:]

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is; its pages are free at once."""
        if sequence in self.running:
            del self.running[sequence]
            self.pool.release(sequence.pages, sequence.kept_pages)
            sequence.pages = []
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def check(self) -> None:
        """Raise RuntimeError unless free + owned = pool."""
        self.pool.check([sequence.pages for sequence in self.running])

    def _in_step_order(self) -> list[Sequence]:
        return sorted(self.running, key=lambda sequence: (sequence.in_prefill, _rank(sequence)))

    def _grow(self, sequence: Sequence, tokens: int, planned: dict[Sequence, Slice]) -> bool:
        """Own pages for the first `tokens` tokens; False when the sequence cannot run now."""
        while len(sequence.pages) * PAGE_TOKENS < tokens:
            page = self.pool.allocate()
            if page is not None:
                sequence.pages.append(page)
                continue
            victim = max(self.running, key=_rank)
            if victim is sequence and len(self.running) == 1:
                return False
            self._preempt(victim)
            planned.pop(victim, None)
            if victim is sequence:
                return False
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.finish(sequence)
        sequence.restart()
        self.add(sequence)
        self.preemptions += 1

    def _admit(self, planned: dict[Sequence, Slice], budget: int) -> list[Sequence]:
        """Start waiting sequences while there is room; returns one that can never fit."""
        for sequence in list(self.waiting):
            if budget <= 0 or len(self.running) >= self.max_sequences:
                break
            hashes = sequence.hashes((len(sequence.token_ids) - 1) // PAGE_TOKENS)
            matched = self.pool.index.match(hashes) if sequence.reads_cache else []
            if sequence.reads_cache and self._is_being_computed(hashes, len(matched)):
                continue
            if not self._fits(sequence, matched):
                if self.running:
                    break
                self.finish(sequence)
                return [sequence]
            self._start(sequence, matched)
            count = min(sequence.remaining, self.chunk, budget)
            self._grow(sequence, sequence.computed + count, planned)
            planned[sequence] = _slice(sequence, count)
            budget -= count
        return []

    def _is_being_computed(self, hashes: list[bytes], place: int) -> bool:
        """Whether a running prefill is about to publish the next page that this prompt lacks."""
        return place < len(hashes) and any(
            other.sealed <= place and other.in_prefill and other.will_publish(place, hashes[place])
            for other in self.running
        )

    def _fits(self, sequence: Sequence, matched: list[int]) -> bool:
        """Whether the whole prompt finds pages while every running sequence can grow by one."""
        needed = -(-len(sequence.token_ids) // PAGE_TOKENS) - len(matched)
        taken = sum(1 for page in matched if self.pool.is_free(page))
        return self.pool.num_free - taken - needed >= len(self.running)

    def _start(self, sequence: Sequence, matched: list[int]) -> None:
        self.waiting.remove(sequence)
        self.running[sequence] = None
        self.pool.retain(matched)
        sequence.pages = matched
        sequence.computed = len(matched) * PAGE_TOKENS
        sequence.sealed = len(matched)
        if not sequence.started:
            sequence.cached = sequence.computed
        self.reused_tokens += sequence.computed


def _slice(sequence: Sequence, count: int) -> Slice:
    """A slice draws a token when it reaches the end, unless the request only wants scores."""
    return Slice(sequence, count, count == sequence.remaining and sequence.request.max_tokens > 0)


def _rank(sequence: Sequence) -> tuple[int, int]:
    """Keys rise with arrival."""
    return sequence.request.priority, sequence.key
