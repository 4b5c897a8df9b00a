"""Every chunk of both OpenAI generation routes against its generated model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from adapters.chat_encode import chunk_form
from adapters.chunks import ChunkEncoder, ChunkForm, encode_stream
from adapters.completions import CHUNK_FORM
from adapters.generation import Reply
from engine.events import FinishCause
from generated.chat_completions import ChatCompletionChunk
from generated.completions import CompletionChunk
from generated.shared import StreamOptions
from tests.adapters.played import Batch, finished, payloads, played, reply_of, started, text

FORMS: dict[str, tuple[Callable[[], ChunkForm], type[BaseModel], str, bool]] = {
    "chat": (chunk_form, ChatCompletionChunk, "chat.completion.chunk", True),
    "completions": (lambda: CHUNK_FORM, CompletionChunk, "text_completion", False),
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
    encoder = ChunkEncoder(reply or reply_for(form, n), n, shape(), stream_options, None)
    *found, done = await payloads(encode_stream(played(*batches), encoder))
    assert done == "[DONE]"
    for chunk in found:
        model.model_validate(chunk, strict=True)
    return found


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
