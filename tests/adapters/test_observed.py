"""Tokens, scores, ids and times over whole requests: buffered and streamed say the same."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest
from pydantic import BaseModel
from starlette.types import ASGIApp

from generated.chat_completions import ChatCompletion, ChatCompletionChunk
from generated.completions import Completion, CompletionChunk
from tests.adapters.asgi import app_serving, call
from tests.serving import ids, reply, tokenizer

ROUTES: dict[str, tuple[str, dict[str, Any], type[BaseModel], type[BaseModel]]] = {
    "chat": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "hi"}]},
        ChatCompletion,
        ChatCompletionChunk,
    ),
    "completions": ("/v1/completions", {"prompt": "hi"}, Completion, CompletionChunk),
}
ANSWER = "é <think>😀 EN, END beyond"
THINK = tokenizer().control_tokens["<think>"]
SEEN = {"return_token_ids": True, "return_token_timestamps": True}
SCORED: dict[str, dict[str, Any]] = {
    "chat": {"logprobs": True, "top_logprobs": 2}, "completions": {"logprobs": 2},
}  # fmt: skip
NASTY: list[dict[str, Any]] = [
    {},
    {"stop": "END"},
    {"stop": "ink"},
    {"stop": "😀", "include_stop_str_in_output": True},
    {"stop_token_sequences": [list(ids("END"))]},
    {"stop_token_ids": [ids(",")[0]]},
    {"return_tokens_as_token_ids": True, "logprob_token_ids": [5, 3, 5]},
    {"max_tokens": 4},
]


async def whole(app: ASGIApp, route: str, **fields: Any) -> Any:
    path, body, model, _ = ROUTES[route]
    answer = await call(app, "POST", path, {**body, **fields})
    assert answer.status == 200, answer.content
    model.model_validate(answer.json, strict=True)
    return answer.json


async def chunks(app: ASGIApp, route: str, **fields: Any) -> list[Any]:
    path, body, _, model = ROUTES[route]
    *events, done = (await call(app, "POST", path, {**body, "stream": True, **fields})).events
    assert done == "[DONE]"
    for event in events:
        model.model_validate(event, strict=True)
    return events


def joined(route: str, events: list[Any], index: int = 0) -> dict[str, Any]:
    """One choice's pieces put together."""
    found: dict[str, Any] = {"text": "", "entries": [], "token_ids": [], "token_timestamps": []}
    arrays: dict[str, list[Any]] = {}
    for event in events:
        for choice in event["choices"]:
            if choice["index"] != index:
                continue
            piece = choice.get("delta", {}).get("content", "")
            found["text"] += piece if route == "chat" else choice["text"]
            logprobs = choice["logprobs"] or {}
            found["entries"] += logprobs.get("content", []) if route == "chat" else []
            for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
                arrays.setdefault(name, []).extend(logprobs.get(name, []))
            for name in ("token_ids", "token_timestamps"):
                found[name] += choice.get(name) or []
            if choice["finish_reason"]:
                found["end"] = (choice["finish_reason"], choice["stop_reason"])
    return found | {"arrays": arrays}


@pytest.mark.parametrize("fields", NASTY, ids=str)
@pytest.mark.parametrize("route", ROUTES)
async def test_streamed_entries_concatenate_to_the_buffered_ones(
    route: str, fields: dict[str, Any]
) -> None:
    asked = {"max_tokens": 60, **SCORED[route], **SEEN, **fields}
    async with app_serving(reply(ANSWER, delay=0.001)) as (app, _):
        [choice] = (await whole(app, route, **asked))["choices"]
        events = await chunks(app, route, **asked)
    found = joined(route, events)
    assert found["end"] == (choice["finish_reason"], choice["stop_reason"])
    assert found["token_ids"] == choice["token_ids"]
    assert len(choice["token_timestamps"]) == len(choice["token_ids"])
    times = found["token_timestamps"]
    assert len(times) == len(choice["token_ids"]) and times == sorted(times)
    if route == "chat":
        assert found["text"] == choice["message"]["content"]
        assert found["entries"] == choice["logprobs"]["content"]
        assert len(found["entries"]) == len(choice["token_ids"])
    else:
        assert found["text"] == choice["text"]
        assert found["arrays"] == choice["logprobs"]
        assert len(choice["logprobs"]["tokens"]) == len(choice["token_ids"])


