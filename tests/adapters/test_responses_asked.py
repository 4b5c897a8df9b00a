"""What a body of Responses asks of the engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.conversation import Thinking, ToolChoice
from engine.types import LogprobOptions, OutputConstraint, Stops
from tests.adapters.decoding import at
from tests.adapters.responding import (
    PlayedService,
    app_of,
    created,
    described,
    function,
    post,
    refusal_of,
)
from tests.adapters.test_response_items import CALL, OUTPUT, USER

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}},
                          "$defs": {"A": {"type": "integer"}}}  # fmt: skip
JSON_SCHEMA = {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}
JSON_OBJECT = {"format": {"type": "json_object"}}
SHELL = function("shell")
SCORED = {"include": ["message.output_text.logprobs"]}


async def asked(*items: Any, **fields: Any) -> PlayedService:
    service = PlayedService()
    async with app_of(service) as app:
        answer = await post(app, *items, **fields)
    assert answer.status == 200, answer.content
    return service


@pytest.mark.parametrize(
    ("fields", "path", "value"),
    [
        ({}, "max_tokens", None),
        ({"max_output_tokens": 7}, "max_tokens", 7),
        ({}, "max_tokens_param", "max_output_tokens"),
        ({}, "prompt_param", "input"),
        ({}, "logprobs", None),
        ({"top_logprobs": 0}, "logprobs", None),
        (SCORED, "logprobs", LogprobOptions(0)),
        ({**SCORED, "top_logprobs": 5}, "logprobs", LogprobOptions(5)),
        ({**SCORED, "logprob_token_ids": [3, 4, 3]}, "logprobs", LogprobOptions(0, (3, 4))),
        ({"stop": "x"}, "stops", Stops(("x",))),
        ({"stop": ["x", "y"]}, "stops", Stops(("x", "y"))),
        ({"stop_token_ids": [5]}, "stops.token_ids", (5,)),
        ({"temperature": 0.5}, "sampling.temperature", 0.5),
        ({"seed": 3}, "sampling.seed", 3),
        ({"priority": 2}, "priority", 2),
        ({}, "constraint", None),
        ({"text": {"verbosity": "low"}}, "constraint", None),
        ({"text": {"format": {"type": "text"}}}, "constraint", None),
        ({"text": JSON_OBJECT}, "constraint", OutputConstraint("json_object", "", "text.format")),
        ({"text": JSON_SCHEMA}, "constraint",
         OutputConstraint("json_schema", json.dumps(SCHEMA), "text.format.schema")),
        ({"tools": [SHELL]}, "prompt.tool_choice", ToolChoice("auto")),
        ({"tools": [SHELL], "tool_choice": "required"}, "prompt.tool_choice",
         ToolChoice("required")),
        ({"tools": [SHELL], "tool_choice": {"type": "web_search"}}, "prompt.tool_choice",
         ToolChoice("auto")),
        ({}, "prompt.parallel_calls", True),
        ({"parallel_tool_calls": False}, "prompt.parallel_calls", False),
        ({"chat_template_kwargs": {"a": 1}}, "prompt.template_kwargs", {"a": 1}),
    ],
    ids=described,
)  # fmt: skip
async def test_fields_reach_the_engine(fields: Any, path: str, value: Any) -> None:
    service = await asked(**fields)
    assert at(service.asked[0], path) == value


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, Thinking()),
        ({"reasoning": {"summary": "auto"}}, Thinking()),
        ({"reasoning": {"effort": "high"}}, Thinking("high")),
        ({"reasoning": {"effort": "none"}}, Thinking("none")),
        ({"reasoning": {"effort": "ultra"}}, Thinking("max")),
        ({"reasoning_effort": "low"}, Thinking("low")),
        ({"reasoning": {"effort": "high"}, "reasoning_effort": "low"}, Thinking("high")),
        ({"reasoning": {"effort": None}, "reasoning_effort": "low"}, Thinking("low")),
        ({"thinking_token_budget": 9}, Thinking(None, 9)),
    ],
    ids=described,
)
async def test_thinking(fields: Any, thinking: Thinking) -> None:
    assert (await asked(**fields)).conversation.thinking == thinking


async def test_the_conversation_may_change_reasoning_and_form() -> None:
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}, "text": JSON_OBJECT}
    fields = {"reasoning": {"effort": "high"}, "text": JSON_SCHEMA}
    service = await asked(USER, update, **fields)
    assert service.conversation.thinking == Thinking("low")
    constraint = service.asked[0].constraint
    assert constraint is not None and constraint.kind == "json_object"
    assert constraint.param == "input[1].text.format"


async def test_a_wrong_effort_is_named_where_it_is() -> None:
    update = {"type": "configuration_update", "reasoning": {"effort": "00"}}
    async with app_of(PlayedService()) as app:
        answer = await post(app, input=[USER, update])
    assert answer.status == 400 and answer.error["param"] == "input[1].reasoning.effort"


async def test_two_forms_are_one_too_many() -> None:
    async with app_of(PlayedService()) as app:
        answer = await post(app, text=JSON_OBJECT, guided_regex="a+")
    assert answer.status == 400 and answer.error["param"]


@pytest.mark.parametrize(("count", "sent", "mode"), [
    (3, True, "none"), (2, True, "required"), (3, False, "required"), (3, None, "required"),
])  # fmt: skip
async def test_a_loop_of_calls_can_be_ended(count: int, sent: Any, mode: str) -> None:
    work = [item for number in range(count) for item in (
        {**CALL, "call_id": f"c{number}"}, {**OUTPUT, "call_id": f"c{number}"},
    )]  # fmt: skip
    fields = {"tools": [SHELL], "tool_choice": "required", "suppress_tool_call": sent}
    service = await asked(USER, *work, **fields)
    assert service.conversation.tool_choice.mode == mode


async def test_only_dropped_tools_are_told_of() -> None:
    service = PlayedService()
    web = {"type": "web_search"}
    shown = {"type": "additional_tools", "tools": [{"type": "mcp"}, web]}
    async with app_of(service) as app:
        whole = await created(app, shown, USER, tools=[web, SHELL, {"type": "tool_search"}])
        answer = await post(app, tools=[function("f"), function("f")])
    assert whole["flare"]["dropped_tools"] == ["web_search", "tool_search", "mcp"]
    assert [tool.name for tool in service.conversation.tools] == ["shell"]
    assert refusal_of(answer) == (400, None, "tools[1].name")
