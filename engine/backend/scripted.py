"""A backend without a model: its next tokens come from a script. Needs no torch.

Everything around it is real: scheduler, pages, prefix cache, bans, limits, text. A script's tokens
are preferences; bans win over them. Conformance and client tests run on this backend.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass

import numpy as np

from engine.backend.backend import FailedRows, Int64, ModelShape, StepPlan


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer; after its last token comes the end token.

    `match` is a regular expression searched in the text that the sequence answers; None takes part
    in the ordered list instead. `fail_after` and `crash_after` are output lengths at which the row
    fails, or the whole engine process dies. Delays are in seconds.
    """

    token_ids: tuple[int, ...]
    match: str | None = None
    delay: float = 0.0
    prefill_delay: float = 0.0
    fail_after: int | None = None
    crash_after: int | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """The replies with the facts of the tokenizer they are written for.

    A sequence gets the first reply whose pattern matches, else the next of the ordered list, which
    starts over at its end.
    """

    replies: tuple[Reply, ...]
    vocab_size: int
    end_id: int
    max_context: int = 131_072


class Scripted:
    """Draws each sampled row's token from the reply of its sequence."""

    name = "scripted"
    dtype = "none"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.shape = ModelShape(script.vocab_size, script.max_context, kv_bytes_per_token=0)
        self._matched = [reply for reply in script.replies if reply.match is not None]
        self._ordered = [reply for reply in script.replies if reply.match is None]
        self._taken = 0
        self._replies: dict[int, Reply] = {}

    def allocate(self, num_pages: int) -> None:
        """Nothing is stored: a script knows its tokens."""

    def warm_up(self) -> None:
        """There is nothing to warm."""

    def open_sequence(self, key: int, text: str) -> None:
        for reply in self._matched:
            if re.search(reply.match or "", text):
                self._replies[key] = reply
                return
        if self._ordered:
            self._replies[key] = self._ordered[self._taken % len(self._ordered)]
            self._taken += 1
        else:
            self._replies[key] = Reply(())

    def close_sequence(self, key: int) -> None:
        del self._replies[key]

    def run(self, plan: StepPlan) -> Int64:
        tokens = np.zeros(len(plan.logit_rows), np.int64)
        failed: dict[int, str] = {}
        self._wait(plan)
        for row, sequence in enumerate(plan.logit_sequences):
            reply = self._replies[int(plan.sequence_keys[sequence])]
            place = int(plan.positions_drawn[row])
            if reply.crash_after == place:
                os._exit(70)
            if reply.fail_after == place:
                failed[row] = "the script says that this generation fails here"
                continue
            wanted = reply.token_ids[place] if place < len(reply.token_ids) else self.script.end_id
            tokens[row] = self._allowed(plan, row, wanted)
        if failed:
            raise FailedRows(tokens, failed)
        return tokens

    def _allowed(self, plan: StepPlan, row: int, wanted: int) -> int:
        """The wanted token, unless it is banned; then the first that is not."""
        first, end = plan.bias_indptr[row], plan.bias_indptr[row + 1]
        ids, values = plan.bias_ids[first:end], plan.bias_values[first:end]
        banned = set(ids[np.isneginf(values)].tolist())
        if wanted not in banned:
            return wanted
        return next(token for token in range(self.script.vocab_size) if token not in banned)

    def _wait(self, plan: StepPlan) -> None:
        """The step takes as long as its slowest row says."""
        delays = [0.0]
        sampled = {int(sequence): row for row, sequence in enumerate(plan.logit_sequences)}
        for sequence, key in enumerate(plan.sequence_keys.tolist()):
            row = sampled.get(sequence)
            decodes = row is not None and plan.positions_drawn[row] > 0
            reply = self._replies[key]
            delays.append(reply.delay if decodes else reply.prefill_delay)
        if max(delays) > 0:
            time.sleep(max(delays))
