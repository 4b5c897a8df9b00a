"""Messages' answers: what a generation made as a message, or as the events of one."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Iterator

from pydantic_core import from_json, to_json

from adapters import sse
from adapters.call import Call
from adapters.envelope import anthropic_body
from adapters.message_edits import EditReport
from engine.accumulate import check_end
from engine.events import (
    Block,
    CallBlock,
    CallDelta,
    CallEnd,
    CallStart,
    FinishCause,
    Finished,
    Output,
    ReasoningBlock,
    ReasoningDelta,
    SemanticEvent,
    TextDelta,
    Usage,
)
from engine.generation import Generation

STOP_REASONS = {
    FinishCause.END: "end_turn",
    FinishCause.STOP_STRING: "stop_sequence",
    FinishCause.STOP_TOKEN: "end_turn",
    FinishCause.COMPLETE: "end_turn",
    FinishCause.TOOL_CALLS: "tool_use",
    FinishCause.LIMIT: "max_tokens",
    FinishCause.DEADLINE: "max_tokens",
    FinishCause.REPETITION: "max_tokens",
    FinishCause.CONTEXT_FULL: "model_context_window_exceeded",
}
_CALLER: dict[str, object] = {"caller": {"type": "direct"}}
# What the official document requires and this server has nothing to say of.
_NO_USAGE = dict.fromkeys(("cache_creation", "server_tool_use", "inference_geo"))
_NO_END: dict[str, object] = dict.fromkeys(("stop_details", "container"))
PING = sse.event(b"ping", b'{"type":"ping"}')


class MessageHead:
    """What a message says besides its content."""

    def __init__(self, call: Call, *, omits_thoughts: bool, edits: EditReport | None) -> None:
        info = call.service.info
        self.head: dict[str, object] = {
            "id": f"msg_{secrets.token_hex(12)}",
            "type": "message",
            "role": "assistant",
            "model": info.id,
        }
        self.omits_thoughts = omits_thoughts
        self.edits: dict[str, object] = {}
        if edits is not None:
            self.edits["context_management"] = {"applied_edits": list(edits.applied)}
        self._seal = call.seal
        self._tenant = call.tenant
        self._checkpoint = info.checkpoint

    def signature(self, thought: str) -> str:
        """What proves a thought that is shown, or carries one that is not."""
        if self.omits_thoughts:
            return self._seal.seal(thought, self._tenant, self._checkpoint)
        return self._seal.sign(thought)


def usage_of(usage: Usage) -> dict[str, object]:
    """Token counts; cached tokens of the prompt are counted apart."""
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
        **_NO_USAGE,
    }


def end_of(end: Finished) -> dict[str, object]:
    """Why a message ended. A token that stopped it is no sequence."""
    is_string = end.cause is FinishCause.STOP_STRING
    return {
        "stop_reason": STOP_REASONS[end.cause],
        "stop_sequence": end.stop if is_string else None,
        **_NO_END,
    }


def error_event(error: Exception, call: Call) -> bytes:
    """The event that ends a stream which fails."""
    return sse.event(b"error", anthropic_body(error, call.request.scope["request_id"]))


def encode(head: MessageHead, output: Output) -> bytes:
    """The whole message."""
    content = b",".join(_block(head, block) for block in output.blocks)
    tail = {**end_of(output.end), **head.edits, "usage": usage_of(output.end.usage)}
    return to_json(head.head)[:-1] + b',"content":[' + content + b"]," + to_json(tail)[1:]


def _block(head: MessageHead, block: Block) -> bytes:
    if isinstance(block, ReasoningBlock):
        shown = "" if head.omits_thoughts else block.text
        signature = head.signature(block.text)
        return to_json({"type": "thinking", "thinking": shown, "signature": signature})
    if isinstance(block, CallBlock):
        start = to_json({"type": "tool_use", "id": block.id, "name": block.name, **_CALLER})
        return start[:-1] + b',"input":' + _input(block) + b"}"
    return to_json({"type": "text", "text": block.text, "citations": None})


def _input(block: CallBlock) -> bytes:
    """The arguments as the model wrote them; of a call that was cut, what can be read of them."""
    if block.complete and _is_object(block.arguments):
        return block.arguments.encode("utf-8", "backslashreplace")
    try:
        found = from_json(block.arguments, allow_partial=True, allow_inf_nan=False)
    except ValueError:
        return b"{}"
    return to_json(found, inf_nan_mode="null") if isinstance(found, dict) else b"{}"


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object as every reader takes it: no name comes twice in it."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name comes twice")
        return found

    try:
        found = json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict)


class MessageStream:
    """Turns the events of a generation into those of a message.

    Deltas are spliced from prepared bytes; tests hold every event against the generated models.
    """

    def __init__(self, head: MessageHead, generation: Generation) -> None:
        self._head = head
        self._generation = generation
        self._index = -1
        self._open: bytes | None = None  # the kind of the open block
        self._thought: list[str] = []

    async def events(self) -> AsyncGenerator[bytes, None]:
        """All events in order. Raises GenerationFailed when the generation breaks."""
        yield self._start()
        async for batch in self._generation.batches():
            for _, happened in batch:
                for event in self._events(happened):
                    yield event

    def _start(self) -> bytes:
        usage = usage_of(Usage(prompt=len(self._generation.prompts[0])))
        nothing = {"content": [], "stop_reason": None, "stop_sequence": None, **_NO_END}
        message = {**self._head.head, **nothing, "usage": usage}
        return sse.event(b"message_start", to_json({"type": "message_start", "message": message}))

    def _events(self, happened: SemanticEvent) -> Iterator[bytes]:
        if isinstance(happened, TextDelta):
            if happened.text:
                yield from self._enter(b"text", b'{"type":"text","text":"","citations":null}')
                yield self._delta(b'"text_delta","text":', happened.text)
        elif isinstance(happened, ReasoningDelta):
            if happened.text:
                yield from self._think(happened.text)
        elif isinstance(happened, CallStart):
            yield from self._leave()
            call = {"type": "tool_use", "id": happened.id, "name": happened.name, **_CALLER}
            call["input"] = {}
            yield from self._enter(b"tool_use", to_json(call))
        elif isinstance(happened, CallDelta):
            if happened.arguments:
                yield self._delta(b'"input_json_delta","partial_json":', happened.arguments)
        elif isinstance(happened, CallEnd):
            yield from self._leave()
        elif isinstance(happened, Finished):
            yield from self._finish(happened)

    def _think(self, text: str) -> Iterator[bytes]:
        yield from self._enter(b"thinking", b'{"type":"thinking","thinking":"","signature":""}')
        self._thought.append(text)
        if not self._head.omits_thoughts:
            yield self._delta(b'"thinking_delta","thinking":', text)

    def _enter(self, kind: bytes, block: bytes) -> Iterator[bytes]:
        """Begin a block, unless one of this kind is open."""
        if self._open == kind:
            return
        yield from self._leave()
        self._open = kind
        self._index += 1
        yield self._event(b"content_block_start", b',"content_block":' + block)

    def _leave(self) -> Iterator[bytes]:
        """End the open block, if there is one."""
        if self._open is None:
            return
        if self._open == b"thinking":
            signature = self._head.signature("".join(self._thought))
            self._thought = []
            yield self._delta(b'"signature_delta","signature":', signature)
        self._open = None
        yield self._event(b"content_block_stop", b"")

    def _delta(self, members: bytes, value: str) -> bytes:
        return self._event(
            b"content_block_delta", b',"delta":{"type":' + members + to_json(value) + b"}"
        )

    def _event(self, name: bytes, members: bytes) -> bytes:
        """An event of the block that was begun last."""
        index = str(self._index).encode()
        return sse.event(name, b'{"type":"' + name + b'","index":' + index + members + b"}")

    def _finish(self, end: Finished) -> Iterator[bytes]:
        check_end(end)
        yield from self._leave()
        delta = {"delta": end_of(end), **self._head.edits, "usage": usage_of(end.usage)}
        yield sse.event(b"message_delta", to_json({"type": "message_delta", **delta}))
        yield sse.event(b"message_stop", b'{"type":"message_stop"}')
