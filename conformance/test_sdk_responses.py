"""The official openai SDK on Responses, validating every reply strictly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.responses import Response
from pydantic import BaseModel

from conformance.profiles import ALIASES, ANSWER, KEYS, Pool
from conformance.replies import opened
from conformance.server import Server
from conformance.test_sdk import Plan, Step

PLAN = Plan(steps=[Step(kind="add", amount=2)], final="\u00e9 done")
LOGPROBS: Any = ["message.output_text.logprobs"]


def asked(text: str = "hello", /, **fields: Any) -> dict[str, Any]:
    """The arguments of a call; a case's script claims the text."""
    return {"model": "gpt-5", "input": text, **fields}


def strict(server: Server, **options: Any) -> OpenAI:
    """A client that validates, and tries once."""
    given: dict[str, Any] = {"api_key": "any", "max_retries": 0, **options}
    return OpenAI(base_url=f"{server.url}/v1", _strict_response_validation=True, **given)


def kinds(response: Response) -> list[str]:
    """The types of what came out."""
    return [item.type for item in response.output]


@pytest.fixture(scope="module")
def client(scripted: Server) -> Iterator[OpenAI]:
    with strict(scripted) as sdk:
        yield sdk


def test_create(client: OpenAI) -> None:
    """A whole response, with usage, ids and the loaded model's name."""
    answer = client.responses.create(**asked(instructions="Be brief."))
    assert answer.output_text == ANSWER and kinds(answer) == ["message"]
    assert (answer.status, answer.error, answer.incomplete_details) == ("completed", None, None)
    assert answer.model == ALIASES[0] and answer.instructions == "Be brief."
    assert answer.id.startswith("resp_") and answer.created_at > 0
    assert answer.usage and answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer._request_id and answer._request_id.startswith("req_")


def test_echoes(client: OpenAI) -> None:
    """What a program sends along comes back."""
    sent: dict[str, Any] = {
        "metadata": {"run": "7"},
        "temperature": 0.5,
        "top_p": 0.25,
        "max_output_tokens": 99,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "truncation": "disabled",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "parallel_tool_calls": False,
    }
    shown = client.responses.create(**asked(**sent)).to_dict()
    assert {name: shown[name] for name in sent} == sent


def test_messages(client: OpenAI) -> None:
    """A conversation of messages and parts, with the phases that our own answers have."""
    first = client.responses.create(**asked())
    (said,) = first.output
    assert said.type == "message" and said.phase == "final_answer"
    items: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        said.to_dict(),
        {"type": "message", "role": "user", "content": "D143"},
    ]
    assert (
        client.responses.create(**asked() | {"input": items}).output_text == PLAN.model_dump_json()
    )
    assert client.responses.create(**asked() | {"input": items[:3]}).output_text == ANSWER


def test_stream(client: OpenAI) -> None:
    """Raw events in their order; the pieces join to the text."""
    events = list(client.responses.create(**asked(), stream=True))
    assert [event.type for event in events[:4]] == [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added",
    ]  # fmt: skip
    assert [event.type for event in events[-4:]] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done",
        "response.completed",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(pieces) == ANSWER
    last, whole = events[-1], client.responses.create(**asked())
    assert last.type == "response.completed" and last.response.output_text == ANSWER
    assert last.response.usage and whole.usage
    assert last.response.usage.output_tokens == whole.usage.output_tokens


def test_stream_helper(client: OpenAI) -> None:
    """The helper's snapshots, and the response that it accumulates."""
    with client.responses.stream(**asked()) as stream:
        texts = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert texts[-1] == ANSWER and all(map(ANSWER.startswith, texts))
    assert final.output_text == ANSWER and final.status == "completed" and final.usage


def test_parse(client: OpenAI) -> None:
    """D143 on this route: the helpers get the typed object, of nested models."""
    answer = client.responses.parse(**asked("D143"), text_format=Plan)
    assert answer.output_parsed == PLAN
    shown = answer.text and answer.text.format
    assert shown and shown.type == "json_schema" and (shown.name, shown.strict) == ("Plan", True)
    with client.responses.stream(**asked("D143"), text_format=Plan) as stream:
        done = [event for event in stream if event.type == "response.output_text.done"]
        final = stream.get_final_response()
    assert [event.parsed for event in done] == [PLAN] and final.output_parsed == PLAN


