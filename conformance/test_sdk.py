"""The official openai SDK against the server, validating every reply strictly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionTokenLogprob
from openai.types.shared_params import ResponseFormatJSONSchema
from pydantic import BaseModel

from conformance.profiles import ALIASES, ANSWER, KEYS, Pool
from conformance.replies import opened
from conformance.server import Server

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]


class Step(BaseModel):
    """Becomes a definition behind a reference."""

    kind: Literal["add", "cut"]
    amount: int


class Plan(BaseModel):
    """What the SDK's parse helper makes a schema of."""

    steps: list[Step]
    final: str


def say(text: str) -> list[ChatCompletionMessageParam]:
    """A conversation that a case's script claims."""
    return [{"role": "user", "content": text}]


def schema_format(schema: dict[str, Any]) -> ResponseFormatJSONSchema:
    """`response_format` with a schema."""
    return {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": schema}}


@pytest.fixture(scope="module")
def client(scripted: Server) -> Iterator[OpenAI]:
    with OpenAI(
        base_url=f"{scripted.url}/v1",
        api_key="any",
        _strict_response_validation=True,
        max_retries=0,
    ) as sdk:
        yield sdk


@pytest.fixture(scope="module")
def lenient(scripted: Server) -> Iterator[OpenAI]:
    """For completions whose nulls the SDK's types lack, though the official API has them:
    finish_reason until the end of a stream, and the first logprob of an echoed prompt. The fuzzer
    holds these against our own spec."""
    with OpenAI(base_url=f"{scripted.url}/v1", api_key="any", max_retries=0) as sdk:
        yield sdk


def test_chat(client: OpenAI) -> None:
    """A whole answer, with usage, ids and the loaded model's name."""
    answer = client.chat.completions.create(model="gpt-4o", messages=HELLO, seed=1, stop=["\n\n"])
    assert answer.choices[0].message.content == ANSWER
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == ALIASES[0]
    assert answer.usage and answer.usage.prompt_tokens_details
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id and answer._request_id.startswith("req_")


def test_chat_stream(client: OpenAI) -> None:
    """Deltas join to the answer; the usage comes last."""
    chunks = list(
        client.chat.completions.create(
            model="m", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == ANSWER
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage


def test_chat_stream_helper(client: OpenAI) -> None:
    """The helper's events, and the completion that it accumulates."""
    with client.chat.completions.stream(
        model="m", messages=HELLO, n=2, stream_options={"include_usage": True}
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert kinds.count("content.done") == 2
    assert [choice.message.content for choice in final.choices] == [ANSWER, ANSWER]
    assert final.usage and final.usage.completion_tokens > 0


def test_completions(client: OpenAI) -> None:
    """n, echo, stop, seed, and several prompts."""
    answer = client.completions.create(
        model="m", prompt=["one ", "two "], n=2, echo=True, stop=[" friend"], seed=3, max_tokens=32
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in answer.choices] == (
        ["one Hello there,"] * 2 + ["two Hello there,"] * 2
    )
    assert answer.usage and answer.usage.prompt_tokens == 4


def test_completions_stream(lenient: OpenAI) -> None:
    """Interleaved choices, joined by index."""
    texts = {0: "", 1: ""}
    usage = None
    for chunk in lenient.completions.create(
        model="m", prompt=[100, 101], n=2, stream=True, stream_options={"include_usage": True},
        max_tokens=64,
    ):  # fmt: skip
        for choice in chunk.choices:
            texts[choice.index] += choice.text
        usage = chunk.usage or usage
    assert texts == {0: ANSWER, 1: ANSWER}
    assert usage and usage.prompt_tokens == 2


def test_models(client: OpenAI) -> None:
    """List, and retrieve by an id with a slash."""
    listed = client.models.list().data
    assert [card.id for card in listed] == [ALIASES[0]]
    assert client.models.retrieve(ALIASES[0]) == listed[0]
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("acme/nothing")
    assert caught.value.code == "model_not_found" and caught.value.param == "model"


def test_raw_response(client: OpenAI) -> None:
    """Headers are within reach."""
    raw = client.chat.completions.with_raw_response.create(model="m", messages=HELLO)
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.parse().choices[0].message.content == ANSWER
    with client.completions.with_streaming_response.create(model="m", prompt="x") as streamed:
        assert streamed.headers["x-request-id"].startswith("req_")


def test_bad_request(client: OpenAI) -> None:
    """A refused field, a wrong type and a prompt that is too long name what is wrong."""
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="m", messages=HELLO, temperature=9)
    assert caught.value.param == "temperature" and caught.value.type == "invalid_request_error"
    assert caught.value.request_id and caught.value.request_id.startswith("req_")
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="m", messages=HELLO, top_logprobs=3)
    assert caught.value.param == "top_logprobs"
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model="m", prompt=" word" * 9000)
    assert caught.value.code == "context_length_exceeded"


def test_parse(client: OpenAI) -> None:
    """D143: the parse helper gets its typed object, of nested models."""
    answer = client.chat.completions.parse(model="m", messages=say("D143"), response_format=Plan)
    assert answer.choices[0].finish_reason == "stop"
    plan = answer.choices[0].message.parsed
    assert plan == Plan(steps=[Step(kind="add", amount=2)], final="\u00e9 done")


def test_parse_stream(client: OpenAI) -> None:
    """The same by the streaming helper, with the log probabilities of every token."""
    with client.chat.completions.stream(
        model="m", messages=say("D143"), response_format=Plan, logprobs=True
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    plan = final.choices[0].message.parsed
    assert plan == Plan(steps=[Step(kind="add", amount=2)], final="\u00e9 done")
    assert "logprobs.content.done" in kinds
    entries = final.choices[0].logprobs
    assert entries and entries.content
    data = b"".join(bytes(entry.bytes or ()) for entry in entries.content)
    assert data.decode() == final.choices[0].message.content


def test_parse_model(embedded: Server) -> None:
    """D143 on the model: what it writes is the typed object."""

    class Pet(BaseModel):
        kind: Literal["cat", "dog"]
        age: Literal[1, 2, 3]

    with OpenAI(base_url=f"{embedded.url}/v1", api_key="x") as sdk:
        answer = sdk.chat.completions.parse(
            model="m", messages=say("Invent a pet."), response_format=Pet, max_tokens=60, seed=1
        )
    assert answer.choices[0].finish_reason == "stop" and answer.choices[0].message.parsed


def test_parse_cut(client: OpenAI) -> None:
    """An answer that the limit cuts is the SDK's LengthFinishReasonError, not half an object."""
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(
            model="m", messages=say("D143"), response_format=Plan, max_tokens=5
        )


def test_schema_errors(client: OpenAI) -> None:
    """A keyword that cannot be enforced is BadRequestError with its name and place."""
    for keyword, value in (("not", {"type": "string"}), ("uniqueItems", True), ("contains", {})):
        schema = {"type": "object", "properties": {"x": {keyword: value}}}
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(
                model="m", messages=HELLO, response_format=schema_format(schema)
            )
        assert caught.value.param == "response_format.json_schema.schema"
        assert f"'{keyword}'" in caught.value.message, caught.value.message
        assert f"#/properties/x/{keyword}" in caught.value.message, caught.value.message
        assert caught.value.code == "invalid_schema"


def test_logprobs(client: OpenAI) -> None:
    """The SDK's types hold the entries; those of a stream, joined, are those of the whole."""
    asked: dict[str, Any] = {"model": "m", "messages": HELLO, "logprobs": True, "top_logprobs": 2}
    answer = client.chat.completions.create(**asked)
    logprobs = answer.choices[0].logprobs
    assert logprobs and logprobs.content and logprobs.refusal is None
    assert b"".join(bytes(e.bytes or ()) for e in logprobs.content).decode() == ANSWER
    assert all(e.logprob == -0.25 and len(e.top_logprobs) == 2 for e in logprobs.content)
    joined: list[ChatCompletionTokenLogprob] = []
    for chunk in client.chat.completions.create(**asked, stream=True):
        if chunk.choices[0].logprobs:
            joined += chunk.choices[0].logprobs.content or []
    assert [e.model_dump() for e in joined] == [e.model_dump() for e in logprobs.content]
    plain = client.chat.completions.create(model="m", messages=HELLO)
    assert plain.choices[0].logprobs is None


def test_completions_logprobs(lenient: OpenAI) -> None:
    """D153: echo with logprobs, whole and streamed; the harness's request without output.

    Not strict: in the SDK's type, the first token's logprob cannot be null, which it has always
    been in the official API.
    """
    asked: dict[str, Any] = {"model": "m", "prompt": [[35542, 33203], [55]], "echo": True}
    asked |= {"logprobs": 1, "temperature": 0, "seed": 1234}
    answer = lenient.completions.create(**asked, max_tokens=0)
    first = answer.choices[0].logprobs
    assert first and first.tokens == ["ABC", "DEF"] and first.text_offset == [0, 3]
    assert first.model_dump()["token_logprobs"] == [None, -0.25]
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage and (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 0)
    whole = lenient.completions.create(**asked, max_tokens=2)
    arrays = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    joined: dict[int, dict[str, list[Any]]] = {i: {name: [] for name in arrays} for i in (0, 1)}
    for chunk in lenient.completions.create(**asked, max_tokens=2, stream=True):
        for choice in chunk.choices:
            if choice.logprobs:
                for name in arrays:
                    joined[choice.index][name] += getattr(choice.logprobs, name)
    for choice in whole.choices:
        assert choice.logprobs and choice.logprobs.model_dump() == joined[choice.index]


def test_unknown_route(client: OpenAI) -> None:
    """A route that does not exist yet is the SDK's NotFoundError."""
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="m", input="x")


def test_keys(pool: Pool) -> None:
    """The SDK's own way to send a key works; a wrong one is AuthenticationError."""
    url = pool.get("guarded").url + "/v1"
    good = OpenAI(base_url=url, api_key=KEYS["lab"], _strict_response_validation=True)
    assert good.models.list().data
    assert good.chat.completions.create(model="solar", messages=HELLO).choices
    with pytest.raises(openai.AuthenticationError) as caught:
        OpenAI(base_url=url, api_key="wrong").models.list()
    assert caught.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError):
        good.chat.completions.create(model="gpt-9", messages=HELLO)


