"""The official openai SDK on stored responses: read, replayed, listed, continued and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from conformance.profiles import ALIASES, ANSWER, KEYS, Pool
from conformance.server import Server
from conformance.test_sdk import Plan
from conformance.test_sdk_responses import PLAN, asked, strict

WORDS = [f"word {number}" for number in range(25)]
MANY: Any = [{"role": "user", "content": word} for word in WORDS]


@pytest.fixture(scope="module")
def client(scripted: Server) -> Iterator[OpenAI]:
    with strict(scripted) as sdk:
        yield sdk


@pytest.fixture(scope="module")
def lenient(scripted: Server) -> Iterator[OpenAI]:
    """For compaction, whose output begins with the user's messages although the SDK's type of it
    has none of those. The fuzzer holds it against our own spec."""
    with OpenAI(base_url=f"{scripted.url}/v1", api_key="any", max_retries=0) as sdk:
        yield sdk


def test_retrieve(client: OpenAI) -> None:
    """What comes back is what was answered, whole or streamed."""
    whole = client.responses.create(**asked(metadata={"k": "v"}))
    assert whole.store is True and client.responses.retrieve(whole.id) == whole
    events = list(client.responses.create(**asked(), stream=True))
    last = events[-1]
    assert last.type == "response.completed"
    assert client.responses.retrieve(last.response.id) == last.response


def test_replay(client: OpenAI) -> None:
    """The events of a stored response, all of them and from a number on."""
    first = list(client.responses.create(**asked(), stream=True))
    assert first[0].type == "response.created"
    place = first[0].response.id
    assert list(client.responses.retrieve(place, stream=True)) == first
    for after in (0, 3, len(first) - 2):
        rest = list(client.responses.retrieve(place, stream=True, starting_after=after))
        assert rest == first[after + 1 :]
    assert not list(client.responses.retrieve(place, stream=True, starting_after=len(first) - 1))
    buffered = client.responses.create(**asked())
    replayed = list(client.responses.retrieve(buffered.id, stream=True))
    assert replayed[-1].type == "response.completed" and replayed[-1].response == buffered
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.retrieve(place, extra_query={"starting_after": 1})
    assert caught.value.param == "starting_after"


def test_resume_helper(client: OpenAI) -> None:
    """The helper resumes a response by its id, and parses what it accumulates."""
    made = client.responses.create(**asked("D143"))
    with client.responses.stream(response_id=made.id, text_format=Plan) as stream:
        total = len(list(stream))
        final = stream.get_final_response()
    assert final.output_parsed == PLAN and final.id == made.id
    with client.responses.stream(response_id=made.id, starting_after=2) as stream:
        numbers = [event.sequence_number for event in stream]
    assert numbers == list(range(3, total))


def test_delete(client: OpenAI) -> None:
    """A deleted response is NotFoundError to everything; those that continue it are not."""
    gone = client.responses.create(**asked())
    later = client.responses.create(**asked("D143", previous_response_id=gone.id))
    client.responses.delete(gone.id)
    for call in (
        client.responses.retrieve,
        client.responses.delete,
        client.responses.cancel,
        client.responses.input_items.list,
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            call(gone.id)
        assert caught.value.code == "response_not_found"
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**asked(previous_response_id=gone.id))
    assert refused.value.code == "previous_response_not_found"
    assert client.responses.retrieve(later.id) == later
    again = client.responses.create(**asked(previous_response_id=later.id))
    assert again.output_text == ANSWER


def test_cancel(client: OpenAI) -> None:
    """Nothing runs in the background: BadRequestError, and the response is still there."""
    made = client.responses.create(**asked())
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(made.id)
    assert client.responses.retrieve(made.id) == made


def test_not_stored(client: OpenAI) -> None:
    """What was not to be stored cannot be read."""
    made = client.responses.create(**asked(store=False))
    assert made.store is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_continue(client: OpenAI) -> None:
    """A response that continues another has its conversation, and not its instructions."""
    first = client.responses.create(**asked("one", instructions="Be very brief, please."))
    second = client.responses.create(**asked("two", previous_response_id=first.id))
    assert second.previous_response_id == first.id and second.instructions is None
    said: Any = first.output[0].to_dict()
    items: Any = [{"role": "user", "content": "one"}, said, {"role": "user", "content": "two"}]
    whole = client.responses.input_tokens.count(model="m", input=items)
    assert second.usage and second.usage.input_tokens == whole.input_tokens
    counted = client.responses.input_tokens.count(**asked("two", previous_response_id=first.id))
    assert counted == whole


def test_input_items(client: OpenAI) -> None:
    """All pages of them, newest first and oldest first."""
    made = client.responses.create(**asked() | {"input": MANY})
    pages = client.responses.input_items.list(made.id, limit=10)
    assert len(pages.data) == 10 and pages.has_more is True

    def texts(**options: Any) -> list[str]:
        found = []
        for item in client.responses.input_items.list(made.id, **options):
            assert item.type == "message" and item.id and item.content[0].type == "input_text"
            found.append(item.content[0].text)
        return found

    assert texts() == texts(limit=10) == texts(limit=1) == WORDS[::-1]
    assert texts(order="asc", limit=7) == texts(order="asc", limit=100) == WORDS
    after = pages.data[4].id
    assert after and texts(after=after, limit=100) == WORDS[:20][::-1]
    bad: tuple[tuple[dict[str, Any], str], ...] = (
        ({"limit": 0}, "limit"),
        ({"after": "msg_nothing"}, "after"),
    )
    for options, param in bad:
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.input_items.list(made.id, **options)
        assert caught.value.param == param


def test_item_reference(client: OpenAI) -> None:
    """An item of a stored response is as good as the item itself."""
    made = client.responses.create(**asked("one"))
    (sent,) = client.responses.input_items.list(made.id)
    items: Any = [
        {"type": "item_reference", "id": sent.id},
        {"type": "item_reference", "id": made.output[0].id},
        {"role": "user", "content": "two"},
    ]
    counted = client.responses.input_tokens.count(model="m", input=items)
    same = client.responses.input_tokens.count(**asked("two", previous_response_id=made.id))
    assert counted == same


def test_tenants(pool: Pool) -> None:
    """Another key's response does not exist."""
    server = pool.get("guarded")
    with strict(server, api_key=KEYS["lab"]) as mine, strict(server, api_key=KEYS["ops"]) as other:
        made = mine.responses.create(**asked() | {"model": "solar"})
        assert mine.responses.retrieve(made.id) == made
        for call in (other.responses.retrieve, other.responses.delete):
            with pytest.raises(openai.NotFoundError):
                call(made.id)
        with pytest.raises(openai.BadRequestError):
            other.responses.create(**asked(previous_response_id=made.id) | {"model": "solar"})
        assert mine.responses.retrieve(made.id) == made


