"""Conversations that the server keeps: what continues what, and references to stored items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.store import ResponseStore, StoredResponse, open_store
from engine.conversation import Message, Reasoning, Text, ToolCall
from engine.events import FinishCause, TokenRecord, TokenScore
from tests.adapters.asgi import call
from tests.adapters.played import called, finished, text, thought
from tests.adapters.responding import (
    PATH,
    PlayedService,
    answered,
    app_of,
    app_over,
    created,
    function,
    namespace,
    of,
    post,
    refusal_of,
    said,
    whole_text,
)
from tests.adapters.stores import ROOMY

FS = namespace("fs", function("read"), {"type": "custom", "name": "edit"})
WORK = [
    of(thought("I think."), text("Looking.")),
    of(called("fs__read", '{"p": 1}'), called("fs__edit", "x", call=1, custom=True)),
    [finished(FinishCause.TOOL_CALLS)],
]
WORKED = Message(
    "assistant",
    (
        Reasoning("I think."),
        Text("Looking."),
        ToolCall("call_00", "fs__read", '{"p": 1}'),
        ToolCall("call_01", "fs__edit", "x", custom=True),
    ),
)
RESULTS: list[Any] = [
    {"type": "function_call_output", "call_id": "call_00", "output": "one"},
    {"type": "custom_tool_call_output", "call_id": "call_01", "output": "two"},
]
ANSWERED = (answered("call_00", "one"), answered("call_01", "two"))
HI = said("user", "hi")


async def test_a_chain_has_every_turn_before_it(tmp_path: Path) -> None:
    service = PlayedService(WORK, whole_text("Done."))
    async with app_of(service, tmp_path) as app:
        one = await created(app, tools=[FS])
        two = await created(app, *RESULTS, tools=[FS], previous_response_id=one["id"])
        assert service.heard() == (HI, WORKED, *ANSWERED)
        three = await created(app, previous_response_id=two["id"])
        done = said("assistant", "Done.")
        assert service.heard() == (HI, WORKED, *ANSWERED, done, HI)
        await created(app, {"role": "user", "content": "no"}, previous_response_id=one["id"])
        assert service.heard() == (HI, WORKED, said("user", "no"))
    assert two["previous_response_id"] == one["id"] and three["previous_response_id"] == two["id"]


async def test_a_stream_can_be_continued_as_well(tmp_path: Path) -> None:
    service = PlayedService(WORK)
    async with app_of(service, tmp_path) as app:
        made = await post(app, tools=[FS], stream=True)
        response_id = made.parts[0].partition(b'"id":"')[2].partition(b'"')[0].decode()
        await created(app, *RESULTS, previous_response_id=response_id)
    assert service.heard() == (HI, WORKED, *ANSWERED)


async def test_a_cut_answer_can_be_continued(tmp_path: Path) -> None:
    cut = [of(text("Half"), called("f", '{"a', whole=False)), [finished(FinishCause.LIMIT)]]
    service = PlayedService(cut)
    async with app_of(service, tmp_path) as app:
        one = await created(app)
        await created(app, previous_response_id=one["id"])
    half = Message("assistant", (Text("Half"), ToolCall("call_00", "f", '{"a')))
    assert service.heard() == (HI, half, HI)


async def test_every_kind_of_output_is_read_back(tmp_path: Path) -> None:
    scored = TokenRecord(65, 0, 0.0, TokenScore(65, -0.5, 1, ((65, -0.5),)))
    batches = [
        of(thought("T"), text("A", records=[scored])),
        of(called("tool_search", '{"query":"mail"}'), called("made_up", "not json", call=1)),
        [finished(FinishCause.TOOL_CALLS)],
    ]
    service = PlayedService(batches)
    search = {"type": "tool_search", "execution": "client"}
    fields = {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"]}
    async with app_of(service, tmp_path) as app:
        one = await created(app, tools=[search], **fields)
        kinds = [item["type"] for item in one["output"]]
        assert kinds == ["reasoning", "message", "tool_search_call", "function_call"]
        await created(app, previous_response_id=one["id"])
        calls = (
            ToolCall("call_00", "tool_search", '{"query": "mail"}'),
            ToolCall("call_01", "made_up", "not json"),
        )
        turn = Message("assistant", (Reasoning("T"), Text("A"), *calls))
        assert service.heard() == (HI, turn, HI)
        await created(app, {"role": "user", "content": "hi"}, *one["output"], tools=[search])
        assert service.heard() == (HI, turn)


async def test_instructions_and_tools_are_those_of_the_request(tmp_path: Path) -> None:
    service = PlayedService()
    async with app_of(service, tmp_path) as app:
        one = await created(app, instructions="Be brief.", tools=[FS])
        assert service.heard() == (said("system", "Be brief."), HI)
        two = await created(app, previous_response_id=one["id"])
        assert service.heard() == (HI, said("assistant", "hello"), HI)
        assert service.conversation.tools == () and two["instructions"] is None
        await created(app, previous_response_id=two["id"], instructions="Be long.")
        system, *rest = service.heard()
        assert system == said("system", "Be long.") and len(rest) == 5


async def test_what_the_conversation_itself_brought_stays(tmp_path: Path) -> None:
    service = PlayedService()
    items: list[Any] = [
        {"type": "additional_tools", "role": "developer", "tools": [function("front")]},
        {"role": "user", "content": "hi"},
        {"type": "tool_search_output", "call_id": "s", "tools": [function("found")]},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
    ]
    async with app_of(service, tmp_path) as app:
        one = await created(app, *items)
        later = await created(app, previous_response_id=one["id"], reasoning={"effort": "high"})
    assert [(tool.name, tool.listed) for tool in service.conversation.tools] == [
        ("front", True), ("found", False),
    ]  # fmt: skip
    assert service.conversation.thinking.effort == "low"
    assert later["reasoning"]["effort"] == "high"


async def test_sealed_thoughts_are_opened_and_foreign_ones_counted(tmp_path: Path) -> None:
    service = PlayedService(WORK)
    async with app_of(service, tmp_path) as app:
        made = await created(app, tools=[FS], include=["reasoning.encrypted_content"])
        secret = {**made["output"][0], "content": None}
        foreign = {"type": "reasoning", "encrypted_content": "gAAAA", "summary": []}
        await created(app, {"role": "user", "content": "hi"}, secret, foreign)
    expected = (HI, Message("assistant", (Reasoning("I think."),)))
    assert service.heard() == expected
    assert service.counters.dropped_reasoning == 1


@pytest.mark.parametrize("name", ["resp_does_not_exist", "x", "\0", "resp_" + "0" * 32])
@pytest.mark.parametrize("route", ["", "/input_tokens", "/compact"])
async def test_an_unknown_response_cannot_be_continued(
    name: str, route: str, tmp_path: Path
) -> None:
    service = PlayedService()
    async with app_of(service, tmp_path) as app:
        body = {"model": "m", "input": "hi", "previous_response_id": name}
        answer = await call(app, "POST", PATH + route, body)
    told = (400, "previous_response_not_found", "previous_response_id")
    assert refusal_of(answer) == told and answer.error["type"] == "invalid_request_error"
    assert not service.asked


async def test_no_previous_response_is_no_chain(tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path) as app:
        for name in (None, ""):
            one = await created(app, previous_response_id=name)
            stored = await call(app, "GET", f"{PATH}/{one['id']}")
            assert stored.json == one and one["previous_response_id"] == name


async def test_a_long_chain_is_read_in_its_order(tmp_path: Path) -> None:
    service = PlayedService(*(whole_text(f"a{turn}") for turn in range(12)))
    previous: Any = None
    async with app_of(service, tmp_path) as app:
        for turn in range(12):
            user = {"role": "user", "content": f"u{turn}"}
            previous = (await created(app, user, previous_response_id=previous))["id"]
    texts = [part.text for one in service.heard() for part in one.parts]  # type: ignore[union-attr]
    assert texts == [f"{who}{turn}" for turn in range(12) for who in "ua"][:-1]


# References


class Counting:
    """A store that counts what is loaded."""

    def __init__(self, store: ResponseStore) -> None:
        self._store = store
        self.loads = 0

    async def load(self, tenant: str, id: str) -> StoredResponse | None:
        self.loads += 1
        return await self._store.load(tenant, id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_a_reference_is_the_item_that_it_names(tmp_path: Path) -> None:
    service = PlayedService(WORK)
    async with app_of(service, tmp_path) as app:
        one = await created(app, {"role": "user", "content": "first"}, tools=[FS])
        page = await call(app, "GET", f"{PATH}/{one['id']}/input_items")
        [sent] = page.json["data"]
        references = [{"type": "item_reference", "id": sent["id"]}]
        references += [{"id": item["id"]} for item in one["output"]]
        two = await created(app, *references, *RESULTS)
        expected = (said("user", "first"), WORKED, *ANSWERED)
        assert service.heard() == expected
        # What was referred to is part of the conversation, even when its response is gone.
        assert (await call(app, "DELETE", f"{PATH}/{one['id']}")).status == 200
        await created(app, previous_response_id=two["id"])
        assert service.heard() == (*expected, said("assistant", "hello"), HI)
        page = await call(app, "GET", f"{PATH}/{two['id']}/input_items?order=asc")
        kinds = [item["type"] for item in page.json["data"]]
        assert kinds[:3] == ["message", "reasoning", "message"] and len(kinds) == 7
        gone = await post(app, *references)
    assert refusal_of(gone) == (400, None, "input[0].id")


@pytest.mark.parametrize("name", ["x", "msg_" + "0" * 36, "msg_mine", "", "resp_" + "0" * 36])
async def test_a_reference_to_nothing_is_refused(name: str, tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path) as app:
        one = await created(app)
        user = {"role": "user", "content": "x"}
        other = one["output"][0]["id"][:-4] + "ffff"
        for unknown in (name, other):
            answer = await post(app, user, {"id": unknown})
            assert refusal_of(answer) == (400, None, "input[1].id")
            assert unknown in answer.error["message"]
    async with app_of(PlayedService()) as app:
        assert (await post(app, {"id": one["output"][0]["id"]})).status == 400


async def test_each_response_is_loaded_once_for_all_references_to_it(tmp_path: Path) -> None:
    store = open_store("sqlite", tmp_path, ROOMY)
    counting: Any = Counting(store)
    app = app_over(PlayedService(WORK, WORK), counting)
    made = [await created(app, tools=[FS]) for _ in range(2)]
    references = [{"id": item["id"]} for one in made for item in one["output"]] * 9
    answer = await call(app, "POST", f"{PATH}/input_tokens", {"input": references})
    await store.close()
    assert (answer.status, counting.loads) == (200, 2)
