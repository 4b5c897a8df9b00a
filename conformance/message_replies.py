"""Messages and their streams, held against the rules that Anthropic's clients rely on."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import jiter

from conformance import sse
from conformance.choice import Call, Choice
from conformance.reply import Block, Reply, anthropic_error_of

_MESSAGE = {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
_NOTHING = {"stop_details", "container", "diagnostics", "input_transformations"}
_USAGE = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CUT = ("max_tokens", "model_context_window_exceeded", "stop_sequence")
"""What can end a message within a call."""
_STARTS: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}
"""What a block that has not begun has, besides its type and a call's id and name."""
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""The kind of block that a delta is for, and where its text is."""


def read_whole(reply: Reply, route: str) -> None:
    """A buffered message, a count, or an error."""
    body = reply.body
    if reply.status != 200:
        reply.error = anthropic_error_of(body, reply.headers)
        return
    if route == "count":
        assert set(body) <= {"input_tokens", "context_management"}, f"unknown members: {body}"
        assert body["input_tokens"] >= 0, body
        reply.usage = {"input_tokens": body["input_tokens"]}
        reply.edits = body.get("context_management")
        return
    _check_message(body)
    reply.blocks = [_whole_block(block) for block in body["content"]]
    _finish(reply, body, body)
    _check_end(reply)


# Streams


def take(reply: Reply, event: sse.Event) -> None:
    """Add one event to a streamed message. Fails where the order or the form is wrong."""
    assert event.comment is None, f"a comment, which is none of the protocol's: {event}"
    data = event.data
    assert isinstance(data, dict), f"no event of this protocol: {event}"
    assert event.name == data["type"], f"the event's name is not its type: {event}"
    if data["type"] == "ping":
        assert data == {"type": "ping"}, data
        reply.comments += 1
        return
    if data["type"] == "error":
        reply.error = anthropic_error_of(data, reply.headers)
        return
    ended = any(chunk["type"] == "message_delta" for chunk in reply.chunks)
    assert (data["type"] == "message_start") == (not reply.chunks), f"out of order: {data}"
    assert ended == (data["type"] == "message_stop"), f"out of order: {data}"
    reply.chunks.append(data)
    match data["type"]:
        case "message_start":
            _start(reply, data)
        case "content_block_start":
            _open_block(reply, data)
        case "content_block_delta":
            _take_delta(reply, data)
        case "content_block_stop":
            _close_block(reply, data)
        case "message_delta":
            _end(reply, data)
        case "message_stop":
            assert data == {"type": "message_stop"}, data
            reply.done = True
            _check_end(reply)
        case _:
            raise AssertionError(f"unknown event: {data}")


def _start(reply: Reply, data: dict[str, Any]) -> None:
    """The message without content; its usage has the whole prompt, no part of it cached yet."""
    assert set(data) == {"type", "message"}, data
    message = data["message"]
    _check_message(message)
    assert message["content"] == [], message
    assert message["stop_reason"] is None and message["stop_sequence"] is None, message
    _check_usage(message["usage"])
    assert message["usage"]["input_tokens"] > 0, f"no prompt: {message}"
    assert message["usage"]["cache_read_input_tokens"] == 0, message
    reply.choices[0] = Choice()


def _open_block(reply: Reply, data: dict[str, Any]) -> None:
    assert set(data) == {"type", "index", "content_block"}, data
    assert not any(block.open for block in reply.blocks), f"a block within another: {data}"
    assert data["index"] == len(reply.blocks), f"block {len(reply.blocks)} is missing: {data}"
    block = _whole_block(data["content_block"])
    empty = {name: data["content_block"][name] for name in _STARTS[block.kind]}
    assert empty == _STARTS[block.kind], f"a block begins with content: {data}"
    block.open = True
    reply.blocks.append(block)
    if block.kind == "tool_use":
        reply.choices[0].calls.append(Call(block.id, "function", block.name))


def _take_delta(reply: Reply, data: dict[str, Any]) -> None:
    assert set(data) == {"type", "index", "delta"}, data
    block, delta = _opened(reply, data), data["delta"]
    kind, member = _DELTAS[delta["type"]]
    assert set(delta) == {"type", member}, f"unknown members: {data}"
    assert kind == block.kind, f"a {delta['type']} in a block of {block.kind}"
    assert not block.signed, f"a piece behind the signature: {data}"
    piece = delta[member]
    assert isinstance(piece, str) and piece, f"an empty piece: {data}"
    if member == "signature":
        block.signature, block.signed = piece, True
        return
    choice = reply.choices[0]
    block.deltas.append(piece)
    if kind == "tool_use":
        block.raw += piece
        choice.calls[-1].text += piece
        choice.calls[-1].deltas.append(piece)
        return
    block.text += piece
    if kind == "text":
        choice.text += piece
        choice.deltas.append(piece)
    else:
        choice.reasoning += piece
        choice.reasoning_deltas.append(piece)


def _close_block(reply: Reply, data: dict[str, Any]) -> None:
    assert set(data) == {"type", "index"}, data
    block = _opened(reply, data)
    block.open = False
    assert block.kind != "thinking" or block.signed, f"a thought without a signature: {block}"


def _opened(reply: Reply, data: dict[str, Any]) -> Block:
    """The block of an event, which must be the open one."""
    assert data["index"] == len(reply.blocks) - 1, f"not the last block: {data}"
    block = reply.blocks[-1]
    assert block.open, f"the block is closed: {data}"
    return block


def _end(reply: Reply, data: dict[str, Any]) -> None:
    assert set(data) - {"input_transformations"} <= {"type", "delta", "usage", "context_management"}
    assert not any(block.open for block in reply.blocks), f"a block is open: {data}"
    delta = data["delta"]
    assert {"stop_reason", "stop_sequence"} <= set(delta), f"how it ended is missing: {data}"
    assert set(delta) - {"stop_details", "container"} == {"stop_reason", "stop_sequence"}, data
    for block in reply.blocks:
        if block.kind == "tool_use":
            cut = delta["stop_reason"] in _CUT and block is reply.blocks[-1]
            block.input = _input(block.raw, cut=cut)
    _finish(reply, delta, data)
    start = reply.chunks[0]["message"]["usage"]
    assert start["input_tokens"] == reply.prompt_tokens, f"another prompt: {start} {reply.usage}"


def _input(raw: str, *, cut: bool) -> Any:
    """The input of a call; of one that was cut, what the official SDK reads of it."""
    if not raw:
        return {}
    if cut:
        return jiter.from_json(raw.encode(), partial_mode=True)
    value = json.loads(raw)  # a name may be there twice: masks do not forbid it
    json.dumps(value, allow_nan=False)
    return value


# Both


def _check_message(message: dict[str, Any]) -> None:
    assert set(message) >= _MESSAGE, f"missing: {_MESSAGE - set(message)}"
    unknown = set(message) - _MESSAGE - _NOTHING - {"context_management"}
    assert not unknown, f"unknown members: {unknown}"
    assert all(message.get(name) is None for name in _NOTHING), message
    assert message["type"] == "message" and message["role"] == "assistant", message
    assert message["id"].startswith("msg_"), message


def _whole_block(block: dict[str, Any]) -> Block:
    kind = block["type"]
    match kind:
        case "text":
            assert set(block) - {"citations"} == {"type", "text"}, block
            assert block.get("citations") is None, block
            return Block(kind, text=block["text"])
        case "thinking":
            assert set(block) == {"type", "thinking", "signature"}, block
            return Block(kind, text=block["thinking"], signature=block["signature"], signed=False)
        case "tool_use":
            assert set(block) - {"caller", "toolset_name"} == {"type", "id", "name", "input"}
            assert block["id"] and block["name"], f"a call without a name: {block}"
            assert isinstance(block["input"], dict), f"no object: {block}"
            return Block(kind, id=block["id"], name=block["name"], input=block["input"])
        case _:
            raise AssertionError(f"unknown block: {block}")


def _check_usage(usage: dict[str, Any]) -> None:
    assert set(_USAGE) <= set(usage), f"missing: {usage}"
    assert all(isinstance(usage[name], int) and usage[name] >= 0 for name in _USAGE), usage
    assert usage["cache_creation_input_tokens"] == 0, usage
    thoughts = usage.get("output_tokens_details", {"thinking_tokens": 0})["thinking_tokens"]
    assert 0 <= thoughts <= usage["output_tokens"], usage


def _finish(reply: Reply, end: dict[str, Any], around: dict[str, Any]) -> None:
    """How it ended, and what it cost: the same members, of a message or of its last delta."""
    _check_usage(around["usage"])
    reply.usage = around["usage"]
    reply.edits = around.get("context_management")
    whole = Choice(finish=end["stop_reason"], stop_reason=end["stop_sequence"])
    texts = [block for block in reply.blocks if block.kind == "text"]
    thoughts = [block for block in reply.blocks if block.kind == "thinking"]
    calls = [block for block in reply.blocks if block.kind == "tool_use"]
    whole.text = "".join(block.text for block in texts)
    whole.content_is_null = not texts
    whole.deltas = [delta for block in texts for delta in block.deltas]
    whole.reasoning = "".join(block.text for block in thoughts)
    whole.reasoning_deltas = [delta for block in thoughts for delta in block.deltas]
    for block in calls:
        text = block.raw if reply.chunks else json.dumps(block.input, ensure_ascii=False)
        whole.calls.append(Call(block.id, "function", block.name, text, block.deltas))
    reply.choices = {0: whole}


def _check_end(reply: Reply) -> None:
    """A stop reason that clients can trust, and blocks that they can send back."""
    choice = reply.choices[0]
    assert choice.finish is not None, "no stop_reason"
    assert (choice.finish == "stop_sequence") == (choice.stop_reason is not None), choice
    kinds = [block.kind for block in reply.blocks]
    assert choice.finish != "tool_use" or "tool_use" in kinds, f"tool_use, and no call: {kinds}"
    assert choice.finish != "end_turn" or "tool_use" not in kinds, "end_turn, and a call"
    for before, after in pairwise(kinds):
        assert before != after or after == "tool_use", f"two blocks that are one: {kinds}"
    for block in reply.blocks:
        assert block.kind != "text" or block.text, "a block of empty text, which clients refuse"
        assert block.kind != "thinking" or block.signature, f"a thought without signature: {block}"
    ids = [call.id for call in choice.calls]
    assert len(set(ids)) == len(ids), f"ids of calls: {ids}"