def test_rate_limit(pool: Pool) -> None:
    """A full server is RateLimitError with a retry-after that the SDK can read."""
    server = pool.get("narrow")
    server.until_idle()
    client = OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
    busy = {"messages": [{"role": "user", "content": "D040"}], "stream": True}
    with opened(server.http, "chat", busy), opened(server.http, "chat", busy):
        server.until(lambda m: m["held"] == 2, "both places are taken")
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="m", messages=HELLO)
    assert int(caught.value.response.headers["retry-after"]) >= 1
    server.until_idle()
    assert client.chat.completions.create(model="m", messages=HELLO).choices


def test_failure_in_a_stream(client: OpenAI) -> None:
    """An error event in a stream raises APIError after the text that came before it."""
    text = ""
    with pytest.raises(openai.APIError) as caught:
        for chunk in client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "FAILURE late"}], stream=True
        ):
            text += chunk.choices[0].delta.content or ""
    assert text == "one two"
    assert caught.value.type == "server_error" and caught.value.code == "generation_failed"
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "FAILURE late"}]
        )


def test_async(scripted: Server) -> None:
    """The async client: buffered, streamed, the helper, and many at once."""

    async def all_of_it() -> None:
        async with AsyncOpenAI(
            base_url=f"{scripted.url}/v1", api_key="any", _strict_response_validation=True
        ) as sdk:
            answer = await sdk.chat.completions.create(model="m", messages=HELLO)
            assert answer.choices[0].message.content == ANSWER
            stream = await sdk.chat.completions.create(model="m", messages=HELLO, stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            assert "".join(pieces) == ANSWER
            async with sdk.chat.completions.stream(model="m", messages=HELLO) as events:
                assert [e async for e in events if e.type == "content.done"]
            raw = await sdk.completions.create(model="m", prompt="x", max_tokens=64)
            assert raw.choices[0].text == ANSWER
            assert [card.id async for card in sdk.models.list()] == [ALIASES[0]]
            asks = (sdk.completions.create(model="m", prompt=str(i), n=2) for i in range(16))
            answers = await asyncio.gather(*asks)
            assert all(len(answer.choices) == 2 for answer in answers)

    asyncio.run(all_of_it())


def test_early_close(client: OpenAI, scripted: Server) -> None:
    """Leaving the SDK's stream early cancels the generation."""
    before = scripted.until_idle()
    with contextlib.closing(
        client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "D184 long"}], stream=True
        )
    ) as stream:
        next(iter(stream))
    assert scripted.until_idle_since(before)["cancelled"] == 1
