"""Responses over HTTP: what is echoed, refused and counted."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
import uvicorn
from openai._models import validate_type
from openai.types.responses.input_token_count_response import InputTokenCountResponse

from adapters.http import HttpProtocol
from engine.events import FinishCause
from tests.adapters.asgi import call, exchange
from tests.adapters.drafts import valid_object
from tests.adapters.responding import (
    PATH,
    PlayedService,
    app_of,
    created,
    described,
    events_of,
    function,
    namespace,
    post,
    refusal_of,
)
from tests.serving import PlayedClient, facts, service_over, serving

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
WEB = {"type": "web_search", "external_web_access": True, "filters": {"allowed_domains": ["x.y"]}}

SHELL = function("shell", parameters=SCHEMA)
FS = namespace("fs", function("read"), {"type": "custom", "name": "edit"})

# What a response says of its request

ECHOED: dict[str, Any] = {
    "instructions": "Be brief.",
    "tools": [
        {**function("f", description="d", parameters=SCHEMA, strict=True), "defer_loading": False},
        {"type": "custom", "name": "patch", "description": "p",
         "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
        {**namespace("fs", function("read", description="r", parameters=SCHEMA, strict=False)),
         "description": "Files."},
        WEB,
        {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 3},
    ],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [
        {"type": "function", "name": "f"}, {"type": "mcp", "server_label": "s"},
    ]},
    "parallel_tool_calls": False,
    "max_tool_calls": 3,
    "max_output_tokens": 99,
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True,
                        "description": "what"}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto", "context": "all_turns"},
    "metadata": {"k": "v"},
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "p",
    "prompt_cache_retention": "24h",
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
async def test_every_echoed_field_comes_back_as_it_was_sent(stream: bool) -> None:
    async with app_of(PlayedService()) as app:
        answer = await post(app, **ECHOED, store=False, stream=stream)
    whole = events_of(answer)[-1]["response"] if stream else valid_object(answer.content)
    for name, sent in ECHOED.items():
        assert whole[name] == sent, name
    assert whole["flare"]["dropped_tools"] == ["web_search", "file_search"]


@pytest.mark.parametrize("nulls", [False, True])
async def test_what_is_absent_has_the_protocols_defaults(nulls: bool) -> None:
    fields = dict.fromkeys([*ECHOED, "top_logprobs", "store", "include", "stream"]) if nulls else {}
    async with app_of(PlayedService()) as app:
        whole = await created(app, **fields)
    told = {
        "tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "max_tool_calls": None,
        "max_output_tokens": None, "text": {"format": {"type": "text"}}, "reasoning": None,
        "metadata": {}, "user": None, "instructions": None, "previous_response_id": None,
        "top_logprobs": 0, "truncation": "disabled", "background": False, "store": False,
        "service_tier": "default", "prompt_cache_key": None, "model": "first",
        "status": "completed", "error": None, "incomplete_details": None,
    }  # fmt: skip
    assert {name: whole[name] for name in told} == told


@pytest.mark.parametrize(
    ("sent", "applied"),
    [
        ({}, (0.7, 0.9, 0.0, 0.0)),
        ({"temperature": 0.25, "top_p": 1, "presence_penalty": 0.5}, (0.25, 1, 0.5, 0.0)),
        ({"temperature": 2, "top_p": 0.1, "frequency_penalty": -2}, (1.5, 0.5, 0.0, -1.0)),
        ({"temperature": 0}, (0.1, 0.9, 0.0, 0.0)),
    ],
    ids=described,
)
async def test_the_sampling_values_are_those_that_applied(
    sent: Any, applied: tuple[float, ...]
) -> None:
    names = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
    ranges = {"temperature": (0.1, 1.5), "top_p": (0.5, 1.0), "frequency_penalty": (-1.0, 1.0)}
    client = PlayedClient()
    service = service_over(client, facts(), sampling_ranges=ranges)
    async with app_of(service) as app:
        asked = exchange(app, "POST", PATH, {"input": "hi", **sent})
        running = asyncio.create_task(asked.run())
        await client.submitted.wait()
        client.say("ok", FinishCause.END)
        await running
    whole = valid_object(asked.content)
    assert tuple(whole[name] for name in names) == applied
    drawn = client.requests[0].sampling
    assert tuple(getattr(drawn, name) for name in names) == applied


DEEP = [200, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 256, 300, 900]


@pytest.mark.parametrize("field", ["tools", "text", "input"])
async def test_no_depth_of_a_body_breaks_the_server(field: str, tmp_path: Any) -> None:
    found = set()
    async with app_of(PlayedService(), tmp_path) as app:
        for depth in DEEP:
            deep: Any = {}
            for _ in range(depth):
                deep = {"a": deep}
            item = {"type": "tool_search_call", "arguments": deep}
            form = {"format": {"type": "json_schema", "name": "n", "schema": deep}}
            fields: dict[str, Any] = {"tools": [function("f", parameters=deep)], "text": form}
            answer = await (
                post(app, item) if field == "input" else post(app, **{field: fields[field]})
            )
            assert answer.status in (200, 400), (depth, answer.content)
            found.add(answer.status)
            if answer.status == 400:
                assert "deep" in answer.error["message"]
                continue
            stored = f"{PATH}/{answer.json['id']}"
            for path in (stored, f"{stored}?stream=true", f"{stored}/input_items"):
                assert (await call(app, "GET", path)).status == 200
    assert found == {200, 400}


# What is refused


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"background": True}, "background", "unsupported_parameter"),
        ({"conversation": "c"}, "conversation", "unsupported_parameter"),
        ({"conversation": {"id": "c"}}, "conversation", "unsupported_parameter"),
        ({"prompt": {"id": "p"}}, "prompt", "unsupported_parameter"),
        ({"truncation": "auto"}, "truncation", "unsupported_parameter"),
        ({"n": 2}, "n", "unsupported_parameter"),
        ({"include": ["message.output_text.logprobs", "nothing"]}, "include[1]", None),
        ({"top_logprobs": 3}, "top_logprobs", None),
        ({"top_logprobs": 21, "include": ["message.output_text.logprobs"]}, "top_logprobs", None),
        ({"logprob_token_ids": [5]}, "logprob_token_ids", None),
        ({"store": True}, "store", None),
        ({"max_output_tokens": 0}, "max_output_tokens", None),
        ({"tool_choice": "required"}, "tool_choice", None),
        ({"tool_choice": function("f")}, "tool_choice.name", None),
        ({"context_management": [{"type": "other"}]}, "context_management[0].type", None),
    ],
    ids=described,
)  # fmt: skip
async def test_what_cannot_be_done_is_refused_by_name(
    fields: Any, param: str, code: str | None
) -> None:
    service = PlayedService()
    async with app_of(service) as app:
        answer = await post(app, **fields)
    assert refusal_of(answer) == (400, code, param)
    assert param.partition("[")[0].partition(".")[0] in answer.error["message"]
    assert not service.asked


async def test_beams_take_no_tools() -> None:
    async with app_of(PlayedService()) as app:
        answer = await post(app, use_beam_search=True, num_beams=2, tools=[function("f")])
    assert refusal_of(answer) == (400, None, "use_beam_search")


@pytest.mark.parametrize("fields", [
    {"truncation": "disabled", "background": False, "conversation": None, "prompt": None, "n": 1},
    {"include": ["file_search_call.results", "web_search_call.action.sources"]},
    {"top_logprobs": 0, "service_tier": "flex", "stream_options": {"include_obfuscation": False},
     "client_metadata": {"a": "b"}, "personality": "friendly", "unheard_of": [1]},
], ids=described)  # fmt: skip
async def test_neutral_and_unknown_fields_change_nothing(fields: Any) -> None:
    async with app_of(PlayedService()) as app:
        assert (await created(app, **fields))["status"] == "completed"


async def test_unknown_models_are_refused_where_names_count() -> None:
    async with app_of(PlayedService(), model_names="known") as app:
        for path in (PATH, f"{PATH}/input_tokens", f"{PATH}/compact"):
            answer = await call(app, "POST", path, {"input": "hi", "model": "gpt-9"})
            assert refusal_of(answer) == (404, "model_not_found", "model")
            for nothing in (None, ""):
                answer = await call(app, "POST", path, {"input": "hi", "model": nothing})
                assert refusal_of(answer) == (400, "missing_required_parameter", "model")
        assert (await created(app, model="second"))["model"] == "first"
    async with app_of(PlayedService()) as app:
        for nothing in (None, ""):
            assert (await created(app, model=nothing))["model"] == "first"


@pytest.mark.parametrize("offer", ["websocket", "WebSocket", "h2c, websocket"])
async def test_an_upgrade_is_refused_at_once(offer: str) -> None:
    async with app_of(PlayedService()) as app:
        answer = await call(app, "GET", PATH, headers={"upgrade": offer, "connection": "Upgrade"})
    assert refusal_of(answer) == (426, "upgrade_required", None)
    assert answer.ended and "upgrade" in answer.headers


UPGRADE = (
    b"GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
CREATE = (
    b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n"
    b'Content-Type: application/json\r\n\r\n{"input":"hi"}'
)


async def test_the_connection_of_a_refused_upgrade_speaks_http() -> None:
    async with app_of(PlayedService()) as app:
        config = uvicorn.Config(
            cast(Any, app), port=0, http=HttpProtocol, ws="none", lifespan="off", log_config=None
        )
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        port = server.servers[0].sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request, status in ((UPGRADE, b"426"), (CREATE, b"200")):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 " + status)
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
            await reader.readexactly(int(length))
        writer.close()
        await server.shutdown()


async def test_a_plain_get_is_no_method_here() -> None:
    async with app_of(PlayedService()) as app:
        for headers in ({}, {"upgrade": "h2c"}):
            answer = await call(app, "GET", PATH, headers=headers)
            assert refusal_of(answer) == (405, "method_not_allowed", None)
            assert answer.headers["allow"] == "POST"


# What is counted


COUNTED: list[dict[str, Any]] = [
    {"input": "hello"},
    {"input": [{"role": "developer", "content": "d"}, {"role": "user", "content": "x"}],
     "instructions": "Be brief.", "tools": [SHELL, FS, WEB], "tool_choice": "required"},
    {"input": [], "text": {"format": {"type": "json_object"}}, "parallel_tool_calls": False},
]  # fmt: skip


@pytest.mark.parametrize("body", COUNTED, ids=described)
async def test_the_count_is_that_of_the_usage(body: dict[str, Any], tmp_path: Any) -> None:
    async with serving("hello", max_context=4096) as service, app_of(service, tmp_path) as app:
        counted = await call(app, "POST", f"{PATH}/input_tokens", body)
        answer = await call(app, "POST", PATH, {**body, "max_output_tokens": 1})
        usage = valid_object(answer.content)["usage"]
        assert counted.json == {
            "object": "response.input_tokens", "input_tokens": usage["input_tokens"],
        }  # fmt: skip
        validate_type(type_=InputTokenCountResponse, value=counted.json)
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        later = {"input": "more", "previous_response_id": answer.json["id"]}
        counted = await call(app, "POST", f"{PATH}/input_tokens", later)
        answer = await call(app, "POST", PATH, {**later, "max_output_tokens": 1})
        assert counted.json["input_tokens"] == answer.json["usage"]["input_tokens"]
        assert counted.json["input_tokens"] > len("hello") + len("more")


async def test_what_is_only_about_the_answer_does_not_count() -> None:
    service = PlayedService()
    async with app_of(service) as app:
        fields = {"max_output_tokens": 0, "store": True, "include": ["x"], "stream": True}
        counted = await call(app, "POST", f"{PATH}/input_tokens", {"input": "hello", **fields})
        assert counted.json["input_tokens"] == 5
        refused = await call(app, "POST", f"{PATH}/input_tokens", {"truncation": "auto"})
    assert refusal_of(refused) == (400, "unsupported_parameter", "truncation")
    assert not service.asked
