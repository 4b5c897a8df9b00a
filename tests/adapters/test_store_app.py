"""The store in the program: what the options mean, and who closes it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from adapters import assemble
from adapters.app import build_app
from adapters.auth import Keys
from adapters.store import StoreFailed
from adapters.store_database import FILE
from engine.config import Config
from tests.adapters.asgi import SEAL
from tests.adapters.stores import Place, stored
from tests.serving import PlayedClient, facts, service_over

DAY = 86_400


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_off_keeps_nothing(tmp_path: Path) -> None:
    assert assemble._open_store(Config(store="off", state_dir=tmp_path)) is None
    assert names(tmp_path) == []


async def test_the_options_are_the_bounds(tmp_path: Path) -> None:
    config = Config(
        state_dir=tmp_path, store_max_responses=2, store_max_bytes=10_000, store_max_days=3
    )
    store = assemble._open_store(config)
    assert store is not None
    now = int(time.time())
    ages = {"old": 3 * DAY + 60, "a": 3 * DAY - 60, "b": 60, "c": 0}
    known = []
    for id, age in ages.items():
        await store.save(stored(id, created_at=now - age))
        known.append("".join([name for name in ages if await store.load("t", name)]))
    assert known == ["", "a", "ab", "bc"]
    with pytest.raises(StoreFailed, match="--store-max-bytes"):
        await store.save(stored("d", created_at=now, response=os.urandom(10_000)))
    await store.close()
    assert names(tmp_path) == [FILE]


async def test_a_url_is_that_of_a_database(postgres_place: Place, tmp_path: Path) -> None:
    store = assemble._open_store(Config(store=postgres_place.where, state_dir=tmp_path))
    assert store is not None
    made = stored("a", created_at=int(time.time()))
    await store.save(made)
    await store.close()
    async with postgres_place.opened() as other:
        assert await other.load("t", "a") == made
    assert names(tmp_path) == []


async def test_the_application_closes_it(file_place: Place) -> None:
    store = file_place.open()
    client = PlayedClient()
    app = build_app(service_over(client, facts()), Config(), Keys({}), SEAL, store)
    inbox: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    outbox: asyncio.Queue[str] = asyncio.Queue()

    async def send(message: Any) -> None:
        await outbox.put(message["type"])

    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}

    async def lifespan() -> None:
        await app(scope, inbox.get, send)

    task = asyncio.create_task(lifespan())
    await inbox.put({"type": "lifespan.startup"})
    assert await outbox.get() == "lifespan.startup.complete"
    await store.save(stored("a"))
    await inbox.put({"type": "lifespan.shutdown"})
    assert await outbox.get() == "lifespan.shutdown.complete"
    await task
    with pytest.raises(StoreFailed, match="closed"):
        await store.load("t", "a")
