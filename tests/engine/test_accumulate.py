"""Events to outputs, in choice order, and failures to exceptions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.accumulate import accumulate
from engine.errors import GenerationFailed, RequestError
from engine.events import (
    CallBlock,
    CallDelta,
    CallEnd,
    CallStart,
    FinishCause,
    Finished,
    Output,
    PromptScored,
    ReasoningBlock,
    ReasoningDelta,
    SemanticEvent,
    Started,
    TextBlock,
    TextDelta,
    TokenRecord,
    TokenScore,
    Usage,
)

Batch = list[tuple[int, SemanticEvent]]
ONE, TWO = Usage(4, 2, 1), Usage(4, 2, 2)


async def batches(*given: Batch) -> AsyncIterator[Batch]:
    for batch in given:
        yield batch


async def test_choices_come_out_in_order_with_their_last_counts() -> None:
    found = await accumulate(
        batches(
            [(1, Started(ONE)), (0, Started(ONE)), (1, TextDelta("b", ONE))],
            [(1, Finished(FinishCause.STOP_STRING, TWO, "x")), (0, TextDelta("a", ONE))],
            [(0, TextDelta("c", TWO)), (0, Finished(FinishCause.LIMIT, TWO))],
        ),
        2,
    )
    assert found == [
        Output((TextBlock("ac"),), Finished(FinishCause.LIMIT, TWO)),
        Output((TextBlock("b"),), Finished(FinishCause.STOP_STRING, TWO, "x")),
    ]


@pytest.mark.parametrize("cause", FinishCause)
async def test_every_cause_is_an_output_or_a_failure(cause: FinishCause) -> None:
    given = batches([(0, TextDelta("a", ONE)), (0, Finished(cause, ONE, None, "why"))])
    if cause is FinishCause.DEAD_END:
        with pytest.raises(RequestError, match="why") as caught:
            await accumulate(given, 1)
        assert caught.value.code == "no_token_allowed"
    elif cause in (FinishCause.FAILED, FinishCause.CANCELLED):
        with pytest.raises(GenerationFailed, match="why"):
            await accumulate(given, 1)
    else:
        end = Finished(cause, ONE, None, "why")
        assert await accumulate(given, 1) == [Output((TextBlock("a"),), end)]


async def test_records_scores_and_echo_add_up_in_order() -> None:
    records = tuple(TokenRecord(token, token, 0.5) for token in range(3))
    scores = tuple(TokenScore(token, -1.0, 1) for token in range(2))
    [found] = await accumulate(
        batches(
            [(0, PromptScored((None, scores[0]), ONE))],
            [(0, PromptScored(scores[1:], ONE)), (0, TextDelta("echo a", ONE, records[:1], 5))],
            [(0, TextDelta("", ONE, records[1:])), (0, Finished(FinishCause.LIMIT, TWO))],
        ),
        1,
    )
    end = Finished(FinishCause.LIMIT, TWO)
    assert found == Output((TextBlock("echo a"),), end, 5, records, (None, *scores))


async def test_blocks_keep_their_order_and_a_cut_call_is_not_complete() -> None:
    records = tuple(TokenRecord(token, token, 0.5) for token in range(4))
    [found] = await accumulate(
        batches(
            [(0, ReasoningDelta("let ", ONE, records[:1])), (0, ReasoningDelta("me", ONE))],
            [(0, TextDelta("Well", ONE)), (0, CallStart(0, "a", "f", False, ONE, records[1:2]))],
            [(0, CallDelta(0, '{"x"', ONE)), (0, CallDelta(0, ": 1}", ONE, records[2:3]))],
            [(0, CallEnd(0, ONE, records[3:])), (0, TextDelta("then", ONE))],
            [(0, CallStart(1, "b", "g", True, ONE)), (0, CallDelta(1, "cu", ONE))],
            [(0, Finished(FinishCause.LIMIT, TWO))],
        ),
        1,
    )
    assert found.blocks == (
        ReasoningBlock("let me"),
        TextBlock("Well"),
        CallBlock("a", "f", '{"x": 1}', False, True),
        TextBlock("then"),
        CallBlock("b", "g", "cu", True, False),
    )
    assert (found.reasoning, found.text) == ("let me", "Wellthen")
    assert [call.id for call in found.calls] == ["a", "b"]
    assert found.records == records


async def test_a_choice_without_an_end_is_a_failure() -> None:
    with pytest.raises(GenerationFailed):
        await accumulate(batches([(0, Finished(FinishCause.END, ONE)), (1, Started(ONE))]), 2)


async def test_the_first_failure_ends_the_wait() -> None:
    async def endless() -> AsyncIterator[Batch]:
        yield [(0, Finished(FinishCause.FAILED, ONE, None, "first"))]
        raise AssertionError("read on after a failure")

    with pytest.raises(GenerationFailed, match="first"):
        await accumulate(endless(), 2)