@pytest.mark.parametrize("route", ROUTES)
async def test_the_end_has_no_entry_and_ignored_ends_have_one(route: str) -> None:
    end = tokenizer().eos_ids[0]
    async with app_serving("ab") as (app, _):
        [choice] = (await whole(app, route, **SEEN))["choices"]
        assert choice["token_ids"] == list(ids("ab"))
        [choice] = (await whole(app, route, **SEEN, ignore_eos=True, max_tokens=4))["choices"]
        assert choice["token_ids"] == [*ids("ab"), end, end]


async def test_a_token_without_text_is_shown_with_the_text_that_it_begins() -> None:
    async with app_serving(reply("é", delay=0.005)) as (app, _):
        events = await chunks(app, "chat", logprobs=True)
    choices = [event["choices"][0] for event in events if event["choices"][0]["logprobs"]]
    pieces = [(one["delta"].get("content"), len(one["logprobs"]["content"])) for one in choices]
    assert pieces == [("é", 2)]


async def test_offsets_are_those_of_the_text() -> None:
    async with app_serving(ANSWER) as (app, _):
        [choice] = (await whole(app, "completions", max_tokens=60, logprobs=0))["choices"]
        [echoed] = (
            await whole(app, "completions", max_tokens=60, logprobs=0, echo=True, prompt="né")
        )["choices"]
    arrays = choice["logprobs"]
    for token, offset in zip(arrays["tokens"], arrays["text_offset"], strict=True):
        if "\ufffd" not in token:
            assert choice["text"][offset:].startswith(token)
    assert arrays["text_offset"] == [0, 0, 1, 2, 9, 9, 9, 9, *range(10, 10 + 15)]
    both = echoed["logprobs"]
    assert both["tokens"][:3] == ["n", "\ufffd", "\ufffd"]
    assert both["token_logprobs"][0] is None and both["top_logprobs"][0] is None
    assert both["text_offset"][:3] == [0, 1, 2]  # of the decoded token strings
    assert both["text_offset"][3:-1] == [2 + offset for offset in arrays["text_offset"]]
    assert both["tokens"][-1] == "<|im_end|>"  # echoed scoring keeps the end token's entry
    assert both["text_offset"][-1] == 2 + len(choice["text"])
    assert len(echoed["prompt_logprobs"]) == 3


@pytest.mark.parametrize("max_tokens", [0, 5])
@pytest.mark.parametrize("prompt", ["x", "né", "y" * 100])
async def test_streamed_echo_has_frames_of_the_prompt_before_the_rest(
    prompt: str, max_tokens: int
) -> None:
    asked = {"prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": max_tokens, "n": 2}
    async with app_serving("abc") as (app, _):
        body = await whole(app, "completions", **asked)
        events = await chunks(app, "completions", **asked)
    for choice in body["choices"]:
        index = choice["index"]
        found = joined("completions", events, index)
        assert found["text"] == choice["text"] == prompt + "abc"[:max_tokens]
        assert found["arrays"] == choice["logprobs"]
        own = [e["choices"][0] for e in events if e["choices"][0]["index"] == index]
        frames = list(takewhile(lambda piece: piece["logprobs"] and not piece["text"], own))
        lengths = [len(piece["logprobs"]["tokens"]) for piece in frames]
        assert own[: len(frames)] == frames
        assert sum(lengths) == len(prompt.encode())
        assert len(frames) > 1 or len(prompt) < 32  # a frame for each chunk
        assert choice["finish_reason"] == ("stop" if max_tokens == 5 else "length")
    counts = {"prompt_tokens": len(prompt.encode()), "completion_tokens": 8 if max_tokens else 0}
    assert body["usage"] == body["usage"] | counts


