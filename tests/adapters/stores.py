"""Stores of responses for tests: where they may be, what to put in, and what must hold inside."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select

from adapters.store import ResponseStore, StoredResponse, StoreLimits, open_store
from adapters.store_schema import RESPONSES, TOTALS, TURNS
from engine.errors import StartupError

T = TypeVar("T")

NOW = 1_800_000_000
"""Unix seconds: what the clock of a test's store says unless the test has another."""
ROOMY = StoreLimits(max_responses=10_000, max_bytes=2**30, max_age=0)


@dataclass(frozen=True)
class Place:
    """Where a store is: a `kind`, and what `open_store` wants to know."""

    kind: str
    where: str
    folder: Path

    def open(
        self, limits: StoreLimits = ROOMY, clock: Callable[[], float] = lambda: NOW
    ) -> ResponseStore:
        return open_store(self.where, self.folder, limits, clock)

    @asynccontextmanager
    async def opened(
        self, limits: StoreLimits = ROOMY, clock: Callable[[], float] = lambda: NOW
    ) -> AsyncIterator[ResponseStore]:
        """A store that is closed at the end, after a look at its inside."""
        store = self.open(limits, clock)
        try:
            yield store
            audit(store, limits)
        finally:
            await store.close()


def stored(id: str, previous: str | None = None, **changes: Any) -> StoredResponse:
    """A small response whose every part names its id."""
    made = StoredResponse(
        id=id,
        tenant="t",
        created_at=NOW,
        response=json.dumps({"id": id, "object": "response"}).encode(),
        input=json.dumps([{"input": id}]).encode(),
        output=json.dumps([{"output": id}]).encode(),
        events=tuple(json.dumps({"event": n, "of": id}).encode() for n in range(3)),
        previous=previous,
    )
    return replace(made, **changes)


def turn(id: str) -> tuple[bytes, bytes]:
    """The turn of that response."""
    made = stored(id)
    return made.input, made.output


def refusal(place: Place) -> str:
    """Why the store cannot be opened, in one line."""
    try:
        place.open()
    except StartupError as error:
        message = str(error)
    else:
        raise AssertionError("it can be opened")
    assert "\n" not in message and "sqlalche.me" not in message
    return message


@dataclass(frozen=True)
class Inside:
    """What the tables hold."""

    responses: int
    turns: int
    bytes: int


def audit(store: ResponseStore, limits: StoreLimits = ROOMY) -> Inside:
    """Look inside: the totals are true and within bounds, and no turn is kept for nothing."""

    def look(connection: Connection) -> Inside:
        responses = connection.execute(select(RESPONSES.c.turn, func.length(RESPONSES.c.reply)))
        sizes = {row[0]: row[1] for row in responses}
        rows = connection.execute(
            select(
                TURNS.c.number, TURNS.c.parent, TURNS.c.chain_bytes, func.length(TURNS.c.content)
            )
        ).all()
        chains = {row[0]: row[2] for row in rows}
        parents = {row[1] for row in rows} - {None}
        for number, parent, chain_bytes, size in rows:
            assert chain_bytes == size + (chains[parent] if parent else 0)
            assert parent is None or parent < number
        assert chains.keys() == parents | sizes.keys()
        total = sum(sizes.values()) + sum(row[3] for row in rows)
        totals = connection.execute(select(TOTALS)).one()
        assert (totals.responses, totals.bytes) == (len(sizes), total)
        uses = connection.scalars(select(RESPONSES.c.used)).all()
        assert len(set(uses)) == len(uses) and max(uses, default=0) <= totals.uses
        assert len(sizes) <= limits.max_responses and total <= limits.max_bytes
        return Inside(len(sizes), len(rows), total)

    return inside(store, look)


def inside(store: ResponseStore, look: Callable[[Connection], T]) -> T:
    """Look at the tables on the thread that writes them, after all that was asked for before."""
    return store._writer.submit(lambda ledger: look(ledger.connection)).result(30)


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that other threads bring about."""

    def watch() -> None:
        deadline = time.monotonic() + 15
        while not holds():
            assert time.monotonic() < deadline, "never true"
            time.sleep(0.01)

    await asyncio.to_thread(watch)
