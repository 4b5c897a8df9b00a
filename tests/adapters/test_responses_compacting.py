"""Compactions over HTTP: asked for, needed before an answer, and by the route of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai._models import validate_type
from openai.types.responses.compacted_response import CompactedResponse as OfficialCompacted
from starlette.types import ASGIApp

from adapters.response_compaction import note_message
from engine.errors import EngineUnavailable, GenerationFailed
from engine.events import FinishCause
from generated.responses import CompactedResponse
from tests.adapters.asgi import Exchange, call, exchange
from tests.adapters.drafts import valid_object
from tests.adapters.played import called, finished
from tests.adapters.responding import (
    PATH,
    WINDOW,
    PlayedService,
    answered,
    app_of,
    created,
    events_of,
    function,
    post,
    refusal_of,
    said,
    whole_text,
)
from tests.adapters.test_response_items import CALL, HI, OUTPUT, USER, compaction
from tests.serving import PlayedClient, facts, service_over

TRIGGER = {"type": "compaction_trigger"}
NOTE = "The parser is in src/parse.py; tests are next."
LONG = {"role": "user", "content": "x" * 500}
SAID = said("user", "x" * 500)
DONE = {"role": "assistant", "content": "done: lexer"}
SHELL = function("shell")


def rules(threshold: int | None = 400) -> list[dict[str, Any]]:
    return [{"type": "compaction", "compact_threshold": threshold}]


# Asked for


@pytest.mark.parametrize("stream", [False, True])
async def test_a_trigger_gives_one_note_and_no_answer(stream: bool, tmp_path: Path) -> None:
    service = PlayedService(whole_text(NOTE), whole_text("on it"))
    async with app_of(service, tmp_path) as app:
        answer = await post(app, USER, DONE, CALL, OUTPUT, TRIGGER, stream=stream)
        events = events_of(answer) if stream else []
        made = events[-1]["response"] if stream else valid_object(answer.content)
        assert (made["status"], len(service.asked)) == ("completed", 1)
        [item] = made["output"]
        assert item["type"] == "compaction" and "parser" not in item["encrypted_content"]
        assert made["usage"]["output_tokens"] == 3
        assert "done: lexer" in _prompt(service)
        await created(app, USER, item, {"role": "user", "content": "go on"})
        expected = (HI, note_message(NOTE), said("user", "go on"))
        assert service.heard() == expected
        await created(app, {"role": "user", "content": "go on"}, previous_response_id=made["id"])
        assert service.heard() == expected
    assert [event["type"] for event in events if "item" in event["type"]] == (
        ["response.output_item.added", "response.output_item.done"] if stream else []
    )


def _prompt(service: PlayedService) -> str:
    """What the model reads in a pass."""
    return "\n".join(getattr(part, "text", "") for one in service.heard() for part in one.parts)


@pytest.mark.parametrize("error", [EngineUnavailable("gone"), GenerationFailed("broke")])
async def test_a_compaction_that_breaks_is_told(error: Exception, tmp_path: Path) -> None:
    broken: Any = error if isinstance(error, EngineUnavailable) else [error]
    service = PlayedService(broken, broken, broken)
    async with app_of(service, tmp_path) as app:
        whole = await post(app, USER, TRIGGER)
        events = events_of(await post(app, USER, TRIGGER, stream=True))
        routed = await call(app, "POST", f"{PATH}/compact", {"model": "m", "input": "hi"})
        response_id = events[-1]["response"]["id"]
        assert (await call(app, "GET", f"{PATH}/{response_id}")).status == 404
    assert whole.status == routed.status >= 500
    assert [event["type"] for event in events[2:]] == ["response.failed"]
    assert events[-1]["response"]["error"]["code"] == "server_error"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_ends_the_compaction(
    stream: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = PlayedClient()
    service = service_over(client, facts(WINDOW))
    async with app_of(service, tmp_path) as app:
        body = {"input": [USER, TRIGGER], "stream": stream}
        asked = exchange(app, "POST", PATH, body)
        running = asyncio.create_task(asked.run())
        await client.submitted.wait()
        client.say("The note beg")
        await asyncio.sleep(0.02)
        asked.gone.set()
        await running
    assert service.held == 0 and client.cancelled == [client.requests[0].key]
    assert len(asked.parts) == (2 if stream else 0) and not caplog.records


# Needed before an answer


@pytest.mark.parametrize("stream", [False, True])
async def test_from_the_threshold_on_a_note_comes_first(stream: bool) -> None:
    service = PlayedService(whole_text(NOTE), whole_text("hello"))
    system = {"role": "system", "content": "Be brief."}
    items = (system, LONG, DONE, CALL, OUTPUT, USER)
    async with app_of(service) as app:
        answer = await post(app, *items, context_management=rules(), stream=stream)
    whole = events_of(answer)[-1]["response"] if stream else valid_object(answer.content)
    assert [item["type"] for item in whole["output"]] == ["compaction", "message"]
    assert whole["output"][1]["content"][0]["text"] == "hello"
    assert service.heard() == (
        said("system", "Be brief."), SAID, note_message(NOTE), HI,
    )  # fmt: skip
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    ("threshold", "count"), [(502, 2), (503, 1), (None, 1), (WINDOW, 1), (1, 2)]
)
async def test_below_the_threshold_the_answer_is_all(threshold: int | None, count: int) -> None:
    service = PlayedService(*[whole_text(NOTE)] * 2)
    async with app_of(service) as app:
        whole = await created(app, LONG, USER, context_management=rules(threshold))
    assert len(service.asked) == len(whole["output"]) == count


async def test_three_quarters_of_the_window_are_the_usual_threshold() -> None:
    for size, count in ((WINDOW * 3 // 4 - 1, 1), (WINDOW * 3 // 4, 2)):
        for given in (rules(None), [{"type": "compaction"}]):
            service = PlayedService(*[whole_text(NOTE)] * 3)
            async with app_of(service) as app:
                user = {"role": "user", "content": "x" * size}
                whole = await created(app, user, context_management=given)
            assert len(whole["output"]) == count
    nothing: Any
    for nothing in ([], None):
        service = PlayedService()
        async with app_of(service) as app:
            await created(app, user, context_management=nothing)
        assert len(service.asked) == 1


async def test_a_conversation_that_was_compacted_stays_short(tmp_path: Path) -> None:
    service = PlayedService(whole_text(NOTE), whole_text("hello"), whole_text("again"))
    async with app_of(service, tmp_path) as app:
        items = [USER, CALL, {**OUTPUT, "output": "y" * 500}]
        one = await created(app, *items, context_management=rules())
        assert [item["type"] for item in one["output"]] == ["compaction", "message"]
        fields = {"previous_response_id": one["id"], "context_management": rules()}
        two = await created(app, **fields)
        assert [item["type"] for item in two["output"]] == ["message"]
        hello = said("assistant", "hello")
        assert service.heard() == (HI, note_message(NOTE), hello, HI)
        # The same where the client keeps the conversation.
        await created(app, *items, *one["output"], USER)
        assert service.heard() == (HI, note_message(NOTE), hello, HI)


async def test_the_work_of_one_long_turn_becomes_the_note(tmp_path: Path) -> None:
    """An agent's user speaks once; only what the model waits for is shown beside the note."""
    service = PlayedService(
        whole_text(NOTE), [called("shell", "{}"), [finished(FinishCause.TOOL_CALLS)]]
    )
    work = [
        item
        for number in range(9)
        for item in ({**CALL, "call_id": f"c{number}"},
                     {**OUTPUT, "call_id": f"c{number}", "output": "y" * 100})
    ]  # fmt: skip
    found = {"type": "tool_search_output", "call_id": "s", "tools": [function("mail")]}
    async with app_of(service, tmp_path) as app:
        made = await created(
            app, USER, found, compaction("old note"), *work, tools=[SHELL],
            context_management=rules(),
        )  # fmt: skip
        assert "old note" in _prompt_of(service, 0) and "yyy" in _prompt_of(service, 0)
        *before, note, user, call_, result = service.heard()
        assert (before, note, user) == ([], note_message(NOTE), HI)
        assert call_.parts[0].id == "c8" and result == answered("c8", "y" * 100)  # type: ignore[union-attr]
        assert [(tool.name, tool.listed) for tool in service.conversation.tools] == [
            ("shell", True), ("mail", True),
        ]  # fmt: skip
        last = {"type": "function_call_output", "call_id": "call_00", "output": "z"}
        fields = {"previous_response_id": made["id"], "context_management": rules()}
        await created(app, last, tools=[SHELL], **fields)
    first, told, *rest = service.heard()
    assert (first, told) == (HI, note_message(NOTE)) and len(rest) == 2
    assert rest[1] == answered("call_00", "z")


