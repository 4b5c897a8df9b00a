"""What the store does inside a transaction: look up, save, delete, and make room.

Writes of all servers on a database happen one transaction after the other: each begins by locking
the row of totals. What it then reads stays true until it ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import zstandard
from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select, update

from adapters.store_schema import RESPONSES, TOTALS, TURNS
from adapters.store_types import PreviousGone, StoredResponse, StoreFailed, StoreLimits

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LEVEL = 3  # zstandard's default
_LENGTH_BYTES = 4
_BATCH = 32
MOST_EVICTED = 1000
"""Responses that one transaction removes to make room, so that none takes long."""


def pack(parts: Sequence[bytes]) -> bytes:
    """Compress at least one part into a frame, whose checksum tells later whether it is whole."""
    framed = b"".join(len(part).to_bytes(_LENGTH_BYTES) + part for part in parts)
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(framed)


def unpack(packed: bytes) -> list[bytes]:
    """The parts again. Raises StoreFailed for anything that `pack` has not made."""
    try:
        framed = zstandard.ZstdDecompressor().decompress(packed, allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError):  # for want of the size that a damaged frame claims
        framed = b""
    if not framed:  # which a damaged frame may claim to be, too
        raise StoreFailed("a stored response is damaged")
    parts, place = [], 0
    while place < len(framed):
        start = place + _LENGTH_BYTES
        place = start + int.from_bytes(framed[place:start])
        parts.append(framed[start:place])
    return parts


@dataclass(frozen=True, slots=True)
class Packed:
    """A response as its two tables keep it."""

    stored: StoredResponse
    content: bytes
    reply: bytes

    @classmethod
    def of(cls, stored: StoredResponse) -> Packed:
        """Compress a response. Raises StoreFailed for an id or tenant that no database takes."""
        names = (stored.tenant, stored.id, stored.previous or "")
        if not storable(*names):
            raise StoreFailed(f"no response can be kept under the names {names!r}")
        content = pack((stored.input, stored.output))
        return cls(stored, content, pack((stored.response, *stored.events)))


def storable(*names: str) -> bool:
    """Whether texts can be kept as such: PostgreSQL takes no NUL, and nothing half a pair."""
    return all("\0" not in name and not _HALF_PAIR.search(name) for name in names)


def oldest(limits: StoreLimits, now: float) -> int:
    """Responses that were created before this are gone; both in Unix seconds."""
    return int(now - limits.max_age) if limits.max_age else 0


# Statements are built once; building one takes longer than SQLite takes to carry it out.
_LINK = select(TURNS.c.number, TURNS.c.parent)
_NAMED = (
    (RESPONSES.c.tenant == bindparam("tenant"))
    & (RESPONSES.c.id == bindparam("id"))
    & (RESPONSES.c.created_at >= bindparam("since"))
)
_LOAD = (
    select(RESPONSES.c.created_at, RESPONSES.c.previous, RESPONSES.c.reply, TURNS.c.content)
    .join(TURNS)
    .where(_NAMED)
)
_TURN = _LINK.join(RESPONSES).where(_NAMED).cte("chain", recursive=True)
_CHAIN = _TURN.union_all(_LINK.where(TURNS.c.number == _TURN.c.parent))
_CONTENTS = (
    select(TURNS.c.content).join(_CHAIN, TURNS.c.number == _CHAIN.c.number).order_by(TURNS.c.number)
)
_LOCK = (
    update(TOTALS)
    .values(responses=TOTALS.c.responses)
    .returning(TOTALS.c.responses, TOTALS.c.bytes, TOTALS.c.uses)
)
_COUNT = select(
    select(func.count()).select_from(RESPONSES).scalar_subquery(),
    select(func.coalesce(func.sum(func.length(RESPONSES.c.reply)), 0)).scalar_subquery(),
    select(func.coalesce(func.sum(func.length(TURNS.c.content)), 0)).scalar_subquery(),
)
_NOTE = update(TOTALS).values(
    responses=bindparam("responses"), bytes=bindparam("bytes"), uses=bindparam("uses")
)
_USE = (
    update(RESPONSES)
    .where(RESPONSES.c.tenant == bindparam("owner"), RESPONSES.c.id == bindparam("used_id"))
    .values(used=bindparam("use"))
)
_KNOWN = (
    select(RESPONSES.c.id, TURNS.c.number, TURNS.c.chain_bytes)
    .join(TURNS)
    .where(
        RESPONSES.c.tenant == bindparam("tenant"),
        RESPONSES.c.id.in_([bindparam("id"), bindparam("previous")]),
    )
)
_ADD_TURN = insert(TURNS).returning(TURNS.c.number)
_ADD_RESPONSE = insert(RESPONSES)
_REMOVABLE = select(RESPONSES.c.number, RESPONSES.c.turn, func.length(RESPONSES.c.reply))
_ONE = _REMOVABLE.where(_NAMED)
_EXPIRED = _REMOVABLE.where(RESPONSES.c.created_at < bindparam("since")).limit(bindparam("most"))
_UNUSED = _REMOVABLE.order_by(RESPONSES.c.used).limit(bindparam("most"))
_REMOVE_RESPONSE = delete(RESPONSES).where(RESPONSES.c.number == bindparam("response"))
_LATER = TURNS.alias()
_REMOVE_TURN = (
    delete(TURNS)
    .where(
        TURNS.c.number == bindparam("turn"),
        ~exists().where(_LATER.c.parent == bindparam("turn")),
        ~exists().where(RESPONSES.c.turn == bindparam("turn")),
    )
    .returning(TURNS.c.parent, func.length(TURNS.c.content))
)


def load(connection: Connection, tenant: str, id: str, since: int) -> StoredResponse | None:
    """The response, unless it is unknown or was created before `since`, in Unix seconds."""
    named = {"tenant": tenant, "id": id, "since": since}
    row = connection.execute(_LOAD, named).first()
    if row is None:
        return None
    response, *events = unpack(row.reply)
    given, output = unpack(row.content)
    return StoredResponse(
        id, tenant, row.created_at, response, given, output, tuple(events), row.previous
    )


def turns(
    connection: Connection, tenant: str, id: str, since: int
) -> list[tuple[bytes, bytes]] | None:
    """Input and output of each turn up to this response, oldest first; None as for `load`."""
    named = {"tenant": tenant, "id": id, "since": since}
    pairs = [unpack(content) for content in connection.scalars(_CONTENTS, named)]
    return [(given, output) for given, output in pairs] or None


class Ledger:
    """One transaction that writes, with however many saves and deletions.

    A method that raises StoreFailed itself has changed nothing, so that the others can go on.
    """

    def __init__(self, connection: Connection, limits: StoreLimits, now: float) -> None:
        """Wait for the other writers. `now` is in Unix seconds."""
        self.connection = connection
        self._limits = limits
        self._since = oldest(limits, now)
        row = connection.execute(_LOCK).one()
        self._responses: int = row.responses
        self._bytes: int = row.bytes
        self._uses: int = row.uses
        self._before = (self._responses, self._bytes, self._uses)

    def recount(self) -> None:
        """Take the totals from the tables, which an administrator may have changed by hand."""
        self._responses, replies, contents = self.connection.execute(_COUNT).one()
        self._bytes = int(replies + contents)  # PostgreSQL sums to decimals

    def save(self, packed: Packed) -> None:
        """Add a response and its turn.

        Raises PreviousGone when what it continues is not there, and StoreFailed for an id that is
        taken or for a conversation that is larger than the whole store may be.
        """
        stored = packed.stored
        parent, chain_bytes = self._place(stored)
        chain_bytes += len(packed.content)
        size = chain_bytes + len(packed.reply)
        if size > self._limits.max_bytes:
            raise StoreFailed(
                f"the response {stored.id} with the turns before it takes {size:,} bytes, "
                f"more than the {self._limits.max_bytes:,} of --store-max-bytes"
            )
        turn = {"parent": parent, "chain_bytes": chain_bytes, "content": packed.content}
        response = {
            "tenant": stored.tenant,
            "id": stored.id,
            "created_at": stored.created_at,
            "previous": stored.previous,
            "turn": self.connection.scalar(_ADD_TURN, turn),
            "used": self._use(),
            "reply": packed.reply,
        }
        self.connection.execute(_ADD_RESPONSE, response)
        self._responses += 1
        self._bytes += len(packed.content) + len(packed.reply)

    def use(self, tenant: str, id: str) -> None:
        """Note that a response was asked for, if it is there."""
        self.connection.execute(_USE, {"owner": tenant, "used_id": id, "use": self._use()})

    def delete(self, tenant: str, id: str) -> bool:
        """Remove a response, and its turn unless others follow from it; whether it was known."""
        named = {"tenant": tenant, "id": id, "since": self._since}
        row = self.connection.execute(_ONE, named).first()
        if row is None:
            return False
        self._remove(*row)
        return True

    def close(self) -> bool:
        """Remove responses until the bounds hold, the longest unused first, and note the totals.

        Whether there is more to remove: MOST_EVICTED are enough for one transaction.
        """
        expired = {"since": self._since, "most": MOST_EVICTED}
        rows = self.connection.execute(_EXPIRED, expired).all()
        for row in rows:
            self._remove(*row)
        left = MOST_EVICTED - len(rows)
        while left and self._is_over():
            most = {"most": min(left, _BATCH)}
            rows = self.connection.execute(_UNUSED, most).all()
            if not rows:
                break  # somebody has removed rows by hand, which the next start will count
            for row in rows:
                if self._is_over():
                    self._remove(*row)
                    left -= 1
        now = (self._responses, self._bytes, self._uses)
        if now != self._before:
            values = dict(zip(("responses", "bytes", "uses"), now, strict=True))
            self.connection.execute(_NOTE, values)
        return not left

    def _place(self, stored: StoredResponse) -> tuple[int | None, int]:
        """The turn that this one follows, with the bytes of its chain."""
        names = {"tenant": stored.tenant, "id": stored.id, "previous": stored.previous}
        known = self.connection.execute(_KNOWN, names)
        rows = {row.id: (row.number, row.chain_bytes) for row in known}
        if stored.id in rows:
            raise StoreFailed(f"there is a response {stored.id} already")
        if stored.previous is None:
            return None, 0
        if stored.previous not in rows:
            raise PreviousGone(f"the response {stored.previous} is not in the store any more")
        return rows[stored.previous]

    def _use(self) -> int:
        """The number of one more use."""
        self._uses += 1
        return self._uses

    def _is_over(self) -> bool:
        limits = self._limits
        return self._responses > limits.max_responses or self._bytes > limits.max_bytes

    def _remove(self, number: int, turn: int | None, size: int) -> None:
        """Remove a response, then each turn from its own backwards that nothing needs any more."""
        self.connection.execute(_REMOVE_RESPONSE, {"response": number})
        self._responses -= 1
        self._bytes -= size
        while turn is not None:
            row = self.connection.execute(_REMOVE_TURN, {"turn": turn}).first()
            if row is None:
                break
            turn, size = row
            self._bytes -= size
