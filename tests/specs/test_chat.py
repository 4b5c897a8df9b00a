"""What chat alone has: tools, thinking, and calls in the replies."""

from typing import Any

import pytest

from generated.chat_completions import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from generated.completions import CompletionRequest
from tests.specs.validity import accepted

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
RAW: dict[str, Any] = {"prompt": "hi"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
FUNCTION: dict[str, Any] = {"name": "f"}
TOOL = {"type": "function", "function": FUNCTION}
CUSTOM = {"type": "custom", "custom": {"name": "c"}}
GRAMMAR = {"syntax": "lark", "definition": "start: /x/"}


def allowed(*tools: Any, mode: str = "auto") -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


def written(form: Any) -> list[dict[str, Any]]:
    return [{"type": "custom", "custom": {"name": "c", "format": form}}]


# fields of chat alone, as in RANGES
CHAT_RANGES: dict[str, tuple[list[Any], list[Any]]] = {
    "tools": (
        [
            [],
            [TOOL, CUSTOM],
            [{"type": "function", "function": {**FUNCTION, "parameters": SCHEMA, "strict": True}}],
            [{"type": "function", "function": {"name": "x" * 256, "description": None}}],
            [TOOL] * 1024,
            written(None),
            written({"type": "text"}),
            written({"type": "grammar", "grammar": GRAMMAR}),
        ],
        [
            {},
            [TOOL] * 1025,
            [{"type": "function"}],
            [{"type": "function", "name": "f"}],
            [{"type": "web_search"}],
            [{"function": FUNCTION}],
            [{"type": "function", "function": {"name": ""}}],
            [{"type": "function", "function": {"name": "x" * 257}}],
            [{"type": "function", "function": {**FUNCTION, "parameters": "{}"}}],
            [{"type": "function", "function": {**FUNCTION, "strict": 1}}],
            written({"type": "grammar", **GRAMMAR}),
            written({"type": "grammar", "grammar": {**GRAMMAR, "syntax": "gbnf"}}),
        ],
    ),
    "tool_choice": (
        [
            "none",
            "auto",
            "required",
            TOOL,
            CUSTOM,
            allowed(),
            allowed(TOOL, CUSTOM, mode="required"),
        ],
        ["any", {}, {"type": "function", "name": "f"}, allowed("f"), allowed(mode="none"), []],
    ),
    "parallel_tool_calls": ([True, False], [1, "x"]),
    "functions": ([[], [FUNCTION], [{**FUNCTION, "parameters": SCHEMA}]], [[{}], [TOOL], {}]),
    "function_call": (["none", "auto", {"name": "f"}], ["required", {}, "f"]),
    "suppress_tool_call": ([True, False], [1, "x"]),
    "reasoning_effort": (["none", "xhigh", "ultra", "", 1, 100], [0, 101, 1.5, True, "x" * 65]),
    "thinking": (
        [True, False, {"type": "enabled", "budget_tokens": 1}, {"type": "disabled"}],
        ["high", {}, {"type": "on"}, {"type": "enabled", "budget_tokens": 0}, 1],
    ),
    "thinking_token_budget": ([1, 2**31 - 1], [0, 2**31, 1.5, "1"]),
    "thinking_budget": ([0, 2**31 - 1], [-1, 2**31]),
    "reasoning_budget_tokens": ([-1, 0, 2**31 - 1], [-2, 2**31]),
    "include_reasoning": ([True, False], [1]),
    "separate_reasoning": ([True], [False, 1]),
    "stream_reasoning": ([True], [False, 1]),
}


@pytest.mark.parametrize("field", CHAT_RANGES)
def test_a_field_of_chat_takes_its_range(field: str) -> None:
    good, bad = CHAT_RANGES[field]
    for value in [None, *good]:
        assert accepted(ChatCompletionRequest, {**CHAT, field: value}), value
    for value in bad:
        assert not accepted(ChatCompletionRequest, {**CHAT, field: value}), value


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({"tools": [], "functions": [], "suppress_tool_call": False}, True),
        ({"tool_choice": "auto", "function_call": "none"}, True),
        ({"tool_choice": "required"}, False),
        ({"function_call": {"name": "f"}}, False),
        ({"parallel_tool_calls": False}, True),
        ({"thinking_token_budget": 5}, False),
        ({"thinking_budget": 0}, False),
        ({"reasoning_budget_tokens": -1}, True),
        ({"reasoning_budget_tokens": 0}, False),
        ({"tools": [TOOL]}, False),
        ({"functions": [FUNCTION]}, False),
        ({"suppress_tool_call": True}, False),
    ],
    ids=str,
)
def test_raw_completions_have_no_tools_and_no_thinking(
    fields: dict[str, Any], verdict: bool
) -> None:
    assert accepted(CompletionRequest, {**RAW, **fields}) is verdict


HEAD = {"id": "x", "created": 1, "model": "m"}
USAGE = {
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "total_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 0},
}
WHOLE = {**HEAD, "object": "chat.completion", "usage": USAGE}
PIECE = {**HEAD, "object": "chat.completion.chunk"}
MESSAGE = {"role": "assistant", "content": "a"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
WRITTEN = {"id": "c2", "type": "custom", "custom": {"name": "c", "input": ""}}


def whole_with(**message: Any) -> dict[str, Any]:
    return {
        **WHOLE,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {**MESSAGE, **message}}],
    }


def piece_with(**delta: Any) -> dict[str, Any]:
    return {**PIECE, "choices": [{"index": 0, "finish_reason": None, "delta": delta}]}


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ({"content": None, "tool_calls": [CALL, WRITTEN]}, True),
        ({"content": None, "reasoning_content": "r"}, True),
        ({"tool_calls": []}, False),
        ({"tool_calls": [{**CALL, "id": None}]}, False),
        ({"tool_calls": [{**CALL, "type": "custom"}]}, False),
        ({"reasoning": "r"}, False),
    ],
    ids=str,
)
def test_calls_and_reasoning_of_a_message(message: dict[str, Any], verdict: bool) -> None:
    assert accepted(ChatCompletion, whole_with(**message)) is verdict


@pytest.mark.parametrize(
    ("delta", "verdict"),
    [
        ({"reasoning_content": "r"}, True),
        ({"tool_calls": [{**CALL, "index": 0}]}, True),
        ({"tool_calls": [{**WRITTEN, "index": 0}]}, True),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}, True),
        ({"tool_calls": [{"index": 0, "custom": {"input": "x"}}]}, True),
        ({"reasoning_content": None}, False),
        ({"role": None}, False),
        ({"tool_calls": None}, False),
        ({"tool_calls": []}, False),
        ({"tool_calls": [CALL]}, False),
        ({"tool_calls": [{"index": 0, "id": None}]}, False),
        ({"tool_calls": [{"index": 0, "function": {"name": None}}]}, False),
    ],
    ids=str,
)
def test_calls_and_reasoning_of_a_chunk(delta: dict[str, Any], verdict: bool) -> None:
    assert accepted(ChatCompletionChunk, piece_with(**delta)) is verdict
