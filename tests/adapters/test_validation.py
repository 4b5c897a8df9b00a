"""What is wrong with a body is said in the field's own name and in plain words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import BaseModel

from adapters.validation import validate
from engine.errors import RequestError
from generated.chat_completions import ChatCompletionRequest
from generated.completions import CompletionRequest

USER = {"role": "user", "content": "hi"}
# Words of the library's machinery, and the class names of generated models.
NOISE = re.compile(
    r"\btag\b|discriminator|extract|dictionary|after validation|pydantic|MISSING|[a-z][A-Z]|[<>]"
)


def refusal(model: type[BaseModel], body: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        validate(model, body)
    return caught.value


def chat(**fields: Any) -> RequestError:
    return refusal(ChatCompletionRequest, {"messages": [USER], **fields})


def content(*parts: Any) -> RequestError:
    return chat(messages=[{"role": "user", "content": list(parts)}])


@pytest.mark.parametrize("body", [[], "x", 1, None, True])
def test_a_body_that_is_no_object_is_refused(body: object) -> None:
    error = refusal(ChatCompletionRequest, body)
    assert (error.code, error.param) == ("invalid_json", None)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 2.5}, "temperature"),
        ({"stream": "yes"}, "stream"),
        ({"n": 0}, "n"),
        ({"n": True}, "n"),
        ({"top_k": 1.5}, "top_k"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"seed": 10**30}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": 5}, "stop"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"stop": ["a", 1]}, "stop[1]"),
        ({"stop": ["a", ""]}, "stop[1]"),
        ({"stop_token_ids": [3, "x"]}, "stop_token_ids[1]"),
        ({"stop_token_ids": [3] * 17}, "stop_token_ids"),
        ({"stop_token_sequences": [[1], []]}, "stop_token_sequences[1]"),
        ({"stop_token_sequences": [[1] * 65]}, "stop_token_sequences[0]"),
        ({"logprob_token_ids": [1] * 129}, "logprob_token_ids"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"prompt_logprobs": -1}, "prompt_logprobs"),
        ({"allowed_token_ids": []}, "allowed_token_ids"),
        ({"max_time_ms": 0}, "max_time_ms"),
        ({"repetition_detection": {"min_count": -1}}, "repetition_detection.min_count"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"logit_bias": {"a": 1}}, "logit_bias.a"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5"),
        ({"stream_options": {"include_usage": "x"}}, "stream_options.include_usage"),
        ({"messages": []}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"messages": [USER, 1]}, "messages[1]"),
        ({"messages": [USER, {"content": "x"}]}, "messages[1].role"),
        ({"messages": [{"role": "alien", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].name"),
        ({"messages": [{"role": "tool", "tool_call_id": 5}]}, "messages[0].tool_call_id"),
        ({"tools": [USER]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tool_choice": "perhaps"}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function"),
        ({"reasoning_effort": 101}, "reasoning_effort"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "x", "name": 5}]}, "messages[0].name"),
    ],
    ids=str,
)
def test_the_param_is_the_path_of_what_is_wrong(fields: dict[str, Any], param: str) -> None:
    error = chat(**fields)
    assert error.param == param
    assert error.message.startswith(f"`{param}`")


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "text"}, "messages[0].content[1].text"),
        ({"type": "text", "text": 1}, "messages[0].content[1].text"),
        ({"text": "x"}, "messages[0].content[1].type"),
        ({"type": "alien"}, "messages[0].content[1].type"),
        ({"type": "image_url", "image_url": {"url": "data:,"}}, "messages[0].content[1].type"),
    ],
    ids=str,
)
def test_a_wrong_part_is_named_rather_than_the_other_form_of_content(
    part: dict[str, Any], param: str
) -> None:
    error = content({"type": "text", "text": "hi"}, part)
    assert error.param == param


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file"])
def test_a_part_that_cannot_be_read_is_refused_by_its_name(kind: str) -> None:
    """Design, section 2: images are refused by name on every route."""
    assert kind in content({"type": kind, kind: {}}).message


@pytest.mark.parametrize(
    ("prompt", "param"),
    [
        (5, "prompt"),
        ([], "prompt"),
        ([[]], "prompt[0]"),
        ([[1], [-1]], "prompt[1][0]"),
        ([[1], [2**31]], "prompt[1][0]"),
        ([None], "prompt[0]"),
    ],
    ids=str,
)
def test_a_wrong_prompt_is_named_to_the_element(prompt: Any, param: str) -> None:
    assert refusal(CompletionRequest, {"prompt": prompt}).param == param


@pytest.mark.parametrize("prompt", [["a", 1], [1, "a"], [1, [2]]], ids=str)
def test_a_mixed_prompt_is_named_at_one_of_its_elements(prompt: Any) -> None:
    assert refusal(CompletionRequest, {"prompt": prompt}).param in ("prompt[0]", "prompt[1]")


@pytest.mark.parametrize(
    ("model", "body", "param"),
    [
        (ChatCompletionRequest, {}, "messages"),
        (ChatCompletionRequest, {"messages": [{"role": "user"}]}, "messages[0].content"),
        (CompletionRequest, {}, "prompt"),
    ],
)
def test_a_missing_field_has_its_own_code(
    model: type[BaseModel], body: dict[str, Any], param: str
) -> None:
    error = refusal(model, body)
    assert (error.param, error.code) == (param, "missing_required_parameter")
    assert error.message == f"`{param}` is required"


@pytest.mark.parametrize(
    ("fields", "param", "name"),
    [
        ({"web_search_options": {}}, "web_search_options", "web_search_options"),
        ({"stop_regex": "x"}, "stop_regex", "stop_regex"),
        ({"stream_reasoning": False}, "stream_reasoning", "stream_reasoning"),
        ({"response_format": {"type": "json_object", "schema": {}}}, "response_format", "schema"),
        (
            {"structured_outputs": {"structural_tag": {}}},
            "structured_outputs.structural_tag",
            "structural_tag",
        ),
        ({"modalities": ["audio"]}, "modalities", "modalities"),
        (
            {"messages": [USER, {"role": "assistant", "audio": {"id": "a"}}]},
            "messages[1].audio",
            "audio",
        ),
    ],
    ids=str,
)
def test_a_refused_field_is_named_with_its_reason(
    fields: dict[str, Any], param: str, name: str
) -> None:
    error = chat(**fields)
    assert error.code == "unsupported_parameter"
    assert (error.param or "").startswith(param)
    assert error.message.startswith(f"`{name}` is not supported: ")


WRONG: list[dict[str, Any]] = [
    {"messages": [1]},
    {"messages": [{}]},
    {"messages": []},
    {"messages": [{"role": "alien"}]},
    {"messages": [{"role": "tool", "content": 5}]},
    {"messages": [{"role": "tool", "content": [{"type": "image_url"}]}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"type": "alien"}]}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
    {"messages": [USER], "tools": [5]},
    {"messages": [USER], "tools": [{"type": "alien"}]},
    {"messages": [USER], "tools": [{"type": "function", "function": {"name": ""}}]},
    {"messages": [USER], "tool_choice": {"type": "alien"}},
    {"messages": [USER], "tool_choice": "alien"},
    {"messages": [USER], "function_call": 5},
    {"messages": [USER], "reasoning_effort": "x" * 65},
    {"messages": [{"role": "user", "content": [5]}]},
    {"messages": [USER], "stop": ["a", "b", "c", "d", "e"]},
    {"messages": [USER], "chat_template_kwargs": []},
    {"messages": [USER], "logit_bias": {"x" * 500: 1}},
    {"messages": [USER], "response_format": 5},
    {"messages": [USER], "stream_options": 5},
    {"messages": [USER], "thinking": 5},
]


@pytest.mark.parametrize("body", WRONG, ids=lambda body: str(body)[:60])
def test_messages_are_readable(body: dict[str, Any]) -> None:
    message = refusal(ChatCompletionRequest, body).message
    assert not NOISE.search(message), message
    assert len(message) < 300


def test_the_clients_values_are_not_repeated_at_length() -> None:
    secret = "s3cret" * 1000
    error = chat(messages=[{"role": "user", "content": {"nested": secret}}])
    assert secret not in error.message and len(error.message) < 300


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [], "logprobs": False, "response_format": {"type": "text"}},
        {"tool_choice": "auto", "stop": None, "n": None, "unknown_field": {"a": 1}},
        {"temperature": 1, "stop": "x", "stream_options": {}},
    ],
    ids=str,
)
def test_neutral_and_unknown_values_pass(fields: dict[str, Any]) -> None:
    validate(ChatCompletionRequest, {"messages": [USER], **fields})
