"""Reasoning and calls in Chat Completions' answers, whole and in chunks, as the SDK reads them.

The SDK's own accumulator puts the chunks together; what comes out must be the whole answer.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai._models import validate_type
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import chat as sdk

from adapters.chat_completions import decode
from adapters.chat_encode import ChatDetails, chunk_form, encode
from adapters.chunks import ChunkEncoder, encode_stream
from adapters.logprobs import TokenNames
from engine.events import Channel, FinishCause, TokenRecord, TokenScore, Usage
from engine.types import GenerationRequest
from generated.chat_completions import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from generated.shared import StreamOptions
from tests.adapters.played import (
    Batch,
    accumulated,
    called,
    ended,
    finished,
    payloads,
    played,
    reply_of,
    started,
    text,
    thought,
)
from tests.serving import ids, tokenizer

NAMES = TokenNames(tokenizer(), as_ids=False)
CALLS = FinishCause.TOOL_CALLS


def request(**fields: Any) -> GenerationRequest:
    body = {"messages": [{"role": "user", "content": "hi"}], **fields}
    return decode(ChatCompletionRequest.model_validate(body, strict=True), "tenant")


def whole(*batches: Batch, n: int = 1, with_reasoning: bool = True, **fields: Any) -> Any:
    """The whole answer, valid in the generated model and in the SDK's strictest reading."""
    reply = reply_of("chat.completion", n, reasoning=True, ids="return_token_ids" in fields)
    body = json.loads(
        encode(
            reply,
            NAMES,
            request(n=n, **fields),
            played(prompts=[(1,)]),
            accumulated(*batches, n=n),
            with_reasoning=with_reasoning,
        )
    )
    ChatCompletion.model_validate(body, strict=True)
    validate_type(type_=sdk.ChatCompletion, value=body)
    return body


async def chunks(
    *batches: Batch, n: int = 1, with_reasoning: bool = True, strict: bool = True, **fields: Any
) -> list[Any]:
    """The chunks, valid as `whole`; the SDK's chunks know no custom calls: not `strict`."""
    reply = reply_of("chat.completion.chunk", n, reasoning=True, ids="return_token_ids" in fields)
    asked, generation = request(n=n, **fields), played(*batches, prompts=[(1,)])
    details = ChatDetails(reply, NAMES, asked, generation) if fields else None
    encoder = ChunkEncoder(
        reply, n, chunk_form(with_reasoning=with_reasoning), StreamOptions(), details
    )
    *found, done = await payloads(encode_stream(generation, encoder))
    assert done == "[DONE]"
    for chunk in found:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        if strict:
            validate_type(type_=sdk.ChatCompletionChunk, value=chunk)
    return found


def deltas(found: list[Any], index: int = 0) -> list[dict[str, Any]]:
    choices = [choice for chunk in found for choice in chunk["choices"]]
    return [choice["delta"] for choice in choices if choice["index"] == index]


