"""Messages and their counts over whole requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.client import TokenEvent
from engine.events import FinishCause
from generated.messages import TokenCount
from tests.adapters.asgi import SEAL, Exchange, app_of, app_serving, call, exchange
from tests.adapters.messaging import MODEL, USER, assistant, events_of, rebuilt, thinking, whole_of
from tests.serving import PlayedClient, facts, service_over

PATH = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
ASK: dict[str, Any] = {"messages": [USER], "max_tokens": 100}
ON: dict[str, Any] = {"thinking": {"type": "adaptive"}}
OMITTED: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "omitted"}}


def message(answer: Exchange) -> dict[str, Any]:
    """The message of a reply, without what differs with each."""
    assert answer.status == 200, answer.content
    if answer.headers["content-type"].startswith("text/event-stream"):
        body = rebuilt(events_of(answer.parts))
    else:
        body = whole_of(answer.content)
    assert body.pop("id").startswith("msg_")
    return body


REPLIES: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("naïve 😀 EN, beyond", {}, "end_turn", ["text"]),
    ("naïve 😀 EN, END beyond", {"stop_sequences": ["x", "END"]}, "stop_sequence", ["text"]),
    ("naïve 😀 beyond", {"max_tokens": 9}, "max_tokens", ["text"]),
    ("x" * 600, {"max_tokens": 32_000}, "model_context_window_exceeded", ["text"]),
    ("", {}, "end_turn", []),
    ("<think>hm\n</think>\n\nso", ON, "end_turn", ["thinking", "text"]),
    ("<think>hm", {**ON, "max_tokens": 3}, "max_tokens", ["thinking"]),
    (
        "<think>secret</think>so",
        OMITTED,
        "end_turn",
        ["thinking", "text"],
    ),
]


@pytest.mark.parametrize(("text", "fields", "reason", "kinds"), REPLIES, ids=str)
async def test_streamed_and_whole_messages_agree(
    text: str, fields: dict[str, Any], reason: str, kinds: list[str]
) -> None:
    async with app_serving(text) as (app, service):
        whole = message(await call(app, "POST", PATH, {**ASK, **fields}))
        streamed = message(await call(app, "POST", PATH, {**ASK, **fields, "stream": True}))
        counted = await call(app, "POST", f"{COUNT}?beta=true", {**ASK, **fields})
        assert (service.held, service.client.stats.free_pages) == (
            0, service.client.stats.total_pages,
        )  # fmt: skip
    for answer in (whole, streamed):  # the second may find pages of the first
        usage = answer["usage"]
        usage["input_tokens"] += usage.pop("cache_read_input_tokens")
        assert counted.json == {"input_tokens": usage["input_tokens"]}
    TokenCount.model_validate(counted.json, strict=True)
    assert streamed == whole
    assert whole["stop_reason"] == reason
    assert whole["stop_sequence"] == ("END" if reason == "stop_sequence" else None)
    assert [block["type"] for block in whole["content"]] == kinds
    assert "END" not in str(whole["content"]) and "secret" not in str(whole["content"])


async def test_a_thought_that_was_omitted_is_its_own_tenants_alone() -> None:
    tenants = {"key-a": "a", "key-b": "b"}
    async with app_serving("<think>secret</think>so", keys=tenants) as (app, service):
        headers = {"x-api-key": "key-a"}
        content = message(await call(app, "POST", PATH, {**ASK, **OMITTED}, headers))["content"]
        assert SEAL.unseal(content[0]["signature"], "a", MODEL) == "secret"
        body = {"messages": [USER, {"role": "assistant", "content": content}, USER]}
        for key, dropped in (("key-a", 0), ("key-b", 1), ("key-a", 1)):
            answer = await call(app, "POST", COUNT, body, {"x-api-key": key})
            assert (answer.status, service.counters.dropped_reasoning) == (200, dropped)


async def test_d060_the_prompt_is_whole_at_the_start_and_counted_apart_at_the_end() -> None:
    body = {**ASK, "messages": [{"role": "user", "content": "x" * 64}], "stream": True}
    async with app_serving("ok") as (app, _):
        await call(app, "POST", PATH, body)
        start, *_, end, _ = events_of((await call(app, "POST", PATH, body)).parts)
    first, last = start["message"]["usage"], end["usage"]
    assert (first["cache_read_input_tokens"], first["output_tokens"]) == (0, 0)
    assert last["cache_read_input_tokens"] >= 64 - 16
    assert first["input_tokens"] == last["input_tokens"] + last["cache_read_input_tokens"]
    assert last["output_tokens"] == len("ok") + 1


async def test_a_prefill_is_continued() -> None:
    turns = [USER, {"role": "assistant", "content": "The answer is"}]
    async with app_serving(" 42") as (app, _):
        answer = await call(app, "POST", PATH, {**ASK, "messages": turns})
        whole = (await call(app, "POST", COUNT, {"messages": turns})).json["input_tokens"]
        asked = (await call(app, "POST", COUNT, {"messages": turns[:1]})).json["input_tokens"]
    assert answer.json["content"] == [{"type": "text", "text": " 42", "citations": None}]
    assert whole == asked + len("The answer is")  # nothing closes the turn


async def test_edits_are_told_of_in_both_forms() -> None:
    turns = [USER, assistant(thinking("x"), {"type": "text", "text": "a"}), USER]
    edits = {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}
    async with app_serving("ok") as (app, _):
        for fields in ({}, {"stream": True}):
            body = {**ASK, **edits, **fields, "messages": turns}
            found = message(await call(app, "POST", PATH, body))
            assert found["context_management"] == {"applied_edits": []}


async def test_d063_a_failure_in_the_stream_is_its_last_event() -> None:
    client = PlayedClient()
    service = service_over(client, facts())
    running = exchange(app_of(service), "POST", PATH, {**ASK, "stream": True}).run()
    task = asyncio.create_task(running)
    await client.submitted.wait()
    client.say("so")
    key = client.requests[0].key
    client.push(TokenEvent(key, None, cause=FinishCause.FAILED, reason="it broke"))
    answer = await task
    *before, error = events_of(answer.parts)
    assert answer.status == 200 and answer.ended
    assert error["type"] == "error" and error["error"]["type"] == "api_error"
    assert error["request_id"] == answer.headers["request-id"]
    assert [event["type"] for event in before if event["type"].startswith("message")] == [
        "message_start"
    ]


async def test_silence_is_broken_by_pings() -> None:
    client = PlayedClient()
    service = service_over(client, facts())
    app = app_of(service, heartbeat_seconds=0.01)
    running = exchange(app, "POST", PATH, {**ASK, "stream": True})
    task = asyncio.create_task(running.run())
    await running.until(3)
    client.say("so", FinishCause.END)
    await task
    events = events_of(running.parts)
    assert events[1] == events[2] == {"type": "ping"}
    assert rebuilt([event for event in events if event["type"] != "ping"])["content"]


async def test_d055_a_prompt_that_does_not_fit_says_by_how_much() -> None:
    body = {**ASK, "messages": [{"role": "user", "content": "x" * 600}]}
    async with app_serving("ok") as (app, _):
        counted = (await call(app, "POST", COUNT, body)).json["input_tokens"]
        answer = await call(app, "POST", PATH, body)
    assert (answer.status, answer.anthropic_error["type"]) == (400, "invalid_request_error")
    assert answer.anthropic_error["message"] == (
        f"prompt is too long: {counted} tokens > 512 maximum"
    )


@pytest.mark.parametrize("path", [PATH, COUNT])
async def test_an_unknown_model_is_refused_only_where_names_are_known(path: str) -> None:
    body = {**ASK, "model": "claude-opus-5-5"}
    async with app_serving("ok") as (app, _):
        assert (await call(app, "POST", path, body)).status == 200
    async with app_serving("ok", config={"model_names": "known"}) as (app, _):
        refused = await call(app, "POST", path, body)
        assert (refused.status, refused.anthropic_error["type"]) == (404, "not_found_error")
        assert (await call(app, "POST", path, {**body, "model": "second"})).status == 200