def _prompt_of(service: PlayedService, place: int) -> str:
    conversation: Any = service.asked[place].prompt
    return "\n".join(getattr(p, "text", "") for one in conversation.messages for p in one.parts)


async def test_tools_that_only_the_past_told_of_are_listed_beside_its_note() -> None:
    service = PlayedService(whole_text(NOTE), whole_text("hello"))
    found = {"type": "tool_search_output", "call_id": "s", "tools": [function("mail")]}
    async with app_of(service) as app:
        await created(app, LONG, found, USER, tools=[SHELL], context_management=rules())
    tools = service.conversation.tools
    assert [(tool.name, tool.listed) for tool in tools] == [("shell", True), ("mail", True)]


async def test_a_trigger_wins_over_a_threshold() -> None:
    service = PlayedService(whole_text(NOTE))
    async with app_of(service) as app:
        whole = await created(app, LONG, TRIGGER, context_management=rules())
    assert [item["type"] for item in whole["output"]] == ["compaction"]


# By the route


async def compacted(app: ASGIApp, *items: Any, **fields: Any) -> Exchange:
    body = {"model": "m", "input": list(items), **fields}
    answer = await call(app, "POST", f"{PATH}/compact", body)
    if answer.status == 200:
        CompactedResponse.model_validate(answer.json, strict=True)
        official = {**answer.json, "output": answer.json["output"][-1:]}  # its type has no users
        validate_type(type_=OfficialCompacted, value=official)
    return answer


