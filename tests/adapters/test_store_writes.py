"""Many writers at once, servers that share a database, and databases that fail."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from adapters import store_database
from adapters.store import PreviousGone, ResponseStore, StoreFailed
from tests.adapters.postgres import PostgresServer
from tests.adapters.stores import Place, audit, inside, stored, turn, until


@contextmanager
def locked(store: ResponseStore) -> Iterator[None]:
    """Keep all writers waiting, as another server in the middle of a write does."""
    with store_database.for_writing(store._engine).begin() as connection:
        connection.execute(text("UPDATE heliograph_totals SET responses = responses"))
        yield


def commits(store: ResponseStore) -> list[None]:
    """Grows by one at each commit."""
    seen: list[None] = []
    event.listen(store._engine, "commit", lambda _: seen.append(None))
    return seen


async def test_fifty_writers_and_their_readers(place: Place) -> None:
    async def converse(number: int) -> None:
        previous = None
        for step in range(4):
            id = f"r{number}-{step}"
            await store.save(stored(id, previous))
            previous = id
            turns = [turn(f"r{number}-{part}") for part in range(step + 1)]
            assert await store.turns("t", id) == turns
        await store.delete("t", f"r{number}-1")

    async with place.opened() as store:
        await asyncio.gather(*map(converse, range(50)))
        found = audit(store)
        assert (found.responses, found.turns) == (150, 200)


async def test_two_servers_with_fifty_writers(lasting: Place) -> None:
    async def write(store: ResponseStore, name: str) -> None:
        for number in range(4):
            await store.save(stored(f"{name}-{number}", f"{name}-{number - 1}" if number else None))

    async with lasting.opened() as one, lasting.opened() as two:
        names = [f"w{number}" for number in range(25)]
        ones = (write(one, f"one-{name}") for name in names)
        await asyncio.gather(*ones, *(write(two, f"two-{name}") for name in names))
        assert audit(one).responses == 200
        assert await one.turns("t", "two-w0-3") == [turn(f"two-w0-{n}") for n in range(4)]


async def test_two_servers_on_a_database_that_isolates_more(
    postgres_place: Place, tmp_path: Path
) -> None:
    strict = f"{postgres_place.where}%20-cdefault_transaction_isolation%3Dserializable"
    await test_two_servers_with_fifty_writers(Place("postgres", strict, tmp_path))


async def test_what_waits_together_is_written_together(
    lasting: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lasting.opened() as store:
        inside(store, repr)  # the first transaction, of the start
        seen, asked, submit = commits(store), list[Any](), store._writer.submit

        def watched(work: Any) -> Any:
            asked.append(submit(work))
            return asked[-1]

        monkeypatch.setattr(store._writer, "submit", watched)
        with locked(store):
            saves = [asyncio.create_task(store.save(stored(f"r{n}"))) for n in range(50)]
            await until(lambda: len(asked) == 50)
            assert not any(save.done() for save in saves)
        await asyncio.gather(*saves)
        assert len(seen) <= 3  # the lock's own, of those that came first, of all others


async def test_readers_do_not_wait_for_writers(lasting: Place) -> None:
    async with lasting.opened() as store:
        await store.save(stored("a"))
        with locked(store):
            save = asyncio.create_task(store.save(stored("b", "a")))
            for _ in range(20):
                assert await store.load("t", "a") == stored("a")
                assert await store.turns("t", "a") == [turn("a")]
                assert await store.load("t", "b") is None
            assert not save.done()
        await save
        assert await store.load("t", "b") == stored("b", "a")


async def test_the_event_loop_does_not_wait_for_the_database(lasting: Place) -> None:
    async with lasting.opened() as store:
        with locked(store):
            begun = time.monotonic()
            save = asyncio.create_task(store.save(stored("a")))
            delete = asyncio.create_task(store.delete("t", "a"))
            await asyncio.sleep(0.1)
            assert time.monotonic() - begun < 5
            assert not save.done() and not delete.done()
        await save
        await delete


async def test_one_that_is_refused_does_not_harm_those_written_with_it(place: Place) -> None:
    async with place.opened() as store:
        await store.save(stored("a"))
        refused = {
            "taken": stored("a"), "unknown": stored("x", "gone"),
            "a number that no column holds": stored("y", created_at=2**70),
        }  # fmt: skip
        good = [stored(f"r{n}", "a") for n in range(20)]
        asked = [*good[:7], refused["taken"], *good[7:9], refused["unknown"], *good[9:15],
                 *list(refused.values())[2:], *good[15:]]  # fmt: skip
        ends = await asyncio.gather(*map(store.save, asked), return_exceptions=True)
        for response, end in zip(asked, ends, strict=True):
            if response in good:
                assert end is None
                assert await store.load("t", response.id) == response
            else:
                assert isinstance(end, StoreFailed)
        assert isinstance(ends[asked.index(refused["unknown"])], PreviousGone)
        assert await store.load("t", "a") == stored("a")
        assert audit(store).responses == 21


async def test_equal_ids_at_once_are_one_response(lasting: Place) -> None:
    async with lasting.opened() as one, lasting.opened() as two:
        made = [stored("a", response=b"%d" % number) for number in range(20)]
        saves = [(one, two)[number % 2].save(response) for number, response in enumerate(made)]
        ends = await asyncio.gather(*saves, return_exceptions=True)
        assert ends.count(None) == 1
        assert await one.load("t", "a") == made[ends.index(None)]
        assert all(end is None or "already" in str(end) for end in ends)


async def test_a_client_that_leaves_harms_nobody(place: Place) -> None:
    async with place.opened() as store:
        saves = [asyncio.create_task(store.save(stored(f"r{n}"))) for n in range(40)]
        await asyncio.wait(saves, return_when=asyncio.FIRST_COMPLETED)
        for save in saves[1::2]:
            save.cancel()
        ends = await asyncio.gather(*saves, return_exceptions=True)
        await store.save(stored("after"))
        for number, end in enumerate(ends):
            kept = await store.load("t", f"r{number}")
            assert kept in (
                (stored(f"r{number}"),) if end is None else (stored(f"r{number}"), None)
            )
        assert all(end is None for end in ends[::2])


# failures


async def test_a_failing_database_is_told_in_one_line_and_may_recover(place: Place) -> None:
    def rename(old: str, new: str) -> None:
        inside(store, repr)  # the writer has begun, and is idle
        with store_database.for_writing(store._engine).begin() as connection:
            connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))

    async with place.opened() as store:
        await store.save(stored("a", tenant="secret"))
        rename("heliograph_responses", "elsewhere")
        asked = [
            store.save(stored("b", tenant="secret")), store.load("secret", "a"),
            store.turns("secret", "a"), store.delete("secret", "a"),
        ]  # fmt: skip
        for question in asked:
            with pytest.raises(StoreFailed) as caught:
                await question
            assert "heliograph_responses" in caught.value.message
            assert "\n" not in caught.value.message and "secret" not in caught.value.message
        with store_database.for_writing(store._engine).begin() as connection:
            connection.execute(text("ALTER TABLE elsewhere RENAME TO heliograph_responses"))
        await store.save(stored("b", tenant="secret"))
        assert await store.load("secret", "a") == stored("a", tenant="secret")


async def test_a_full_disk_refuses_saves_and_nothing_else(file_place: Place) -> None:
    async with file_place.opened() as store:
        await store.save(stored("a"))

        def fill(connection: Any) -> None:
            connection.exec_driver_sql("PRAGMA max_page_count = 1")

        inside(store, fill)
        with pytest.raises(StoreFailed, match="full"):
            await store.save(stored("b", response=os.urandom(100_000)))
        assert await store.load("t", "a") == stored("a")
        assert await store.delete("t", "a")


async def test_a_lock_that_is_not_let_go_is_a_failure_in_time(
    lasting: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_database, "_PATIENCE", 1)
    async with lasting.opened() as store:
        inside(store, repr)
        with locked(store), pytest.raises(StoreFailed, match="lock"):
            await store.save(stored("a"))
        await store.save(stored("a"))


async def test_connections_that_the_server_ended_are_replaced(
    postgres: PostgresServer, postgres_place: Place
) -> None:
    async with postgres_place.opened() as store:
        await store.save(stored("a"))
        await store.load("t", "a")
        ended = postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        assert ended
        assert await store.load("t", "a") == stored("a")
        await store.save(stored("b"))
