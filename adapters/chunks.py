"""The chunks of a streamed answer of Chat Completions and Completions, and [DONE]."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol

from pydantic_core import to_json

from adapters import sse
from adapters.generation import FINISH_REASONS, Reply
from engine.accumulate import check_end
from engine.events import Delta, Finished, PromptScored, SemanticEvent, Started, TextDelta
from engine.generation import Generation
from generated.shared import StreamOptions

DONE = sse.data(b"[DONE]")


@dataclass(frozen=True, slots=True)
class ChunkForm:
    """How a protocol writes a chunk's choice: JSON members after `"index": i`.

    `delta` writes what an event adds to a choice, given by its index; None where it shows nothing,
    for which `nothing` stands when a client wants to see the tokens. `started` None: the first
    token has no chunk of its own.
    """

    started: bytes | None
    delta: Callable[[int, Delta], bytes | None]
    nothing: bytes
    finished: dict[str, object]


class ChunkDetails(Protocol):
    """What a protocol adds to chunks where a request asked for more than the output."""

    def prompt(self, index: int, happened: PromptScored) -> dict[str, object] | None:
        """The members of a chunk with scores of the prompt; None for no chunk."""

    def started(self, index: int) -> dict[str, object]:
        """Members of the chunk, not of the choice, that go with the first token."""

    def delta(self, index: int, happened: Delta) -> dict[str, object]:
        """Members of the choice that go with a delta."""

    def finished(self, index: int) -> dict[str, object]:
        """Members of the choice that go with its end."""


class ChunkEncoder:
    """Turns the events of a generation into chunks.

    Deltas are spliced from prepared bytes; a test holds every kind of chunk against the generated
    models. `details` None: nothing but the output was asked for.
    """

    def __init__(
        self,
        reply: Reply,
        num_choices: int,
        form: ChunkForm,
        options: StreamOptions | None,
        details: ChunkDetails | None,
    ) -> None:
        self._reply = reply
        self._form = form
        self._wants_usage = options is not None and options.include_usage is True
        self._grows = False
        if options is not None and self._wants_usage:
            self._grows = options.continuous_usage_stats is True
        self._details = details
        self._head = b"data: " + to_json(reply.head)[:-1] + b',"choices":[{"index":'
        self._open = num_choices

    def chunk(self, index: int, happened: SemanticEvent) -> bytes | None:
        """The event's chunk, if it has one. Raises GenerationFailed when the choice broke."""
        self._reply.count(index, happened.usage)
        if isinstance(happened, TextDelta):  # first, since nearly all are
            return self._delta(index, happened)
        if isinstance(happened, Finished):
            return self._finish(index, happened)
        if isinstance(happened, Started):
            return self._start(index)
        if isinstance(happened, PromptScored):
            return self._prompt(index, happened)
        return self._delta(index, happened)

    def last(self) -> list[bytes]:
        """What ends the stream: the counts, where they have a chunk of their own."""
        if not self._wants_usage:
            return [DONE]
        reply = self._reply
        tail = {"choices": [], "usage": reply.usage(), "flare": reply.flare()}
        return [sse.data(to_json({**reply.head, **tail})), DONE]

    def _delta(self, index: int, happened: Delta) -> bytes | None:
        members = self._form.delta(index, happened)
        if self._details is None:
            if members is None:
                return None
            return self._splice(index, members + b',"logprobs":null,"finish_reason":null')
        if members is None:
            if not happened.records:
                return None
            members = self._form.nothing
        extra = to_json(self._details.delta(index, happened))[1:-1]
        return self._splice(index, members + b"," + extra + b',"finish_reason":null')

    def _start(self, index: int) -> bytes | None:
        if self._form.started is None:
            return None
        extra = self._details.started(index) if self._details is not None else {}
        members = self._form.started + b',"logprobs":null,"finish_reason":null'
        return self._splice(index, members, extra)

    def _prompt(self, index: int, happened: PromptScored) -> bytes | None:
        members = self._details.prompt(index, happened) if self._details is not None else None
        if members is None:
            return None
        return self._splice(index, to_json({**members, "finish_reason": None})[1:-1])

    def _finish(self, index: int, end: Finished) -> bytes:
        check_end(end)
        self._reply.finish(end)
        self._open -= 1
        reason = {"finish_reason": FINISH_REASONS[end.cause], "stop_reason": end.stop}
        more = self._details.finished(index) if self._details is not None else {}
        members = to_json({**self._form.finished, "logprobs": None, **reason, **more})[1:-1]
        extra: dict[str, object] = {}
        if self._open == 0 and not self._wants_usage:  # no usage chunk will come
            extra["flare"] = self._reply.flare()
            if self._reply.shows_ids:
                extra["usage"] = self._reply.usage()
        return self._splice(index, members, extra)

    def _splice(self, index: int, members: bytes, extra: dict[str, object] | None = None) -> bytes:
        """A chunk with one choice; `extra` are members of the chunk."""
        tail = b"," + to_json(extra)[1:-1] if extra else b""
        if self._grows:
            tail += b',"usage":' + to_json(self._reply.usage())
        elif self._wants_usage:
            tail += b',"usage":null'
        return self._head + str(index).encode() + b"," + members + b"}]" + tail + b"}\n\n"


async def encode_stream(
    generation: Generation, encoder: ChunkEncoder
) -> AsyncGenerator[bytes, None]:
    """The chunks of a generation, in the order in which the choices made them."""
    async for batch in generation.batches():
        for index, happened in batch:
            chunk = encoder.chunk(index, happened)
            if chunk is not None:
                yield chunk
    for chunk in encoder.last():
        yield chunk
