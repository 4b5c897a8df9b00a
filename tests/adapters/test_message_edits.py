"""`context_management`: what is cleared, when, and what replies say of it."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from adapters.message_edits import CLEARED, apply_edits
from adapters.messages import count_message_tokens, decode
from adapters.validation import validate
from engine.conversation import Conversation, Message, ToolCall, ToolResult
from generated.messages import AppliedEdits, CountTokensRequest, TokenCount
from tests.adapters.messaging import (
    USER,
    CountingService,
    answered,
    assistant,
    body_of,
    call_of,
    found,
    refused,
    said,
    texts,
    thinking,
    tool,
    used,
    user,
)

THINKING = "clear_thinking_20251015"
TOOL_USES = "clear_tool_uses_20250919"

SESSION = [
    USER,
    assistant(thinking("1a"), used("t1")),
    user(answered("t1")),
    assistant(thinking("1bb"), said("done")),
    USER,
    assistant(said("no thought")),
    user(said("again")),
    {"role": "system", "content": "be brief"},
    assistant(thinking("2ccc"), said("x"), thinking("2d")),
    user(said("and")),
    assistant(thinking("3eeee"), used("t2"), used("t3")),
    user(answered("t3"), answered("t2")),
]


def managed(*edits: dict[str, Any]) -> dict[str, Any]:
    return {"context_management": {"edits": list(edits)}}


def tool_uses(above: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": TOOL_USES, "trigger": {"type": "tool_uses", "value": above}, **more}


def keep(value: int) -> dict[str, Any]:
    return {"keep": {"type": "tool_uses", "value": value}}


async def edited(
    *turns: dict[str, Any], **fields: Any
) -> tuple[tuple[Message, ...], list[dict[str, object]] | None]:
    """The messages behind the edits, and what was applied, which replies can show."""
    service = CountingService()
    call, body = call_of(service), body_of(*turns, **fields)
    decoded = decode(body, call)
    request, report = await apply_edits(call, decoded.request, body, decoded.history.fixed)
    messages = cast(Conversation, request.prompt).messages
    if report is None:
        assert request is decoded.request and not service.counted
        return messages, None
    applied = list(report.applied)
    AppliedEdits.model_validate({"applied_edits": applied}, strict=True)
    before, after = await service.count(decoded.request), await service.count(request)
    assert before - after == sum(cast(int, edit["cleared_input_tokens"]) for edit in applied)
    return messages, applied


@pytest.mark.parametrize(
    ("fields", "applied"),
    [
        ({}, None),
        ({"context_management": None}, None),
        ({"context_management": {}}, []),
        ({"context_management": {"edits": None}}, []),
        (managed(), []),
        (managed({"type": THINKING}), []),
        (managed({"type": TOOL_USES}, {"type": THINKING, "keep": "all"}), []),
    ],
    ids=str,
)
async def test_what_clears_nothing_changes_nothing(fields: dict[str, Any], applied: Any) -> None:
    messages, found = await edited(USER, assistant(thinking("x"), said("a")), USER, **fields)
    assert found == applied
    assert messages == (await edited(USER, assistant(thinking("x"), said("a")), USER))[0]


# Tool uses

RESULT = "r" * 100  # longer than the note that takes its place
SAVED = len(RESULT) - len(CLEARED)
ARGUMENTS = {"path": "x" * 9}
LONG = len(json.dumps(ARGUMENTS)) - len("{}")


def calls(*names: str) -> list[dict[str, Any]]:
    """A session of one call after the other; the ids are numbers from 1."""
    turns = [USER]
    for number, name in enumerate(names, 1):
        turns += [
            assistant(used(str(number), name, ARGUMENTS)), user(answered(str(number), RESULT)),
        ]  # fmt: skip
    return turns


def cleared(messages: tuple[Message, ...]) -> list[str]:
    """The calls whose results are gone; all others must be whole."""
    results = [part for m in messages for part in m.parts if isinstance(part, ToolResult)]
    assert all(part.texts in ((CLEARED,), (RESULT,)) for part in results)
    return [part.call_id for part in results if part.texts == (CLEARED,)]


def emptied(messages: tuple[Message, ...]) -> list[str]:
    made = [part for m in messages for part in m.parts if isinstance(part, ToolCall)]
    return [part.id for part in made if part.arguments == "{}"]


USES: list[tuple[dict[str, Any], list[str], list[str]]] = [
    # the trigger: more calls than that
    (tool_uses(4), ["1", "2"], []),
    (tool_uses(5), [], []),
    ({"type": TOOL_USES}, [], []),  # 100,000 tokens
    # how many of the last calls stay
    (tool_uses(**keep(0)), ["1", "2", "3", "4", "5"], []),
    (tool_uses(**keep(4)), ["1"], []),
    (tool_uses(**keep(5)), [], []),
    (tool_uses(keep=None), ["1", "2"], []),
    # some tools stay, and are counted all the same
    (tool_uses(exclude_tools=["g"], **keep(1)), ["1", "3"], []),
    (tool_uses(exclude_tools=["f", "g", "h"], **keep(0)), [], []),
    (tool_uses(exclude_tools=[]), ["1", "2"], []),
    # the arguments
    (tool_uses(clear_tool_inputs=True), ["1", "2"], ["1", "2"]),
    (tool_uses(clear_tool_inputs=False), ["1", "2"], []),
    (tool_uses(clear_tool_inputs=["g", "h"]), ["1", "2"], ["2"]),
    (tool_uses(clear_tool_inputs=[]), ["1", "2"], []),
    (tool_uses(clear_tool_inputs=True, exclude_tools=["f"]), ["2"], ["2"]),
]


@pytest.mark.parametrize(("edit", "results", "arguments"), USES, ids=str)
async def test_the_results_of_older_calls_are_cleared(
    edit: dict[str, Any], results: list[str], arguments: list[str]
) -> None:
    messages, applied = await edited(*calls("f", "g", "f", "g", "h"), **managed(edit))
    assert (cleared(messages), emptied(messages)) == (results, arguments)
    report = {
        "type": TOOL_USES, "cleared_tool_uses": len(results),
        "cleared_input_tokens": len(results) * SAVED + len(arguments) * LONG,
    }  # fmt: skip
    assert applied == ([report] if results else [])


async def test_a_trigger_of_tokens_is_what_the_prompt_has_more_of() -> None:
    turns = calls("f", "f", "f", "f")
    plain, _ = await edited(*turns)
    size = sum(len(text) for message in plain for text in texts(message))
    for value, expected in ((size - 1, ["1"]), (size, []), (0, ["1"])):
        edit = {"type": TOOL_USES, "trigger": {"type": "input_tokens", "value": value}}
        assert cleared((await edited(*turns, **managed(edit)))[0]) == expected


async def test_too_small_a_saving_changes_nothing() -> None:
    turns = calls("f", "f", "f", "f", "f")
    for value, expected in ((2 * SAVED, ["1", "2"]), (2 * SAVED + 1, [])):
        edit = tool_uses(clear_at_least={"type": "input_tokens", "value": value})
        messages, applied = await edited(*turns, **managed(edit))
        assert cleared(messages) == expected and bool(applied) is bool(expected)
        assert expected or messages == (await edited(*turns))[0]
    short = [USER, assistant(used("1")), user(answered("1", "ok"))]  # the note is longer
    messages, applied = await edited(*short, **managed(tool_uses(**keep(0))))
    assert applied == [] and messages == (await edited(*short))[0]


async def test_what_brought_definitions_and_what_has_no_result_stays() -> None:
    turns = calls("f", "search", "f", "f")
    turns[4] = user(answered("2", found("fetch")))
    tools = [tool("search"), tool("fetch", description="d" * 100, defer_loading=True)]
    messages, applied = await edited(*turns, tools=tools, **managed(tool_uses(**keep(0))))
    results = [part for m in messages for part in m.parts if isinstance(part, ToolResult)]
    assert [part.call_id for part in results if part.texts == (CLEARED,)] == ["1", "3", "4"]
    assert "d" * 100 in results[1].texts[0]
    assert applied is not None and applied[0]["cleared_tool_uses"] == 3
    turns = [*calls("f"), assistant(used("9", "f", ARGUMENTS)), *calls("g")[1:]]
    edit = tool_uses(clear_tool_inputs=True, **keep(0))
    assert "9" not in emptied((await edited(*turns, **managed(edit)))[0])


async def test_an_error_that_is_cleared_stays_one() -> None:
    turns = [USER, assistant(used("1")), user(answered("1", RESULT, is_error=True))]
    messages, _ = await edited(*turns, **managed(tool_uses(**keep(0))))
    assert messages[-1].parts == (ToolResult("1", (CLEARED,), is_error=True),)


async def test_a_call_that_stays_keeps_its_result_although_its_id_came_before() -> None:
    turns = [*calls("f"), *calls("f")[1:], *calls("g", "g")[1:]]  # ids 1, 1, 1, 2
    messages, applied = await edited(*turns, **managed(tool_uses(**keep(3))))
    assert (cleared(messages), applied) == ([], [])


# Several, and counts


async def test_edits_apply_in_their_order_to_what_is_left() -> None:
    turns = [*calls("f", "f"), USER, assistant(thinking("t" * 9), said("a")), *SESSION]
    edits = [{"type": THINKING}, tool_uses(**keep(4))]
    _, applied = await edited(*turns, **managed(*edits))
    assert applied == [
        {"type": THINKING, "cleared_thinking_turns": 3, "cleared_input_tokens": 9 + 11},
        {"type": TOOL_USES, "cleared_tool_uses": 1, "cleared_input_tokens": SAVED},
    ]
    _, backwards = await edited(*turns, **managed(*reversed(edits)))
    assert backwards == applied[::-1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"input_tokens": 25}),
        (
            managed({"type": THINKING, "keep": "all"}),
            {"input_tokens": 25, "context_management": {"original_input_tokens": 25}},
        ),
        (
            managed({"type": THINKING}),
            {"input_tokens": 6, "context_management": {"original_input_tokens": 25}},
        ),
    ],
    ids=str,
)
async def test_a_count_is_of_what_is_left(fields: dict[str, Any], expected: Any) -> None:
    turns = [USER, assistant(thinking("x" * 19), said("b")), USER, assistant(thinking("y"))]
    body = validate(CountTokensRequest, {"messages": turns, **fields})
    reply = await count_message_tokens(call_of(body=body))
    counted = json.loads(bytes(reply.body))
    TokenCount.model_validate(counted, strict=True)
    assert counted == expected


@pytest.mark.parametrize(
    ("edit", "param"),
    [
        ({"type": "compact_20260112"}, "context_management.edits[0].type"),
        ({"type": THINKING, "keep": 0}, "context_management.edits[0].keep"),
        (
            {"type": THINKING, "keep": {"type": "thinking_turns", "value": 0}},
            "context_management.edits[0].keep.value",
        ),
        (
            {"type": TOOL_USES, "trigger": {"type": "turns"}},
            "context_management.edits[0].trigger.type",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_by_name(edit: dict[str, Any], param: str) -> None:
    assert refused(**managed(edit)).param == param
