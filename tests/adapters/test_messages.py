"""Bodies of Messages as neutral requests: what is not conversation, tools or thinking."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.validation import validate
from engine.errors import RequestError
from engine.types import BeamOptions, GenerationRequest, OutputConstraint, SamplingOverride, Stops
from generated.messages import MessagesRequest
from tests.adapters.decoding import at
from tests.adapters.messaging import TENANT, USER, body_of, opened, read, refused, tool


def decoded(**fields: Any) -> GenerationRequest:
    return read(body_of(**fields)).request


FIELDS: list[tuple[dict[str, Any], str, Any]] = [
    ({"temperature": 0}, "sampling.temperature", 0.0),
    ({"temperature": 1.5}, "sampling.temperature", 1.5),
    ({"top_p": 0.4}, "sampling.top_p", 0.4),
    ({"top_k": 3}, "sampling.top_k", 3),
    ({"min_p": 0.1}, "sampling.min_p", 0.1),
    ({"repeat_penalty": 1.2}, "sampling.repetition_penalty", 1.2),
    ({"logit_bias": {"7": 2}}, "sampling.logit_bias", {7: 2.0}),
    ({"seed": -5}, "sampling.seed", -5),
    ({"min_tokens": 2}, "sampling.min_tokens", 2),
    ({"ignore_eos": True}, "sampling.ignore_eos", True),
    ({"stop_sequences": ["a", "b"]}, "stops", Stops(("a", "b"))),
    ({"stop_sequences": []}, "stops", Stops()),
    ({"stop_sequences": None, "stop_token_ids": [4]}, "stops", Stops((), (4,))),
    ({"stop_token_sequences": [[1, 2]]}, "stops", Stops((), (), ((1, 2),))),
    (
        {"stop_sequences": ["x"], "include_stop_str_in_output": True},
        "stops",
        Stops(("x",), include=True),
    ),
    ({"stop": ["x"]}, "stops", Stops()),  # OpenAI's name, of which Messages knows nothing
    ({"max_tokens": 7}, "max_tokens", 7),
    ({"max_tokens": 128_000}, "clamps_max_tokens", True),
    ({}, "max_tokens_param", "max_tokens"),
    ({}, "prompt_param", "messages"),
    ({"max_time_ms": 1500}, "max_time", 1.5),
    ({"priority": -3}, "priority", -3),
    ({"cache_salt": "s"}, "cache_salt", "s"),
    ({}, "tenant", TENANT),
    ({}, "n", 1),
    ({"n": 1, "best_of": 1}, "n", 1),
    ({}, "logprobs", None),
    ({"logprobs": False, "top_logprobs": None}, "logprobs", None),
    ({}, "records", False),
    ({"return_token_ids": False}, "records", False),
    ({}, "echo", False),
]


@pytest.mark.parametrize(("fields", "path", "value"), FIELDS, ids=str)
async def test_a_field_reaches_the_neutral_request(
    fields: dict[str, Any], path: str, value: Any
) -> None:
    assert at(await opened(**fields), path) == value


BEAMS: list[tuple[dict[str, Any], BeamOptions | None]] = [
    ({}, None),
    ({"num_beams": 1}, None),
    ({"num_beams": 3, "length_penalty": 0.5}, BeamOptions(3, 0.5)),
    ({"use_beam_search": True}, BeamOptions(1)),
    ({"use_beam_search": True, "num_beams": 2, "tools": []}, BeamOptions(2)),
]


@pytest.mark.parametrize(("fields", "beams"), BEAMS, ids=str)
async def test_beams(fields: dict[str, Any], beams: BeamOptions | None) -> None:
    assert (await opened(**fields)).beams == beams


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"num_beams": 2, "stream": True}, "stream"),
        ({"num_beams": 9}, "num_beams"),
        ({"num_beams": 2, "output_format": {"type": "json_schema", "schema": {}}}, "num_beams"),
        ({"num_beams": 2, "tools": [tool("f")]}, "num_beams"),
        ({"use_beam_search": True, "tools": [tool("f")]}, "use_beam_search"),
    ],
    ids=str,
)
async def test_what_beams_cannot_do_is_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        await opened(**fields)
    assert caught.value.param == param


def test_what_is_absent_or_null_is_neutral() -> None:
    plain = decoded()
    assert plain.sampling == SamplingOverride() and plain.stops == Stops()
    names = set(MessagesRequest.model_fields) - {"messages", "max_tokens"}
    assert decoded(**dict.fromkeys(names)) == plain


def test_what_says_nothing_about_the_prompt_changes_nothing() -> None:
    ignored = {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "betas": ["context-management-2025-06-27"],
        "inference_geo": "eu",
        "speed": "fast",
        "safeguards": [{"type": "dangerous_tool_use"}],
        "diagnostics": {"previous_message_id": "msg_1"},
        "billing_policy": {},
        "fallbacks": [{"model": "x"}],
        "mcp_servers": [],
        "unheard_of": 1,
    }
    assert decoded(**ignored) == decoded()


# Forms of the answer

SCHEMA = {"type": "object", "properties": {"é": {"type": "integer"}}}
FORM = {"type": "json_schema", "schema": SCHEMA}
CHAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
FORMS: dict[str, dict[str, Any]] = {
    "output_config.format.schema": {"output_config": {"format": FORM}},
    "output_format.schema": {"output_format": FORM},
    "response_format.json_schema.schema": {"response_format": CHAT},
    "guided_json": {"guided_json": SCHEMA},
}


@pytest.mark.parametrize("param", FORMS)
def test_every_form_is_the_same_constraint(param: str) -> None:
    found = decoded(**FORMS[param]).constraint
    assert found == OutputConstraint("json_schema", '{"type": "object", "properties": '
                                     '{"\\u00e9": {"type": "integer"}}}', param)  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"output_config": {}},
        {"output_config": None},
        {"output_config": {"effort": "low", "format": None, "task_budget": {"total": 9}}},
        {"output_format": None, "response_format": None},
        {"response_format": {"type": "text"}},
    ],
    ids=str,
)
def test_no_form_is_no_constraint(fields: dict[str, Any]) -> None:
    assert decoded(**fields).constraint is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("output_config.format.schema", "output_format.schema"),
        ("output_config.format.schema", "response_format.json_schema.schema"),
        ("output_format.schema", "response_format.json_schema.schema"),
        ("output_format.schema", "guided_json"),
    ],
)
def test_an_answer_has_one_form(first: str, second: str) -> None:
    error = refused(**FORMS[first], **FORMS[second])
    assert error.param == second
    assert first in error.message and second in error.message


# What is refused


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": None}, "max_tokens"),
        ({"stop_sequences": ["a"], "stop_token_ids": [1]}, "stop_token_ids"),
        ({"stop_sequences": ["é" * 2048, "x"]}, "stop_sequences"),
        ({"stop_sequences": list("abcde")}, "stop_sequences"),
        ({"stop_sequences": [""]}, "stop_sequences[0]"),
        ({"stop_sequences": "a"}, "stop_sequences"),
        ({"n": 2}, "n"),
        ({"best_of": 2}, "best_of"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 0}, "top_logprobs"),
        ({"logprob_token_ids": []}, "logprob_token_ids"),
        ({"prompt_logprobs": 1}, "prompt_logprobs"),
        ({"return_token_ids": True}, "return_token_ids"),
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers"),
        ({"container": "c"}, "container"),
        ({"thread": {"type": "create"}}, "thread"),
        ({"compaction": {"type": "summarize"}}, "compaction"),
        ({"messages": []}, "messages"),
        ({"output_format": {"type": "json_object"}}, "output_format.type"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_done_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(validate(MessagesRequest, {"messages": [USER], "max_tokens": 64, **fields}))
    assert caught.value.param == param
    assert param.partition("[")[0].rpartition(".")[2] in caught.value.message
