"""Bounds of the store: by count, by bytes, by age; what is longest unused goes first."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, delete, event

from adapters import store_ledger, store_writer
from adapters.store import ResponseStore, StoreFailed
from adapters.store_ledger import Packed
from adapters.store_schema import RESPONSES
from tests.adapters.stores import NOW, ROOMY, Inside, Place, audit, inside, stored, turn, until

DAY = 86_400


async def known(store: ResponseStore, ids: str, tenant: str = "t") -> str:
    """Those of the ids that the tenant has."""
    return "".join([id for id in ids if await store.load(tenant, id)])


def size_of(id: str, **changes: Any) -> int:
    """Bytes that a response takes."""
    packed = Packed.of(stored(id, **changes))
    return len(packed.content) + len(packed.reply)


# by count


async def test_the_oldest_make_room_for_new_ones(place: Place) -> None:
    limits = replace(ROOMY, max_responses=3)
    async with place.opened(limits) as store:
        seen = []
        for id in "abcdef":
            await store.save(stored(id))
            seen.append(await known(store, "abcdef"))
        assert seen == ["a", "ab", "abc", "bcd", "cde", "def"]
        assert audit(store, limits).turns == 3


async def test_the_oldest_is_the_one_that_was_saved_first(place: Place) -> None:
    """Not the one that began first, which may just have ended."""
    limits = replace(ROOMY, max_responses=2)
    async with place.opened(limits) as store:
        for id, age in (("a", 0), ("b", 5), ("c", 100)):
            await store.save(stored(id, created_at=NOW - age))
        assert await known(store, "abc") == "bc"


@pytest.mark.parametrize("ask", [ResponseStore.load, ResponseStore.turns])
async def test_what_was_asked_for_stays_longer(place: Place, ask: Any) -> None:
    """D026: by whoever may ask for it, and by nobody else."""
    limits = replace(ROOMY, max_responses=4)
    async with place.opened(limits) as store:
        for id in "abcd":
            await store.save(stored(id))
        await ask(store, "t", "a")
        await ask(store, "t", "a")
        assert await ask(store, "u", "b") is None
        for id in "ef":
            await store.save(stored(id))
        assert await known(store, "abcdef") == "adef"


async def test_uses_are_kept_over_a_restart(lasting: Place) -> None:
    limits = replace(ROOMY, max_responses=2)
    async with lasting.opened(limits) as store:
        for id in "ab":
            await store.save(stored(id))
        await store.load("t", "a")
    async with lasting.opened(limits) as store:
        await store.save(stored("c"))
        assert await known(store, "abc") == "ac"


async def test_one_response_can_be_all_there_is(place: Place) -> None:
    limits = replace(ROOMY, max_responses=1)
    async with place.opened(limits) as store:
        await asyncio.gather(*(store.save(stored(id)) for id in "abcdef"))
        await store.save(stored("g"))
        assert await known(store, "abcdefg") == "g"


async def test_the_bounds_are_those_of_all_tenants_together(place: Place) -> None:
    limits = replace(ROOMY, max_responses=2)
    async with place.opened(limits) as store:
        await store.save(stored("a", tenant="u"))
        await store.save(stored("b"))
        await store.save(stored("c"))
        assert (await known(store, "abc", "u"), await known(store, "abc")) == ("", "bc")


async def test_a_conversation_outlives_its_oldest_responses(place: Place) -> None:
    limits = replace(ROOMY, max_responses=2)
    async with place.opened(limits) as store:
        for previous, id in zip([None, *"abcd"], "abcde", strict=True):
            await store.save(stored(id, previous))
        assert await known(store, "abcde") == "de"
        assert await store.turns("t", "e") == [turn(id) for id in "abcde"]
        assert audit(store, limits).turns == 5
        for id in "fg":  # others, for which the whole conversation goes
            await store.save(stored(id))
        assert audit(store, limits).turns == 2


async def test_a_continued_response_may_go_in_the_save_that_continues_it(place: Place) -> None:
    async with place.opened(replace(ROOMY, max_responses=1)) as store:
        for previous, id in zip([None, *"abc"], "abcd", strict=True):
            await store.save(stored(id, previous))
        assert await known(store, "abcd") == "d"
        assert await store.turns("t", "d") == [turn(id) for id in "abcd"]


# by bytes


async def test_bytes_are_counted_as_they_are_stored(place: Place) -> None:
    text, noise = b"the same again, " * 1000, os.urandom(16_000)
    async with place.opened() as store:
        await store.save(stored("a", events=(text,)))
        packed = audit(store).bytes
        await store.save(stored("b", events=(noise,)))
        assert packed == size_of("a", events=(text,)) < 1000
        assert audit(store).bytes == packed + size_of("b", events=(noise,)) > packed + 16_000


async def test_bytes_are_bounded_and_no_more_goes_than_must(place: Place) -> None:
    noise = {id: os.urandom(1000) for id in "abcdefgh"}
    sizes = {id: size_of(id, response=noise[id]) for id in noise}
    limits = replace(ROOMY, max_bytes=sum(sizes[id] for id in "bcd"))
    async with place.opened(limits) as store:
        for id in "abcd":
            await store.save(stored(id, response=noise[id]))
        assert await known(store, "abcd") == "bcd"
        large = stored("e", response=noise["e"] + noise["f"][:500])
        await store.save(large)
        assert await known(store, "abcde") == "de"
        await store.save(stored("x"))
        assert await known(store, "dex") == "dex"


@pytest.mark.parametrize(("spare", "left"), [(0, "ab"), (-1, "b")])
async def test_bytes_are_bounded_to_the_last_one(place: Place, spare: int, left: str) -> None:
    limits = replace(ROOMY, max_bytes=size_of("a") + size_of("b") + spare)
    async with place.opened(limits) as store:
        await store.save(stored("a"))
        await store.save(stored("b"))
        assert await known(store, "ab") == left


async def test_turns_that_others_need_count_as_well(place: Place) -> None:
    noise = os.urandom(1000)
    one = size_of("a", input=noise)
    limits = replace(ROOMY, max_bytes=3 * one)
    async with place.opened(limits) as store:
        await store.save(stored("a", input=noise))
        await store.save(stored("b", "a", input=noise))
        assert await store.delete("t", "a")
        kept = audit(store, limits)
        assert (kept.responses, kept.turns) == (1, 2) and kept.bytes > 2000
        await store.save(stored("c", input=noise))
        assert await known(store, "bc") == "bc"
        await store.save(stored("d", input=noise))  # for which b goes, and the turn of a with it
        assert await known(store, "bcd") == "cd"
        assert audit(store, limits) == Inside(2, 2, 2 * one)


async def test_what_is_larger_than_the_store_is_refused_and_costs_nobody_anything(
    place: Place,
) -> None:
    noise = os.urandom(1000)
    one = size_of("a", input=noise)
    limits = replace(ROOMY, max_bytes=2 * one)
    async with place.opened(limits) as store:
        await store.save(stored("a", input=noise))
        await store.save(stored("b", "a", input=noise))
        for refused in (
            stored("c", input=os.urandom(2 * one)),
            stored("c", events=(os.urandom(2 * one),)),
            stored("c", "b", input=os.urandom(1000)),  # not by itself, but with its history
        ):
            with pytest.raises(StoreFailed, match="--store-max-bytes"):
                await store.save(refused)
            assert await known(store, "abc") == "ab"
        await store.save(stored("c", "a", input=b""))
        assert await known(store, "abc") in ("bc", "c")


# by age


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = float(NOW)

    def __call__(self) -> float:
        return self.now


async def test_what_is_too_old_is_unknown_and_goes_at_the_next_save(place: Place) -> None:
    limits, clock = replace(ROOMY, max_age=30 * DAY), Clock()
    async with place.opened(limits, clock) as store:
        await store.save(stored("a"))
        await store.save(stored("b", created_at=NOW + DAY))
        clock.now += 30 * DAY
        assert await known(store, "ab") == "ab"
        clock.now += 1
        assert await known(store, "ab") == "b"
        assert await store.turns("t", "a") is None
        assert not await store.delete("t", "a")
        await store.save(stored("c", created_at=NOW + 30 * DAY))
        assert audit(store) == Inside(2, 2, size_of("b") + size_of("c"))


async def test_a_young_response_keeps_the_old_turns_that_it_needs(place: Place) -> None:
    limits, clock = replace(ROOMY, max_age=DAY), Clock()
    async with place.opened(limits, clock) as store:
        await store.save(stored("a"))
        clock.now += DAY
        await store.save(stored("b", "a", created_at=int(clock.now)))
        clock.now += 10
        await store.save(stored("c", created_at=int(clock.now)))
        assert await known(store, "abc") == "bc"
        assert await store.turns("t", "b") == [turn("a"), turn("b")]
        clock.now += DAY - 5
        await store.save(stored("d", created_at=int(clock.now)))
        assert await known(store, "abcd") == "cd"
        assert audit(store).turns == 2


async def test_no_age_keeps_for_ever(place: Place) -> None:
    clock = Clock()
    async with place.opened(ROOMY, clock) as store:
        await store.save(stored("a", created_at=0))
        clock.now += 10_000 * DAY
        await store.save(stored("b"))
        assert await known(store, "ab") == "ab"


async def test_an_idle_store_removes_what_is_too_old(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer, "SWEEP_SECONDS", 0.05)
    limits, clock = replace(ROOMY, max_age=DAY), Clock()
    removals = watch_removals(monkeypatch)
    async with place.opened(limits, clock) as store:
        await store.save(stored("a"))
        clock.now += DAY + 1
        await until(lambda: sum(removals) == 1)
        assert audit(store) == Inside(0, 0, 0)


def watch_removals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many responses each transaction has removed to make room, as they end."""
    removals: list[int] = []
    close = store_ledger.Ledger.close

    def watched(self: store_ledger.Ledger) -> bool:
        before = self._responses
        more = close(self)
        removals.append(before - self._responses)
        return more

    monkeypatch.setattr(store_ledger.Ledger, "close", watched)
    return removals