def put_together(found: list[Any]) -> dict[int, dict[str, Any]]:
    """Each choice's message as the SDK's accumulator makes it, without what is empty."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in found:
        list(state.handle_chunk(sdk.ChatCompletionChunk.construct(**chunk)))
    kept = {}
    for choice in state.current_completion_snapshot.choices:
        made = choice.message.model_dump(exclude_none=True)
        for call in made.get("tool_calls", ()):
            call.pop("index", None)
            call.get("function", {}).pop("parsed_arguments", None)
        made.pop("parsed", None)
        kept[choice.index] = {**made, "finish": choice.finish_reason}
    return kept


def message_of(body: Any, index: int = 0) -> dict[str, Any]:
    choice = body["choices"][index]
    made = {name: value for name, value in choice["message"].items() if value is not None}
    return {"content": "", **made, "finish": choice["finish_reason"]}


TURNS: dict[str, list[Batch]] = {
    "text": [[started(), text("a"), text("b")], [finished()]],
    "nothing": [[started()], [finished()]],
    "thoughts and text": [[started(), thought("x"), thought("é\n"), text("y")], [finished()]],
    "thoughts alone": [[started(), thought("x")], [finished(FinishCause.LIMIT)]],
    "a call": [[started()], called("f", '{"id": ', '42"', "}}"), [finished(CALLS)]],
    "a call without arguments": [[started()], called("f"), [finished(CALLS)]],
    "thoughts, text and two calls": [
        [started(), thought("x"), text("y\n")],
        called("f", '{"a":1}'),
        called("g", "{}", call=1),
        [finished(CALLS)],
    ],
    "a cut call": [
        [started()],
        called("f", '{"a":"b', whole=False),
        [finished(FinishCause.LIMIT)],
    ],
    "thoughts between calls": [
        [started()],
        called("f", "{}"),
        [thought("x")],
        called("f", "{}", call=1),
        [finished(CALLS)],
    ],
}


@pytest.mark.parametrize("turn", TURNS)
async def test_the_sdk_puts_chunks_together_to_the_whole_answer(turn: str) -> None:
    body = whole(*TURNS[turn])
    assert put_together(await chunks(*TURNS[turn])) == {0: message_of(body)}


async def test_choices_keep_their_calls_apart() -> None:
    turns: list[Batch] = [
        [started(0), started(1)],  # the SDK wants the first choice first
        [*called("f", '{"a":', whole=False), *called("g", "{}", index=1)],
        [*called("h", "{}", call=1), finished(FinishCause.LIMIT), finished(CALLS, index=1)],
    ]
    body = whole(*turns, n=2)
    assert put_together(await chunks(*turns, n=2)) == {i: message_of(body, i) for i in (0, 1)}
    assert [choice["finish_reason"] for choice in body["choices"]] == ["length", "tool_calls"]


def test_content_is_null_where_there_is_something_else() -> None:
    shown = {turn: whole(*TURNS[turn])["choices"][0]["message"]["content"] for turn in TURNS}
    assert {turn for turn in TURNS if shown[turn] is None} == {
        "thoughts alone", "a call", "a call without arguments", "a cut call",
        "thoughts between calls",
    }  # fmt: skip
    assert shown["nothing"] == ""


def test_d080_what_there_is_none_of_is_absent() -> None:
    message = whole(*TURNS["text"])["choices"][0]["message"]
    assert set(message) == {"role", "content", "refusal"}
    message = whole(*TURNS["a call"])["choices"][0]["message"]
    assert set(message) == {"role", "content", "refusal", "tool_calls"}


async def test_d068_d069_the_first_delta_of_a_call_has_what_later_ones_omit() -> None:
    found = deltas(await chunks(*TURNS["thoughts, text and two calls"]))
    assert found == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "x"},
        {"content": "y\n"},
        {"tool_calls": [{
            "index": 0, "id": "call_00", "type": "function",
            "function": {"name": "f", "arguments": ""},
        }]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]},
        {"tool_calls": [{
            "index": 1, "id": "call_01", "type": "function",
            "function": {"name": "g", "arguments": ""},
        }]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]  # fmt: skip


def test_d072_arguments_keep_their_last_braces() -> None:
    [call] = whole(*TURNS["a call"])["choices"][0]["message"]["tool_calls"]
    assert call == {
        "id": "call_00", "type": "function",
        "function": {"name": "f", "arguments": '{"id": 42"}}'},
    }  # fmt: skip


def test_a_cut_call_is_kept_as_far_as_it_came() -> None:
    [choice] = whole(*TURNS["a cut call"])["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"a":"b'


@pytest.mark.parametrize("turn", TURNS)
async def test_d086_d088_no_chunk_has_two_things_or_an_empty_one(turn: str) -> None:
    found = await chunks(*TURNS[turn])
    assert all(len(chunk["choices"]) == 1 for chunk in found)
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in found]
    assert [reason is None for reason in reasons] == [True] * (len(found) - 1) + [False]
    for delta in deltas(found)[1:]:
        assert len(delta) <= 1
        assert None not in delta.values() and delta.get("tool_calls") != []


NASTY = 'quote " backslash \\ newline \n nul \0 \u2028 é 😀 </tool_call>'


async def test_every_kind_of_delta_survives_whatever_it_holds() -> None:
    custom = called(NASTY, NASTY, NASTY, custom=True, call=1)
    turns: list[Batch] = [
        [started(), thought(NASTY), text(NASTY)],
        [*called(NASTY, NASTY, NASTY), *custom],
        [finished(CALLS)],
    ]
    message = whole(*turns)["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (NASTY, NASTY)
    function, free = (call[call["type"]] for call in message["tool_calls"])
    assert function == {"name": NASTY, "arguments": NASTY * 2}
    assert free == {"name": NASTY, "input": NASTY * 2}
    found = deltas(await chunks(*turns, strict=False))
    assert (found[1], found[2]) == ({"reasoning_content": NASTY}, {"content": NASTY})
    pieces = [delta["tool_calls"][0] for delta in found[3:-1]]
    assert [piece["index"] for piece in pieces] == [0, 0, 0, 1, 1, 1]
    assert pieces[4] == {"index": 1, "custom": {"input": NASTY}}


async def test_custom_calls_have_their_own_members() -> None:
    turns: list[Batch] = [
        [started(0), started(1)],
        [*called("c", "a\n", "b", custom=True), *called("f", "{}", index=1)],
        [finished(CALLS), finished(CALLS, index=1)],
    ]
    [call] = whole(*turns, n=2)["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "call_00", "type": "custom", "custom": {"name": "c", "input": "a\nb"}}
    found = await chunks(*turns, n=2, strict=False)
    first = {"index": 0, "id": "call_00", "type": "custom", "custom": {"name": "c", "input": ""}}
    assert [delta["tool_calls"] for delta in deltas(found)[1:-1]] == [
        [first],
        [{"index": 0, "custom": {"input": "a\n"}}],
        [{"index": 0, "custom": {"input": "b"}}],
    ]
    assert deltas(found, 1)[2] == {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}


@pytest.mark.parametrize("turn", TURNS)
async def test_reasoning_can_be_left_out(turn: str) -> None:
    body = whole(*TURNS[turn], with_reasoning=False)
    message = message_of(body)
    assert "reasoning_content" not in message
    full = message_of(whole(*TURNS[turn]))
    assert message == {k: v for k, v in full.items() if k != "reasoning_content"}
    found = await chunks(*TURNS[turn], with_reasoning=False)
    assert put_together(found) == {0: message}
    assert not any("reasoning_content" in delta for delta in deltas(found))
    assert body["usage"] == whole(*TURNS[turn])["usage"]


async def test_d098_reasoning_tokens_are_counted_over_all_choices() -> None:
    ends: Batch = [(i, ended(FinishCause.LIMIT, None, Usage(5, 0, 8, 8 - i))) for i in (0, 1)]
    turns: list[Batch] = [[started(0), started(1), thought("x"), thought("y", 1)], ends]
    body = whole(*turns, n=2)
    assert body["usage"]["completion_tokens"] == 16
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 15}
    assert [choice["finish_reason"] for choice in body["choices"]] == ["length", "length"]


def record(char: str, channel: Channel, *, forced: bool = False) -> TokenRecord:
    [token] = ids(char)
    score = None if forced else TokenScore(token, -0.5, 1)
    return TokenRecord(token, 0, 0.0, score, channel)


SEEN: list[Batch] = [
    [started(), thought("a", records=[record("a", Channel.REASONING)])],
    [thought("", records=[record("<", Channel.MARKUP, forced=True)])],
    [text("b", records=[record("b", Channel.TEXT)])],
    called("f", "{}", records=[record("{", Channel.CALL), record("}", Channel.CALL)]),
    [finished(CALLS)],
]


@pytest.mark.parametrize("with_reasoning", [True, False])
async def test_every_token_has_its_entry_in_order_but_forced_ones(with_reasoning: bool) -> None:
    asked = {"logprobs": True, "return_token_ids": True}
    [choice] = whole(*SEEN, with_reasoning=with_reasoning, **asked)["choices"]
    assert [entry["token"] for entry in choice["logprobs"]["content"]] == ["a", "b", "{", "}"]
    assert choice["token_ids"] == list(ids("a<b{}"))
    found = await chunks(*SEEN, with_reasoning=with_reasoning, **asked)
    pieces = [chunk["choices"][0] for chunk in found]
    entries = [e for piece in pieces for e in (piece["logprobs"] or {}).get("content", [])]
    assert entries == choice["logprobs"]["content"]
    shown = [token for piece in pieces for token in piece.get("token_ids", [])]
    assert shown == choice["token_ids"]


async def test_tokens_that_show_nothing_have_a_chunk_only_where_they_are_asked_for() -> None:
    plain, seen = await chunks(*SEEN), await chunks(*SEEN, logprobs=True)
    assert [delta for delta in deltas(plain) if not delta] == [{}]  # the end
    assert [delta for delta in deltas(seen) if not delta] == [{}, {}]
    assert len(deltas(seen)) == len(deltas(plain)) + 1
