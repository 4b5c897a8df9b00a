"""Conversations: each turn points to the one before it, and stays while another follows from it."""

from __future__ import annotations

import asyncio
import itertools
import os
import random

import pytest

from adapters.store import PreviousGone, ResponseStore
from tests.adapters.stores import Inside, Place, audit, stored, turn

TREE = {"a": None, "b": "a", "c": "b", "d": "b", "e": "d"}
"""Each response of a conversation that forks, with the one that it continues."""


def path(id: str, tree: dict[str, str | None]) -> list[str]:
    """The responses up to one of them, oldest first."""
    previous = tree[id]
    return [*(path(previous, tree) if previous else []), id]


async def plant(store: ResponseStore, tenant: str = "t") -> None:
    for id, previous in TREE.items():
        await store.save(stored(id, previous, tenant=tenant))


async def test_each_response_has_the_turns_up_to_it(place: Place) -> None:
    async with place.opened() as store:
        await plant(store)
        for id, previous in TREE.items():
            assert await store.turns("t", id) == [turn(part) for part in path(id, TREE)]
            assert await store.load("t", id) == stored(id, previous)


async def test_deletions_in_every_order(place: Place) -> None:
    """Each order has a tenant of its own; those of all go on at once."""

    async def remove(order: tuple[str, ...]) -> None:
        tenant = "".join(order)
        await plant(store, tenant)
        for count, id in enumerate(order):
            assert await store.delete(tenant, id) is True
            assert await store.delete(tenant, id) is False
            assert await store.load(tenant, id) is None
            left = order[count + 1 :]
            for other in TREE:
                turns = [turn(part) for part in path(other, TREE)] if other in left else None
                assert await store.turns(tenant, other) == turns
            if left:
                next = stored(left[0], TREE[left[0]], tenant=tenant)
                assert await store.load(tenant, left[0]) == next

    orders = list(itertools.permutations(TREE))
    if place.kind != "private":  # where nothing is synced or sent
        orders = random.Random(6).sample(orders, 15)
    async with place.opened() as store:
        for start in range(0, len(orders), 30):
            await asyncio.gather(*map(remove, orders[start : start + 30]))
        assert audit(store) == Inside(0, 0, 0)


async def test_turns_go_with_the_last_response_that_needs_them(place: Place) -> None:
    async with place.opened() as store:
        await plant(store)
        turns = []
        for id in ("a", "b", "d", "c", "e"):
            await store.delete("t", id)
            turns.append(audit(store).turns)
        assert turns == [5, 5, 5, 4, 0]


async def test_what_is_deleted_cannot_be_continued_but_its_followers_can(place: Place) -> None:
    async with place.opened() as store:
        await plant(store)
        await store.delete("t", "b")
        with pytest.raises(PreviousGone, match="b"):
            await store.save(stored("f", "b"))
        await store.save(stored("f", "c"))
        assert await store.turns("t", "f") == [turn(id) for id in "abcf"]
        assert await store.load("t", "c") == stored("c", "b")  # as it was
        await store.save(stored("b"))  # the id is free again, and another conversation's
        assert await store.turns("t", "b") == [turn("b")]
        assert await store.turns("t", "f") == [turn(id) for id in "abcf"]


@pytest.mark.parametrize("previous", ["", "b", "a\0"[:1] + "x", "A"])
async def test_an_unknown_response_cannot_be_continued(place: Place, previous: str) -> None:
    async with place.opened() as store:
        await store.save(stored("a"))
        with pytest.raises(PreviousGone):
            await store.save(stored("c", previous))
        assert await store.load("t", "c") is None
        assert audit(store) == Inside(1, 1, audit(store).bytes)


async def test_a_long_conversation_grows_by_its_turns_and_goes_with_the_last(place: Place) -> None:
    length = 100
    async with place.opened() as store:
        sizes = []
        for number in range(length):
            # What does not compress, so that copies of the history would show.
            previous = f"r{number - 1}" if number else None
            await store.save(stored(f"r{number}", previous, input=os.urandom(1000)))
            if number in (0, length // 2, length - 1):
                sizes.append(audit(store).bytes)
        assert sizes[2] < sizes[0] * length * 1.1
        found = await store.turns("t", f"r{length - 1}")
        assert found is not None and len(found) == length
        assert [output for _, output in found] == [turn(f"r{n}")[1] for n in range(length)]
        for number in range(length - 1):
            await store.delete("t", f"r{number}")
        assert await store.turns("t", f"r{length - 1}") == found
        assert audit(store).turns == length
        await store.delete("t", f"r{length - 1}")
        assert audit(store) == Inside(0, 0, 0)


async def test_any_history_of_the_store_is_that_of_a_simple_model(place: Place) -> None:
    draw = random.Random(20261130)
    tree: dict[str, str | None] = {}  # all that ever was, under names that are not used again
    alive: list[str] = []
    async with place.opened() as store:
        for step in range(120):
            if alive and draw.random() < 0.4:
                id = alive.pop(draw.randrange(len(alive)))
                assert await store.delete("t", id)
            else:
                id = f"r{step}"
                tree[id] = draw.choice([None, *alive[-6:]])
                await store.save(stored(id, tree[id]))
                alive.append(id)
            asked = draw.choice(list(tree))
            turns = [turn(part) for part in path(asked, tree)] if asked in alive else None
            assert await store.turns("t", asked) == turns
            assert (await store.load("t", asked) is not None) == (asked in alive)
            if step % 10 == 0:
                needed = {part for id in alive for part in path(id, tree)}
                found = audit(store)
                assert (found.responses, found.turns) == (len(alive), len(needed))
        assert len(alive) > 5