# of another start


async def test_narrower_bounds_hold_from_the_start(lasting: Place) -> None:
    async with lasting.opened() as store:
        await asyncio.gather(*(store.save(stored(id)) for id in "abcdef"))
    async with lasting.opened(replace(ROOMY, max_responses=2)) as store:
        inside(store, repr)
        assert len(await known(store, "abcdef")) == 2
    limits = replace(ROOMY, max_bytes=size_of("a") + 20)
    async with lasting.opened(limits) as store:
        inside(store, repr)
        assert len(await known(store, "abcdef")) == 1


@pytest.mark.parametrize("gone", [2, 5])
async def test_rows_that_were_removed_by_hand_count_until_the_next_start(
    lasting: Place, gone: int
) -> None:
    def remove(connection: Connection) -> None:
        connection.execute(delete(RESPONSES).where(RESPONSES.c.number <= gone))

    limits = replace(ROOMY, max_responses=5)
    store = lasting.open(limits)
    for id in "abcde":
        await store.save(stored(id))
    inside(store, remove)
    await store.save(stored("f"))
    await store.save(stored("g"))
    await store.close()
    again = lasting.open(limits)
    before = len(await known(again, "abcdefg"))
    for id in "vwxyz"[before:]:
        await again.save(stored(id))
    assert len(await known(again, "abcdefgvwxyz")) == 5
    await again.save(stored("h"))
    assert len(await known(again, "abcdefgvwxyzh")) == 5
    await again.close()


