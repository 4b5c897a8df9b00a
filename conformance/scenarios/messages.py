"""Messages on the wire: places, queries, frames, signs of life, and thoughts that come back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anthropic import Anthropic

from conformance import sse
from conformance.bodies import SHOW, shown_prompt
from conformance.models import MODELS
from conformance.profiles import KEYS, Pool
from conformance.replies import PATHS, opened, send
from conformance.reply import Reply, anthropic_error_of
from conformance.server import Server

ADAPTIVE = {"type": "adaptive"}


def message(text: str, **fields: Any) -> dict[str, Any]:
    """A body with one message of the user."""
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 128, **fields}


def full_for_messages(pool: Pool, _: Callable[..., Server]) -> None:
    """D040: with every place taken a message is refused at once; the running ones go on, and
    counting needs no place."""
    server = pool.get("narrow")
    before = server.until_idle()
    with (
        opened(server.http, "messages", message("D040-MESSAGES", stream=True)) as first,
        opened(server.http, "messages", message("D040-MESSAGES too", stream=True)) as second,
    ):
        server.until(lambda m: m["held"] == 2, "both places are taken")
        for streams in (True, False):
            reply = send(server.http, "messages", message("hello", stream=streams))
            assert reply.status == 529, reply
            assert reply.error and reply.error["type"] == "overloaded_error"
            assert int(reply.headers["retry-after"]) >= 1
        assert send(server.http, "count", message("hello")).status == 200
        for response in (first, second):
            assert list(sse.events(response.iter_raw()))[-1].data == {"type": "message_stop"}
    moved = server.until_idle_since(before)
    assert (moved["refused"], moved["completed"]) == (2, 2), moved
    assert send(server.http, "messages", message("hello")).finish == "end_turn"


def beta_query(pool: Pool, _: Callable[..., Server]) -> None:
    """D053: `?beta=true` is the same route, for a message, its stream and its count."""
    client = pool.get("scripted").http
    plain = client.post(PATHS["messages"], json=message("hello")).json()
    asked = client.post(PATHS["messages"], params={"beta": "true"}, json=message("hello"))
    assert asked.status_code == 200, asked.text
    assert asked.json()["content"] == plain["content"]
    counted = client.post(f"{PATHS['count']}?beta=true", json=message("hello"))
    usage = plain["usage"]
    wanted = usage["input_tokens"] + usage["cache_read_input_tokens"]
    assert counted.status_code == 200 and counted.json() == {"input_tokens": wanted}, counted.text
    streamed = client.post(f"{PATHS['messages']}?beta=true", json=message("hello", stream=True))
    assert sse.parse(streamed.content)[-1].name == "message_stop"
    refused = client.post(f"{PATHS['messages']}?beta=true", json={"max_tokens": 0})
    assert anthropic_error_of(refused.json(), refused.headers)["type"] == "invalid_request_error"


def message_frames(pool: Pool, _: Callable[..., Server]) -> None:
    """D067: every frame is an event line, a data line and a blank one, however they are cut."""
    server = pool.get("thinker")
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    body = message("D067", stream=True, tools=tools, thinking=ADAPTIVE)
    response = server.http.post(PATHS["messages"], json=body)
    assert response.headers["content-type"].partition(";")[0] == "text/event-stream"
    raw = response.content
    assert b"[DONE]" not in raw and b"\r" not in raw and raw.endswith(b"\n\n")
    kinds = []
    for frame in raw[:-2].split(b"\n\n"):
        event, data = frame.split(b"\n")
        assert event.startswith(b"event: ") and data.startswith(b"data: "), frame
        kinds.append(event.removeprefix(b"event: ").decode())
        assert json.loads(data.removeprefix(b"data: "))["type"] == kinds[-1], frame
    assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"], kinds
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 3, kinds
    whole = sse.parse(raw)
    for size in (1, 2, 3, 7, 64, 1000):
        parts = [raw[at : at + size] for at in range(0, len(raw), size)]
        assert list(sse.events(parts)) == whole, f"cut every {size} bytes"
    block = next(event.data for event in whole if event.name == "content_block_start")
    assert block["content_block"]["type"] == "thinking", block


def pings(pool: Pool, _: Callable[..., Server]) -> None:
    """Headers and signs of life before the first token; the SDK sees none of them."""
    server = pool.get("narrow")
    names = []
    with opened(server.http, "messages", message("PINGS", stream=True)) as response:
        names = [event.name for event in sse.events(response.iter_raw())]
    begun = names.index("content_block_start")
    assert names[:begun].count("ping") >= 3, f"few signs of life: {names}"
    assert "ping" not in names[begun:], names
    client = Anthropic(base_url=server.url, api_key="x", _strict_response_validation=True)
    with client.messages.stream(**message("PINGS"), model="m") as stream:
        assert stream.get_final_text() == "at last"


# Thoughts that come back


def signatures(pool: Pool, start: Callable[..., Server]) -> None:
    """A signature proves a text, carries an omitted one, and nobody else's says anything."""
    server = pool.get("coder")
    shown = _thought(server, "summarized")
    assert shown["thinking"] == "deep \u00e9 thought"
    spelt = f"<think>\n{shown['thinking']}\n</think>\n\nAnswer"
    prompt = _replayed(server, shown)
    assert spelt in prompt, prompt
    assert _thought(server, "updates") == shown
    for wrong in (
        {**shown, "thinking": "another thought"},
        {**shown, "thinking": shown["thinking"] + " "},
        {**shown, "signature": _changed(shown["signature"])},
    ):
        reply = _replay(server, wrong)
        assert reply.status == 400 and reply.error, wrong
        assert "messages[1].content[0].signature" in reply.error["message"], reply.error
    for foreign in ("", "ErUBCkYIBhgCIkA", "flare-thinking-v1:00000000:AAAA", None):
        assert _replayed(server, {**shown, "signature": foreign}) == prompt, foreign
    del shown["signature"]
    assert _replayed(server, shown) == prompt

    omitted = _thought(server, "omitted")
    assert omitted["thinking"] == "" and "thought" not in omitted["signature"], omitted
    assert _replayed(server, omitted) == prompt
    sealed = {"type": "redacted_thinking", "data": omitted["signature"]}
    assert _replayed(server, sealed) == prompt
    before = server.metrics()["dropped_reasoning"]
    for secret in (_changed(sealed["data"]), "EmwKAhgB", ""):
        found = _replayed(server, {**sealed, "data": secret})
        assert found == prompt.replace(f"<think>\n{shown['thinking']}\n</think>\n\n", ""), secret
    assert server.metrics()["dropped_reasoning"] > before
    _bound_to_tenant(start)


