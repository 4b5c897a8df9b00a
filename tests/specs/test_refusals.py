"""A refused field takes its neutral values and nothing else."""

import json
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, ValidationError

from generated.chat_completions import ChatCompletionRequest
from generated.completions import CompletionRequest
from specs.bundle import bundle
from specs.document import load

BODIES: dict[type[BaseModel], dict[str, Any]] = {
    ChatCompletionRequest: {"messages": [{"role": "user", "content": "hi"}]},
    CompletionRequest: {"prompt": "hi"},
}
VALUES: list[Any] = [
    None,
    False,
    True,
    [],
    {},
    "",
    0,
    1,
    -1,
    2,
    0.5,
    -7,
    "none",
    "auto",
    "required",
]
VALUES += ["x", ["x"], [1], ["text"], ["audio"], {"a": 1}, {"type": "text"}, [{"type": "function"}]]
VALUES += [{"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "a"}}]
DOCUMENT = bundle(load())


def refused(model: type[BaseModel]) -> list[str]:
    return [
        name
        for name, info in model.model_fields.items()
        if isinstance(info.json_schema_extra, dict)
        and info.json_schema_extra["disposition"] == "refused"
    ]


def checker(model: type[BaseModel], field: str) -> Any:
    pointer = f"#/components/schemas/{model.__name__}/properties/{field}"
    return jsonschema_rs.Draft202012Validator(
        {"$ref": pointer, "components": DOCUMENT["components"]}
    )


CASES = [(model, field) for model in BODIES for field in refused(model)]


@pytest.mark.parametrize(
    ("model", "field"), CASES, ids=lambda value: getattr(value, "__name__", value)
)
def test_neutral_values_pass_and_others_name_the_field(model: type[BaseModel], field: str) -> None:
    spec = checker(model, field)
    passed = [value for value in VALUES if spec.is_valid(value)]
    assert None in passed
    assert len(passed) < len(VALUES) / 2
    for value in VALUES:
        body = {**BODIES[model], field: value}
        if spec.is_valid(value):
            model.model_validate(body, strict=True)
            continue
        with pytest.raises(ValidationError) as caught:
            model.model_validate(body, strict=True)
        assert {error["loc"][0] for error in caught.value.errors()} == {field}, value


@pytest.mark.parametrize(
    ("model", "field"), CASES, ids=lambda value: getattr(value, "__name__", value)
)
def test_the_reason_completes_a_sentence(model: type[BaseModel], field: str) -> None:
    reason = model.model_fields[field].description
    assert reason
    assert not reason.endswith(".")
    assert reason[0].islower() or reason.startswith("DRY")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "assistant", "audio": {"id": "a"}},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "user", "content": [{"type": "input_audio"}]},
        {"role": "user", "content": [{"type": "file", "file": {}}]},
    ],
    ids=json.dumps,
)
def test_refused_messages(message: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        ChatCompletionRequest.model_validate({"messages": [message]}, strict=True)
    assert {error["loc"][:2] for error in caught.value.errors()} == {("messages", 0)}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "developer", "content": "x"},
        {"role": "system", "content": [{"type": "text", "text": "x"}], "name": "n"},
        {"role": "user", "content": [], "name": None},
        {"role": "assistant", "tool_calls": [], "function_call": None, "audio": None},
        {"role": "assistant", "content": None, "reasoning_content": "r", "reasoning": None},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "refusal": "no"},
        {"role": "assistant", "content": "x", "annotations": [], "unknown": 1},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}], "content": None},
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{"}},
        {"role": "tool", "content": "x", "tool_call_id": "a"},
        {"role": "tool", "content": [{"type": "text", "text": "x"}]},
        {"role": "function", "content": "x", "name": "f"},
    ],
    ids=json.dumps,
)
def test_accepted_messages(message: dict[str, Any]) -> None:
    ChatCompletionRequest.model_validate({"messages": [message]}, strict=True)
