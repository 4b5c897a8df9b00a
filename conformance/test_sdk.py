"""The official openai SDK against the server, validating every reply strictly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from conformance.profiles import ALIASES, ANSWER, KEYS, Pool
from conformance.replies import opened
from conformance.server import Server

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]


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
    """For streamed completions only: the SDK has one type for answers and chunks, in which
    finish_reason cannot be null, though the official API sends null until the end. The fuzzer holds
    these chunks against our own spec."""
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
        client.chat.completions.create(model="m", messages=HELLO, logprobs=True)
    assert caught.value.param == "logprobs"
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model="m", prompt=" word" * 9000)
    assert caught.value.code == "context_length_exceeded"


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