async def test_prompt_scores_answer_both_routes_and_keep_their_own_count() -> None:
    async with app_serving("ab") as (app, _):
        chat = await whole(app, "chat", prompt_logprobs=3, return_token_ids=True)
        text = await whole(
            app, "completions", prompt="xyz", prompt_logprobs=2, echo=True, logprobs=5
        )
    assert chat["prompt_logprobs"][0] is None
    assert len(chat["prompt_logprobs"]) == len(chat["prompt_token_ids"])
    for token, place in zip(chat["prompt_token_ids"], chat["prompt_logprobs"], strict=True):
        assert place is None or (place[str(token)]["rank"] == 1 and len(place) == 3)
    [choice] = text["choices"]
    assert [len(place) for place in choice["prompt_logprobs"][1:]] == [2, 2]
    assert [len(place) for place in choice["logprobs"]["top_logprobs"][1:3]] == [5, 5]


async def test_a_deadline_in_the_middle_of_a_prompt_answers_with_what_is_scored() -> None:
    slow = reply("abc", prefill_delay=0.02)
    asked = {"prompt": "x" * 300, "echo": True, "logprobs": 1, "max_time_ms": 50}
    async with app_serving(slow) as (app, service):
        [choice] = (await whole(app, "completions", **asked))["choices"]
        events = await chunks(app, "completions", **asked)
        assert service.client.stats.deadline_cuts == 2
    assert choice["finish_reason"] == joined("completions", events)["end"][0] == "length"
    assert choice["text"] == joined("completions", events)["text"] == "x" * 300
    assert len(choice["logprobs"]["tokens"]) == len(choice["prompt_logprobs"]) < 300


@pytest.mark.parametrize("route", ROUTES)
async def test_prompt_ids_come_once_for_each_prompt_and_usage_at_the_end(route: str) -> None:
    async with app_serving(reply("abc", delay=0.001)) as (app, _):
        body = await whole(app, route, return_token_ids=True, n=2)
        events = await chunks(app, route, return_token_ids=True, n=2)
    if route == "chat":
        prompts = [event["prompt_token_ids"] for event in events if "prompt_token_ids" in event]
        assert prompts == [body["prompt_token_ids"]]
        assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    else:
        shown = [c for e in events for c in e["choices"] if "prompt_token_ids" in c]
        assert sorted(choice["index"] for choice in shown) == [0, 1]
        expected = [choice["prompt_token_ids"] for choice in body["choices"]]
        assert [choice["prompt_token_ids"] for choice in shown] == expected == [list(ids("hi"))] * 2
    *before, last = events
    assert last["usage"]["completion_tokens"] == body["usage"]["completion_tokens"] == 8
    assert set(last["flare"]) == {"time_to_first_token_ms", "decode_time_ms"}
    assert not any(event.get("usage") or "flare" in event for event in before)


async def test_an_answer_without_text_shows_its_prompt_all_the_same() -> None:
    async with app_serving("") as (app, _):
        events = await chunks(app, "completions", return_token_ids=True, logprobs=1)
    [only] = [event["choices"][0] for event in events]
    assert (only["finish_reason"], only["prompt_token_ids"]) == ("stop", list(ids("hi")))


async def test_named_ids_replace_the_natural_alternatives_in_the_callers_order() -> None:
    named = [9, 4, 9, ids("a")[0]]
    async with app_serving("ab") as (app, _):
        asked = {"logprobs": True, "top_logprobs": 1, "logprob_token_ids": named}
        [choice] = (await whole(app, "chat", **asked, return_tokens_as_token_ids=True))["choices"]
    first, second = choice["logprobs"]["content"]
    shown = [[top["token"] for top in entry["top_logprobs"]] for entry in (first, second)]
    a, b = ids("ab")
    assert shown[0] == [f"token_id:{token}" for token in (9, 4, a)]
    assert shown[1] == [f"token_id:{token}" for token in (9, 4, a, b)]  # appended: it was absent
