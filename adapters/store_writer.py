"""The thread that writes to the store: what waits together shares a transaction and its sync."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import InterfaceError, OperationalError

from adapters.store_database import failing_as_store
from adapters.store_ledger import Ledger
from adapters.store_types import StoreFailed, StoreLimits

log = logging.getLogger("heliograph.store")

T = TypeVar("T")

MOST_TOGETHER = 64
"""Jobs of one transaction, so that none waits for many others."""
SWEEP_SECONDS = 3600.0
"""Silence after which expired responses are removed although nothing is saved."""


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Ledger], Any]
    done: Future[Any]


class Writer:
    """Does jobs in the order in which they come, from any thread, until it is closed."""

    def __init__(self, engine: Engine, limits: StoreLimits, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._limits = limits
        self._clock = clock
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()  # None: closed
        self._lock = threading.Lock()
        self._closed = False
        # A daemon, because a start that fails closes nothing; what was promised is on the disk.
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Ledger], T]) -> Future[T]:
        """Do this in a transaction; the result is there when it is durable.

        The future raises StoreFailed. A job that is cancelled before it begins is left out.
        """
        done: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise StoreFailed("the response store is closed")
            self._jobs.put(_Job(work, done))
        return done

    def close(self) -> None:
        """Finish what was submitted; wait for that."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        more, closing = self._transact([], first=True), False
        while not closing:
            jobs, closing = self._next(0 if more else SWEEP_SECONDS)
            more = self._transact([job for job in jobs if job.done.set_running_or_notify_cancel()])

    def _next(self, patience: float) -> tuple[list[_Job], bool]:
        """The jobs that wait, up to a number, once there is one; whether the last one was that.

        None of them after `patience`, in seconds.
        """
        jobs: list[_Job] = []
        try:
            while len(jobs) < MOST_TOGETHER:
                wait = not jobs and patience > 0
                job = self._jobs.get(wait, patience if wait else None)
                if job is None:
                    return jobs, True
                jobs.append(job)
        except queue.Empty:
            pass
        return jobs, False

    def _transact(self, jobs: list[_Job], first: bool = False) -> bool:
        """Do jobs in one transaction; whether more has to be removed from the store.

        The first one applies the bounds, which may be narrower than at the last run.
        """
        results: list[Any] = []
        try:
            with failing_as_store(), self._engine.begin() as connection:
                ledger = Ledger(connection, self._limits, self._clock())
                if first:
                    ledger.recount()
                results.extend(_result(job, ledger) for job in jobs)
                more = ledger.close()
        except Exception as error:
            return self._failed(jobs, error)
        for job, result in zip(jobs, results, strict=True):
            if isinstance(result, StoreFailed):
                job.done.set_exception(result)
            else:
                job.done.set_result(result)
        return more

    def _failed(self, jobs: list[_Job], error: Exception) -> bool:
        """Tell those whose transaction failed, unless one of several may be to blame for it."""
        everyones = isinstance(error.__cause__, OperationalError | InterfaceError)
        if len(jobs) > 1 and not everyones:
            more = [self._transact([job]) for job in jobs]
            return any(more)
        if not jobs:
            log.warning("cannot remove old responses: %s", error)
        for job in jobs:
            job.done.set_exception(StoreFailed(str(error)).with_traceback(error.__traceback__))
        return False


def _result(job: _Job, ledger: Ledger) -> Any:
    """What a job returns, or the StoreFailed of one that found a reason to change nothing."""
    try:
        return job.work(ledger)
    except StoreFailed as error:
        return error
