"""Drafts by a second, smaller model (Leviathan et al. 2023): greedy, for all sequences at once."""

from __future__ import annotations

from collections.abc import Sequence as Ordered

from engine.backend.backend import PAGE_TOKENS, Backend
from engine.core.batch import PlanBuilder
from engine.core.draft import Wish, shared
from engine.core.masks import NO_MASKS
from engine.core.pages import PagePool
from engine.core.prefix import PrefixIndex
from engine.core.scheduler import Slice
from engine.core.sequence import Sequence, count_alike
from engine.messages import TokenRequest
from engine.types import Sampling


class ModelDrafter:
    """Runs a model of its own, with pages of its own, over the tokens of the sequences.

    It follows each sequence with a shadow: the same tokens, and behind them what it drafted last.
    What of that came true is already computed; the rest is computed over. A call computes at most
    `max_rows` tokens that it has not seen: until it has caught up with a sequence, and while there
    are no pages, it drafts nothing for it.
    """

    def __init__(self, backend: Backend, num_pages: int, vocab_size: int, max_rows: int) -> None:
        self.steps = 0
        self._backend = backend
        self._plans = PlanBuilder()
        self._pool = PagePool(num_pages, PrefixIndex())
        self._vocab = min(vocab_size, backend.shape.vocab_size)
        self._max_rows = max_rows
        self._shadows: dict[int, _Shadow] = {}

    @property
    def kernel_ns(self) -> int:
        return self._backend.kernel_ns

    def propose(self, wishes: Ordered[Wish], room: int) -> list[list[int]]:
        grants = shared([wish.most for wish in wishes], room)
        shadows = [self._follow(wish.sequence) for wish in wishes]
        ready = self._catch_up(
            {shadow: grant for shadow, grant in zip(shadows, grants, strict=True) if grant}
        )
        while ready:
            ready = self._step([Slice(shadow.sequence, 1, True) for shadow in ready], ready)
        return [shadow.drafts() for shadow in shadows]

    def close(self, key: int) -> None:
        shadow = self._shadows.pop(key, None)
        if shadow is not None:
            self._pool.release(shadow.sequence.pages)
            self._backend.close_sequence(key)

    def _follow(self, sequence: Sequence) -> _Shadow:
        shadow = self._shadows.get(sequence.key)
        if shadow is None:
            shadow = self._shadows[sequence.key] = _Shadow(sequence)
            self._backend.open_sequence(sequence.key, "")
        shadow.follow(sequence)
        return shadow

    def _catch_up(self, grants: dict[_Shadow, int]) -> dict[_Shadow, int]:
        """Compute what is new of the sequences; those that got a draft and want more of them."""
        budget = self._max_rows
        slices: list[Slice] = []
        drafting: dict[_Shadow, int] = {}
        for shadow, grant in grants.items():
            sequence = shadow.sequence
            count = min(sequence.remaining, budget)
            whole = count == sequence.remaining
            end = sequence.computed + count + (grant - 1 if whole else 0)
            if not count or shadow.is_foreign(self._vocab) or not self._own(sequence, end):
                continue
            budget -= count
            slices.append(Slice(sequence, count, whole))
            if whole:
                drafting[shadow] = grant
        return self._step(slices, drafting) if slices else {}

    def _step(self, slices: list[Slice], drafting: dict[_Shadow, int]) -> dict[_Shadow, int]:
        """Compute slices of which those of `drafting` sample, in this order; who goes on."""
        result = self._backend.run(self._plans.build(slices, NO_MASKS))
        for piece in slices:
            piece.sequence.computed += piece.count
        going: dict[_Shadow, int] = {}
        for row, (shadow, left) in enumerate(drafting.items()):
            token = int(result.tokens[row])
            if row in result.failed or token >= self._vocab:
                continue
            shadow.sequence.append(token)
            self.steps += 1
            if left > 1:
                going[shadow] = left - 1
        return going

    def _own(self, sequence: Sequence, tokens: int) -> bool:
        """Own pages for the first `tokens` tokens; False where there are not as many."""
        if tokens > self._backend.shape.max_context:
            return False
        while len(sequence.pages) * PAGE_TOKENS < tokens:
            page = self._pool.allocate()
            if page is None:
                return False
            sequence.pages.append(page)
        return True


class _Shadow:
    """A greedy sequence of the draft model that follows one of the served model."""

    def __init__(self, sequence: Sequence) -> None:
        asked = sequence.request
        self.sequence = Sequence(
            TokenRequest(
                key=asked.key,
                token_ids=asked.token_ids,
                max_tokens=asked.max_tokens,
                sampling=Sampling(temperature=0.0),
                seed=0,
                eos_ids=(),
            )
        )
        self._known = len(asked.token_ids)  # tokens that are those of the followed sequence
        self._largest = max(asked.token_ids)

    def follow(self, followed: Sequence) -> None:
        """Become the followed sequence, and keep what is computed of it."""
        own, real = self.sequence.token_ids, followed.token_ids
        new = real[self._known :]
        self._largest = max(self._largest, *new) if new else self._largest
        right = count_alike(own[self._known :], new)
        self.sequence.computed = min(self.sequence.computed, self._known + right, len(real) - 1)
        del own[self._known :]
        own.extend(new)
        self._known = len(real)

    def drafts(self) -> list[int]:
        """What was drafted since the last call of `follow`."""
        return self.sequence.token_ids[self._known :].tolist()

    def is_foreign(self, vocab_size: int) -> bool:
        """Whether a token is none of the draft model's: models pad one vocabulary differently."""
        return self._largest >= vocab_size
