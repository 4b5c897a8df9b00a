"""Tokens of a conversation's output become thoughts, answer and calls, with their records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.hermes import HERMES
from engine.dialects.marks import Marks
from engine.dialects.mistral import MISTRAL
from engine.dialects.pieces import Expected
from engine.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Channel,
    Delta,
    FinishCause,
    ReasoningDelta,
    SemanticEvent,
    TextDelta,
    TokenRecord,
)
from engine.speech import Reading
from tests.engine.choices import choice, end, play, said
from tests.serving import ids, tokenizer

TOOLS = {"f": Tool("f"), "free": Tool("free", format=CustomFormat())}


def reading(*, trusted: bool = False, parallel: bool = True, **expected: object) -> Reading:
    marks = Marks(HERMES.spellings, tokenizer().control_tokens)
    numbers = iter(range(100))
    return Reading(
        parser=lambda: HERMES.parser(marks, Expected(TOOLS, trusted=trusted, **expected)),  # type: ignore[arg-type]
        new_id=lambda: f"call_{next(numbers)}",
        takes_id=bool,
        marks=marks.of_token,
        spellings=marks.chars,
        parallel_calls=parallel,
    )


def call_text(name: str, arguments: object) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'


def records_of(events: Sequence[SemanticEvent]) -> list[TokenRecord]:
    return [record for event in events if isinstance(event, Delta) for record in event.records]


def thoughts(events: Sequence[SemanticEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


@pytest.mark.parametrize("trusted", [False, True])
def test_thoughts_answer_and_calls_are_told_apart_and_counted(trusted: bool) -> None:
    text = "<think>\nhmm\n</think>\n\nWell.\n" + call_text("f", {"x": 1}) + call_text("g", {})
    events = play(choice(reading=reading(trusted=trusted)), [*ids(text), 0], FinishCause.END)
    assert (thoughts(events), said(events)) == ("hmm", "Well.")
    starts = [event for event in events if isinstance(event, CallStart)]
    assert [(s.call, s.id, s.name) for s in starts] == [(0, "call_0", "f"), (1, "call_1", "g")]
    arguments = [e.arguments for e in events if isinstance(e, CallDelta) and e.call == 0]
    assert "".join(arguments) == '{"x": 1}'
    assert (len(arguments) > 1) is trusted  # streamed only where masks guarantee the rest
    assert [event.call for event in events if isinstance(event, CallEnd)] == [0, 1]
    finished = end(events)
    assert finished.cause is FinishCause.TOOL_CALLS
    assert finished.usage.reasoning == len("hmm")  # a token is a byte here
    assert finished.usage.output == len(ids(text)) + 1


def test_every_token_has_a_record_in_order_with_its_channel() -> None:
    text = "<think>a</think>b" + call_text("f", {})
    tokens = ids(text)
    events = play(choice(reading=reading(), records=True), [*tokens, 0], FinishCause.END)
    records = records_of(events)
    assert [record.token for record in records] == list(tokens)
    channels = [record.channel for record in records]
    expected = [Channel.MARKUP, Channel.REASONING, Channel.MARKUP, Channel.TEXT, Channel.MARKUP]
    assert channels[:5] == expected
    assert set(channels[5:]) <= {Channel.CALL, Channel.MARKUP}
    assert channels.count(Channel.TEXT) == 1


def test_a_call_that_the_limit_cuts_stays_open() -> None:
    text = call_text("f", {"x": "long"})[:-20]
    events = play(choice(reading=reading()), ids(text), FinishCause.LIMIT)
    assert any(isinstance(event, CallStart) for event in events)
    assert not any(isinstance(event, CallEnd) for event in events)
    assert end(events).cause is FinishCause.LIMIT
    assert said(events) == ""


def test_a_complete_call_does_not_hide_the_limit() -> None:
    events = play(choice(reading=reading()), ids(call_text("f", {})), FinishCause.LIMIT)
    assert any(isinstance(event, CallEnd) for event in events)
    assert end(events).cause is FinishCause.LIMIT


def test_the_turn_ends_after_its_only_call() -> None:
    text = call_text("f", {}) + call_text("f", {})
    events = play(choice(reading=reading(parallel=False)), [*ids(text), 0], FinishCause.END)
    assert sum(isinstance(event, CallEnd) for event in events) == 1
    assert end(events).cause is FinishCause.TOOL_CALLS


def test_a_custom_tool_gets_its_text() -> None:
    text = call_text("free", {"input": 'a "b"\n'})
    events = play(choice(reading=reading()), [*ids(text), 0], FinishCause.END)
    [start] = [event for event in events if isinstance(event, CallStart)]
    assert start.custom
    assert "".join(e.arguments for e in events if isinstance(e, CallDelta)) == 'a "b"\n'


def test_a_stop_may_spell_a_delimiter() -> None:
    events = play(choice("</think>", reading=reading(tail="<think>")), ids("a<think>b</think>c"))
    finished = end(events)
    assert (finished.cause, finished.stop) == (FinishCause.STOP_STRING, "</think>")


def test_markup_without_a_call_is_answer() -> None:
    text = "<tool_call> is a tag"
    events = play(choice(reading=reading()), [*ids(text), 0], FinishCause.END)
    assert said(events) == text
    assert end(events).cause is FinishCause.END


def test_a_delta_is_one_kind_of_text() -> None:
    events = play(choice(reading=reading()), [*ids("<think>a</think>b"), 0], FinishCause.END)
    kinds = [type(event) for event in events if isinstance(event, TextDelta | ReasoningDelta)]
    assert kinds == [ReasoningDelta, TextDelta]


def test_a_turn_ends_once() -> None:
    """A stop string that holds the end of the only call back until the model ends."""
    one = choice("</tool_call>Z", reading=reading(parallel=False))
    events = play(one, [*ids(call_text("f", {})), 0], FinishCause.END)
    assert end(events).cause is FinishCause.TOOL_CALLS
    assert sum(isinstance(event, CallEnd) for event in events) == 1


def test_ids_that_the_templates_refuse_are_replaced() -> None:
    marks = Marks(MISTRAL.spellings, tokenizer().control_tokens)
    read = replace(
        reading(),
        parser=lambda: MISTRAL.parser(marks, Expected(TOOLS)),
        takes_id=MISTRAL.takes_id,
        new_id=MISTRAL.new_id,
    )
    for own, kept in (("abcDEF123", True), ("call_1", False)):
        text = f'[TOOL_CALLS] [{{"name": "f", "arguments": {{}}, "id": "{own}"}}]'
        events = play(choice(reading=read), [*ids(text), 0], FinishCause.END)
        [start] = [event for event in events if isinstance(event, CallStart)]
        assert (start.id == own) is kept
        assert MISTRAL.takes_id(start.id)


def test_only_the_tools_of_the_choice_are_called() -> None:
    text = call_text("g", {}) + call_text("f", {})
    read = reading(names=frozenset({"f"}))
    events = play(choice(reading=read), [*ids(text), 0], FinishCause.END)
    assert [e.name for e in events if isinstance(e, CallStart)] == ["f"]
    assert '"name": "g"' in said(events)


@pytest.mark.parametrize("trusted", [False, True])
def test_half_a_delimiter_is_text_unless_masks_let_nothing_else_begin(trusted: bool) -> None:
    marks = Marks(HERMES.spellings, {})  # no delimiter is a token here
    read = replace(
        reading(),
        parser=lambda: HERMES.parser(marks, Expected(TOOLS, trusted=trusted)),
        marks={},
        spellings={},
    )
    text = call_text("f", {}) + "\n<tool_"
    tokens = tokenizer().encode(text, add_special_tokens=False)
    events = play(choice(reading=read), tokens, FinishCause.LIMIT)
    assert said(events).strip() == ("" if trusted else "<tool_")
    assert sum(isinstance(event, CallEnd) for event in events) == 1
