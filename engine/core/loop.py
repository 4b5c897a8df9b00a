"""The engine's one thread: commands in, steps, one message out per step."""

from __future__ import annotations

import logging
from typing import Protocol

from engine.backend.backend import Backend, FailedRows
from engine.core.batch import build_plan
from engine.core.pages import PagePool
from engine.core.prefix import PrefixIndex
from engine.core.scheduler import Scheduler, Slice
from engine.core.sequence import Sequence
from engine.types import EngineStats, FinishCause, StepMessage, TokenRequest

log = logging.getLogger("heliograph.engine")

Command = TokenRequest | int | None
"""Submit a request, cancel a key, or (None) stop."""


class Link(Protocol):
    """The engine's end of the connection to the API process."""

    def receive(self, wait: bool) -> list[Command]:
        """All commands that have arrived; with `wait`, at least one."""

    def send(self, message: StepMessage) -> None:
        """Hand a step's results over."""


class EngineLoop:
    """Schedules, runs and reports steps until told to stop."""

    def __init__(
        self,
        backend: Backend,
        link: Link,
        *,
        num_pages: int,
        max_sequences: int,
        max_batch_tokens: int,
        chunk: int,
    ) -> None:
        self.backend = backend
        self.link = link
        self.pool = PagePool(num_pages, PrefixIndex())
        self.scheduler = Scheduler(self.pool, max_sequences, max_batch_tokens, chunk)
        self._sequences: dict[int, Sequence] = {}
        self._steps = 0
        self._prefill_tokens = 0
        self._generated_tokens = 0

    def run(self) -> None:
        """Work until a stop command comes; when idle, check the pages and wait."""
        while True:
            idle = not self.scheduler.has_work
            if idle:
                self.scheduler.check()
            for command in self.link.receive(wait=idle):
                if command is None:
                    return
                self.handle(command)
            if self.scheduler.has_work:
                self.step()

    def handle(self, command: TokenRequest | int) -> None:
        """Submit a request, or cancel a key."""
        if isinstance(command, TokenRequest):
            self._submit(command)
        else:
            self._cancel(command)

    def step(self) -> None:
        """Run one step and send its message."""
        message = StepMessage([], [], [], [], EngineStats())
        slices, exhausted = self.scheduler.schedule()
        for sequence in exhausted:
            self._finish(sequence, FinishCause.CONTEXT_FULL, None, message)
        if slices:
            self._run(slices, message)
        self.link.send(
            StepMessage(
                message.keys, message.tokens, message.started, message.finished, self.stats()
            )
        )

    def stats(self) -> EngineStats:
        """What is held now and what was done since the start."""
        return EngineStats(
            active=len(self.scheduler.running),
            pending=len(self.scheduler.waiting),
            free_pages=self.pool.num_free,
            cached_pages=self.pool.num_cached,
            total_pages=self.pool.num_usable,
            steps=self._steps,
            prefill_tokens=self._prefill_tokens,
            generated_tokens=self._generated_tokens,
            reused_tokens=self.scheduler.reused_tokens,
            preemptions=self.scheduler.preemptions,
        )

    def _submit(self, request: TokenRequest) -> None:
        sequence = Sequence(request)
        self._sequences[request.key] = sequence
        self.backend.open_sequence(request.key, request.hint)
        self.scheduler.add(sequence)

    def _cancel(self, key: int) -> None:
        sequence = self._sequences.get(key)
        if sequence is None:  # it ended while the cancel was on its way
            return
        message = StepMessage([], [], [], [], EngineStats())
        self._finish(sequence, FinishCause.CANCELLED, None, message)
        self.link.send(StepMessage([], [], [], message.finished, self.stats()))

    def _run(self, slices: list[Slice], message: StepMessage) -> None:
        failed: dict[int, str] = {}
        try:
            tokens = self.backend.run(build_plan(slices))
        except FailedRows as error:
            tokens, failed = error.tokens, error.failed
        except Exception:  # a broken step must not take the other requests down
            log.exception("a step failed")
            for piece in slices:
                self._finish(piece.sequence, FinishCause.FAILED, "the engine failed", message)
            return
        self._steps += 1
        row = 0
        for piece in slices:
            self._prefill_tokens += piece.prompt_tokens
            self.scheduler.advance(piece)
            if not piece.samples:
                continue
            if row in failed:
                self._finish(piece.sequence, FinishCause.FAILED, failed[row], message)
            else:
                self._take(piece.sequence, int(tokens[row]), message)
            row += 1

    def _take(self, sequence: Sequence, token: int, message: StepMessage) -> None:
        if not sequence.started:
            sequence.started = True
            message.started.append((sequence.key, sequence.cached))
        sequence.append(token)
        self._generated_tokens += 1
        message.keys.append(sequence.key)
        message.tokens.append(token)
        cause = _finish_cause(sequence, token)
        if cause is not None:
            self._finish(sequence, cause, None, message)

    def _finish(
        self, sequence: Sequence, cause: FinishCause, reason: str | None, message: StepMessage
    ) -> None:
        self.scheduler.finish(sequence)
        self.backend.close_sequence(sequence.key)
        del self._sequences[sequence.key]
        message.finished.append((sequence.key, cause, reason))


def _finish_cause(sequence: Sequence, token: int) -> FinishCause | None:
    """An end token on the last allowed place is the cause, not the limit (Helios)."""
    if token in sequence.ends:
        return FinishCause.END
    if token in sequence.stops:
        return FinishCause.STOP_TOKEN
    if sequence.output_len >= sequence.request.max_tokens:
        return FinishCause.LIMIT
    return None
