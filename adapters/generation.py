"""How generations are answered, and what replies of Chat and Completions say besides text."""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from starlette.responses import Response

from adapters import sse
from adapters.call import Call
from adapters.decode import given
from adapters.envelope import openai_body
from engine.accumulate import accumulate
from engine.errors import GenerationFailed, RequestError
from engine.events import FinishCause, Finished, Output, TokenRecord, Usage
from engine.generation import Generation
from engine.types import GenerationRequest, ModelInfo
from generated.shared import GenerationFields

log = logging.getLogger("heliograph.api")

FINISH_REASONS = {
    FinishCause.END: "stop",
    FinishCause.STOP_STRING: "stop",
    FinishCause.STOP_TOKEN: "stop",
    FinishCause.COMPLETE: "stop",
    FinishCause.TOOL_CALLS: "tool_calls",
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
            counts["completion_tokens_details"] = self._details()
        return counts

    def _details(self) -> dict[str, int]:
        usages = self._usages.values()
        details = {"reasoning_tokens": sum(usage.reasoning for usage in usages)}
        drafted = sum(usage.drafted for usage in usages)
        if drafted:
            accepted = sum(usage.accepted for usage in usages)
            details["accepted_prediction_tokens"] = accepted
            details["rejected_prediction_tokens"] = drafted - accepted
        return details

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


async def respond(
    call: Call,
    requests: Sequence[GenerationRequest],
    encode: Callable[[Generation, list[Output]], bytes],
    encode_events: Callable[[Generation], AsyncGenerator[bytes, None]] | None,
    *,
    heartbeat: bytes = sse.COMMENT,
    on_error: Callable[[Exception], bytes] = lambda error: sse.data(openai_body(error)),
) -> Response:
    """Open the generation and answer with it, streamed where there is an encoder for that.

    A silent stream sends `heartbeat`; one that fails ends with the event that `on_error` makes.
    """
    generation = await call.unless_gone(call.service.open(requests))
    if encode_events is not None:
        events = encode_events(generation)
        return streamed(call, generation, events, heartbeat=lambda: heartbeat, on_error=on_error)

    async def answer() -> bytes:
        outputs = await accumulate(generation.batches(), generation.num_choices)
        return encode(generation, outputs)

    return await buffered(call, generation, answer())


class Closing(Protocol):
    """What has to be closed behind an answer: a generation, or what opens one."""

    def close(self) -> None: ...


def streamed(
    call: Call,
    generation: Closing,
    events: AsyncGenerator[bytes, None],
    *,
    heartbeat: Callable[[], bytes],
    on_error: Callable[[Exception], bytes],
) -> Response:
    """Answer with events while they are made, then close the generation."""
    return sse.EventStream(
        guarded(events, on_error),
        heartbeat=heartbeat,
        silence=call.config.heartbeat_seconds,
        close=generation.close,
    )


async def buffered(call: Call, generation: Closing, answer: Awaitable[bytes]) -> Response:
    """Answer with one JSON object when it is there, and close the generation."""
    try:
        body = await call.unless_gone(answer)
    finally:
        generation.close()
    return Response(body, media_type="application/json")


async def guarded(
    events: AsyncGenerator[bytes, None], on_error: Callable[[Exception], bytes]
) -> AsyncGenerator[bytes, None]:
    """A failure after the stream began is an error event, and nothing after it."""
    try:
        async for item in events:
            yield item
    except Exception as error:  # the status is already sent
        if not isinstance(error, GenerationFailed | RequestError):
            log.exception("a stream failed")
        yield on_error(error)
    finally:
        await events.aclose()
