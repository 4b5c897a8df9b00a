"""A process that uses the store, to be killed by those who start it. It prints what it has done.

    python -m tests.adapters.store_process write WHERE FOLDER FIRST COUNT WRITERS
    python -m tests.adapters.store_process check WHERE FOLDER

`write` saves the responses FIRST to FIRST + COUNT - 1 from a number of tasks at once, and prints
the number of each one when `save` has returned. `check` opens the store as the next server would,
prints the number of each response in it, and fails unless each is whole, turns included.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from sqlalchemy import select

from adapters.store import ResponseStore, StoredResponse
from adapters.store_schema import RESPONSES
from tests.adapters.stores import NOW, Place, audit, inside

CHAIN = 5
"""Responses of a conversation; one whose predecessor is not there begins another."""


def numbered(number: int, previous: str | None) -> StoredResponse:
    """The response of that number: always the same, unlike every other, and of any size."""
    draw = random.Random(number)

    def part(name: str) -> bytes:
        noise = draw.randbytes(draw.choice([0, 10, 1000, 20_000]))
        return f"{name} of {number}".encode() + noise

    response, given, output = part("response"), part("input"), part("output")
    events = tuple(part(f"event {place}") for place in range(draw.randrange(5)))
    return StoredResponse(f"resp_{number}", "t", NOW, response, given, output, events, previous)


async def write(place: Place, first: int, count: int, writers: int) -> None:
    store = place.open()
    numbers = iter(range(first, first + count))

    async def writer() -> None:
        previous = None
        for step, number in enumerate(numbers):
            made = numbered(number, previous if step % CHAIN else None)
            await store.save(made)
            os.write(1, b"%d\n" % number)
            previous = made.id

    await asyncio.gather(*(writer() for _ in range(writers)))
    await store.close()


async def check(place: Place) -> list[int]:
    """The numbers that are there. Raises AssertionError for one that is not as it was saved."""
    async with place.opened() as store:
        ids = inside(store, lambda open: open.scalars(select(RESPONSES.c.id)).all())
        found = {id: await _whole(store, id) for id in ids}
        for id, last in found.items():
            chain = [last]
            while chain[0].previous is not None:
                chain.insert(0, found[chain[0].previous])
            assert await store.turns("t", id) == [(part.input, part.output) for part in chain]
        assert len(ids) == len(found) == audit(store).responses
    return [int(id.removeprefix("resp_")) for id in ids]


async def _whole(store: ResponseStore, id: str) -> StoredResponse:
    response = await store.load("t", id)
    assert response is not None
    assert response == numbered(int(id.removeprefix("resp_")), response.previous)
    return response


def main() -> None:
    command, where, folder, *numbers = sys.argv[1:]
    place = Place("lasting", where, Path(folder))
    if command == "write":
        first, count, writers = map(int, numbers)
        asyncio.run(write(place, first, count, writers))
    else:
        print(*asyncio.run(check(place)), sep="\n")


if __name__ == "__main__":
    main()
