"""Completions: prompts of every form, choices by index, echo, requests without output."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.completions import decode, encode
from adapters.generation import FINISH_REASONS
from adapters.logprobs import TokenNames
from engine.errors import RequestError
from engine.events import FinishCause, Output, TextBlock, Usage
from engine.types import GenerationRequest, RawPrompt
from generated.completions import Completion, CompletionChunk, CompletionRequest
from tests.adapters.asgi import app_serving, call
from tests.adapters.played import ended, played, reply_of
from tests.serving import ids, reply, tokenizer

PATH = "/v1/completions"


def decoded(prompt: Any, **fields: Any) -> list[GenerationRequest]:
    body = {"prompt": prompt, **fields}
    return decode(CompletionRequest.model_validate(body, strict=True), "tenant")


@pytest.mark.parametrize(
    ("prompt", "contents"),
    [
        ("a", ["a"]),
        ("", [""]),
        (None, [""]),
        (["a", "", "b"], ["a", "", "b"]),
        ([1, 2], [(1, 2)]),
        ([[1], [2, 3]], [(1,), (2, 3)]),
        (["a"], ["a"]),
        ([0], [(0,)]),
    ],
    ids=str,
)
def test_every_form_of_prompt_is_a_list_of_raw_prompts(prompt: Any, contents: list[Any]) -> None:
    found = decoded(prompt, n=2)
    assert [item.prompt for item in found] == [RawPrompt(content) for content in contents]
    assert {(item.n, item.tenant, item.prompt_param) for item in found} == {(2, "tenant", "prompt")}


def test_options_have_the_official_defaults() -> None:
    [plain] = decoded("a")
    assert (plain.max_tokens, plain.n, plain.echo) == (16, 1, False)
    [changed] = decoded("a", max_tokens=0, echo=True, add_special_tokens=False)
    assert (changed.max_tokens, changed.echo) == (0, True)
    assert changed.prompt == RawPrompt("a", add_special_tokens=False)


def test_best_of_must_equal_n() -> None:
    assert [item.n for item in decoded("a", n=2, best_of=2)] == [2]
    for fields in ({"best_of": 2}, {"n": 2, "best_of": 1}):
        with pytest.raises(RequestError) as caught:
            decoded("a", **fields)
        assert caught.value.param == "best_of"


@pytest.mark.parametrize("cause", [c for c in FINISH_REASONS if c is not FinishCause.TOOL_CALLS])
def test_the_whole_answer_is_valid_for_every_cause(cause: FinishCause) -> None:
    asked = {"prompt": ["a", "b"]}
    request = CompletionRequest.model_validate(asked, strict=True)
    names = TokenNames(tokenizer(), as_ids=False)
    outputs = [
        Output((TextBlock("é\n"),), ended(cause, "s", Usage(4, 2, 3))),
        Output((), ended(cause, 9, Usage(6, 1, 1))),
    ]
    generation = played(prompts=[(1,), (2,)])
    made = reply_of("text_completion")
    body = json.loads(encode(made, names, request, decode(request, ""), generation, outputs))
    Completion.model_validate(body, strict=True)
    assert [(c["index"], c["text"]) for c in body["choices"]] == [(0, "é\n"), (1, "")]
    assert {choice["finish_reason"] for choice in body["choices"]} == {FINISH_REASONS[cause]}
    assert [choice["stop_reason"] for choice in body["choices"]] == ["s", 9]
    assert body["usage"]["prompt_tokens"] == 10
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}
    assert body["flare"] == {"time_to_first_token_ms": 250.0, "decode_time_ms": 500.0}


async def post(app: Any, **body: Any) -> Any:
    answer = await call(app, "POST", PATH, body)
    assert answer.status == 200, answer.content
    Completion.model_validate(answer.json, strict=True)
    return answer.json


async def streamed(app: Any, **body: Any) -> list[Any]:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *events, done = (await call(app, "POST", PATH, {**body, **options})).events
    assert done == "[DONE]"
    for event in events:
        CompletionChunk.model_validate(event, strict=True)
    return events


async def test_choices_are_numbered_by_prompt_then_choice() -> None:
    scripts = [reply("one", match="^1$"), reply("two", match="^2$")]
    async with app_serving(*scripts) as (app, _):
        whole = await post(app, prompt=["1", "2"], n=2)
        events = await streamed(app, prompt=["1", "2"], n=2)
    assert [c["text"] for c in whole["choices"]] == ["one", "one", "two", "two"]
    texts = dict.fromkeys(range(4), "")
    for event in events[:-1]:
        [choice] = event["choices"]
        texts[choice["index"]] += choice["text"]
    assert list(texts.values()) == ["one", "one", "two", "two"]
    assert events[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert whole["usage"]["prompt_tokens"] == 2  # each prompt once, not once for each choice


async def test_cached_tokens_are_counted_once_for_each_prompt() -> None:
    prompt = "x" * 64
    async with app_serving("ok") as (app, _):
        first = await post(app, prompt=prompt)
        again = await post(app, prompt=[prompt, prompt], n=2)
    assert first["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert again["usage"]["prompt_tokens"] == 128
    assert again["usage"]["prompt_tokens_details"] == {"cached_tokens": 96}


@pytest.mark.parametrize(
    ("prompt", "echoed"), [("né<s>", "né<s>"), (list(ids("né")), "né"), ([ids("é")[0]], "\ufffd")]
)
async def test_echo_puts_the_prompt_before_the_text(prompt: Any, echoed: str) -> None:
    async with app_serving("!") as (app, _):
        whole = await post(app, prompt=prompt, echo=True)
        events = await streamed(app, prompt=prompt, echo=True)
    assert whole["choices"][0]["text"] == echoed + "!"
    assert "".join(e["choices"][0]["text"] for e in events[:-1]) == echoed + "!"


async def test_a_stop_string_in_the_echoed_prompt_does_not_stop() -> None:
    async with app_serving("abc") as (app, _):
        whole = await post(app, prompt="b", echo=True, stop="b")
    assert whole["choices"][0]["text"] == "ba"


@pytest.mark.parametrize("echo", [True, False])
async def test_no_output_asks_the_engine_for_nothing(echo: bool) -> None:
    async with app_serving("never") as (app, service):
        whole = await post(app, prompt=["ab", "c"], n=2, max_tokens=0, echo=echo)
        events = await streamed(app, prompt=["ab", "c"], n=2, max_tokens=0, echo=echo)
        assert service.client.stats.steps == 0
        assert (service.held, service.counters.completed) == (0, 8)
    texts = ["ab", "ab", "c", "c"] if echo else [""] * 4
    assert [c["text"] for c in whole["choices"]] == texts
    assert {c["finish_reason"] for c in whole["choices"]} == {"length"}
    assert whole["usage"]["prompt_tokens"] == 3 and whole["usage"]["completion_tokens"] == 0
    assert whole["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert events[-1]["usage"]["total_tokens"] == 3
    ends = [c for e in events[:-1] for c in e["choices"] if c["finish_reason"]]
    assert [(c["index"], c["finish_reason"]) for c in ends] == [(i, "length") for i in range(4)]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": [1, 999_999]}, "prompt"),
        ({"prompt": "x" * 600}, "prompt"),
        ({"prompt": "x", "max_tokens": 600}, "max_tokens"),
        ({"prompt": "x", "logit_bias": {"999999": 1}}, "logit_bias"),
        ({"prompt": "x", "stop_token_ids": [999_999]}, "stop_token_ids"),
        ({"prompt": "x", "n": 20}, "n"),
        ({"prompt": "x", "min_tokens": 17}, "min_tokens"),
    ],
    ids=str,
)
async def test_what_the_model_cannot_do_is_refused_by_name(
    fields: dict[str, Any], param: str
) -> None:
    async with app_serving("x") as (app, service):
        for stream in (False, True):
            answer = await call(app, "POST", PATH, {**fields, "stream": stream})
            assert (answer.status, answer.error["param"]) == (400, param)
        assert service.held == 0


@pytest.mark.parametrize(
    "fields",
    [{"top_k": 2**40}, {"top_k": 10**30}, {"repetition_penalty": 1e-300}, {"temperature": 1e-300}],
    ids=str,
)
async def test_extreme_values_are_served_or_refused_never_a_server_error(
    fields: dict[str, Any],
) -> None:
    async with app_serving("x") as (app, _):
        answer = await call(app, "POST", PATH, {"prompt": "x", **fields})
    assert answer.status in (200, 400), answer.content