def test_parse_model(embedded: Server) -> None:
    """On the model: what it writes is the typed object."""

    class Pet(BaseModel):
        kind: Literal["cat", "dog"]
        age: Literal[1, 2, 3]

    with strict(embedded) as sdk:
        answer = sdk.responses.parse(
            **asked("Invent a pet.", max_output_tokens=60), text_format=Pet, extra_body={"seed": 1}
        )
    assert answer.status == "completed" and isinstance(answer.output_parsed, Pet)


def test_cut(client: OpenAI) -> None:
    """An answer that the limit cuts is incomplete, and the helper says that it never completed."""
    answer = client.responses.create(**asked(max_output_tokens=3))
    assert answer.status == "incomplete" and answer.incomplete_details
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output_text and ANSWER.startswith(answer.output_text)
    with (
        client.responses.stream(**asked(max_output_tokens=3)) as stream,
        pytest.raises(RuntimeError),
    ):
        stream.get_final_response()


def test_logprobs(client: OpenAI) -> None:
    """The entries of a stream are those of the whole; without asking there are none."""
    fields: dict[str, Any] = {"include": LOGPROBS, "top_logprobs": 2}
    (item,) = client.responses.create(**asked(**fields)).output
    assert item.type == "message" and item.content[0].type == "output_text"
    whole = item.content[0].logprobs
    assert whole and b"".join(bytes(entry.bytes) for entry in whole).decode() == ANSWER
    assert all(entry.logprob == -0.25 and len(entry.top_logprobs) == 2 for entry in whole)
    joined = []
    for event in client.responses.create(**asked(**fields), stream=True):
        if event.type == "response.output_text.delta":
            joined += [(entry.token, entry.logprob) for entry in event.logprobs]
    assert joined == [(entry.token, entry.logprob) for entry in whole]
    (plain,) = client.responses.create(**asked()).output
    assert plain.type == "message" and plain.content[0].type == "output_text"
    assert not plain.content[0].logprobs


def test_count(client: OpenAI) -> None:
    """input_tokens.count says what the usage of the same response says."""
    tool: Any = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
    for fields in ({}, {"instructions": "Be brief."}, {"tools": [tool]}):
        counted = client.responses.input_tokens.count(**asked("count me", **fields))
        usage = client.responses.create(**asked("count me", **fields)).usage
        assert usage and counted.input_tokens == usage.input_tokens
        assert counted.object == "response.input_tokens"


def test_bad_requests(client: OpenAI) -> None:
    """What is out of range, too long or refused is BadRequestError and names the field."""
    bad: tuple[tuple[dict[str, Any], str], ...] = (
        ({"temperature": 9}, "temperature"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"previous_response_id": "resp_nothing"}, "previous_response_id"),
        ({"tool_choice": "required"}, "tool_choice"),
    )
    for fields, param in bad:
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError) as caught:
                client.responses.create(**asked(**fields), stream=stream)
            assert caught.value.param == param and caught.value.type == "invalid_request_error"
            assert caught.value.request_id and caught.value.request_id.startswith("req_")
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**asked(" word" * 9000))
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")


def test_schema_errors(client: OpenAI) -> None:
    """A keyword that cannot be enforced is BadRequestError with its name."""
    form: Any = {"type": "json_schema", "name": "s", "schema": {"not": {"type": "string"}}}
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**asked(text={"format": form}))
    assert (caught.value.param, caught.value.code) == ("text.format.schema", "invalid_schema")
    assert "'not'" in caught.value.message


