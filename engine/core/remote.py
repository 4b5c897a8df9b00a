"""The engine process: load, report, run the loop over a pipe until told to stop."""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from engine.core.loop import Command, EngineLoop, Link
from engine.core.masks import Constraints
from engine.core.runner import (
    EngineSettings,
    load_backend,
    load_draft_backend,
    plan_capacity,
    plan_speculation,
)
from engine.errors import StartupError
from engine.grammar.mask import Vocabulary
from engine.messages import StepMessage, TokenizerFacts
from engine.types import EngineFacts

log = logging.getLogger("heliograph.engine")


WAKE = 0
"""A key that no request has: cancelling it only ends a waiting `receive`."""


def drain(commands: queue.SimpleQueue[Command], wait: bool) -> list[Command]:
    """Everything in the queue; with `wait`, block for the first."""
    taken = [commands.get()] if wait else []
    while not commands.empty():
        taken.append(commands.get())
    return taken


_TORCH_ENVIRONMENT = {
    "GOMP_SPINCOUNT": "1000",  # the default steals cores from whatever runs between two operations
    "THP_MEM_ALLOC_ENABLE": "1",
    # A kernel is kept for every number of rows: the default of 1,024 grows to 100 MB.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64",
    "LRU_CACHE_CAPACITY": "64",
}
"""Read by torch and its libraries when they load."""


class PipeLink:
    """The engine's end of the pipe. A thread empties it, so that the API process never blocks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()

    def start(self) -> None:
        """Read from here on."""
        threading.Thread(target=self._read, name="engine-inbox", daemon=True).start()

    def receive(self, wait: bool) -> list[Command]:
        return drain(self._commands, wait)

    def wake(self) -> None:
        self._commands.put(WAKE)

    def send(self, message: StepMessage) -> None:
        self._connection.send(message)

    def _read(self) -> None:
        try:
            while True:
                self._commands.put(self._connection.recv())
        except (EOFError, OSError):  # the API process is gone
            self._commands.put(None)


def build_loop(
    settings: EngineSettings,
    link: Link,
    tokenizer: Callable[[], TokenizerFacts],
    progress: Callable[[str], None],
) -> tuple[EngineLoop, EngineFacts]:
    """Load the model and make the loop that serves it. Raises StartupError.

    `tokenizer` is asked after the model has loaded: the API process reads it at the same time.
    """
    backend = load_backend(settings, progress)
    draft_backend = load_draft_backend(settings, progress)
    facts = plan_capacity(settings, backend, draft_backend)
    progress(f"warming up, with room for {facts.total_pages * facts.page_tokens:,} tokens")
    num_pages = facts.total_pages + 1  # page 0 pads
    for loaded in (backend, draft_backend):
        if loaded is not None:
            loaded.allocate(num_pages)
            loaded.warm_up()
    read = tokenizer()
    try:
        constraints = Constraints(Vocabulary(read.json, facts.vocab_size, read.eos_ids))
    except ValueError as error:
        raise StartupError(f"no grammar can be compiled over this vocabulary: {error}") from None
    loop = EngineLoop(
        backend,
        link,
        constraints,
        num_pages=num_pages,
        max_sequences=settings.max_concurrency,
        max_batch_tokens=settings.max_batch_tokens,
        chunk=settings.prefill_chunk,
        speculation=plan_speculation(settings, facts, draft_backend),
    )
    return loop, facts


def run_engine(connection: Connection, settings: EngineSettings) -> None:
    """The engine process's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the API process decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    logging.basicConfig(level=settings.log_level.upper(), format="%(name)s: %(message)s")
    sys.setswitchinterval(0.0005)  # the step thread must get the GIL back at once
    for name, value in _TORCH_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        link = PipeLink(connection)
        loop, facts = build_loop(settings, link, connection.recv, connection.send)
    except StartupError as error:
        connection.send(error)
        return
    except (EOFError, ConnectionResetError):  # the API process failed to start
        return
    connection.send(facts)
    link.start()
    try:
        loop.run()
    except (BrokenPipeError, ConnectionResetError):
        log.warning("the API process is gone")