async def test_much_that_must_go_goes_in_steps(
    lasting: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lasting.opened() as store:
        await asyncio.gather(*(store.save(stored(f"r{n}")) for n in range(100)))
    monkeypatch.setattr(store_ledger, "MOST_EVICTED", 7)
    removals = watch_removals(monkeypatch)
    limits = replace(ROOMY, max_responses=10)
    async with lasting.opened(limits) as store:
        await store.save(stored("new"))
        assert sum(removals) < 91
        await until(lambda: sum(removals) == 91)
        assert max(removals) == 7
        assert await store.load("t", "new")


async def test_a_save_reads_no_whole_table(file_place: Place) -> None:
    """By SQLite's own plans; what is sorted or read without an index would be in them."""
    limits = replace(ROOMY, max_responses=3, max_age=DAY)
    async with file_place.opened(limits) as store:
        inside(store, repr)  # after the first transaction, which counts
        seen: dict[str, Any] = {}

        @event.listens_for(store._engine, "before_cursor_execute")
        def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
            seen[statement] = parameters

        for previous, id in zip([None, *"abcd"], "abcde", strict=True):
            await store.save(stored(id, previous))
        await store.save(stored("f"))
        await store.turns("t", "e")
        await store.delete("t", "e")
        plans = []
        with store._engine.connect() as connection:
            for statement, parameters in list(seen.items()):
                if statement.startswith(("BEGIN", "PRAGMA")):
                    continue
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans += [(row[3], statement) for row in rows]
    whole = [
        (step, statement)
        for step, statement in plans
        if ("SCAN" in step or "TEMP B-TREE" in step)
        and step not in ("SCAN heliograph_totals", "SCAN chain")
        and not ("WITH RECURSIVE" in statement and "ORDER BY" in step)  # of the turns it found
        # In the order of the index, and not beyond the limit.
        and not ("LIMIT" in statement and step.endswith("USING INDEX heliograph_responses_used"))
    ]
    assert len(plans) > 12
    assert whole == []
