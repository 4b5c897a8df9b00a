"""The store of Responses: what `previous_response_id` continues and what clients retrieve.

A response is its final object, the events that were streamed, and one turn of a conversation, which
points to the turn before it: continuing copies nothing, and a deleted response leaves its turn to
those that follow from it. Every lookup is within a tenant; another tenant's id is unknown. The
bounds are those of the whole store, over all tenants and all servers that share it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, StaticPool

from adapters import store_database as database
from adapters import store_ledger as ledger
from adapters.store_database import failing_as_store
from adapters.store_ledger import Packed, storable
from adapters.store_types import PreviousGone, StoredResponse, StoreFailed, StoreLimits
from adapters.store_writer import Writer

__all__ = (
    "PreviousGone",
    "ResponseStore",
    "StoreFailed",
    "StoreLimits",
    "StoredResponse",
    "open_store",
)

log = logging.getLogger("heliograph.store")

T = TypeVar("T")


def open_store(
    where: str, folder: Path, limits: StoreLimits, clock: Callable[[], float] = time.time
) -> ResponseStore:
    """Open the store: "sqlite" is a file in the state folder, anything else the URL of a database
    on a PostgreSQL server.

    Where the folder cannot keep a file, a warning says why, and the responses are kept for this
    run only. Raises StartupError for a database that cannot be opened. Takes as long as the
    database does; not for the event loop. `clock` returns Unix seconds.
    """
    if where != "sqlite":
        return ResponseStore(database.open_postgresql(where), limits, clock)
    try:
        return ResponseStore(database.open_file(folder), limits, clock)
    except database.Unwritable as error:
        log.warning(
            "cannot keep responses in %s (%s): those of this run are gone at its end",
            folder / database.FILE, error,
        )  # fmt: skip
    return ResponseStore(database.open_private(), limits, clock)


class ResponseStore:
    """Use it from one event loop; the database's work is done on threads of its own.

    All methods but `close` raise StoreFailed when the database does not do its part, and when the
    store is closed.
    """

    def __init__(self, engine: Engine, limits: StoreLimits, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._limits = limits
        self._clock = clock
        self._closed = False
        self._has_one_connection = isinstance(engine.pool, StaticPool)
        self._threads = ThreadPoolExecutor(database.READERS, "store")
        self._writer = Writer(database.for_writing(engine), limits, clock)

    async def save(self, stored: StoredResponse) -> None:
        """Keep a response; when this returns, it survives the end of process and machine.

        Raises PreviousGone when the response that it continues is not there any more, and
        StoreFailed for an id that the tenant has already and for a conversation that alone is
        larger than the store may be. What is cancelled may be saved all the same.
        """
        packed = await self._on_thread(lambda: Packed.of(stored))
        await asyncio.wrap_future(self._writer.submit(lambda writing: writing.save(packed)))

    async def load(self, tenant: str, id: str) -> StoredResponse | None:
        """The response, unless it is unknown to the tenant."""
        return self._used(tenant, id, await self._read(ledger.load, tenant, id))

    async def turns(self, tenant: str, id: str) -> list[tuple[bytes, bytes]] | None:
        """Input and output of every turn up to and including this response's, oldest first.

        None for a response that is unknown to the tenant.
        """
        return self._used(tenant, id, await self._read(ledger.turns, tenant, id))

    async def delete(self, tenant: str, id: str) -> bool:
        """Forget a response; whether it was known. What continues it can still be continued."""
        if not storable(tenant, id):
            return False
        deleting = self._writer.submit(lambda writing: writing.delete(tenant, id))
        return await asyncio.wrap_future(deleting)

    async def close(self) -> None:
        """Finish what the database was asked for, then let go of it."""
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.close()
        self._threads.shutdown()
        self._engine.dispose()

    def _used(self, tenant: str, id: str, found: T | None) -> T | None:
        """Have it noted that what was found was asked for, without waiting until it is."""
        if found is not None:
            with contextlib.suppress(StoreFailed):  # closed since
                self._writer.submit(lambda writing: writing.use(tenant, id))
        return found

    async def _read(
        self, query: Callable[[Connection, str, str, int], T | None], tenant: str, id: str
    ) -> T | None:
        if not storable(tenant, id):
            return None
        since = ledger.oldest(self._limits, self._clock())
        if self._has_one_connection:
            reading = self._writer.submit(lambda open: query(open.connection, tenant, id, since))
            return await asyncio.wrap_future(reading)

        def read() -> T | None:
            with failing_as_store(), self._engine.connect() as connection:
                return query(connection, tenant, id, since)

        return await self._on_thread(read)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreFailed("the response store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
