"""What both OpenAI generation routes share, and every chunk against its generated model."""

from __future__ import annotations

import typing
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic import BaseModel

from adapters.chat_completions import CHUNK_FORM as CHAT_FORM
from adapters.completions import CHUNK_FORM as TEXT_FORM
from adapters.generation import (
    FINISH_REASONS,
    ChunkEncoder,
    ChunkForm,
    Reply,
    encode_stream,
    fingerprint,
    guarded,
)
from engine.choice import BROKEN
from engine.errors import GenerationFailed
from engine.events import FinishCause, Finished, Usage
from generated.chat_completions import ChatCompletionChunk, ChatFinishReason
from generated.completions import CompletionChunk, CompletionFinishReason
from generated.shared import ErrorEnvelope, FlareReply, StreamOptions
from generated.shared import Usage as UsageModel
from tests.adapters.played import Batch, finished, payloads, played, reply_of, started, text
from tests.serving import facts, model_info

FORMS: dict[str, tuple[ChunkForm, type[BaseModel], str, bool]] = {
    "chat": (CHAT_FORM, ChatCompletionChunk, "chat.completion.chunk", True),
    "completions": (TEXT_FORM, CompletionChunk, "text_completion", False),
}
NASTY = 'quote " backslash \\ newline \n tab \t nul \0 \u2028 é 😀 </script>'


def reply_for(form: str, n: int = 1, **shown: bool) -> Reply:
    _, _, kind, reasoning = FORMS[form]
    return reply_of(kind, n, reasoning=reasoning, **shown)


async def chunks(
    form: str, *batches: Batch, n: int = 1, reply: Reply | None = None, **options: bool
) -> list[Any]:
    """The chunks before [DONE], each valid in the generated model."""
    shape, model, _, _ = FORMS[form]
    stream_options = StreamOptions(**options) if options else None
    encoder = ChunkEncoder(reply or reply_for(form, n), n, shape, stream_options, None)
    *found, done = await payloads(encode_stream(played(*batches), encoder))
    assert done == "[DONE]"
    for chunk in found:
        model.model_validate(chunk, strict=True)
    return found


def broken_stream(*batches: Batch) -> AsyncGenerator[bytes, None]:
    encoder = ChunkEncoder(reply_for("chat"), 1, CHAT_FORM, None, None)
    return guarded(encode_stream(played(*batches), encoder))


def test_every_cause_has_a_reason_or_is_a_failure() -> None:
    assert set(FINISH_REASONS) | set(BROKEN) == set(FinishCause)
    assert not set(FINISH_REASONS) & set(BROKEN)
    for alias in (ChatFinishReason, CompletionFinishReason):
        known = typing.get_args(typing.get_args(alias.__value__)[0])
        assert set(FINISH_REASONS.values()) <= set(known)


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (FinishCause.END, "stop"),
        (FinishCause.STOP_STRING, "stop"),
        (FinishCause.STOP_TOKEN, "stop"),
        (FinishCause.LIMIT, "length"),
        (FinishCause.CONTEXT_FULL, "length"),
        (FinishCause.COMPLETE, "stop"),
        (FinishCause.DEADLINE, "length"),
        (FinishCause.REPETITION, "length"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
async def test_the_last_chunk_carries_the_reason(
    form: str, cause: FinishCause, reason: str
) -> None:
    stops: dict[FinishCause, str | int] = {
        FinishCause.STOP_STRING: "END", FinishCause.STOP_TOKEN: 7,
    }  # fmt: skip
    stop = stops.get(cause)
    *before, last = await chunks(form, [started(), text("hi")], [finished(cause, stop=stop)])
    [choice] = last["choices"]
    assert (choice["finish_reason"], choice["stop_reason"]) == (reason, stop)
    assert [c["choices"][0]["finish_reason"] for c in before] == [None] * len(before)


@pytest.mark.parametrize("form", FORMS)
async def test_text_survives_whatever_it_holds(form: str) -> None:
    found = await chunks(form, [started(), text(NASTY)], [text("a"), finished()])
    deltas = [
        choice["delta"].get("content", "") if form == "chat" else choice["text"]
        for chunk in found
        for choice in chunk["choices"]
    ]
    assert "".join(deltas) == NASTY + "a"


@pytest.mark.parametrize("form", FORMS)
async def test_every_chunk_has_the_same_head(form: str) -> None:
    found = await chunks(form, [started(), text("a")], [finished()], include_usage=True)
    fields = ("id", "object", "created", "model", "system_fingerprint")
    assert len({tuple(chunk[field] for field in fields) for chunk in found}) == 1
    assert (found[0]["object"], found[0]["model"]) == (FORMS[form][2], "first")


async def test_the_role_comes_once_for_each_chat_choice_and_first() -> None:
    batches: list[Batch] = [
        [started(1), started(0), text("b", 1)],
        [text("a", 0), text("c", 1), finished(index=1)],
        [finished(index=0)],
    ]
    found = await chunks("chat", *batches, n=2)
    for index in (0, 1):
        deltas = [c["choices"][0]["delta"] for c in found if c["choices"][0]["index"] == index]
        assert deltas[0] == {"role": "assistant", "content": ""}
        assert not any("role" in delta for delta in deltas[1:])
        assert deltas[-1] == {}


async def test_the_first_token_of_a_completion_has_no_chunk_of_its_own() -> None:
    found = await chunks("completions", [started()], [text("a")], [finished()])
    assert [c["choices"][0]["text"] for c in found] == ["a", ""]


BATCHES: list[Batch] = [[started(), text("a", output=2)], [text("b", output=3)], [finished()]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"include_usage": False},
        {"continuous_usage_stats": True},
        {"include_usage": False, "continuous_usage_stats": True},
    ],
)
async def test_usage_is_absent_unless_asked_for(form: str, options: dict[str, Any]) -> None:
    found = await chunks(form, *BATCHES, **options)
    assert not any("usage" in chunk for chunk in found)


