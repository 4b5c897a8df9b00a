"""The official anthropic SDK against the server, validating every reply strictly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import MessageParam, ToolParam
from pydantic import BaseModel

from conformance.profiles import ALIASES, ANSWER, CONTEXT, KEYS, Pool
from conformance.replies import opened
from conformance.scenarios.messages import message
from conformance.server import Server

ADAPTIVE: Any = {"type": "adaptive"}
LOOK: ToolParam = {
    "name": "look",
    "description": "Looks at the weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
WANTED = {"city": "Oslo", "days": 2, "unit": "c"}


class Step(BaseModel):
    """Becomes a definition behind a reference."""

    kind: Literal["add", "cut"]
    amount: int


class Plan(BaseModel):
    """What the SDK's helpers make a schema of."""

    steps: list[Step]
    final: str


PLAN = Plan(steps=[Step(kind="add", amount=2)], final="\u00e9 done")


def say(text: str) -> list[MessageParam]:
    """A conversation that a case's script claims."""
    return [{"role": "user", "content": text}]


def asked(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """The arguments of a call."""
    return {"model": "claude-opus-5-5", "max_tokens": 200, "messages": say(text), **fields}


def strict(server: Server, **options: Any) -> Anthropic:
    """A client that validates, and tries once."""
    given: dict[str, Any] = {"api_key": "any", "max_retries": 0, **options}
    return Anthropic(base_url=server.url, _strict_response_validation=True, **given)


@pytest.fixture(scope="module")
def client(scripted: Server) -> Iterator[Anthropic]:
    with strict(scripted) as sdk:
        yield sdk


@pytest.fixture(scope="module")
def thinker(pool: Pool) -> Iterator[Anthropic]:
    with strict(pool.get("thinker")) as sdk:
        yield sdk


def test_create(client: Anthropic) -> None:
    """A whole message, with usage, ids and the loaded model's name."""
    answer = client.messages.create(**asked(), stop_sequences=["\n\n"])
    assert [block.type for block in answer.content] == ["text"]
    assert answer.content[0].type == "text" and answer.content[0].text == ANSWER
    assert (answer.stop_reason, answer.stop_sequence) == ("end_turn", None)
    assert answer.model == ALIASES[0] and answer.role == "assistant"
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0
    assert answer._request_id and answer._request_id.startswith("req_")
    stopped = client.messages.create(**asked(), stop_sequences=[" friend"])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", " friend")


def test_stream(client: Anthropic) -> None:
    """Raw events; the pieces join to the text, and the end has the usage of the whole."""
    events = list(client.messages.create(**asked(), stream=True))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    pieces = [
        event.delta.text
        for event in events
        if event.type == "content_block_delta" and event.delta.type == "text_delta"
    ]
    assert "".join(pieces) == ANSWER
    (start,) = [event for event in events if event.type == "message_start"]
    (end,) = [event for event in events if event.type == "message_delta"]
    whole = client.messages.create(**asked())
    assert end.usage.output_tokens == whole.usage.output_tokens
    assert end.usage.input_tokens is not None and end.usage.cache_read_input_tokens is not None
    prompt = end.usage.input_tokens + end.usage.cache_read_input_tokens
    assert start.message.usage.input_tokens == prompt


def test_stream_helper(client: Anthropic) -> None:
    """The helper's text, and the message that it accumulates."""
    whole = client.messages.create(**asked())
    with client.messages.stream(**asked()) as stream:
        assert "".join(stream.text_stream) == ANSWER
        final = stream.get_final_message()
    assert final.content[0].to_dict() == whole.content[0].to_dict()
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens == whole.usage.output_tokens
    with client.messages.stream(**asked()) as stream:
        assert stream.get_final_text() == ANSWER


def test_parse(client: Anthropic) -> None:
    """D143 on this route: the helpers get the typed object, of nested models."""
    answer = client.messages.parse(**asked("D143"), output_format=Plan)
    assert answer.parsed_output == PLAN and answer.stop_reason == "end_turn"
    with client.messages.stream(**asked("D143"), output_format=Plan) as stream:
        final = stream.get_final_message()
    assert final.parsed_output == PLAN


def test_parse_model(embedded: Server) -> None:
    """On the model: what it writes is the typed object."""

    class Pet(BaseModel):
        kind: Literal["cat", "dog"]
        age: Literal[1, 2, 3]

    with strict(embedded) as sdk:
        answer = sdk.messages.parse(
            **asked("Invent a pet.", max_tokens=60), output_format=Pet, extra_body={"seed": 1}
        )
    assert answer.stop_reason == "end_turn" and isinstance(answer.parsed_output, Pet)


def test_count(client: Anthropic, thinker: Anthropic) -> None:
    """count_tokens says what the usage of the same message says."""
    for sdk, fields in (
        (client, {}),
        (client, {"system": "S"}),
        (thinker, {"tools": [LOOK], "thinking": ADAPTIVE}),
        (thinker, {"tools": [LOOK], "tool_choice": {"type": "any"}}),
    ):
        counted = sdk.messages.count_tokens(model="m", messages=say("count me"), **fields)
        usage = sdk.messages.create(**asked("count me"), **fields).usage
        assert usage.cache_read_input_tokens is not None
        assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens


def test_models(client: Anthropic) -> None:
    """List, and retrieve by an id with a slash."""
    page = client.models.list(limit=1000)
    assert [model.id for model in page] == [ALIASES[0]]
    assert page.first_id == page.last_id == ALIASES[0] and page.has_more is False
    model = client.models.retrieve(ALIASES[0])
    assert model == page.data[0]
    assert model.max_input_tokens == CONTEXT and model.lifecycle == "active"
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.models.retrieve("acme/nothing")
    assert caught.value.type == "not_found_error"


def test_bad_requests(client: Anthropic) -> None:
    """What is out of range, too long or refused is BadRequestError and names the field."""
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(**asked(max_tokens=0))
    assert caught.value.type == "invalid_request_error" and "max_tokens" in str(caught.value)
    assert caught.value.request_id and caught.value.request_id.startswith("req_")
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(**asked(" word" * 9000))
    assert caught.value.api_message and caught.value.api_message.startswith("prompt is too long")
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(
            **asked(tools=[{"type": "web_search_20250305", "name": "web_search"}])
        )
    assert "web_search_20250305" in str(caught.value)
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(**asked(), extra_body={"temperature": 9})
    assert "temperature" in str(caught.value)


def test_sampling_fields(embedded: Server) -> None:
    """What the SDK no longer has in its signatures still works by extra_body."""
    greedy = {"temperature": 0}
    with strict(embedded) as sdk:
        texts = [
            sdk.messages.create(**asked("Name a color.", max_tokens=3), extra_body=body).content[0]
            for body in (greedy, greedy, {"temperature": 2, "seed": 7})
        ]
    assert texts[0] == texts[1] != texts[2]


def test_keys(pool: Pool) -> None:
    """Both ways of the SDK to send a key; a wrong one, and an unknown model."""
    server = pool.get("guarded")
    for options in ({"api_key": KEYS["lab"]}, {"api_key": None, "auth_token": KEYS["lab"]}):
        with strict(server, **options) as sdk:
            assert sdk.messages.create(**asked(model="solar")).content
    with strict(server, api_key="wrong") as sdk:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            sdk.messages.create(**asked())
        assert caught.value.type == "authentication_error"
    headers = {"x-api-key": KEYS["ops"]}
    with strict(server, api_key="wrong", default_headers=headers) as sdk:
        assert sdk.models.list().data
        with pytest.raises(anthropic.NotFoundError) as missing:
            sdk.messages.create(**asked(model="claude-nothing"))
        assert missing.value.type == "not_found_error"
        with pytest.raises(anthropic.APIStatusError) as large:
            sdk.messages.create(**asked("x" * 70_000))
        assert (large.value.status_code, large.value.type) == (413, "request_too_large")


def test_overloaded(pool: Pool) -> None:
    """A full server is OverloadedError, with a retry-after that the SDK can read."""
    server = pool.get("narrow")
    server.until_idle()
    busy = message("D040-MESSAGES", stream=True)
    with strict(server) as sdk:
        with opened(server.http, "messages", busy), opened(server.http, "messages", busy):
            server.until(lambda m: m["held"] == 2, "both places are taken")
            with pytest.raises(anthropic.OverloadedError) as caught:
                sdk.messages.create(**asked())
            assert caught.value.status_code == 529 and caught.value.type == "overloaded_error"
            assert int(caught.value.response.headers["retry-after"]) >= 1
        server.until_idle()
        assert sdk.messages.create(**asked()).content


def test_failure_in_a_stream(client: Anthropic) -> None:
    """An error event raises APIStatusError after the text that came before it."""
    text = ""
    with (
        pytest.raises(anthropic.APIStatusError) as caught,
        client.messages.stream(**asked("FAILURE-MESSAGES late")) as stream,
    ):
        for piece in stream.text_stream:
            text += piece
    assert text == "one two" and caught.value.type == "api_error"
    with pytest.raises(anthropic.InternalServerError) as whole:
        client.messages.create(**asked("FAILURE-MESSAGES late"))
    assert whole.value.type == "api_error"


def test_unknown_routes(client: Anthropic) -> None:
    """Batches and files do not exist yet: NotFoundError, with the type that says so."""
    calls: tuple[Callable[[], object], ...] = (
        lambda: client.messages.batches.create(requests=[]),
        lambda: client.messages.batches.retrieve("b"),
        client.messages.batches.list,
        lambda: client.messages.batches.cancel("b"),
        lambda: client.messages.batches.delete("b"),
        client.beta.files.list,
    )
    for call in calls:
        with pytest.raises(anthropic.NotFoundError) as caught:
            call()
        assert caught.value.type == "not_found_error"


def test_raw_response(client: Anthropic) -> None:
    """Headers are within reach."""
    raw = client.messages.with_raw_response.create(**asked())
    assert raw.headers["request-id"] == raw.headers["x-request-id"]
    assert raw.parse().stop_reason == "end_turn"


def test_early_close(client: Anthropic, scripted: Server) -> None:
    """Leaving the SDK's stream early cancels the generation."""
    before = scripted.until_idle()
    with contextlib.closing(client.messages.create(**asked("D184 long"), stream=True)) as stream:
        next(iter(stream))
    assert scripted.until_idle_since(before)["cancelled"] == 1


def test_async(scripted: Server) -> None:
    """The async client: buffered, streamed, the helper, counts, and many at once."""

    async def all_of_it() -> None:
        async with AsyncAnthropic(
            base_url=scripted.url, api_key="any", _strict_response_validation=True, max_retries=0
        ) as sdk:
            answer = await sdk.messages.create(**asked())
            assert answer.content[0].type == "text" and answer.content[0].text == ANSWER
            events = await sdk.messages.create(**asked(), stream=True)
            assert [event.type async for event in events][-1] == "message_stop"
            async with sdk.messages.stream(**asked()) as stream:
                assert await stream.get_final_text() == ANSWER
            parsed = await sdk.messages.parse(**asked("D143"), output_format=Plan)
            assert parsed.parsed_output == PLAN
            counted = await sdk.messages.count_tokens(model="m", messages=say("hello"))
            assert counted.input_tokens > 0
            assert [model.id async for model in sdk.models.list()] == [ALIASES[0]]
            asks = (sdk.messages.create(**asked(f"number {i}")) for i in range(16))
            answers = await asyncio.gather(*asks)
            assert len({answer.id for answer in answers}) == 16
            with pytest.raises(anthropic.BadRequestError):
                await sdk.messages.create(**asked(max_tokens=0))

    asyncio.run(all_of_it())
