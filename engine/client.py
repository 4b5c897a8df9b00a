"""The API process's side of the engine: submit token requests, read token events, cancel, stats."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from engine.core.loop import Command, EngineLoop
from engine.core.remote import WAKE, build_loop, drain, run_engine
from engine.core.runner import EngineSettings
from engine.errors import EngineUnavailable, StartupError
from engine.events import FinishCause, TokenScore
from engine.messages import EngineStats, StepMessage, TokenizerFacts, TokenRequest
from engine.types import EngineFacts


class TokenEvent(NamedTuple):
    """What happened to one choice: a token, its end, both, or scores of its prompt.

    `cached` comes with the first token, `reason` with a failure. `accepted`: the token is a draft
    that came true; `drafted` comes with a step's first token: how many drafts the step has checked.
    """

    key: int
    token: int | None = None
    cached: int | None = None
    cause: FinishCause | None = None
    reason: str | None = None
    score: TokenScore | None = None
    prompt_scores: list[TokenScore] | None = None
    drafted: int = 0
    accepted: bool = False


Progress = Callable[[str], None]


class TokenStream:
    """The token events of a group of choices, in the order in which the engine made them."""

    def __init__(self) -> None:
        self._events: deque[TokenEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def push(self, event: TokenEvent) -> None:
        self._events.append(event)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> list[TokenEvent]:
        """Everything that has arrived, at least one event."""
        if not self._events:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None
        events = list(self._events)
        self._events.clear()
        return events


class EngineClient(Protocol):
    """What the service needs of an engine, wherever it runs."""

    stats: EngineStats
    failure: str | None
    """Why the engine is unavailable; None while it is healthy."""

    def next_key(self) -> int:
        """A key for a request that no other request of this engine has."""

    def submit(self, requests: Sequence[TokenRequest]) -> TokenStream:
        """Queue requests. Raises EngineUnavailable when the engine is gone."""

    def cancel(self, key: int) -> None:
        """Stop a request, queued or running; its stream gets no further events."""

    def abort(self, reason: str) -> None:
        """End every open stream as failed and take no more requests."""

    async def close(self) -> None:
        """Stop the engine; open streams end as failed."""


class _Dispatcher(ABC):
    """Routes step messages to the streams of the requests they belong to."""

    def __init__(self) -> None:
        self._streams: dict[int, TokenStream] = {}
        self._keys = itertools.count(1)
        self.stats = EngineStats()
        self.failure: str | None = None

    def next_key(self) -> int:
        return next(self._keys)

    def submit(self, requests: Sequence[TokenRequest]) -> TokenStream:
        if self.failure is not None:
            raise EngineUnavailable(self.failure)
        stream = TokenStream()
        for request in requests:
            self._streams[request.key] = stream
            self._send(request)
        return stream

    def cancel(self, key: int) -> None:
        if self._streams.pop(key, None) is not None and self.failure is None:
            self._send(key)

    @abstractmethod
    def _send(self, command: Command) -> None:
        """Pass a command on without blocking."""

    def _on_message(self, message: StepMessage) -> None:
        if message.stats is not None:
            self.stats = message.stats
        started = dict(message.started)
        finished = {key: (cause, reason) for key, cause, reason in message.finished}
        last = {key: place for place, key in enumerate(message.keys)} if finished else {}
        drafts = dict(message.drafts)
        for key, scores in message.prompt_scores:
            self._push(TokenEvent(key, prompt_scores=scores))
        for place, (key, token) in enumerate(zip(message.keys, message.tokens, strict=True)):
            ends = key in finished and last[key] == place
            cause, reason = finished.pop(key) if ends else (None, None)
            score, cached = message.scores.get(place), started.pop(key, None)
            drafted, accepted = drafts.pop(key, (0, 0))
            if accepted:
                drafts[key] = 0, accepted - 1
            self._push(
                TokenEvent(key, token, cached, cause, reason, score, None, drafted, accepted > 0)
            )
        for key, (cause, reason) in finished.items():
            self._push(TokenEvent(key, None, started.pop(key, None), cause, reason))

    def _push(self, event: TokenEvent) -> None:
        """Hand an event on; those of cancelled requests have no stream any more."""
        stream = self._streams.get(event.key)
        if stream is not None:
            stream.push(event)
            if event.cause is not None:
                del self._streams[event.key]

    def abort(self, reason: str) -> None:
        if self.failure is None:
            self.failure = reason
        for key, stream in self._streams.items():
            stream.push(TokenEvent(key, cause=FinishCause.FAILED, reason=self.failure))
        self._streams.clear()
        self.stats = EngineStats()


class ProcessClient(_Dispatcher):
    """The engine in a process of its own: the server's way."""

    def __init__(self, settings: EngineSettings) -> None:
        super().__init__()
        context = multiprocessing.get_context("spawn")  # fork breaks torch's threads
        self._connection, remote = context.Pipe()
        self._process = context.Process(
            target=run_engine, args=(remote, settings), name="heliograph-engine", daemon=True
        )
        self._process.start()
        remote.close()
        self._outbox: queue.SimpleQueue[Command] = queue.SimpleQueue()

    def wait_ready(self, tokenizer: TokenizerFacts, progress: Progress) -> EngineFacts:
        """Block until the model is loaded. Raises StartupError with the engine's reason."""
        with contextlib.suppress(OSError):  # a dead engine is reported below
            self._connection.send(tokenizer)
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):  # reset: it had not read what was sent to it
                self._process.join()
                code = self._process.exitcode
                raise StartupError(
                    f"the engine process ended while loading (exit {code})"
                ) from None
            if isinstance(message, StartupError):
                raise message
            if isinstance(message, EngineFacts):
                return message
            progress(str(message))

    def attach(self) -> None:
        """Read the engine's messages on the running event loop from here on."""
        asyncio.get_running_loop().add_reader(self._connection.fileno(), self._read)
        # uvloop has made it non-blocking, so that half of a message would be an error, both ways.
        os.set_blocking(self._connection.fileno(), True)
        threading.Thread(target=self._write, name="engine-outbox", daemon=True).start()

    async def close(self) -> None:
        if self.failure is None:
            self.abort("the server is stopping")
        asyncio.get_running_loop().remove_reader(self._connection.fileno())
        self._outbox.put(None)
        await asyncio.to_thread(self._process.join, 5)
        self.kill()

    def kill(self) -> None:
        """End the process now."""
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _send(self, command: Command) -> None:
        self._outbox.put(command)

    def _write(self) -> None:
        """A thread, because a long prompt can fill the pipe and must not block the event loop."""
        while True:
            command = self._outbox.get()
            try:
                self._connection.send(command)
            except OSError:  # the engine is gone; _read reports it
                return
            if command is None:
                return

    def _read(self) -> None:
        try:
            while self._connection.poll():
                self._on_message(self._connection.recv())
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self.abort("the engine process has died")


class ThreadClient(_Dispatcher):
    """The same engine on a thread of this process: for tests."""

    def __init__(self, settings: EngineSettings, tokenizer: TokenizerFacts) -> None:
        super().__init__()
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self.loop: EngineLoop
        self.loop, self.facts = build_loop(settings, self, lambda: tokenizer, lambda text: None)
        self._thread = threading.Thread(target=self.loop.run, name="engine", daemon=True)

    def attach(self) -> None:
        """Start the engine; its messages arrive on the running event loop."""
        self._event_loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        self.abort("the server is stopping")
        self._commands.put(None)
        await asyncio.to_thread(self._thread.join)

    def receive(self, wait: bool) -> list[Command]:
        return drain(self._commands, wait)

    def wake(self) -> None:
        self._commands.put(WAKE)

    def send(self, message: StepMessage) -> None:
        self._event_loop.call_soon_threadsafe(self._on_message, message)

    def _send(self, command: Command) -> None:
        self._commands.put(command)
