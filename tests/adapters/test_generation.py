"""What both OpenAI generation routes share: counts, times, and failures of a stream."""

from __future__ import annotations

import typing
from collections.abc import AsyncGenerator

import pytest

from adapters import sse
from adapters.chat_encode import chunk_form
from adapters.chunks import ChunkEncoder, encode_stream
from adapters.envelope import openai_body
from adapters.generation import FINISH_REASONS, fingerprint, guarded
from engine.choice import BROKEN
from engine.errors import GenerationFailed
from engine.events import FinishCause, Finished, Usage
from generated.chat_completions import ChatFinishReason
from generated.completions import CompletionFinishReason
from generated.shared import ErrorEnvelope, FlareReply
from generated.shared import Usage as UsageModel
from tests.adapters.played import Batch, finished, payloads, played, reply_of, started
from tests.serving import facts, model_info


def broken_stream(*batches: Batch) -> AsyncGenerator[bytes, None]:
    encoder = ChunkEncoder(reply_of("chat.completion.chunk"), 1, chunk_form(), None, None)
    return guarded(encode_stream(played(*batches), encoder), told)


def told(error: Exception) -> bytes:
    """The event of a failure, as OpenAI's protocols have it."""
    return sse.data(openai_body(error))


def test_every_cause_has_a_reason_or_is_a_failure() -> None:
    assert set(FINISH_REASONS) | set(BROKEN) == set(FinishCause)
    assert not set(FINISH_REASONS) & set(BROKEN)
    reasons = set(FINISH_REASONS.values())
    for alias, its in (
        (ChatFinishReason, reasons),
        (CompletionFinishReason, reasons - {"tool_calls"}),
    ):
        assert its <= set(typing.get_args(typing.get_args(alias.__value__)[0]))


def test_a_prompt_counts_once_with_the_reuse_of_its_first_choice() -> None:
    reply = reply_of("chat.completion", 2, reasoning=True)
    counts = {
        3: Usage(20, 16, 4, 2), 1: Usage(10, 9, 2), 2: Usage(20, 0, 3, 3), 0: Usage(10, 1, 1),
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
        "completion_tokens_details": {"reasoning_tokens": 5},
    }


def test_drafts_are_counted_over_all_choices_where_there_were_any() -> None:
    reply = reply_of("chat.completion", 2, reasoning=True)
    reply.count(0, Usage(10, 0, 9, 2, drafted=7, accepted=5))
    reply.count(1, Usage(10, 0, 9))
    found = reply.usage()
    UsageModel.model_validate(found, strict=True)
    assert found["completion_tokens_details"] == {
        "reasoning_tokens": 2,
        "accepted_prediction_tokens": 5,
        "rejected_prediction_tokens": 2,
    }


def test_raw_completions_have_no_reasoning_count() -> None:
    reply = reply_of("text_completion")
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

    found = [item async for item in guarded(broken(), told)]
    assert found[0] == b"data: 1\n\n" and b"secret" not in found[1]


async def test_nothing_follows_the_event_of_a_failure() -> None:
    closed = []

    async def broken() -> typing.AsyncGenerator[bytes, None]:
        try:
            yield b"data: 1\n\n"
            raise GenerationFailed("why")
        finally:
            closed.append(True)

    found = [item async for item in guarded(broken(), lambda error: f"!{error}".encode())]
    assert found == [b"data: 1\n\n", b"!why"] and closed == [True]


def test_times_span_all_choices() -> None:
    reply = reply_of("chat.completion", 2)
    assert reply.flare() == {"time_to_first_token_ms": 0.0, "decode_time_ms": 0.0}
    for first, decode in ((0.5, 0.25), (0.25, 1.75)):
        end = Finished(FinishCause.END, Usage(), first_token=first, decode=decode)
        reply.finish(end)
    found = reply.flare()
    FlareReply.model_validate(found, strict=True)
    assert found == {"time_to_first_token_ms": 250.0, "decode_time_ms": 1750.0}


def test_the_fingerprint_changes_with_what_computes() -> None:
    one = fingerprint(model_info(facts()))
    assert one == fingerprint(model_info(facts(), created=1, id="other"))
    assert one != fingerprint(model_info(facts(), checkpoint="other"))


def test_the_failure_names_its_reason() -> None:
    assert GenerationFailed("why").message == "why"