def _bound_to_tenant(start: Callable[..., Server]) -> None:
    """What is sealed for one tenant is no thought of another's, nor of another server's."""
    folder = Path(tempfile.mkdtemp())
    (folder / "keys").write_text("".join(f"{name} = {key}\n" for name, key in KEYS.items()))
    options = ("--model", str(MODELS["coder"].write(folder / "model")), "--api-key-file")
    reply = {"match": "SIGNATURES", "text": "deep \u00e9 thought</think>Answer"}
    server = start([reply], *options, str(folder / "keys"))
    ops, lab = ({"x-api-key": KEYS[name]} for name in ("ops", "lab"))
    omitted = _thought(server, "omitted", ops)
    assert "deep" in _replayed(server, omitted, ops)
    sealed = {"type": "redacted_thinking", "data": omitted["signature"]}
    assert "deep" in _replayed(server, sealed, ops)
    assert "deep" not in _replayed(server, sealed, lab)


def _thought(server: Server, display: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """The thinking block of an answer, which is the same whole and streamed."""
    thinking = {**ADAPTIVE, "display": display}
    found = []
    for streams in (False, True):
        body = message("SIGNATURES", stream=streams, thinking=thinking)
        reply = send(server.http, "messages", body, headers)
        assert [block.kind for block in reply.blocks] == ["thinking", "text"], reply.blocks
        assert reply.thinking_tokens == len("deep \u00e9 thought".encode()), reply.usage
        found.append(reply.blocks[0].shown())
    assert found[0] == found[1], found
    return found[0]


def _replay(
    server: Server, thought: dict[str, Any], headers: dict[str, str] | None = None
) -> Reply:
    turns = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "Answer"}]},
        {"role": "user", "content": "go on"},
    ]
    body = message("", messages=turns, chat_template_kwargs=SHOW)
    return send(server.http, "messages", body, headers)


def _replayed(
    server: Server, thought: dict[str, Any], headers: dict[str, str] | None = None
) -> str:
    """The prompt with an earlier answer."""
    prompt = shown_prompt(_replay(server, thought, headers))
    assert prompt is not None and prompt.startswith("<|im_start|>"), prompt
    return prompt


def _changed(text: str) -> str:
    """With another last character but one."""
    return text[:-2] + ("A" if text[-2] != "A" else "B") + text[-1]


# Second turns

_PAGE = 16


def second_turn(pool: Pool, _: Callable[..., Server]) -> None:
    """The prompt of the next request begins with the last prompt and all that the model wrote."""
    server = pool.get("thinker")
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    for number, display in enumerate(("summarized", "omitted")):
        thinking = {**ADAPTIVE, "display": display}
        fields = {"tools": tools, "thinking": thinking, "cache_salt": f"second {number}"}
        body = message("SECOND-TURN", **fields, max_tokens=300)
        first = send(server.http, "messages", body)
        assert first.finish == "tool_use" and first.cached_tokens == 0, first.usage
        call = first.blocks[-1]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "cold"}
        turns = [
            *body["messages"],
            {"role": "assistant", "content": first.body["content"]},
            {"role": "user", "content": [result]},
        ]
        second = send(server.http, "messages", {**body, "messages": turns})
        written = first.prompt_tokens + first.output_tokens - 1  # its end is not of the prompt
        assert second.cached_tokens >= written // _PAGE * _PAGE - _PAGE, (
            f"{display}: {second.cached_tokens} of {written} tokens are found again"
        )


SCENARIOS = (full_for_messages, beta_query, message_frames, pings, signatures, second_turn)
