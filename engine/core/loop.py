"""The engine's one thread: commands in, steps, one message out per step."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Protocol

from engine.backend.backend import ALL_BANNED, Backend, StepResult
from engine.core.batch import Masks, PlanBuilder
from engine.core.masks import Constraints
from engine.core.pages import PagePool
from engine.core.prefix import PrefixIndex
from engine.core.scheduler import Scheduler, Slice
from engine.core.sequence import Sequence
from engine.core.speculation import Speculation
from engine.core.thinking import Cut
from engine.errors import GenerationFailed
from engine.events import FinishCause, TokenScore
from engine.messages import EngineStats, StepMessage, TokenRequest

log = logging.getLogger("heliograph.engine")

STATS_SECONDS = 0.05
"""Stats of steps between are not sent: making them takes as long as laying out a step."""
Command = TokenRequest | int | None
"""Submit a request, cancel a key, or (None) stop."""


class Link(Protocol):
    """The engine's end of the connection to the API process."""

    def receive(self, wait: bool) -> list[Command]:
        """All commands that have arrived; with `wait`, block until there are some, or `wake`."""

    def wake(self) -> None:
        """End a waiting `receive`; may be called on any thread."""

    def send(self, message: StepMessage) -> None:
        """Hand a step's results over."""


class EngineLoop:
    """Schedules, runs and reports steps until told to stop."""

    def __init__(
        self,
        backend: Backend,
        link: Link,
        constraints: Constraints,
        *,
        num_pages: int,
        max_sequences: int,
        max_batch_tokens: int,
        chunk: int,
        speculation: Speculation | None = None,
    ) -> None:
        self.backend = backend
        self.link = link
        self.constraints = constraints
        self.speculation = speculation or Speculation()
        self.pool = PagePool(num_pages, PrefixIndex())
        self.scheduler = Scheduler(self.pool, max_sequences, max_batch_tokens, chunk)
        self._plans = PlanBuilder()
        self._sequences: dict[int, Sequence] = {}
        self._deadlines: dict[int, float] = {}
        self._steps = 0
        self._step_ns = 0
        self._stats_due = 0.0
        self._prefill_tokens = 0
        self._generated_tokens = 0
        self._forced_tokens = 0
        self._cuts = {FinishCause.REPETITION: 0, FinishCause.DEADLINE: 0}
        self._thought_cuts = dict.fromkeys(Cut, 0)

    def run(self) -> None:
        """Work until a stop command comes; when idle, check the pages and wait."""
        while True:
            idle = not self.scheduler.has_work
            if idle:
                self.scheduler.check()
            for command in self.link.receive(wait=idle):
                if command is None:
                    self.constraints.stop()
                    return
                self.handle(command)
            self.turn()

    def turn(self) -> None:
        """Take in what has become ready, end what is overdue, and run one step if there is work."""
        for key, reason in self.constraints.ready():
            self._constrained(key, reason)
        if self._deadlines:
            self._end_overdue()
        if self.scheduler.has_work:
            self.step()

    def handle(self, command: TokenRequest | int) -> None:
        """Submit a request, or cancel a key."""
        if isinstance(command, TokenRequest):
            self._submit(command)
        else:
            self._end(command, FinishCause.CANCELLED)

    def step(self) -> None:
        """Run one step and send its message."""
        begun = time.perf_counter_ns()
        message = _empty_message()
        slices, exhausted = self.scheduler.schedule()
        for sequence in exhausted:
            self._finish(sequence, FinishCause.CONTEXT_FULL, None, message)
        if slices:
            self._run(slices, message)
        self._step_ns += time.perf_counter_ns() - begun
        self._send(message)

    def stats(self) -> EngineStats:
        """What is held now and what was done since the start."""
        drafts = dataclasses.asdict(self.speculation.counts)
        return EngineStats(
            active=len(self.scheduler.running),
            pending=len(self._sequences) - len(self.scheduler.running),
            free_pages=self.pool.num_free,
            cached_pages=self.pool.num_cached,
            total_pages=self.pool.num_usable,
            steps=self._steps,
            step_ns=self._step_ns,
            kernel_ns=self.backend.kernel_ns + self.speculation.kernel_ns,
            prefill_tokens=self._prefill_tokens,
            generated_tokens=self._generated_tokens,
            reused_tokens=self.scheduler.reused_tokens,
            preemptions=self.scheduler.preemptions,
            forced_tokens=self._forced_tokens,
            repetition_cuts=self._cuts[FinishCause.REPETITION],
            deadline_cuts=self._cuts[FinishCause.DEADLINE],
            reasoning_budget_cuts=self._thought_cuts[Cut.BUDGET],
            reasoning_loop_cuts=self._thought_cuts[Cut.LOOP],
            draft_steps=self.speculation.draft_steps,
            **drafts,
        )

    def _send(self, message: StepMessage) -> None:
        now = time.monotonic()
        if message.started or message.finished or now >= self._stats_due:
            message.stats, self._stats_due = self.stats(), now + STATS_SECONDS
        self.link.send(message)

    def _submit(self, request: TokenRequest) -> None:
        sequence = Sequence(request)
        self._sequences[request.key] = sequence
        self.backend.open_sequence(request.key, request.hint)
        if request.deadline is not None:
            self._deadlines[request.key] = request.deadline
        if self.constraints.open(request, self.link.wake):
            self.scheduler.add(sequence)

    def _constrained(self, key: int, reason: str | None) -> None:
        """A grammar is compiled: its sequence may run now."""
        sequence = self._sequences.get(key)
        if sequence is None:  # cancelled meanwhile
            return
        if reason is None:
            self.scheduler.add(sequence)
        else:
            self._end(key, FinishCause.FAILED, reason)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for key in [key for key, deadline in self._deadlines.items() if deadline <= now]:
            self._end(key, FinishCause.DEADLINE)

    def _end(self, key: int, cause: FinishCause, reason: str | None = None) -> None:
        """End a sequence between steps."""
        sequence = self._sequences.get(key)
        if sequence is None:  # it ended while the command was on its way
            return
        message = _empty_message()
        self._finish(sequence, cause, reason, message)
        self._send(message)

    def _run(self, slices: list[Slice], message: StepMessage) -> None:
        try:
            slices = self.speculation.add_drafts(slices, self.scheduler, self.constraints)
            result = self.backend.run(self._plans.build(slices, self._masks(slices)))
        except Exception:  # a broken step must not take the other requests down
            log.exception("a step failed")
            for piece in slices:
                self._finish(piece.sequence, FinishCause.FAILED, "the engine failed", message)
            return
        self._steps += 1
        self._take_prompt_scores(slices, result, message)
        row = 0
        for piece in slices:
            self._prefill_tokens += piece.prompt_tokens
            self.scheduler.advance(piece.sequence, piece.count)
            if piece.samples:
                self._take_rows(piece, row, result, message)
                row += 1 + len(piece.drafts)
            elif not piece.sequence.remaining:  # only scores were wanted
                message.started.append((piece.sequence.key, 0))
                self._finish(piece.sequence, FinishCause.LIMIT, None, message)

    def _masks(self, slices: list[Slice]) -> Masks:
        sampled = [piece.sequence for piece in slices if piece.samples]
        closes = {s.key: token for s in sampled if (token := s.close_due) is not None}
        drafts = {piece.sequence.key: piece.drafts for piece in slices if piece.drafts}
        return self.constraints.masks([sequence.key for sequence in sampled], closes, drafts)

    def _take_prompt_scores(
        self, slices: list[Slice], result: StepResult, message: StepMessage
    ) -> None:
        taken = 0
        for piece in slices:
            first, end = piece.sequence.to_score(piece.count)
            if end > first:
                scores = result.prompt_scores[taken : taken + end - first]
                message.prompt_scores.append((piece.sequence.key, scores))
                piece.sequence.scored = end
                taken += end - first

    def _take_rows(self, piece: Slice, row: int, result: StepResult, message: StepMessage) -> None:
        """Take the tokens that a slice has drawn from `row` on, as long as its drafts are right.

        A row behind drafts counts only if the sequence has become what the row was drawn for.
        """
        sequence, drafts = piece.sequence, piece.drafts
        first, right, goes_on = len(sequence.token_ids), 0, True
        while goes_on:
            self._take_row(sequence, row + right, result, message)
            before, right = right, sequence.agreement(first, drafts)
            taken = len(sequence.token_ids) - first
            if sequence.key not in self._sequences:
                break
            goes_on = taken == right and sequence.close_due is None
            # The last token has no draw yet: it is computed again where that of its row is void.
            self.scheduler.advance(sequence, (right if goes_on else min(right, taken - 1)) - before)
        if taken:
            self.speculation.note(piece, right)
        if drafts:
            message.drafts[sequence.key] = len(drafts), right
            self.scheduler.trim(sequence)

    def _take_row(
        self, sequence: Sequence, row: int, result: StepResult, message: StepMessage
    ) -> None:
        """Take a drawn token, and those that the grammar now forces."""
        if row in result.failed:
            reason = result.failed[row]
            cause = FinishCause.DEAD_END if reason == ALL_BANNED else FinishCause.FAILED
            self._finish(sequence, cause, reason, message)
            return
        token, score = int(result.tokens[row]), result.scores.get(row)
        cut = sequence.cut_by(token)
        if cut is not None:
            self._thought_cuts[cut] += 1
            score = None  # the model did not choose it (Helios)
        self._take(sequence, token, score, message)
        if sequence.request.logprobs is not None:  # forced tokens would have no score
            return
        while sequence.key in self._sequences and not sequence.has_bans:
            forced = self.constraints.forced(sequence.key)
            if not forced:
                return
            for token in forced:
                if sequence.key not in self._sequences or sequence.close_due is not None:
                    return  # it has ended, or a mask decides whether its thought does
                self._forced_tokens += 1
                self._take(sequence, token, None, message)

    def _take(
        self, sequence: Sequence, token: int, score: TokenScore | None, message: StepMessage
    ) -> None:
        if not sequence.started:
            sequence.started = True
            message.started.append((sequence.key, sequence.cached))
        sequence.append(token)
        self._generated_tokens += 1
        if score is not None:
            message.scores[len(message.keys)] = score
        message.keys.append(sequence.key)
        message.tokens.append(token)
        try:
            cause, reason = self._finish_cause(sequence, token), None
        except GenerationFailed as error:
            cause, reason = FinishCause.FAILED, error.message
        if cause is not None:
            self._finish(sequence, cause, reason, message)

    def _finish_cause(self, sequence: Sequence, token: int) -> FinishCause | None:
        """An end token on the last allowed place is the cause, not the limit (Helios)."""
        if token in sequence.ends:
            return FinishCause.END
        if token in sequence.stops:
            return FinishCause.STOP_TOKEN
        if self.constraints.take(sequence.key, token):
            return FinishCause.COMPLETE
        if sequence.is_looping:
            return FinishCause.REPETITION
        if sequence.output_len >= sequence.request.max_tokens:
            return FinishCause.LIMIT
        return None

    def _finish(
        self, sequence: Sequence, cause: FinishCause, reason: str | None, message: StepMessage
    ) -> None:
        self.scheduler.finish(sequence)
        self.backend.close_sequence(sequence.key)
        self.speculation.close(sequence.key)
        self.constraints.close(sequence.key)
        self._deadlines.pop(sequence.key, None)
        del self._sequences[sequence.key]
        if cause in self._cuts:
            self._cuts[cause] += 1
        message.finished.append((sequence.key, cause, reason))


def _empty_message() -> StepMessage:
    return StepMessage([], [], [], [])
