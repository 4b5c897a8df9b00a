"""A backend without a model: its next tokens come from a script. Needs no torch.

Everything around it is real: scheduler, pages, prefix cache, masks, bans, limits, text. A script's
tokens are preferences; masks and bans win over them: then the lowest token that is allowed comes.

Scores are of a made-up raw distribution that only the script shapes: the scripted token (for a
prompt's row: the prompt's next token) has log probability -0.25, the others -1, -2, -3 and so on by
rising id, and those that would be at -9999 or below have no chance at all. Order, ties and ranks
are those of every backend. Conformance and client tests run on this backend.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass

import numpy as np

from engine.backend.backend import ALL_BANNED, Float32, ModelShape, StepPlan, StepResult
from engine.backend.scores import NO_CHANCE, score, wanted_score
from engine.events import TokenScore

SCRIPTED_LOGPROB = -0.25


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
    kernel_ns = 0
    dtype = "none"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.shape = ModelShape(script.vocab_size, script.max_context, kv_bytes_per_token=0)
        self._matched = [reply for reply in script.replies if reply.match is not None]
        self._ordered = [reply for reply in script.replies if reply.match is None]
        self._taken = 0
        self._replies: dict[int, Reply] = {}
        falling = -np.arange(1, script.vocab_size, dtype=np.float32)
        self._others: Float32 = np.maximum(falling, np.float32(NO_CHANCE))  # [vocab - 1]

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

    def run(self, plan: StepPlan) -> StepResult:
        tokens = np.zeros(len(plan.logit_rows), np.int64)
        scores: dict[int, TokenScore] = {}
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
            token = self._allowed(plan, row, wanted)
            if token is None:
                failed[row] = ALL_BANNED
                continue
            tokens[row] = token
            if plan.logprob_top[row] >= 0:
                scores[row] = score(self._logprobs(wanted), token, *wanted_score(plan, row))
        return StepResult(tokens, scores, self._prompt_scores(plan), failed)

    def _allowed(self, plan: StepPlan, row: int, wanted: int) -> int | None:
        """The wanted token where it is allowed, else the lowest that is, None where none is."""
        vocab = self.script.vocab_size
        first, end = plan.bias_indptr[row], plan.bias_indptr[row + 1]
        ids, values = plan.bias_ids[first:end], plan.bias_values[first:end]
        allowed = np.ones(vocab, bool)
        if plan.mask_rows[row] >= 0:
            words = plan.masks[plan.mask_rows[row]].astype("<u4")  # [words]
            bits = np.unpackbits(words.view(np.uint8), count=vocab, bitorder="little")
            allowed = bits.astype(bool)
        allowed[ids[np.isneginf(values)]] = False
        if allowed[wanted]:
            return wanted
        return int(allowed.argmax()) if allowed.any() else None

    def _logprobs(self, expected: int) -> Float32:
        """The made-up distribution [vocab] around the token that the script expects."""
        return np.insert(self._others, expected, SCRIPTED_LOGPROB)

    def _prompt_scores(self, plan: StepPlan) -> list[TokenScore]:
        wanted = zip(plan.score_targets.tolist(), plan.score_top.tolist(), strict=True)
        return [score(self._logprobs(target), target, top) for target, top in wanted]

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