def test_keys(pool: Pool) -> None:
    """A key, a wrong one, an unknown model, and a body that is too large."""
    server = pool.get("guarded")
    with strict(server, api_key=KEYS["lab"]) as sdk:
        assert sdk.responses.create(**asked() | {"model": "solar"}).output_text == ANSWER
        with pytest.raises(openai.NotFoundError) as missing:
            sdk.responses.create(**asked() | {"model": "gpt-nothing"})
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.APIStatusError) as large:
            sdk.responses.create(**asked("x" * 70_000))
        assert (large.value.status_code, large.value.type) == (413, "request_too_large")
    with strict(server, api_key="wrong") as sdk:
        calls: tuple[Callable[[], object], ...] = (
            lambda: sdk.responses.create(**asked()),
            lambda: sdk.responses.retrieve("resp_x"),
            lambda: sdk.responses.compact(model="m"),
        )
        for call in calls:
            with pytest.raises(openai.AuthenticationError) as caught:
                call()
            assert caught.value.code == "invalid_api_key"


def test_rate_limit(pool: Pool) -> None:
    """A full server is RateLimitError with a retry-after that the SDK can read."""
    server = pool.get("narrow")
    server.until_idle()
    busy = {"messages": [{"role": "user", "content": "D040"}], "stream": True}
    with strict(server) as sdk:
        with opened(server.http, "chat", busy), opened(server.http, "chat", busy):
            server.until(lambda m: m["held"] == 2, "both places are taken")
            for stream in (False, True):
                with pytest.raises(openai.RateLimitError) as caught:
                    sdk.responses.create(**asked(), stream=stream)
                assert caught.value.code == "rate_limit_exceeded"
                assert int(caught.value.response.headers["retry-after"]) >= 1
        server.until_idle()
        assert sdk.responses.create(**asked()).output_text == ANSWER


def test_failure_in_a_stream(client: OpenAI) -> None:
    """A failure is a last event with what there was; of a buffered response it is a 500."""
    events = list(client.responses.create(**asked("D006"), stream=True))
    last = events[-1]
    assert last.type == "response.failed" and last.response.error
    assert last.response.error.code == "server_error"
    assert last.response.output_text == "one two three"
    with pytest.raises(openai.InternalServerError) as caught:
        client.responses.create(**asked("D006"))
    assert caught.value.code == "generation_failed"


def test_raw_response(client: OpenAI) -> None:
    """Headers are within reach."""
    raw = client.responses.with_raw_response.create(**asked())
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.parse().output_text == ANSWER
    with client.responses.with_streaming_response.create(**asked()) as streamed:
        assert streamed.headers["content-type"] == "application/json"
        assert streamed.parse().output_text == ANSWER


def test_early_close(client: OpenAI, scripted: Server) -> None:
    """Leaving the SDK's stream early cancels the generation."""
    before = scripted.until_idle()
    with contextlib.closing(client.responses.create(**asked("D184 long"), stream=True)) as stream:
        next(iter(stream))
    assert scripted.until_idle_since(before)["cancelled"] == 1


def test_async(scripted: Server) -> None:
    """The async client: buffered, streamed, the helpers, counts, and many at once."""

    async def all_of_it() -> None:
        async with AsyncOpenAI(
            base_url=f"{scripted.url}/v1", api_key="any", _strict_response_validation=True,
            max_retries=0,
        ) as sdk:  # fmt: skip
            assert (await sdk.responses.create(**asked())).output_text == ANSWER
            stream = await sdk.responses.create(**asked(), stream=True)
            assert [event.type async for event in stream][-1] == "response.completed"
            async with sdk.responses.stream(**asked("D143"), text_format=Plan) as events:
                assert (await events.get_final_response()).output_parsed == PLAN
            parsed = await sdk.responses.parse(**asked("D143"), text_format=Plan)
            assert parsed.output_parsed == PLAN
            counted = await sdk.responses.input_tokens.count(**asked())
            assert counted.input_tokens > 0
            asks = (sdk.responses.create(**asked(f"number {i}")) for i in range(16))
            answers = await asyncio.gather(*asks)
            assert len({answer.id for answer in answers}) == 16
            with pytest.raises(openai.BadRequestError):
                await sdk.responses.create(**asked(temperature=9))

    asyncio.run(all_of_it())