def test_compact(client: OpenAI, lenient: OpenAI) -> None:
    """A compacted conversation goes on from its output."""
    short = lenient.responses.compact(model="gpt-5", input=MANY[:2])
    assert short.object == "response.compaction" and short.usage.output_tokens > 0
    assert [item.type for item in short.output] == ["message", "message", "compaction"]
    note = short.output[-1]
    assert note.type == "compaction" and note.encrypted_content
    items: Any = [
        *(item.to_dict(warnings=False) for item in short.output),
        {"role": "user", "content": "D143"},
    ]
    answer = client.responses.create(**asked() | {"input": items})
    assert answer.output_text == PLAN.model_dump_json() and answer.model == ALIASES[0]
    made = client.responses.create(**asked("one"))
    longer = lenient.responses.compact(model="gpt-5", previous_response_id=made.id, input=MANY[:1])
    assert [item.type for item in longer.output] == ["message", "message", "compaction"]
    items[-2] = {**items[-2], "encrypted_content": "gAAAA-of-another-server"}
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**asked() | {"input": items})
    assert caught.value.code == "compaction_payload_invalid"


def test_compact_in_a_request(client: OpenAI) -> None:
    """A trigger as the last item asks for a note in place of an answer."""
    items: Any = [*MANY[:2], {"type": "compaction_trigger"}]
    answer = client.responses.create(**asked() | {"input": items})
    assert [item.type for item in answer.output] == ["compaction"]
    events = list(client.responses.create(**asked() | {"input": items}, stream=True))
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.type for item in done] == ["compaction"]
    assert events[-1].type == "response.completed"


def test_raw_response(client: OpenAI) -> None:
    """Headers are within reach; a replay is server-sent events."""
    made = client.responses.create(**asked())
    raw = client.responses.with_raw_response.retrieve(made.id)
    assert raw.headers["x-request-id"].startswith("req_") and raw.parse() == made
    with client.responses.with_streaming_response.retrieve(made.id, stream=True) as replay:
        assert replay.headers["content-type"].startswith("text/event-stream")


def test_async(scripted: Server) -> None:
    """The async client: read, replay, list, continue, compact and delete."""

    async def all_of_it() -> None:
        async with AsyncOpenAI(
            base_url=f"{scripted.url}/v1", api_key="any", _strict_response_validation=True,
            max_retries=0,
        ) as sdk:  # fmt: skip
            made = await sdk.responses.create(**asked() | {"input": MANY})
            assert await sdk.responses.retrieve(made.id) == made
            replay = await sdk.responses.retrieve(made.id, stream=True, starting_after=1)
            numbers = [event.sequence_number async for event in replay]
            assert numbers == list(range(2, numbers[-1] + 1))
            pages = sdk.responses.input_items.list(made.id, limit=4)
            assert len([item async for item in pages]) == len(WORDS)
            later = await sdk.responses.create(**asked(previous_response_id=made.id))
            assert later.previous_response_id == made.id
            raw = await sdk.responses.with_raw_response.compact(
                model="m", previous_response_id=later.id
            )
            assert raw.http_response.json()["output"][-1]["type"] == "compaction"
            await sdk.responses.delete(made.id)
            with pytest.raises(openai.NotFoundError):
                await sdk.responses.retrieve(made.id)

    asyncio.run(all_of_it())
