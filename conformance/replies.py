"""Sending a request, reading its reply, and the rules that every reply keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from conformance import message_replies, response_replies, sse
from conformance.choice import Choice, read_message, take_delta
from conformance.reply import ANTHROPIC, RESPONSES, Reply, anthropic_error_of, error_of

__all__ = ["ANTHROPIC", "PATHS", "Reply", "anthropic_error_of", "comparable", "error_of", "send"]

PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "messages": "/v1/messages",
    "count": "/v1/messages/count_tokens",
    "responses": "/v1/responses",
    "input_tokens": "/v1/responses/input_tokens",
    "compact": "/v1/responses/compact",
}
COUNTS = {"messages": "count", "responses": "input_tokens"}
"""The route that counts the prompt of another."""
BUFFERED = (*COUNTS.values(), "compact")
"""The routes that never stream."""
_OBJECTS = {
    "chat": ("chat.completion", "chat.completion.chunk"),
    "completions": ("text_completion", "text_completion"),
}


def send(
    client: httpx2.Client, route: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> Reply:
    """Send a request and read its whole reply, by the value of its `stream` field."""
    with opened(client, route, body, headers) as response:
        if response.status_code == 200 and body.get("stream") and route not in BUFFERED:
            return read_stream(response, route, body)
        response.read()
    return read_whole(response, route)


@contextmanager
def opened(
    client: httpx2.Client, route: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> Iterator[httpx2.Response]:
    """The reply as soon as its headers have arrived; leaving the context closes the connection."""
    with client.stream("POST", PATHS[route], json=body, headers=headers) as response:
        assert response.headers["x-request-id"].startswith("req_")
        if route in ANTHROPIC:
            assert response.headers["request-id"] == response.headers["x-request-id"]
        yield response


def read_whole(response: httpx2.Response, route: str) -> Reply:
    """A buffered reply, or an error."""
    assert response.headers["content-type"] == "application/json", response.headers
    body = sse.strict_json(response.content)
    reply = Reply(response.status_code, response.headers, body=body)
    if route in ANTHROPIC:
        message_replies.read_whole(reply, route)
        return reply
    if route in RESPONSES:
        response_replies.read_whole(reply, route)
        return reply
    if response.status_code != 200:
        reply.error = error_of(body)
        return reply
    assert body["object"] == _OBJECTS[route][0]
    assert [choice["index"] for choice in body["choices"]] == list(range(len(body["choices"])))
    for choice in body["choices"]:
        assert choice["finish_reason"] is not None
        whole = Choice(finish=choice["finish_reason"], stop_reason=choice.get("stop_reason"))
        if route == "chat":
            read_message(whole, choice["message"])
        else:
            whole.text = choice["text"]
        _observe(whole, choice, body, route)
        whole.prompt_logprobs = (body if route == "chat" else choice).get("prompt_logprobs")
        whole.check_end()
        reply.choices[choice["index"]] = whole
    reply.usage = checked_usage(body["usage"], route)
    _check_times(body["flare"])
    return reply


def _observe(choice: Choice, piece: dict[str, Any], whole: dict[str, Any], route: str) -> None:
    """Add what a choice, or a chunk's piece of it, shows of its tokens."""
    for name, found in (
        ("logprobs", entries_of(piece.get("logprobs"), route)),
        ("token_ids", piece.get("token_ids")),
        ("timestamps", piece.get("token_timestamps")),
        ("prompt_token_ids", (whole if route == "chat" else piece).get("prompt_token_ids")),
    ):
        if found is not None:
            setattr(choice, name, [*(getattr(choice, name) or []), *found])


def entries_of(logprobs: dict[str, Any] | None, route: str) -> list[dict[str, Any]] | None:
    """The `logprobs` object as one entry for each token, checked."""
    if logprobs is None:
        return None
    if route == "chat":
        assert logprobs["refusal"] is None
        entries: list[dict[str, Any]] = logprobs["content"]
        for entry in entries:
            for one in (entry, *entry["top_logprobs"]):
                shown = bytes(one["bytes"]).decode("utf-8", "replace")
                assert one["token"] == shown or one["token"].startswith("token_id:"), one
                assert -9999.0 <= one["logprob"] <= 0, one
        return entries
    names = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    assert set(logprobs) == set(names), logprobs
    assert len({len(logprobs[name]) for name in names}) == 1, "the arrays are not parallel"
    for token, logprob, tops, _ in zip(*(logprobs[name] for name in names), strict=True):
        assert (logprob is None) == (tops is None), logprobs
        # Of several ids with one text the map keeps the first.
        assert logprob is None or token in tops, f"{token!r} is not among {tops}"
    return [
        {"token": token, "logprob": logprob, "top_logprobs": tops, "text_offset": offset}
        for token, logprob, tops, offset in zip(*(logprobs[name] for name in names), strict=True)
    ]


