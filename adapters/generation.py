"""How Chat Completions and Completions answer: one JSON object, or chunks and [DONE]."""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic_core import to_json
from starlette.responses import Response

from adapters import sse
from adapters.call import Call
from adapters.decode import given
from adapters.envelope import openai_body
from engine.accumulate import accumulate, check_end
from engine.errors import GenerationFailed, RequestError
from engine.events import (
    FinishCause,
    Finished,
    Output,
    PromptScored,
    SemanticEvent,
    Started,
    TextDelta,
    TokenRecord,
    Usage,
)
from engine.generation import Generation
from engine.types import GenerationRequest, ModelInfo
from generated.shared import GenerationFields, StreamOptions

log = logging.getLogger("heliograph.api")

DONE = sse.data(b"[DONE]")

FINISH_REASONS = {
    FinishCause.END: "stop",
    FinishCause.STOP_STRING: "stop",
    FinishCause.STOP_TOKEN: "stop",
    FinishCause.COMPLETE: "stop",
    FinishCause.LIMIT: "length",
    FinishCause.DEADLINE: "length",
    FinishCause.REPETITION: "length",
    FinishCause.CONTEXT_FULL: "length",
}


@dataclass(slots=True)
class Reply:
    """The constants of one reply, with its counts and times as they grow."""

    head: dict[str, object]
    n: int
    reasoning: bool
    shows_ids: bool
    shows_times: bool
    _usages: dict[int, Usage] = field(default_factory=dict)
    _ends: list[Finished] = field(default_factory=list)

    def count(self, index: int, usage: Usage) -> None:
        """Note the latest counts of a choice."""
        self._usages[index] = usage

    def finish(self, end: Finished) -> None:
        self._ends.append(end)

    def usage(self) -> dict[str, object]:
        """The counts so far. A prompt counts once, with the reuse of its first choice."""
        first: dict[int, Usage] = {}
        for index in sorted(self._usages):
            first.setdefault(index // self.n, self._usages[index])
        prompt = sum(usage.prompt for usage in first.values())
        output = sum(usage.output for usage in self._usages.values())
        counts: dict[str, object] = {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": sum(u.cached for u in first.values())},
        }
        if self.reasoning:
            counts["completion_tokens_details"] = {"reasoning_tokens": 0}
        return counts

    def flare(self) -> dict[str, object]:
        """From admission to the first token of any choice, and on to the last of all."""
        first = min((end.first_token for end in self._ends), default=0.0)
        last = max((end.first_token + end.decode for end in self._ends), default=0.0)
        return {
            "time_to_first_token_ms": round(first * 1000, 3),
            "decode_time_ms": round((last - first) * 1000, 3),
        }

    def observations(self, records: Iterable[TokenRecord]) -> dict[str, object]:
        """What a client asked to see of each token besides its log probability."""
        shown: dict[str, object] = {}
        if self.shows_ids:
            shown["token_ids"] = [record.token for record in records]
        if self.shows_times:
            shown["token_timestamps"] = [record.time for record in records]
        return shown


def new_reply(
    info: ModelInfo, body: GenerationFields, prefix: str, kind: str, *, reasoning: bool
) -> Reply:
    """A reply with a fresh id."""
    head: dict[str, object] = {
        "id": prefix + secrets.token_hex(16),
        "object": kind,
        "created": int(time.time()),
        "model": info.id,
        "system_fingerprint": fingerprint(info),
    }
    return Reply(
        head,
        n=given(body.n, 1),
        reasoning=reasoning,
        shows_ids=body.return_token_ids is True,
        shows_times=body.return_token_timestamps is True,
    )


def fingerprint(info: ModelInfo) -> str:
    """Changes when the weights, the number format or the backend change."""
    facts = f"{info.checkpoint} {info.engine.backend} {info.engine.dtype}"
    return "fp_" + hashlib.sha256(facts.encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True)
class ChunkForm:
    """How a protocol writes a chunk's choice: JSON members after `"index": i`.

    A text delta is `before_text`, the JSON string, `after_text`. `started` None: the first token
    has no chunk of its own.
    """

    started: bytes | None
    before_text: bytes
    after_text: bytes
    finished: dict[str, object]


class ChunkDetails(Protocol):
    """What a protocol adds to chunks where a request asked for more than text."""

    def prompt(self, index: int, happened: PromptScored) -> dict[str, object] | None:
        """The members of a chunk with scores of the prompt; None for no chunk."""

    def started(self, index: int) -> dict[str, object]:
        """Members of the chunk, not of the choice, that go with the first token."""

    def text(self, index: int, happened: TextDelta) -> dict[str, object]:
        """Members of the choice that go with a text delta."""

    def finished(self, index: int) -> dict[str, object]:
        """Members of the choice that go with its end."""


class ChunkEncoder:
    """Turns the events of a generation into chunks.

    Text chunks are spliced from prepared bytes; a test holds every kind of chunk against the
    generated models. `details` None: nothing but text was asked for.
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
        """The event's chunk. Raises GenerationFailed when the choice broke."""
        self._reply.count(index, happened.usage)
        if isinstance(happened, TextDelta):
            return self._text(index, happened)
        if isinstance(happened, Finished):
            return self._finish(index, happened)
        if isinstance(happened, Started):
            return self._start(index)
        return self._prompt(index, happened)

    def last(self) -> list[bytes]:
        """What ends the stream: the counts, where they have a chunk of their own."""
        if not self._wants_usage:
            return [DONE]
        reply = self._reply
        tail = {"choices": [], "usage": reply.usage(), "flare": reply.flare()}
        return [sse.data(to_json({**reply.head, **tail})), DONE]

    def _text(self, index: int, happened: TextDelta) -> bytes:
        form = self._form
        text = form.before_text + to_json(happened.text) + form.after_text
        if self._details is None:
            return self._splice(index, text + b',"logprobs":null,"finish_reason":null')
        extra = to_json(self._details.text(index, happened))[1:-1]
        return self._splice(index, text + b"," + extra + b',"finish_reason":null')

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


async def respond(
    call: Call,
    requests: Sequence[GenerationRequest],
    encode: Callable[[Generation, list[Output]], bytes],
    encode_events: Callable[[Generation], AsyncGenerator[bytes, None]] | None,
) -> Response:
    """Open the generation and answer with it, streamed where there is an encoder for that."""
    generation = await call.unless_gone(call.service.open(requests))
    if encode_events is not None:
        return sse.EventStream(
            guarded(encode_events(generation)),
            heartbeat=lambda: sse.COMMENT,
            silence=call.config.heartbeat_seconds,
            close=generation.close,
        )
    try:
        outputs = await call.unless_gone(accumulate(generation.batches(), generation.num_choices))
    finally:
        generation.close()
    return Response(encode(generation, outputs), media_type="application/json")


async def guarded(events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """A failure after the stream began is an error event, and nothing after it."""
    try:
        async for item in events:
            yield item
    except Exception as error:  # the status is already sent
        if not isinstance(error, GenerationFailed | RequestError):
            log.exception("a stream failed")
        yield sse.data(openai_body(error))
    finally:
        await events.aclose()
