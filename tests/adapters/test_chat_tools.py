"""Chat Completions' tools, choices, calls of the history and thinking, as a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.chat_completions import decode
from adapters.validation import validate
from engine.conversation import (
    Conversation,
    CustomFormat,
    Message,
    Reasoning,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from engine.errors import RequestError
from generated.chat_completions import ChatCompletionRequest

USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}


def conversation(*messages: dict[str, Any], **fields: Any) -> Conversation:
    body = {"messages": list(messages or [USER]), **fields}
    prompt = decode(validate(ChatCompletionRequest, body), "tenant").prompt
    assert isinstance(prompt, Conversation)
    return prompt


def refused(*messages: dict[str, Any], **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        conversation(*messages, **fields)
    return caught.value


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


def custom(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name, **more}}


TOOLS = [function("f"), function("g"), custom("c")]


def test_functions_and_custom_tools_are_kept_in_order_with_their_paths() -> None:
    found = conversation(
        tools=[
            function("f", description="does", parameters=SCHEMA, strict=True),
            function("bare", description=None, parameters=None, strict=None),
            custom("c", description="writes", format=GRAMMAR),
            custom(
                "r", format={"type": "grammar", "grammar": {"syntax": "regex", "definition": "a"}}
            ),
            custom("t", format={"type": "text"}),
            custom("n", format=None),
        ]
    ).tools
    definition = "custom.format.grammar.definition"
    assert found == (
        Tool("f", "does", SCHEMA, strict=True, param="tools[0].function.parameters"),
        Tool("bare", param="tools[1].function.parameters"),
        Tool(
            "c", "writes", format=CustomFormat("lark", "start: /x/"),
            param=f"tools[2].{definition}",
        ),
        Tool("r", format=CustomFormat("regex", "a"), param=f"tools[3].{definition}"),
        Tool("t", format=CustomFormat(), param="tools[4].custom.format"),
        Tool("n", format=CustomFormat(), param="tools[5].custom.format"),
    )  # fmt: skip


def test_the_older_form_declares_the_same_tools() -> None:
    older = conversation(functions=[{"name": "f", "parameters": SCHEMA}], function_call="auto")
    assert older.tools == (Tool("f", "", SCHEMA, param="functions[0].parameters"),)
    assert older.tool_choice == ToolChoice()


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({}, ToolChoice()),
        ({"tool_choice": None}, ToolChoice()),
        ({"tool_choice": "auto"}, ToolChoice()),
        ({"tool_choice": "none"}, ToolChoice("none")),
        ({"tool_choice": "required"}, ToolChoice("required")),
        ({"tool_choice": function("f")}, ToolChoice("required", frozenset("f"))),
        ({"tool_choice": custom("c")}, ToolChoice("required", frozenset("c"))),
        (
            {"tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [function("g"), custom("c")]},
            }},
            ToolChoice("auto", frozenset("gc")),
        ),
        (
            {"tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [function("g")]},
            }},
            ToolChoice("required", frozenset("g")),
        ),
        ({"function_call": "none"}, ToolChoice("none")),
        ({"function_call": "auto"}, ToolChoice()),
        ({"function_call": {"name": "f"}}, ToolChoice("required", frozenset("f"))),
    ],
    ids=str,
)  # fmt: skip
def test_every_form_of_choice(fields: dict[str, Any], choice: ToolChoice) -> None:
    assert conversation(tools=TOOLS, **fields).tool_choice == choice


def test_d081_an_empty_list_is_no_tools() -> None:
    plain = conversation()
    fields: dict[str, Any]
    for fields in ({"tools": []}, {"tools": [], "tool_choice": "auto"}, {"tools": None}):
        assert conversation(**fields) == plain
    assert conversation(tools=[], tool_choice="none", functions=[]) == plain
    assert refused(tools=[], tool_choice="required").param == "tool_choice"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [function("f")] * 2}, "tools[1].function.name"),
        ({"tools": [custom("c"), function("c")]}, "tools[1].function.name"),
        ({"tools": [function("a\nb")]}, "tools[0].function.name"),
        ({"tools": [custom("<c>")]}, "tools[0].custom.name"),
        ({"tools": [function("")]}, "tools[0].function.name"),
        ({"tools": [function("x" * 257)]}, "tools[0].function.name"),
        ({"tools": [function(f"f{n}") for n in range(1025)]}, "tools"),
        ({"tools": [function("f", parameters={"type": "array"})]}, "tools[0].function.parameters"),
        ({"tools": [function("f", parameters=[])]}, "tools[0].function.parameters"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "name": "f"}]}, "tools[0].function"),
        ({"functions": [{"name": "f", "parameters": {"type": "null"}}]}, "functions[0].parameters"),
        ({"functions": [{"name": "f"}] * 2}, "functions[1].name"),
        ({"functions": [{"name": "f"}], "tools": [function("f")]}, "functions"),
        ({"tools": TOOLS, "tool_choice": "any"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": function("h")}, "tool_choice.function.name"),
        ({"tools": TOOLS, "tool_choice": function("c")}, "tool_choice.function.name"),
        ({"tools": TOOLS, "tool_choice": custom("f")}, "tool_choice.custom.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": function("f")}, "tool_choice.function.name"),
        (
            {"tools": TOOLS, "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [function("f"), custom("g")]},
            }},
            "tool_choice.allowed_tools.tools[1].custom.name",
        ),
        (
            {"tools": TOOLS, "tool_choice": {
                "type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []},
            }},
            "tool_choice.allowed_tools",
        ),
        ({"functions": [{"name": "f"}], "function_call": {"name": "g"}}, "function_call.name"),
        ({"tools": TOOLS, "tool_choice": "auto", "function_call": "auto"}, "function_call"),
        ({"tools": TOOLS, "num_beams": 2}, "num_beams"),
        ({"tools": TOOLS, "use_beam_search": True, "best_of": 2}, "use_beam_search"),
    ],
    ids=lambda value: str(value)[:80],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_path(fields: dict[str, Any], param: str) -> None:
    error = refused(**fields)
    assert error.param == param
    assert len(error.message) < 300


def test_the_limits_are_inclusive() -> None:
    tools = [function(f"{'x' * 250}{n:06}") for n in range(1024)]
    assert len(conversation(tools=tools, tool_choice="required").tools) == 1024


def test_calls_in_parallel_are_allowed_unless_the_client_says_no() -> None:
    assert [conversation(parallel_tool_calls=value).parallel_calls for value in (None, True)] == [
        True, True,
    ]  # fmt: skip
    assert not conversation(parallel_tool_calls=False).parallel_calls


def test_tools_go_with_a_form_of_the_answer_and_with_several_choices() -> None:
    form = {"response_format": {"type": "json_object"}, "n": 3}
    assert conversation(tools=TOOLS, **form).tools


def called(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": list(calls), **more}


def call(arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    made = {"name": "f", "arguments": arguments}
    return {"id": "c1", "type": "function", "function": made, **more}


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (called(call('{"a": 1}')), (Text(""), ToolCall("c1", "f", '{"a": 1}'))),
        (
            called(call(), call(id="c2"), content="so", reasoning_content="hm"),
            (Reasoning("hm"), Text("so"), ToolCall("c1", "f", "{}"), ToolCall("c2", "f", "{}")),
        ),
        (called(call('{"a": ')), (Text(""), ToolCall("c1", "f", '{"a": '))),
        (called(call(None)), (Text(""), ToolCall("c1", "f", "{}"))),
        (called(call("")), (Text(""), ToolCall("c1", "f", "{}"))),
        (called(call(id=None, type=None)), (Text(""), ToolCall("", "f", "{}"))),
        (called({"function": {"name": "f"}}), (Text(""), ToolCall("", "f", "{}"))),
        (
            called({"id": "c1", "type": "custom", "custom": {"name": "c", "input": "free\n"}}),
            (Text(""), ToolCall("c1", "c", "free\n", custom=True)),
        ),
        (
            called({"id": "c1", "custom": {"name": "c"}, "function": None}),
            (Text(""), ToolCall("c1", "c", "", custom=True)),
        ),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            (Text(""), ToolCall("", "f", "{}")),
        ),
        ({"role": "assistant", "content": "a", "tool_calls": []}, (Text("a"),)),
        ({"role": "assistant", "content": "a", "tool_calls": None}, (Text("a"),)),
    ],
    ids=lambda value: str(value)[:80],
)
def test_calls_of_the_history(message: dict[str, Any], parts: tuple[object, ...]) -> None:
    [found] = conversation(message).messages
    assert (found.role, found.parts) == ("assistant", parts)


def test_d078_content_null_missing_and_empty_are_the_same() -> None:
    made = [
        conversation(called(call(), **more)) for more in ({}, {"content": ""}, {"content": None})
    ]
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize(
    ("message", "result"),
    [
        ({"role": "tool", "tool_call_id": "c1", "content": "42"}, ToolResult("c1", ("42",))),
        (
            {"role": "tool", "tool_call_id": "c1", "name": "f", "content": [
                {"type": "text", "text": "22 C"}, {"type": "text", "text": "sunny"},
            ]},
            ToolResult("c1", ("22 C", "sunny"), "f"),
        ),
        ({"role": "tool", "tool_call_id": "c1", "content": ""}, ToolResult("c1", ("",))),
        ({"role": "tool", "tool_call_id": "c1", "content": None}, ToolResult("c1", ("",))),
        ({"role": "tool", "tool_call_id": "c1"}, ToolResult("c1", ("",))),
        ({"role": "tool", "content": []}, ToolResult("", ())),
        ({"role": "function", "name": "f", "content": "42"}, ToolResult("", ("42",), "f")),
        ({"role": "function", "name": "f", "content": None}, ToolResult("", ("",), "f")),
    ],
    ids=str,
)  # fmt: skip
def test_d079_results_are_texts(message: dict[str, Any], result: ToolResult) -> None:
    assert conversation(message).messages == (Message("tool", (result,)),)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (called({}), "messages[0].tool_calls[0].function"),
        (called({"type": "custom"}), "messages[0].tool_calls[0].custom"),
        (called(call({})), "messages[0].tool_calls[0].function.arguments"),
        (called(call(type="alien")), "messages[0].tool_calls[0].type"),
        ({"role": "function", "content": "x"}, "messages[0].name"),
        ({"role": "tool", "content": 5}, "messages[0].content"),
        (
            {"role": "tool", "content": [{"type": "text", "text": "a"},
                                         {"type": "image_url", "image_url": {"url": "data:,"}}]},
            "messages[0].content[1].type",
        ),
    ],
    ids=lambda value: str(value)[:80],
)  # fmt: skip
def test_what_is_wrong_in_the_history_is_named(message: dict[str, Any], param: str) -> None:
    assert refused(message).param == param


def test_an_image_in_a_result_is_refused_by_name() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    assert "image_url" in refused({"role": "tool", "content": [image]}).message


def test_a_loop_of_calls_suppresses_the_next_where_the_client_wants_that() -> None:
    turns = [USER, *[called(call()), {"role": "tool", "tool_call_id": "c1", "content": "?"}] * 3]
    for choice in (None, "auto", "required", function("f")):
        fields = {"tools": TOOLS, "tool_choice": choice}
        assert conversation(*turns, **fields, suppress_tool_call=True).tool_choice == ToolChoice(
            "none"
        )
        free = conversation(*turns, **fields, suppress_tool_call=False)
        assert free.tool_choice.mode in ("auto", "required")
        assert free == conversation(*turns, **fields)
        early = conversation(*turns[:-2], **fields, suppress_tool_call=True)
        assert early.tool_choice == free.tool_choice


@pytest.mark.parametrize(
    ("fields", "thinking", "kwargs"),
    [
        ({}, Thinking(), {}),
        ({"reasoning_effort": "low"}, Thinking("low"), {}),
        ({"reasoning_effort": "extra-high"}, Thinking("xhigh"), {}),
        ({"reasoning_effort": 80}, Thinking(80), {}),
        ({"reasoning_effort": "none"}, Thinking("none"), {}),
        ({"thinking": True}, Thinking(), {"enable_thinking": True}),
        ({"thinking": False}, Thinking("none"), {}),
        ({"thinking": {"type": "disabled"}}, Thinking("none"), {}),
        ({"thinking": {"type": "adaptive"}}, Thinking(), {}),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 9}},
            Thinking(None, 9, "thinking.budget_tokens"),
            {"enable_thinking": True},
        ),
        ({"thinking": False, "reasoning_effort": "high"}, Thinking("none"), {}),
        ({"thinking_token_budget": 9}, Thinking(None, 9), {}),
        ({"thinking_budget": 9}, Thinking(None, 9, "thinking_budget"), {}),
        ({"thinking_budget": 0}, Thinking("none", None, "thinking_budget"), {}),
        ({"reasoning_budget_tokens": 9}, Thinking(None, 9, "reasoning_budget_tokens"), {}),
        ({"reasoning_budget_tokens": -1}, Thinking(), {}),
        ({"reasoning_budget_tokens": 0}, Thinking("none", None, "reasoning_budget_tokens"), {}),
        (
            {"chat_template_kwargs": {"enable_thinking": False, "x": 1}, "thinking": True},
            Thinking(),
            {"enable_thinking": True, "x": 1},
        ),
        (
            {"chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "odd"}},
            Thinking(),
            {"enable_thinking": False, "reasoning_effort": "odd"},
        ),
    ],
    ids=str,
)
def test_thinking(fields: dict[str, Any], thinking: Thinking, kwargs: dict[str, Any]) -> None:
    found = conversation(**fields)
    assert (found.thinking, found.template_kwargs) == (thinking, kwargs)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"reasoning_effort": "80"}, "reasoning_effort"),
        ({"reasoning_effort": 0}, "reasoning_effort"),
        ({"reasoning_effort": 101}, "reasoning_effort"),
        ({"reasoning_effort": 80.5}, "reasoning_effort"),
        ({"reasoning_effort": True}, "reasoning_effort"),
        ({"thinking_token_budget": 0}, "thinking_token_budget"),
        ({"thinking_token_budget": 2**31}, "thinking_token_budget"),
        ({"thinking_token_budget": 5, "thinking_budget": 6}, "thinking_budget"),
        ({"thinking_budget": 6, "thinking": {"type": "enabled", "budget_tokens": 7}},
         "thinking.budget_tokens"),
        ({"reasoning_budget_tokens": -2}, "reasoning_budget_tokens"),
        ({"thinking": "high"}, "thinking"),
        ({"thinking": {"type": "perhaps"}}, "thinking.type"),
        ({"separate_reasoning": False}, "separate_reasoning"),
        ({"stream_reasoning": False}, "stream_reasoning"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_with_thinking_is_named(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields).param == param
