"""Where the thoughts of an output are, told by its tokens, and when the open one must end."""

from __future__ import annotations

from enum import Enum

from engine.core.repeats import loop_detector
from engine.messages import ThinkingLimits


class Cut(Enum):
    """Why a thought is closed for the model."""

    BUDGET = "budget"  # the output's tokens for thoughts are used up
    LOOP = "loop"  # its last tokens repeat themselves


class Thoughts:
    """The thoughts of one output so far.

    The budget is one for all of them: when it is used up, a thought that opens later is closed at
    once. A token of `open_ids` within a thought is part of it. Loops are looked for in each thought
    on its own.
    """

    def __init__(self, limits: ThinkingLimits) -> None:
        self._budget = limits.budget
        self._opens = frozenset(limits.open_ids)
        self._ends = frozenset(limits.end_ids)
        self._loops = loop_detector(limits.repetition)
        self._length = 0  # output tokens within thoughts, without those that open and end them
        self.close_id = limits.close_id
        self.is_open = limits.starts_open
        self.due = self._cut(looped=False)
        """Why the open thought must end now; None: it may go on, or none is open."""

    def add(self, token: int) -> bool:
        """Take the next token of the output; True when a thought's own detector looked at it."""
        watched = looped = False
        if not self.is_open:
            self.is_open = token in self._opens
        elif token in self._ends:
            self.is_open = False
            if self._loops is not None:
                self._loops.reset()
        else:
            self._length += 1
            if self._loops is not None:
                watched, looped = True, self._loops.add(token)
        self.due = self._cut(looped=looped)
        return watched

    def _cut(self, *, looped: bool) -> Cut | None:
        if self.is_open and self._budget is not None and self._length >= self._budget:
            return Cut.BUDGET
        return Cut.LOOP if looped else None
