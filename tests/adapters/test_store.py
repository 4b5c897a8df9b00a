"""What the store keeps comes back as it was, to its tenant alone."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress

import pytest
from sqlalchemy import Column, Connection, select, update

from adapters.store import PreviousGone, StoredResponse, StoreFailed
from adapters.store_ledger import pack, unpack
from adapters.store_schema import RESPONSES, TURNS
from tests.adapters.stores import Place, audit, inside, stored, turn

ODD = {
    "empty": stored("resp_1", response=b"", input=b"", output=b"", events=()),
    "one empty event": stored("resp_1", events=(b"",)),
    "bytes of any kind": stored("resp_1", response=bytes(range(256)), events=(b"\0", b"\n\n")),
    "large": stored("resp_1", response=os.urandom(300_000), events=(b"x" * 3_000_000, b"y")),
    "many events": stored("resp_1", events=tuple(b"%d" % n for n in range(20_000))),
    "names": stored("resp_ü 'x\" %s :id \\", tenant="Größe; DROP TABLE x;--", previous=None),
    "no tenant": stored("resp_1", tenant=""),
    "long ago": stored("resp_1", created_at=0),
    "after 2038": stored("resp_1", created_at=2**40),
}


@pytest.mark.parametrize("response", ODD.values(), ids=ODD)
async def test_a_response_comes_back_as_it_was(place: Place, response: StoredResponse) -> None:
    async with place.opened() as store:
        await store.save(response)
        assert await store.load(response.tenant, response.id) == response
        pairs = [(response.input, response.output)]
        assert await store.turns(response.tenant, response.id) == pairs


async def test_it_is_there_for_the_next_server(lasting: Place) -> None:
    async with lasting.opened() as store:
        await store.save(stored("a"))
        await store.save(stored("b", "a"))
    async with lasting.opened() as store:
        assert await store.load("t", "b") == stored("b", "a")
        assert await store.turns("t", "b") == [turn("a"), turn("b")]


async def test_a_private_store_is_nobody_elses(private_place: Place) -> None:
    async with private_place.opened() as store:
        await store.save(stored("a"))
        async with private_place.opened() as other:
            assert await other.load("t", "a") is None


async def test_what_was_never_saved_is_unknown(place: Place) -> None:
    async with place.opened() as store:
        await store.save(stored("a"))
        for id in ("", "b", "A", "a ", "a\0", "\0", "\ud800", "a" * 1_000_000, "%", "_", "*"):
            assert await store.load("t", id) is None
            assert await store.turns("t", id) is None
            assert await store.delete("t", id) is False
        assert audit(store).responses == 1


async def test_another_tenants_id_is_unknown(place: Place) -> None:
    async with place.opened() as store:
        await store.save(stored("a"))
        for tenant in ("", "u", "T", "t "):
            assert await store.load(tenant, "a") is None
            assert await store.turns(tenant, "a") is None
            assert await store.delete(tenant, "a") is False
            with pytest.raises(PreviousGone):
                await store.save(stored("b", "a", tenant=tenant))
        assert await store.load("t", "a") == stored("a")


async def test_tenants_may_have_the_same_id(place: Place) -> None:
    one, two = stored("a"), stored("a", tenant="u", response=b"{}")
    async with place.opened() as store:
        await store.save(one)
        await store.save(two)
        assert (await store.load("t", "a"), await store.load("u", "a")) == (one, two)
        assert await store.delete("t", "a")
        assert (await store.load("t", "a"), await store.load("u", "a")) == (None, two)


async def test_an_id_that_is_taken_raises_and_stays(place: Place) -> None:
    async with place.opened() as store:
        await store.save(stored("a"))
        with pytest.raises(StoreFailed, match="a response a already"):
            await store.save(stored("a", response=b"{}"))
        with pytest.raises(StoreFailed, match="already"):
            await store.save(stored("a", "a"))
        assert await store.load("t", "a") == stored("a")
        assert await store.delete("t", "a")
        await store.save(stored("a", response=b"{}"))  # free again
        assert await store.load("t", "a") == stored("a", response=b"{}")


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
@pytest.mark.parametrize("part", ["id", "tenant", "previous"])
async def test_names_that_a_database_cannot_keep_raise(place: Place, part: str, name: str) -> None:
    async with place.opened() as store:
        with pytest.raises(StoreFailed):
            await store.save(stored(**{"id": "a", part: name}))
        await store.save(stored("a"))


async def test_a_closed_store_says_so(place: Place) -> None:
    store = place.open()
    await store.save(stored("a"))
    await store.close()
    for asked in (
        store.save(stored("b")), store.load("t", "a"), store.turns("t", "a"), store.delete("t", "a")
    ):  # fmt: skip
        with pytest.raises(StoreFailed, match="closed"):
            await asked
    await store.close()  # again: nothing


async def test_closing_finishes_what_was_asked_for(lasting: Place) -> None:
    store = lasting.open()
    saves = [asyncio.create_task(store.save(stored(f"r{n}"))) for n in range(30)]
    await asyncio.wait(saves, return_when=asyncio.FIRST_COMPLETED)
    await store.close()
    ends = await asyncio.gather(*saves, return_exceptions=True)
    async with lasting.opened() as again:
        for number, end in enumerate(ends):
            kept = await again.load("t", f"r{number}")
            assert kept == (stored(f"r{number}") if end is None else None), end
    assert None in ends


@pytest.mark.parametrize("column", [RESPONSES.c.reply, TURNS.c.content], ids=str)
async def test_damage_is_told_and_concerns_one_response(
    place: Place, column: Column[bytes]
) -> None:
    async with place.opened() as store:
        for id in "abc":
            await store.save(stored(id))

        def damage(connection: Connection) -> None:
            which = column.table.c.number == 2
            content = connection.scalar(select(column).where(which))
            assert content is not None
            broken = content[:-1] + bytes([content[-1] ^ 1])
            connection.execute(update(column.table).where(which).values({column: broken}))

        inside(store, damage)
        with pytest.raises(StoreFailed, match="damaged"):
            await store.load("t", "b")
        if column.table is TURNS:
            with pytest.raises(StoreFailed, match="damaged"):
                await store.turns("t", "b")
        assert [await store.load("t", id) for id in "ac"] == [stored("a"), stored("c")]
        assert await store.delete("t", "b")


def test_packing_is_undone_and_compresses() -> None:
    parts = [b"", b"a", json.dumps({"text": "again and " * 100}).encode(), b"\0" * 7, b""]
    assert unpack(pack(parts)) == parts
    assert unpack(pack([b""])) == [b""]
    assert len(pack(parts)) < 200


def test_no_changed_bit_of_a_pack_goes_unnoticed() -> None:
    parts = [b"a response", b"of two parts"]
    packed = pack(parts)
    for place in range(len(packed)):
        for bit in range(8):
            changed = bytearray(packed)
            changed[place] ^= 1 << bit
            with suppress(StoreFailed):  # a few bits mean nothing
                assert unpack(bytes(changed)) == parts
    for wrong in (*(packed[:length] for length in range(len(packed))), packed + b"\0"):
        with pytest.raises(StoreFailed, match="damaged"):
            unpack(wrong)