@pytest.mark.parametrize("form", FORMS)
async def test_asked_for_usage_is_null_until_a_chunk_without_choices(form: str) -> None:
    *before, last = await chunks(form, *BATCHES, include_usage=True)
    assert [chunk["usage"] for chunk in before] == [None] * len(before)
    assert last["choices"] == []
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (5, 3)


@pytest.mark.parametrize("form", FORMS)
async def test_cumulative_usage_counts_tokens_on_every_chunk(form: str) -> None:
    found = await chunks(form, *BATCHES, include_usage=True, continuous_usage_stats=True)
    counts = [chunk["usage"]["completion_tokens"] for chunk in found]
    assert counts == ([1] if form == "chat" else []) + [2, 3, 3, 3]
    assert found[-1]["choices"] == []


def test_a_prompt_counts_once_with_the_reuse_of_its_first_choice() -> None:
    reply = reply_for("chat", n=2)
    counts = {
        3: Usage(20, 16, 4), 1: Usage(10, 9, 2), 2: Usage(20, 0, 3), 0: Usage(10, 1, 1),
    }  # fmt: skip
    for index, usage in counts.items():
        reply.count(index, usage)
    reply.count(0, Usage(10, 1, 5))  # the latest count of a choice stands
    found = reply.usage()
    UsageModel.model_validate(found, strict=True)
    assert found == {
        "prompt_tokens": 30,
        "completion_tokens": 14,
        "total_tokens": 44,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def test_raw_completions_have_no_reasoning_count() -> None:
    reply = reply_for("completions")
    reply.count(0, Usage(1, 0, 1))
    UsageModel.model_validate(reply.usage(), strict=True)
    assert "completion_tokens_details" not in reply.usage()


@pytest.mark.parametrize("cause", sorted(BROKEN, key=str))
async def test_a_broken_choice_ends_the_stream_with_an_error(cause: FinishCause) -> None:
    found = await payloads(broken_stream([started(), finished(cause)]))
    ErrorEnvelope.model_validate(found[-1], strict=True)
    fault = "invalid_request_error" if cause is FinishCause.DEAD_END else "server_error"
    assert found[-1]["error"]["type"] == fault
    assert "[DONE]" not in found


async def test_a_failure_before_the_first_token_has_no_role_chunk() -> None:
    [only] = await payloads(broken_stream([finished(FinishCause.FAILED)]))
    assert set(only) == {"error"}


async def test_an_unknown_error_in_a_stream_says_nothing_of_itself() -> None:
    async def broken() -> typing.AsyncGenerator[bytes, None]:
        yield b"data: 1\n\n"
        raise KeyError("secret")

    found = [item async for item in guarded(broken())]
    assert found[0] == b"data: 1\n\n" and b"secret" not in found[1]


TIMES = {"time_to_first_token_ms": 250.0, "decode_time_ms": 500.0}


@pytest.mark.parametrize("form", FORMS)
async def test_times_come_once_on_the_last_chunk(form: str) -> None:
    batches: list[Batch] = [[text("a"), text("b", 1)], [finished(), finished(index=1)]]
    *before, last = await chunks(form, *batches, n=2)
    assert last["flare"] == TIMES
    assert not any("flare" in chunk for chunk in before)
    *before, last = await chunks(form, *batches, n=2, include_usage=True)
    assert (last["choices"], last["flare"]) == ([], TIMES)
    assert not any("flare" in chunk for chunk in before)


def test_times_span_all_choices() -> None:
    reply = reply_for("chat", n=2)
    assert reply.flare() == {"time_to_first_token_ms": 0.0, "decode_time_ms": 0.0}
    for first, decode in ((0.5, 0.25), (0.25, 1.75)):
        end = Finished(FinishCause.END, Usage(), first_token=first, decode=decode)
        reply.finish(end)
    found = reply.flare()
    FlareReply.model_validate(found, strict=True)
    assert found == {"time_to_first_token_ms": 250.0, "decode_time_ms": 1750.0}


@pytest.mark.parametrize("form", FORMS)
async def test_usage_ends_a_stream_of_token_ids_that_has_no_chunk_for_it(form: str) -> None:
    """Helios: usage on the terminal chunk when token ids are requested."""
    reply = reply_for(form, ids=True)
    *before, last = await chunks(form, *BATCHES, reply=reply)
    assert last["choices"][0]["finish_reason"] and last["usage"]["completion_tokens"] == 3
    assert not any("usage" in chunk for chunk in before)
    reply = reply_for(form, ids=True)
    found = await chunks(form, *BATCHES, reply=reply, include_usage=True)
    assert [bool(chunk["usage"]) for chunk in found] == [False] * (len(found) - 1) + [True]


def test_the_fingerprint_changes_with_what_computes() -> None:
    one = fingerprint(model_info(facts()))
    assert one == fingerprint(model_info(facts(), created=1, id="other"))
    assert one != fingerprint(model_info(facts(), checkpoint="other"))


def test_the_failure_names_its_reason() -> None:
    assert GenerationFailed("why").message == "why"
