"""Constrained answers over whole requests: the script's wishes, as far as the form allows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from generated.chat_completions import ChatCompletion, ChatCompletionChunk
from tests.adapters.asgi import app_serving, call
from tests.serving import reply, tokenizer

PATH = "/v1/chat/completions"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "é"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
NAMED = {"name": "n", "schema": SCHEMA}
FORMS: list[tuple[dict[str, Any], str]] = [
    ({"response_format": {"type": "json_object"}}, '{"k": [1, "é"]}'),
    (
        {"response_format": {"type": "json_schema", "json_schema": NAMED}},
        '{"a": 12, "b": "é"}',
    ),
    ({"structured_outputs": {"regex": "[0-9]{3}-[a-z]+"}}, "123-abc"),
    ({"structured_outputs": {"choice": ["red", "green"]}}, "green"),
    ({"grammar": 'start: "a" B+\nB: /[bc]/'}, "abcb"),
]


@pytest.mark.parametrize(("form", "answer"), FORMS, ids=str)
async def test_a_form_that_the_model_keeps_changes_nothing(form: Any, answer: str) -> None:
    async with app_serving(answer) as (app, service):
        whole = await call(app, "POST", PATH, {**ASK, **form, "n": 2})
        streamed = await call(app, "POST", PATH, {**ASK, **form, "stream": True})
        assert service.client.stats.free_pages == service.client.stats.total_pages
    ChatCompletion.model_validate(whole.json, strict=True)
    for choice in whole.json["choices"]:
        assert choice["message"]["content"] == answer
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", None)
    *events, done = streamed.events
    for event in events:
        ChatCompletionChunk.model_validate(event, strict=True)
    assert done == "[DONE]"
    texts = [event["choices"][0]["delta"].get("content", "") for event in events]
    assert "".join(texts) == answer


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ({"json_schema": {"enum": ["x", 1]}}, '"x"|1'),
        ({"structured_outputs": {"regex": "[0-9]{3}-[a-z]+"}}, "[0-9]{3}-[a-z]+"),
        ({"guided_choice": ["red", "green"]}, "red|green"),
        ({"grammar": 'start: "a" B B\nB: /[bc]/'}, "a[bc][bc]"),
    ],
    ids=str,
)
async def test_a_model_that_breaks_the_form_is_held_to_it(form: Any, pattern: str) -> None:
    async with app_serving("no, I will not!") as (app, _):
        found = await call(app, "POST", PATH, {**ASK, **form})
    [choice] = found.json["choices"]
    assert re.fullmatch(pattern, choice["message"]["content"])
    assert choice["finish_reason"] == "stop"


async def test_forced_tokens_have_honest_logprobs() -> None:
    form = {"structured_outputs": {"regex": "abc"}}
    async with app_serving("xyz") as (app, service):
        found = await call(app, "POST", PATH, {**ASK, **form, "logprobs": True, "top_logprobs": 1})
        assert service.client.stats.forced_tokens == 0
    entries = found.json["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in entries] == ["a", "b", "c"]
    assert [entry["top_logprobs"][0]["token"] for entry in entries] == ["x", "y", "z"]
    assert all(entry["logprob"] < entry["top_logprobs"][0]["logprob"] for entry in entries)


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"guided_json": {"not": {}}}, "guided_json", "invalid_schema"),
        ({"regex": "("}, "regex", "invalid_grammar"),
        ({"grammar": "start: X"}, "grammar", "invalid_grammar"),
        ({"regex": "a", "guided_choice": ["b"]}, None, None),
        ({"regex": "a", "ignore_eos": True}, "ignore_eos", None),
    ],
    ids=str,
)
async def test_a_form_that_cannot_be_had_is_refused_before_admission(
    fields: dict[str, Any], param: str | None, code: str | None
) -> None:
    async with app_serving("x") as (app, service):
        for stream in (False, True):
            answer = await call(app, "POST", PATH, {**ASK, **fields, "stream": stream})
            assert (answer.status, answer.error["code"]) == (400, code)
            assert param is None or answer.error["param"] == param
        assert (service.held, service.counters.started) == (0, 0)


async def test_fields_that_leave_no_token_are_the_clients_fault() -> None:
    fields = {"regex": "[a-c]+", "allowed_token_ids": [tokenizer().eos_ids[0]]}
    async with app_serving("x") as (app, service):
        whole = await call(app, "POST", PATH, {**ASK, **fields})
        assert (whole.status, whole.error["code"]) == (400, "no_token_allowed")
        streamed = await call(app, "POST", PATH, {**ASK, **fields, "stream": True})
        assert streamed.events[-1]["error"]["type"] == "invalid_request_error"
        assert service.held == 0


async def test_a_stop_ends_a_constrained_answer_as_a_stop() -> None:
    async with app_serving(reply("12345", delay=0.001)) as (app, _):
        found = await call(app, "POST", PATH, {**ASK, "regex": "[0-9]{5}", "stop": "3"})
    [choice] = found.json["choices"]
    assert (choice["message"]["content"], choice["stop_reason"]) == ("12", "3")
    assert choice["finish_reason"] == "stop"