def checked_usage(usage: dict[str, Any], route: str) -> dict[str, Any]:
    """Usage whose numbers agree with each other."""
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"], usage
    assert 0 <= usage["prompt_tokens_details"]["cached_tokens"] <= usage["prompt_tokens"], usage
    assert ("completion_tokens_details" in usage) == (route == "chat"), usage
    if route == "chat":
        thoughts = usage["completion_tokens_details"]["reasoning_tokens"]
        assert 0 <= thoughts <= usage["completion_tokens"], usage
    return usage


def read_stream(response: httpx2.Response, route: str, body: dict[str, Any]) -> Reply:
    """A streamed reply, held against the rules of its protocol while it arrives."""
    assert response.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    reply = Reply(response.status_code, response.headers)
    for event in sse.events(response.iter_raw()):
        take(reply, event, route, body)
    assert reply.done or reply.error, "the stream ends without its last event and without an error"
    if route in ANTHROPIC or route in RESPONSES:
        return reply
    if reply.done:
        for choice in reply.choices.values():
            assert choice.finish, "a choice never finished"
            choice.check_end()
            if route == "chat":  # one prompt, whose ids come with one of the choices
                choice.prompt_token_ids = reply.choices[0].prompt_token_ids
        wanted = (body.get("stream_options") or {}).get("include_usage")
        assert (reply.usage is not None) == bool(wanted or body.get("return_token_ids"))
        assert ["flare" in chunk for chunk in reply.chunks].count(True) == 1
        _check_times(reply.chunks[-1]["flare"])
    return reply


def _check_times(flare: dict[str, Any]) -> None:
    assert set(flare) == {"time_to_first_token_ms", "decode_time_ms"}, flare
    assert all(value >= 0 for value in flare.values()), flare


def take(reply: Reply, event: sse.Event, route: str, body: dict[str, Any]) -> None:
    """Add one event to a streamed reply. Fails where the order or the form is wrong."""
    assert not reply.done and not reply.error, f"an event after the end: {event}"
    if route in ANTHROPIC:
        message_replies.take(reply, event)
        return
    if route in RESPONSES:
        response_replies.take(reply, event)
        return
    assert event.name is None
    if event.comment is not None:
        reply.comments += 1
        return
    if event.data == sse.DONE:
        reply.done = True
        return
    if "error" in event.data:
        reply.error = error_of(event.data)
        return
    _take_chunk(reply, event.data, route, body)


def _take_chunk(reply: Reply, chunk: dict[str, Any], route: str, body: dict[str, Any]) -> None:
    assert chunk["object"] == _OBJECTS[route][1]
    constant = ("id", "created", "model", "object", "system_fingerprint")
    if reply.chunks:
        assert all(chunk.get(name) == reply.chunks[0].get(name) for name in constant), chunk
    reply.chunks.append(chunk)
    options = body.get("stream_options") or {}
    wanted, grows = options.get("include_usage"), options.get("continuous_usage_stats")
    if not chunk["choices"]:
        assert wanted, "an empty list of choices, and no usage was asked for"
        assert reply.usage is None, "usage twice"
        assert all(choice.finish for choice in reply.choices.values()), "usage before the end"
        reply.usage = checked_usage(chunk["usage"], route)
        return
    assert reply.usage is None, "a choice after the usage"
    if wanted and grows:
        checked_usage(chunk["usage"], route)
    elif chunk.get("usage") is not None and body.get("return_token_ids") and not wanted:
        # Helios: with token ids and without a chunk for the usage, it is on the terminal chunk.
        assert chunk["choices"][0]["finish_reason"], "usage before the end"
        reply.usage = checked_usage(chunk["usage"], route)
        for piece in chunk["choices"]:
            _take_piece(reply, piece, chunk, route)
        return
    else:
        assert chunk.get("usage") is None, "usage that was not asked for"
    for piece in chunk["choices"]:
        _take_piece(reply, piece, chunk, route)


def _take_piece(reply: Reply, piece: dict[str, Any], chunk: dict[str, Any], route: str) -> None:
    index = piece["index"]
    first = index not in reply.choices
    choice = reply.choices.setdefault(index, Choice())
    assert choice.finish is None, f"choice {index} goes on after its finish_reason"
    if route == "chat":
        take_delta(choice, piece, first=first)
    elif piece["text"]:
        choice.text += piece["text"]
        choice.deltas.append(piece["text"])
    _observe(choice, piece, chunk, route)
    choice.finish = piece["finish_reason"]
    choice.stop_reason = piece.get("stop_reason")


def comparable(reply: Reply) -> dict[str, Any]:
    """An outcome without the parts of usage that hang on what else the server does or did: what a
    warmer cache has, and how many drafts found room in a step.
    """
    outcome = reply.outcome()
    if reply.usage is not None:
        cache = (
            "prompt_tokens_details", "input_tokens", "input_tokens_details",
            "cache_read_input_tokens",
        )  # fmt: skip
        usage = {k: v for k, v in reply.usage.items() if k not in cache}
        if details := usage.get("completion_tokens_details"):
            drafts = ("accepted_prediction_tokens", "rejected_prediction_tokens")
            own = {k: v for k, v in details.items() if k not in drafts}
            usage["completion_tokens_details"] = own
        outcome["usage"] = usage
        outcome["prompt"] = reply.prompt_tokens
    return outcome
