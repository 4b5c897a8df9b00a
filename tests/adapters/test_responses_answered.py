"""Responses over HTTP: answers in pieces and whole, cut ones, failures, clients that go."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from adapters.response_object import response_id_of
from engine.errors import ContextOverflow, EngineUnavailable, GenerationFailed, Overloaded
from engine.events import Channel, FinishCause, TokenRecord, TokenScore
from tests.adapters.asgi import SEAL, call, exchange
from tests.adapters.drafts import valid_object
from tests.adapters.played import called, finished, text, thought
from tests.adapters.responding import (
    MODEL,
    PATH,
    TENANT,
    PlayedService,
    app_of,
    created,
    described,
    events_of,
    of,
    post,
    refusal_of,
)
from tests.adapters.test_responses_served import FS, SHELL
from tests.serving import PlayedClient, facts, ids, service_over, serving

# What is answered


WORK = [
    of(thought("I thi"), thought("nk.")),
    of(text("Loo"), text("king.")),
    of(called("shell", '{"a": ', "1}")),
    of(called("fs__read", "{}", call=1), called("fs__edit", "x\n", call=2, custom=True)),
    [finished(FinishCause.TOOL_CALLS)],
]


async def test_a_stream_and_a_whole_response_say_the_same() -> None:
    async with app_of(PlayedService(WORK, WORK)) as app:
        streamed = await post(app, tools=[SHELL, FS], stream=True)
        whole = await created(app, tools=[SHELL, FS])
    last = events_of(streamed)[-1]["response"]
    outputs = [
        [{**item, "id": "", "call_id": ""} for item in one["output"]] for one in (last, whole)
    ]
    assert outputs[0] == outputs[1] and last["usage"] == whole["usage"]
    kinds = [item["type"] for item in whole["output"]]
    assert kinds == ["reasoning", "message", "function_call", "function_call", "custom_tool_call"]
    assert [(item.get("namespace"), item.get("name")) for item in whole["output"][2:]] == [
        (None, "shell"), ("fs", "read"), ("fs", "edit"),
    ]  # fmt: skip
    for item in whole["output"]:
        assert response_id_of(item["id"]) == whole["id"]


async def test_thoughts_are_sealed_where_that_is_included() -> None:
    async with app_of(PlayedService(WORK, WORK)) as app:
        plain = await created(app, tools=[SHELL, FS])
        sealed = await created(app, tools=[SHELL, FS], include=["reasoning.encrypted_content"])
    assert "encrypted_content" not in plain["output"][0]
    content = sealed["output"][0]["encrypted_content"]
    assert SEAL.unseal(content, TENANT, MODEL) == "I think."


def scored(content: str, channel: Channel = Channel.TEXT) -> tuple[TokenRecord, ...]:
    return tuple(
        TokenRecord(token, 0, 0.0, TokenScore(token, -0.5, 1, ((token, -0.5), (7, -1.5))), channel)
        for token in ids(content)
    )


@pytest.mark.parametrize("stream", [False, True])
async def test_log_probabilities_are_those_of_the_text_alone(stream: bool) -> None:
    batches = [
        [thought("hm", records=scored("hm", Channel.REASONING))],
        [text("a", records=scored("a")), text("b", records=scored("b"))],
        called("shell", "{}", records=scored("{}", Channel.CALL)),
        [finished(FinishCause.TOOL_CALLS)],
    ]
    service = PlayedService(batches, batches)
    fields: dict[str, Any] = {"tools": [SHELL], "stream": stream, "top_logprobs": 2}
    async with app_of(service) as app:
        answer = await post(app, include=["message.output_text.logprobs"], **fields)
        events = events_of(answer) if stream else []
        whole = events[-1]["response"] if stream else valid_object(answer.content)
        bare = await created(app, tools=[SHELL], include=[], top_logprobs=0)
    part = whole["output"][1]["content"][0]
    assert [entry["token"] for entry in part["logprobs"]] == ["a", "b"]
    assert [len(entry["top_logprobs"]) for entry in part["logprobs"]] == [2, 2]
    assert whole["top_logprobs"] == 2
    deltas = [event["logprobs"] for event in events if event["type"].endswith("output_text.delta")]
    assert list(itertools.chain(*deltas)) == (part["logprobs"] if stream else [])
    assert bare["output"][1]["content"][0]["logprobs"] == []


@pytest.mark.parametrize("cause", [FinishCause.LIMIT, FinishCause.CONTEXT_FULL])
async def test_what_the_limit_cuts_is_incomplete(cause: FinishCause) -> None:
    cut = [called("shell", '{"a', whole=False), [finished(cause)]]
    async with app_of(PlayedService([[text("hel")], [finished(cause)]], cut, cut)) as app:
        whole = await created(app, max_output_tokens=3)
        called_ = await created(app, tools=[SHELL])
        events = events_of(await post(app, tools=[SHELL], stream=True))
    for one in (whole, called_, events[-1]["response"]):
        assert one["status"] == one["output"][0]["status"] == "incomplete"
        assert one["incomplete_details"] == {"reason": "max_output_tokens"}
        assert one["completed_at"] is None
    assert called_["output"][0]["arguments"] == '{"a'
    assert "response.output_item.done" not in [event["type"] for event in events]


@pytest.mark.parametrize("body", [{"input": ""}, {"input": []}, {"input": None}, {}], ids=described)
async def test_an_empty_probe_is_answered(body: Any) -> None:
    async with serving("hello") as service, app_of(service) as app:
        answer = await call(app, "POST", PATH, {**body, "max_output_tokens": 1})
    whole = valid_object(answer.content)
    assert whole["status"] == "incomplete" and whole["usage"]["output_tokens"] == 1


# What goes wrong


FAILURES: list[tuple[Exception, int, str, str]] = [
    (ContextOverflow("too long", "input", 9, 8), 400, "context_length_exceeded", ""),
    (Overloaded("full"), 429, "rate_limit_exceeded", ""),
    (EngineUnavailable("gone"), 503, "engine_unavailable", ""),
]


@pytest.mark.parametrize(("error", "status", "code", "_"), FAILURES, ids=described)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_cannot_begin_has_a_status(
    error: Exception, status: int, code: str, _: str, stream: bool
) -> None:
    async with app_of(PlayedService(error)) as app:
        answer = await post(app, stream=stream)
    assert (answer.status, answer.error["code"]) == (status, code)
    assert ("retry-after" in answer.headers) is (status > 400)


async def test_a_break_in_the_middle_is_a_status_or_the_last_event() -> None:
    broken: Any = [[text("a")], GenerationFailed("the engine broke")]
    service = PlayedService(broken, broken)
    async with app_of(service) as app:
        answer = await post(app)
        events = events_of(await post(app, stream=True))
    assert refusal_of(answer) == (500, "generation_failed", None)
    last = events[-1]
    assert last["type"] == "response.failed" and last["response"]["status"] == "failed"
    error = last["response"]["error"]
    assert (error["code"], error["message"]) == ("server_error", "the engine broke")
    assert last["response"]["output"][0]["content"][0]["text"] == "a"
    assert all(generation.closed for generation in service.generations)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_gives_its_place_back_and_leaves_nothing(
    stream: bool, tmp_path: Any
) -> None:
    client = PlayedClient()
    service = service_over(client, facts())
    async with app_of(service, tmp_path) as app:
        asked = exchange(app, "POST", PATH, {"input": "hi", "stream": stream})
        running = asyncio.create_task(asked.run())
        await client.submitted.wait()
        client.say("begun")
        if stream:
            await asked.until(5)
        assert service.held == 1
        asked.gone.set()
        await running
        assert service.held == 0 and client.cancelled == [client.requests[0].key]
        if stream:
            [line] = [part for part in asked.parts if b"response.created" in part]
            response_id = line.partition(b'"id":"')[2].partition(b'"')[0].decode()
            assert (await call(app, "GET", f"{PATH}/{response_id}")).status == 404
