"""Stored responses over HTTP: retrieved, replayed, listed, deleted, and kept before they end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai._models import validate_type
from openai.types.responses import ResponseItemList
from starlette.types import ASGIApp

from adapters.store import PreviousGone, ResponseStore, StoredResponse, StoreFailed
from engine.events import FinishCause
from generated.responses import DeletedResponse
from generated.responses import ResponseItemList as OurItemList
from tests.adapters.asgi import Exchange, call, exchange
from tests.adapters.drafts import valid_object
from tests.adapters.played import finished, text
from tests.adapters.responding import (
    PATH,
    PlayedService,
    app_of,
    app_over,
    created,
    events_of,
    post,
    refusal_of,
)
from tests.adapters.test_responses_answered import WORK
from tests.adapters.test_responses_served import FS, SHELL

KEYS = {"key-a": "a", "key-b": "b"}


async def get(app: ASGIApp, path: str, key: str | None = None, method: str = "GET") -> Exchange:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return await call(app, method, f"{PATH}/{path}", headers=headers)


# Retrieving


async def test_a_stored_response_is_returned_as_it_was_made(tmp_path: Path) -> None:
    async with app_of(PlayedService(WORK), tmp_path) as app:
        made = await post(app, tools=[SHELL, FS])
        assert valid_object(made.content)["store"] is True
        for query in ("", "?stream=false", "?include=x&include_obfuscation=true&stream=0"):
            again = await get(app, made.json["id"] + query)
            assert (again.status, again.content) == (200, made.content)
            assert again.headers["content-type"] == "application/json"


@pytest.mark.parametrize("store", [False, None])
async def test_what_need_not_be_stored_is_not(store: bool | None, tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path if store is False else None) as app:
        made = await created(app, store=store)
        assert made["store"] is False
        assert refusal_of(await get(app, made["id"])) == (404, "response_not_found", "response_id")
        later = await post(app, previous_response_id=made["id"])
        assert later.error["code"] == "previous_response_not_found"


async def test_null_and_true_store_where_there_is_a_store(tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path) as app:
        for store in (None, True):
            made = await created(app, store=store)
            assert made["store"] is True
            assert (await get(app, made["id"])).json == made


@pytest.mark.parametrize("cause", [FinishCause.TOOL_CALLS, FinishCause.LIMIT])
async def test_a_replay_is_the_stream_again(cause: FinishCause, tmp_path: Path) -> None:
    async with app_of(PlayedService([*WORK[:-1], [finished(cause)]]), tmp_path) as app:
        made = await post(app, tools=[SHELL, FS], stream=True)
        response_id = events_of(made)[-1]["response"]["id"]
        again = await get(app, f"{response_id}?stream=true")
        assert again.parts == made.parts and again.ended
        assert again.headers["content-type"].startswith("text/event-stream")
        for after in (0, 7, len(made.parts) - 2, len(made.parts) - 1, 999_999_999):
            rest = await get(app, f"{response_id}?stream=1&starting_after={after}")
            assert (rest.status, rest.parts) == (200, made.parts[after + 1 :])


async def test_signs_of_life_are_replayed_too(tmp_path: Path) -> None:
    slow: Any = [[text("a")], 0.2, [text("b")], [finished()]]
    async with app_of(PlayedService(slow), tmp_path, heartbeat_seconds=0.05) as app:
        made = await post(app, stream=True)
        events = events_of(made)
        assert [event["type"] for event in events].count("response.in_progress") > 1
        again = await get(app, f"{events[-1]['response']['id']}?stream=true")
    assert again.parts == made.parts


@pytest.mark.parametrize("after", ["1000000000", "9" * 5000])
async def test_a_replay_from_beyond_the_end_is_empty(after: str, tmp_path: Path) -> None:
    async with app_of(PlayedService(WORK), tmp_path) as app:
        made = await created(app)
        answer = await get(app, f"{made['id']}?stream=true&starting_after={after}")
    assert (answer.status, answer.parts) == (200, [])


async def test_zeros_in_front_of_a_number_count_for_nothing(tmp_path: Path) -> None:
    async with app_of(PlayedService(WORK), tmp_path) as app:
        made = await created(app)
        whole = await get(app, f"{made['id']}?stream=true")
        rest = await get(app, f"{made['id']}?stream=true&starting_after={'0' * 20}1")
    assert (rest.status, rest.parts) == (200, whole.parts[2:])


async def test_a_whole_response_can_be_replayed_as_well(tmp_path: Path) -> None:
    async with app_of(PlayedService(WORK), tmp_path) as app:
        made = await created(app, tools=[SHELL, FS])
        events = events_of(await get(app, f"{made['id']}?stream=true"))
    assert events[-1]["response"] == made


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("stream=yes", "stream"),
        ("starting_after=3", "starting_after"),
        ("stream=false&starting_after=3", "starting_after"),
        ("stream=true&starting_after=-1", "starting_after"),
        ("stream=true&starting_after=x", "starting_after"),
        ("stream=true&starting_after=", "starting_after"),
        ("stream=true&starting_after=%D9%A3", "starting_after"),
    ],
)
async def test_a_replay_is_asked_for_properly(query: str, param: str, tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path) as app:
        made = await created(app)
        answer = await get(app, f"{made['id']}?{query}")
    assert refusal_of(answer) == (400, None, param) and param in answer.error["message"]


# Input items


async def listed(app: ASGIApp, response_id: str, query: str = "") -> dict[str, Any]:
    answer = await get(app, f"{response_id}/input_items{query}")
    assert answer.status == 200, answer.content
    OurItemList.model_validate(answer.json, strict=True)
    data, found = answer.json["data"], answer.json
    if data:
        validate_type(type_=ResponseItemList, value=found)
    assert found["first_id"] == (data[0]["id"] if data else None)
    assert found["last_id"] == (data[-1]["id"] if data else None)
    return found  # type: ignore[no-any-return]


def numbers(page: dict[str, Any]) -> list[int]:
    return [int(item["content"][0]["text"]) for item in page["data"]]


async def test_input_items_are_listed_newest_first_in_pages(tmp_path: Path) -> None:
    items = [{"role": "user", "content": str(number)} for number in range(45)]
    async with app_of(PlayedService(), tmp_path) as app:
        made = (await created(app, *items))["id"]
        first = await listed(app, made)
        assert numbers(first) == list(range(44, 24, -1)) and first["has_more"] is True
        second = await listed(app, made, f"?after={first['last_id']}")
        third = await listed(app, made, f"?after={second['last_id']}&include=x")
        assert numbers(second) + numbers(third) == list(range(24, -1, -1))
        assert (second["has_more"], third["has_more"]) == (True, False)
        assert (await listed(app, made, f"?after={third['last_id']}"))["data"] == []
        ascending = await listed(app, made, "?order=asc&limit=100")
        assert numbers(ascending) == list(range(45)) and ascending["has_more"] is False
        some = await listed(app, made, f"?order=asc&limit=1&after={ascending['first_id']}")
        assert numbers(some) == [1] and some["has_more"] is True
        assert numbers(await listed(app, made, "?limit=45&order=desc")) == list(range(44, -1, -1))


async def test_only_the_requests_own_items_are_listed(tmp_path: Path) -> None:
    async with app_of(PlayedService(WORK), tmp_path) as app:
        one = await created(app, tools=[SHELL, FS], instructions="Be brief.")
        items = [{"type": "function_call_output", "call_id": "c", "output": "ok"},
                 {"role": "user", "content": "go", "id": "msg_mine"}]  # fmt: skip
        two = await created(app, *items, previous_response_id=one["id"])
        page = await listed(app, two["id"], "?order=asc")
    assert [item["type"] for item in page["data"]] == ["function_call_output", "message"]
    assert page["data"][1]["id"] == "msg_mine"
    assert page["data"][1]["content"] == [{"type": "input_text", "text": "go"}]


async def test_a_text_is_listed_as_a_message(tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path) as app:
        answer = await call(app, "POST", PATH, {"input": "hi"})
        [item] = (await listed(app, answer.json["id"]))["data"]
    assert (item["type"], item["role"], item["status"]) == ("message", "user", "completed")
    assert item["content"] == [{"type": "input_text", "text": "hi"}]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit"), ("limit=-1", "limit"),
        (f"limit={'1' * 5000}", "limit"), ("order=up", "order"), ("order=", "order"),
        ("after=msg_1", "after"),
    ],
)  # fmt: skip
async def test_a_list_is_asked_for_properly(query: str, param: str, tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path) as app:
        made = await created(app)
        answer = await get(app, f"{made['id']}/input_items?{query}")
    assert refusal_of(answer) == (400, None, param) and param in answer.error["message"]


# Deleting and cancelling


async def test_a_deleted_response_is_gone_and_what_continues_it_is_not(tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path) as app:
        one = await created(app)
        two = await created(app, previous_response_id=one["id"])
        gone = await get(app, one["id"], method="DELETE")
        DeletedResponse.model_validate(gone.json, strict=True)
        assert (gone.status, gone.json["id"]) == (200, one["id"])
        for method, path in (
            ("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel"),
            ("GET", "?stream=true"),
        ):  # fmt: skip
            answer = await get(app, one["id"] + path, method=method)
            assert refusal_of(answer) == (404, "response_not_found", "response_id")
            assert one["id"] in answer.error["message"]
        assert (await post(app, previous_response_id=one["id"])).status == 400
        assert (await created(app, previous_response_id=two["id"]))["status"] == "completed"


async def test_nothing_can_be_cancelled(tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path) as app:
        made = await created(app)
        answer = await get(app, f"{made['id']}/cancel", method="POST")
        assert refusal_of(answer) == (400, None, None) and "background" in answer.error["message"]
        assert (await get(app, made["id"])).json == made


async def test_another_tenant_sees_nothing(tmp_path: Path) -> None:
    async with app_of(PlayedService(), tmp_path, KEYS) as app:
        one = (await post(app, key="key-a")).json
        item = one["output"][0]["id"]
        for method, path in (
            ("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel"),
        ):  # fmt: skip
            answer = await get(app, one["id"] + path, "key-b", method)
            assert refusal_of(answer) == (404, "response_not_found", "response_id")
        for fields in ({"previous_response_id": one["id"]}, {"input": [{"id": item}]}):
            headers = {"authorization": "Bearer key-b"}
            answer = await call(app, "POST", PATH, {"input": "hi", **fields}, headers)
            assert answer.status == 400
        assert (await get(app, one["id"], "key-a")).json == one
        assert (await get(app, one["id"])).status == 401


# A store that fails


class Stumbling:
    """Stands in for a `ResponseStore`: a method fails that is named, and saving waits."""

    def __init__(self, store: ResponseStore | None = None, *failing: str) -> None:
        self.saving = asyncio.Event()
        self.may_save = asyncio.Event()
        self.may_save.set()
        self.saved: list[StoredResponse] = []
        self.error = StoreFailed("the response store failed: the disk is full")
        self._failing = failing

    async def save(self, stored: StoredResponse) -> None:
        self.saving.set()
        await self.may_save.wait()
        self._stumble("save")
        self.saved.append(stored)

    async def load(self, tenant: str, id: str) -> None:
        self._stumble("load")

    async def turns(self, tenant: str, id: str) -> list[Any]:
        self._stumble("turns")
        return []

    async def delete(self, tenant: str, id: str) -> bool:
        self._stumble("delete")
        return False

    def _stumble(self, name: str) -> None:
        if name in self._failing:
            raise self.error


def stumbling(*failing: str) -> tuple[ASGIApp, Any]:
    store: Any = Stumbling(None, *failing)
    return app_over(PlayedService(), store), store


@pytest.mark.parametrize("error", [StoreFailed, PreviousGone])
async def test_what_cannot_be_stored_is_not_acknowledged(error: type[StoreFailed]) -> None:
    app, store = stumbling("save")
    store.error = error("the disk is full")
    answer = await post(app)
    assert refusal_of(answer) == (503, "store_failed", None)
    assert answer.headers["retry-after"] and "the disk is full" in answer.error["message"]
    events = events_of(await post(app, stream=True))
    last = events[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "server_error"
    assert "response.completed" not in [event["type"] for event in events]
    assert (await post(app, store=False)).status == 200


@pytest.mark.parametrize(
    ("failing", "method", "path"),
    [
        ("load", "GET", "/resp_1"), ("load", "GET", "/resp_1/input_items"),
        ("load", "POST", "/resp_1/cancel"), ("delete", "DELETE", "/resp_1"),
    ],
)  # fmt: skip
async def test_what_cannot_be_looked_up_is_not_unknown(
    failing: str, method: str, path: str
) -> None:
    app, _ = stumbling(failing)
    answer = await call(app, method, PATH + path)
    assert refusal_of(answer) == (503, "store_failed", None)


@pytest.mark.parametrize("route", ["", "/input_tokens", "/compact"])
async def test_what_cannot_be_continued_for_now_is_not_unknown(route: str) -> None:
    app, _ = stumbling("turns", "load")
    reference = {"id": "msg_" + "0" * 36}
    for fields in ({"previous_response_id": "resp_1"}, {"input": [reference]}):
        answer = await call(app, "POST", PATH + route, {"model": "m", "input": "hi", **fields})
        assert refusal_of(answer) == (503, "store_failed", None)


async def test_the_end_is_told_when_the_response_is_kept() -> None:
    app, store = stumbling()
    store.may_save.clear()
    asked = exchange(app, "POST", PATH, {"input": "hi", "stream": True})
    running = asyncio.create_task(asked.run())
    await store.saving.wait()
    await asyncio.sleep(0.01)
    assert not any(b"response.completed" in part for part in asked.parts) and not store.saved
    store.may_save.set()
    await running
    last = events_of(asked)[-1]
    [stored] = store.saved
    assert (stored.id, stored.previous) == (last["response"]["id"], None)
    assert valid_object(stored.response) == last["response"]
    assert len(stored.events) == len(asked.parts)