async def test_a_conversation_becomes_what_the_user_said_and_a_note(tmp_path: Path) -> None:
    service = PlayedService(whole_text(NOTE))
    said_by: list[Any] = [
        {"role": "user", "content": "build a parser", "id": "msg_mine"},
        {"role": "user", "content": [{"type": "input_text", "text": "now tests"}]},
    ]
    rule = {"role": "developer", "content": "rule"}
    async with app_of(service, tmp_path) as app:
        made = (await compacted(app, rule, said_by[0], DONE, CALL, OUTPUT, said_by[1],
                                instructions="Be brief.")).json  # fmt: skip
        assert (made["object"], made["usage"]["output_tokens"]) == ("response.compaction", 3)
        *users, item = made["output"]
        assert [one["content"][0]["text"] for one in users] == ["build a parser", "now tests"]
        assert users[0]["id"] == "msg_mine" and users[1]["id"].startswith("msg_")
        assert item["type"] == "compaction"
        for told in ("Be brief.", "done: lexer", "rule"):
            assert told in _prompt(service)
        assert (await call(app, "GET", f"{PATH}/{made['id']}")).status == 404
        await created(app, *made["output"], rule, USER)
    assert service.heard() == (
        said("user", "build a parser"), said("user", "now tests"), note_message(NOTE),
        said("developer", "rule"), HI,
    )  # fmt: skip


async def test_a_stored_conversation_can_be_compacted(tmp_path: Path) -> None:
    service = PlayedService(whole_text("hello"), whole_text(NOTE))
    async with app_of(service, tmp_path) as app:
        one = await created(app, LONG)
        made = (await compacted(app, USER, previous_response_id=one["id"])).json
    assert [item["type"] for item in made["output"]] == ["message", "message", "compaction"]
    assert "hello" in _prompt(service)


async def test_foreign_thoughts_count_here_too() -> None:
    service = PlayedService(whole_text(NOTE))
    async with app_of(service) as app:
        await compacted(app, USER, {"type": "reasoning", "encrypted_content": "gAAAA"})
    assert service.counters.dropped_reasoning == 1


async def test_what_cannot_be_compacted_is_refused_by_name() -> None:
    async with app_of(PlayedService()) as app:
        bad = {**compaction("x"), "encrypted_content": "gAAAA"}
        answer = await compacted(app, USER, bad)
        told = (400, "compaction_payload_invalid", "input[1].encrypted_content")
        assert refusal_of(answer) == told
        nameless = await call(app, "POST", f"{PATH}/compact", {"input": "hi"})
        assert refusal_of(nameless) == (400, "missing_required_parameter", "model")
        few = await compacted(app, USER, max_compaction_tokens=3)
        assert refusal_of(few) == (400, None, "max_compaction_tokens")
