"""Chat Completions: bodies to conversations, events to messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.chat_completions import decode
from adapters.chat_encode import encode
from adapters.generation import FINISH_REASONS
from adapters.logprobs import TokenNames
from engine.conversation import Conversation, Message, Reasoning, Text
from engine.events import FinishCause, Output, TextBlock, Usage
from engine.types import GenerationRequest
from generated.chat_completions import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from tests.adapters.asgi import app_serving, call
from tests.adapters.played import ended, played, reply_of
from tests.serving import tokenizer

PATH = "/v1/chat/completions"
USER = {"role": "user", "content": "hi"}


def decoded(*messages: dict[str, Any], **fields: Any) -> GenerationRequest:
    body = {"messages": list(messages or [USER]), **fields}
    return decode(ChatCompletionRequest.model_validate(body, strict=True), "tenant")


def conversation(*messages: dict[str, Any], **fields: Any) -> Conversation:
    prompt = decoded(*messages, **fields).prompt
    assert isinstance(prompt, Conversation)
    return prompt


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ({"role": "user", "content": "a"}, (Text("a"),)),
        (
            {"role": "user", "content": [{"type": "text", "text": t} for t in "ab"]},
            (Text("a"), Text("b")),
        ),
        ({"role": "user", "content": []}, ()),
        ({"role": "assistant", "content": None}, (Text(""),)),
        (
            {"role": "assistant", "content": "a", "reasoning_content": "r"},
            (Reasoning("r"), Text("a")),
        ),
        ({"role": "assistant", "content": "a", "reasoning": "r"}, (Reasoning("r"), Text("a"))),
        ({"role": "assistant", "content": None, "refusal": "no"}, (Text("no"),)),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            (Text("no"),),
        ),
    ],
    ids=str,
)
def test_a_message_becomes_its_parts_in_order(
    message: dict[str, Any], parts: tuple[object, ...]
) -> None:
    [found] = conversation(message).messages
    assert (found.role, found.parts) == (message["role"], parts)


def test_roles_and_names_are_kept_in_order() -> None:
    turns = [
        {"role": role, "content": "x", "name": f"n{place}"}
        for place, role in enumerate(("system", "developer", "user", "assistant"))
    ]
    found = conversation(*turns).messages
    assert found == tuple(
        Message(turn["role"], (Text("x"),), turn["name"])  # type: ignore[arg-type]
        for turn in turns
    )


def test_template_options_have_their_defaults() -> None:
    plain = conversation()
    assert (plain.add_generation_prompt, plain.continue_final, plain.add_special_tokens) == (
        True, False, False,
    )  # fmt: skip
    changed = conversation(
        {"role": "assistant", "content": "so"},
        add_generation_prompt=False,
        continue_final_message=True,
        add_special_tokens=True,
        chat_template_kwargs={"deep": {"a": [1]}},
    )
    assert not changed.add_generation_prompt
    assert changed.continue_final and changed.add_special_tokens
    assert changed.template_kwargs == {"deep": {"a": [1]}}


@pytest.mark.parametrize(
    ("fields", "limit", "param"),
    [
        ({}, None, "max_tokens"),
        ({"max_tokens": 5}, 5, "max_tokens"),
        ({"max_completion_tokens": 6}, 6, "max_completion_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, 6, "max_completion_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": None}, 5, "max_tokens"),
    ],
)
def test_the_newer_limit_wins_and_is_named(
    fields: dict[str, Any], limit: int | None, param: str
) -> None:
    found = decoded(**fields)
    assert (found.max_tokens, found.max_tokens_param) == (limit, param)


def test_what_is_not_said_is_neutral() -> None:
    found = decoded()
    assert (found.n, found.echo, found.tenant) == (1, False, "tenant")
    assert decoded(n=3).n == 3


@pytest.mark.parametrize("cause", FINISH_REASONS)
def test_the_whole_answer_is_valid_for_every_cause(cause: FinishCause) -> None:
    reply = reply_of("chat.completion", 2, reasoning=True)
    names = TokenNames(tokenizer(), as_ids=False)
    outputs = [
        Output((TextBlock("é\n"),), ended(cause, "s", Usage(4, 2, 3))),
        Output((), ended(cause, 9, Usage(4, 0, 1))),
    ]
    body = json.loads(encode(reply, names, decoded(n=2), played(prompts=[(1,)]), outputs))
    ChatCompletion.model_validate(body, strict=True)
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert [choice["message"]["content"] for choice in body["choices"]] == ["é\n", ""]
    assert {choice["finish_reason"] for choice in body["choices"]} == {FINISH_REASONS[cause]}
    assert [choice["stop_reason"] for choice in body["choices"]] == ["s", 9]
    assert [choice["logprobs"] for choice in body["choices"]] == [None, None]
    assert body["usage"]["prompt_tokens"] == 4 and body["usage"]["completion_tokens"] == 4
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
    assert body["flare"] == {"time_to_first_token_ms": 250.0, "decode_time_ms": 500.0}


async def test_streamed_and_buffered_answers_agree() -> None:
    body = {"messages": [USER], "n": 3, "stop": ["END"], "max_tokens": 30}
    options = {"stream": True, "stream_options": {"include_usage": True}}
    async with app_serving("naïve 😀 EN, END beyond") as (app, _):
        whole = await call(app, "POST", PATH, body)
        streamed = await call(app, "POST", PATH, {**body, **options})
    ChatCompletion.model_validate(whole.json, strict=True)
    *events, usage, done = streamed.events
    assert done == "[DONE]"
    for event in (*events, usage):
        ChatCompletionChunk.model_validate(event, strict=True)
    for choice in whole.json["choices"]:
        own = [e["choices"][0] for e in events if e["choices"][0]["index"] == choice["index"]]
        content = "".join(piece["delta"].get("content", "") for piece in own)
        assert content == choice["message"]["content"] == "naïve 😀 EN, "
        assert own[-1]["finish_reason"] == choice["finish_reason"] == "stop"
        assert own[-1]["stop_reason"] == choice["stop_reason"] == "END"
    for field in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert usage["usage"][field] == whole.json["usage"][field]
    assert whole.json["usage"]["completion_tokens"] == 3 * len("naïve 😀 EN, END".encode())


async def test_an_unknown_model_is_refused_only_where_names_are_known() -> None:
    body = {"messages": [USER], "model": "gpt-9"}
    async with app_serving("ok") as (app, _):
        served = await call(app, "POST", PATH, body)
        assert (served.status, served.json["model"]) == (200, "first")
    async with app_serving("ok", config={"model_names": "known"}) as (app, _):
        refused = await call(app, "POST", PATH, body)
        assert (refused.status, refused.error["code"]) == (404, "model_not_found")
        assert refused.error["param"] == "model"
        for name in ("second", "org/tiny"):
            assert (await call(app, "POST", PATH, {**body, "model": name})).status == 200
        for nothing in ("", None):
            missing = await call(app, "POST", PATH, {**body, "model": nothing})
            assert (missing.status, missing.error["param"]) == (400, "model")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a guess", "a guess"),
        ([{"type": "text", "text": "a "}, {"type": "text", "text": "guess"}], "a guess"),
        ("", ""),
    ],
)
def test_a_prediction_is_its_text(content: Any, text: str) -> None:
    assert decoded(prediction={"type": "content", "content": content}).prediction == text
    assert decoded(prediction=None).prediction == decoded().prediction == ""
