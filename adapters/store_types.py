"""What the store of responses keeps, within which bounds, and how it fails."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """One finished response, and the turn of a conversation that it is.

    `created_at` is in Unix seconds, `response` the JSON of the final object, `input` the JSON list
    of this request's own items, `output` that of the answer's items as a continuation needs them,
    `events` the JSON of each streamed event in order, `previous` the id that this one continued.
    """

    id: str
    tenant: str
    created_at: int
    response: bytes
    input: bytes
    output: bytes
    events: tuple[bytes, ...]
    previous: str | None


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Bounds of the whole store, over all tenants. What was not used for longest makes room.

    `max_bytes` counts payloads as they are stored, which is compressed. `max_age` is in seconds
    since `created_at`; 0 keeps responses for ever.
    """

    max_responses: int
    max_bytes: int
    max_age: float


class StoreFailed(Exception):
    """The store cannot do what it was asked for; the server's fault, told in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class PreviousGone(StoreFailed):
    """The response that a new one continues was deleted, or made room, while it was generated."""
