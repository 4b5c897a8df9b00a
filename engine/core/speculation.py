"""Speculative decoding (Leviathan et al. 2023, Chen et al. 2023): which drafts a step checks.

A draft is a row of the step like any token, and after it a token is drawn as it would be if the
draft were right: by the same seed and position, under the same bias, penalties and mask. While the
draws equal the drafts, the step has made as many tokens; the first draw that differs stands, and
the rows behind it are dropped. Since a draw depends on nothing but its seed, its position and the
logits, the output is the same token for token as without drafts, sampled or greedy.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, replace

from engine.core.draft import Drafter, Wish
from engine.core.masks import Constraints
from engine.core.scheduler import Scheduler, Slice
from engine.core.sequence import Sequence

log = logging.getLogger("heliograph.engine")

_FIRST = 4  # drafts of a sequence that nothing is known about
_LONGEST_REST = 64


class Pace:
    """How many drafts a sequence gets: more while they are right, none for a while after misses."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._length = min(_FIRST, most)
        self._misses = 0  # times in a row that no draft was right
        self._rest = 0

    def wanted(self) -> int:
        """The drafts to try in the next step of the sequence."""
        if self._rest:
            self._rest -= 1
            return 0
        return self._length

    def note(self, offered: int, accepted: int) -> None:
        """Learn from a step that checked `offered` drafts, at least one."""
        if accepted:
            self._misses = 0
            # Where all were right there may only have been no room for more.
            longer = max(self._length, 2 * offered) if accepted == offered else accepted + 1
            self._length = min(longer, self._most)
            return
        self._length = max(1, self._length // 2)
        self._misses += 1
        if self._misses > 1:
            self._rest = min(2**self._misses, _LONGEST_REST)


@dataclass(slots=True)
class Counts:
    """Totals since the start, by their names in `EngineStats`."""

    verify_steps: int = 0
    verification_drafts: int = 0
    verification_rounds: int = 0
    accepted_drafts: int = 0
    draft_rounds: int = 0


class Speculation:
    """Asks the drafters, in order, for drafts of the decoding sequences of a step.

    A sequence gets at most `most` drafts. With all decoding sequences and all drafts a step has at
    most `rows` rows beside its prefill: so many cost little more than one, while in a larger batch
    a draft takes the time of a sequence's token.
    """

    def __init__(self, drafters: Ordered[Drafter] = (), most: int = 0, rows: int = 0) -> None:
        self.counts = Counts()
        self._drafters = dict(enumerate(drafters))
        self._most = most
        self._rows = rows
        self._paces: dict[int, dict[int, Pace]] = {}  # by sequence and drafter
        self._decoding: set[int] = set()  # the sequences that this step continues
        self._tried: dict[int, Pace] = {}  # those of them whose drafts it checks

    @property
    def draft_steps(self) -> int:
        """Tokens that a model has drafted."""
        return sum(drafter.steps for drafter in self._drafters.values())

    @property
    def kernel_ns(self) -> int:
        """That of the drafters."""
        return sum(drafter.kernel_ns for drafter in self._drafters.values())

    def add_drafts(
        self, slices: list[Slice], scheduler: Scheduler, constraints: Constraints
    ) -> list[Slice]:
        """The slices with their drafts, for which the sequences own pages."""
        self._tried.clear()
        decoding = [p.sequence for p in slices if p.samples and not p.sequence.in_prefill]
        self._decoding = {sequence.key for sequence in decoding}
        room = self._rows - len(decoding)
        room = min(room, scheduler.max_batch_tokens - sum(piece.count for piece in slices))
        drafts: dict[Sequence, tuple[int, ...]] = {}
        for number in list(self._drafters):
            wishes = self._wishes(number, [s for s in decoding if s not in drafts], room)
            if not wishes:
                continue
            for wish, ids in zip(wishes, self._propose(number, wishes, room), strict=True):
                fitting = self._fitting(wish.sequence, ids, scheduler, constraints)
                if fitting:
                    drafts[wish.sequence] = tuple(fitting)
                    self._tried[wish.sequence.key] = self._paces[wish.sequence.key][number]
                    room -= len(fitting)
        self.counts.verify_steps += bool(drafts)
        return [
            replace(piece, drafts=drafts[piece.sequence]) if piece.sequence in drafts else piece
            for piece in slices
        ]

    def note(self, piece: Slice, accepted: int) -> None:
        """Learn how many drafts of a slice that got on have come true."""
        if piece.sequence.key not in self._decoding:
            return
        offered = len(piece.drafts)
        self.counts.verification_rounds += 1
        self.counts.verification_drafts += offered
        self.counts.accepted_drafts += accepted
        if offered:
            self.counts.draft_rounds += 1
            self._tried[piece.sequence.key].note(offered, accepted)

    def close(self, key: int) -> None:
        """Forget a sequence."""
        self._paces.pop(key, None)
        for drafter in self._drafters.values():
            drafter.close(key)

    def _wishes(self, number: int, sequences: list[Sequence], room: int) -> list[Wish]:
        """What to ask a drafter for. The last token that a sequence may have needs no draft."""
        wishes: list[Wish] = []
        for sequence in sequences:
            left = min(sequence.request.max_tokens - sequence.output_len - 1, room)
            if left < 1 or not sequence.request.drafts or sequence.close_due is not None:
                continue
            paces = self._paces.setdefault(sequence.key, {})
            pace = paces.setdefault(number, Pace(self._most))
            most = min(pace.wanted(), left)
            if most:
                wishes.append(Wish(sequence, most))
        return wishes

    def _propose(self, number: int, wishes: list[Wish], room: int) -> list[list[int]]:
        try:
            return self._drafters[number].propose(wishes, room)
        except Exception:  # the server can go on without drafts
            log.exception("a drafter failed and is not asked again")
            del self._drafters[number]
            return [[] for _ in wishes]

    def _fitting(
        self,
        sequence: Sequence,
        drafts: list[int],
        scheduler: Scheduler,
        constraints: Constraints,
    ) -> list[int]:
        """The drafts up to one that would end the sequence, is not allowed or has no room."""
        ending = sequence.ends | sequence.stops
        count = next((n for n, token in enumerate(drafts) if token in ending), len(drafts))
        if count:
            count = constraints.fitting(sequence.key, drafts[:count])
        return drafts[: scheduler.reserve(sequence, count)] if count else []
