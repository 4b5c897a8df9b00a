"""What Chat Completions and Completions share: sampling fields in, usage and finish reasons out."""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from pydantic import MISSING
from pydantic_core import to_json
from starlette.responses import Response

from adapters import sse
from adapters.call import Call
from adapters.envelope import openai_body
from engine.accumulate import accumulate
from engine.errors import GenerationFailed, RequestError
from engine.service import Generation
from engine.types import (
    FinishCause,
    Finished,
    GenerationRequest,
    ModelInfo,
    Output,
    SamplingOverride,
    Stops,
    TextDelta,
    Usage,
)
from generated.shared import GenerationFields, StreamOptions

log = logging.getLogger("heliograph.api")

T = TypeVar("T")
MAX_STOP_BYTES = 4096
DONE = sse.data(b"[DONE]")

FINISH_REASONS = {
    FinishCause.END: "stop",
    FinishCause.STOP_STRING: "stop",
    FinishCause.STOP_TOKEN: "stop",
    FinishCause.LIMIT: "length",
    FinishCause.CONTEXT_FULL: "length",
}


def given(value: Any, default: T) -> T:
    """A field's value, or the default where it is absent or null."""
    return default if value is MISSING or value is None else cast(T, value)


def optional(value: Any) -> Any:
    """A field's value; None where it is absent or null."""
    return None if value is MISSING else value


def decode_sampling(body: GenerationFields) -> SamplingOverride:
    """The sampling fields of a request."""
    bias: dict[str, float] = given(body.logit_bias, {})
    return SamplingOverride(
        temperature=optional(body.temperature),
        top_p=optional(body.top_p),
        top_k=optional(body.top_k),
        min_p=optional(body.min_p),
        repetition_penalty=optional(body.repetition_penalty),
        presence_penalty=optional(body.presence_penalty),
        frequency_penalty=optional(body.frequency_penalty),
        logit_bias={int(token): amount for token, amount in bias.items()},
        seed=optional(body.seed),
        min_tokens=given(body.min_tokens, 0),
        ignore_eos=given(body.ignore_eos, False),
    )


def decode_stops(body: GenerationFields) -> Stops:
    """Stop strings and stop tokens. Raises RequestError where they cannot be combined."""
    value: str | list[str] = given(body.stop, [])
    strings = tuple([value] if isinstance(value, str) else value)
    token_ids: list[int] = given(body.stop_token_ids, [])
    if sum(len(string.encode()) for string in strings) > MAX_STOP_BYTES:
        raise RequestError(f"the stop strings are longer than {MAX_STOP_BYTES} bytes", "stop")
    if strings and token_ids:
        raise RequestError("stop and stop_token_ids cannot be combined", "stop_token_ids")
    return Stops(strings, tuple(token_ids))


def check_model(body: GenerationFields, call: Call) -> None:
    """Refuse an unknown model name where the server serves known ones only."""
    name = optional(body.model)
    if call.config.model_names == "known" and name and name not in call.service.info.names:
        raise unknown_model(name)


def unknown_model(name: str) -> RequestError:
    return RequestError(f"The model '{name}' does not exist.", "model", "model_not_found")


class Reply:
    """The constants of one reply, and its usage as it grows."""

    def __init__(self, info: ModelInfo, prefix: str, kind: str, n: int, *, reasoning: bool) -> None:
        self.head: dict[str, object] = {
            "id": prefix + secrets.token_hex(16),
            "object": kind,
            "created": int(time.time()),
            "model": info.id,
            "system_fingerprint": fingerprint(info),
        }
        self._n = n
        self._reasoning = reasoning
        self._usages: dict[int, Usage] = {}

    def count(self, index: int, usage: Usage) -> None:
        """Note the latest counts of a choice."""
        self._usages[index] = usage

    def usage(self) -> dict[str, object]:
        """The counts so far. A prompt counts once, with the reuse of its first choice."""
        first: dict[int, Usage] = {}
        for index in sorted(self._usages):
            first.setdefault(index // self._n, self._usages[index])
        prompt = sum(usage.prompt for usage in first.values())
        output = sum(usage.output for usage in self._usages.values())
        counts: dict[str, object] = {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": sum(u.cached for u in first.values())},
        }
        if self._reasoning:
            counts["completion_tokens_details"] = {"reasoning_tokens": 0}
        return counts


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


async def encode_stream(
    reply: Reply, generation: Generation, options: StreamOptions | None, form: ChunkForm
) -> AsyncGenerator[bytes, None]:
    """The chunks of a generation, then usage where it was asked for, then [DONE].

    Text chunks are spliced from prepared bytes; a test holds every kind of chunk against the
    generated models.
    """
    wants_usage = options is not None and options.include_usage is True
    grows = wants_usage and options is not None and options.continuous_usage_stats is True
    head = b"data: " + to_json(reply.head)[:-1] + b',"choices":[{"index":'
    tail = b',"logprobs":null,"finish_reason":null}]'

    def usage() -> bytes:
        if grows:
            return b',"usage":' + to_json(reply.usage()) + b"}\n\n"
        return b',"usage":null}\n\n' if wants_usage else b"}\n\n"

    async for batch in generation.batches():
        for index, happened in batch:
            place = head + str(index).encode() + b","
            reply.count(index, happened.usage)
            if isinstance(happened, TextDelta):
                text = form.before_text + to_json(happened.text) + form.after_text
                yield place + text + tail + usage()
            elif isinstance(happened, Finished):
                yield place + _finish(happened, form) + usage()
            elif form.started is not None:
                yield place + form.started + tail + usage()
    if wants_usage:
        yield sse.data(to_json({**reply.head, "choices": [], "usage": reply.usage()}))
    yield DONE


def _finish(end: Finished, form: ChunkForm) -> bytes:
    """The members of a last chunk. Raises GenerationFailed when the choice broke."""
    if end.cause not in FINISH_REASONS:
        raise GenerationFailed(end.error or "the generation was stopped")
    reason = {"finish_reason": FINISH_REASONS[end.cause], "stop_reason": end.stop}
    return to_json({**form.finished, "logprobs": None, **reason})[1:] + b"]"


async def respond(
    call: Call,
    requests: Sequence[GenerationRequest],
    stream: bool,
    encode: Callable[[list[Output]], bytes],
    encode_stream: Callable[[Generation], AsyncGenerator[bytes, None]],
) -> Response:
    """Open the generation and answer with it, buffered or streamed."""
    generation = await call.unless_gone(call.service.open(requests))
    if stream:
        return sse.EventStream(
            guarded(encode_stream(generation)),
            heartbeat=lambda: sse.COMMENT,
            silence=call.config.heartbeat_seconds,
            close=generation.close,
        )
    try:
        outputs = await call.unless_gone(accumulate(generation.batches(), generation.num_choices))
    finally:
        generation.close()
    return Response(encode(outputs), media_type="application/json")


async def guarded(events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """A failure after the stream began is an error event, and nothing after it."""
    try:
        async for item in events:
            yield item
    except Exception as error:  # the status is already sent
        if not isinstance(error, GenerationFailed):
            log.exception("a stream failed")
        yield sse.data(openai_body(error))
    finally:
        await events.aclose()
