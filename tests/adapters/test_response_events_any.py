"""Whatever a generation does, its events are in order and add up to the buffered response."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.response_events import ResponseDraft
from engine.errors import GenerationFailed, RequestError
from engine.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Channel,
    FinishCause,
    Finished,
    ReasoningDelta,
    SemanticEvent,
    Started,
    TextDelta,
    TokenRecord,
    TokenScore,
    Usage,
)
from tests.adapters.drafts import (
    NAMES,
    ORIGINS,
    Reader,
    head,
    origin_of,
    raw_events,
    sealed,
    timeless,
    valid_event,
)
from tests.serving import ids

TOKENS = ids("abcxyz<{")
USAGE = Usage(5, 1, 4, 2)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
PIECES = st.lists(TEXTS, max_size=3)


def record(token: int, channel: Channel, forced: bool) -> TokenRecord:
    score = TokenScore(token, -0.25, 1, ((token, -0.25), (TOKENS[0], -2.0)))
    return TokenRecord(token, 0, 0.0, None if forced else score, channel)


RECORDS = st.lists(
    st.builds(record, st.sampled_from(TOKENS), st.sampled_from(Channel), st.booleans()), max_size=2
).map(tuple)
TEXT = st.builds(TextDelta, TEXTS, st.just(USAGE), RECORDS)
THOUGHT = st.builds(ReasoningDelta, TEXTS, st.just(USAGE), RECORDS)
NAME = st.sampled_from([*ORIGINS, "made_up"])


@st.composite
def a_call(draw: st.DrawFn, *, whole: bool = True) -> list[SemanticEvent]:
    name = draw(NAME)
    custom = origin_of(name).kind == "custom"
    events: list[SemanticEvent] = [CallStart(0, "call_1", name, custom, USAGE, draw(RECORDS))]
    pieces = draw(st.one_of(PIECES, st.just(['{"a":', "1}"])))
    events += [CallDelta(0, piece, USAGE, draw(RECORDS)) for piece in pieces]
    if whole:
        events.append(CallEnd(0, USAGE, draw(RECORDS)))
    return events


@st.composite
def outputs(draw: st.DrawFn) -> list[SemanticEvent]:
    """The events of one generation; only its last call may be cut."""
    one = st.one_of(TEXT, THOUGHT).map(lambda event: [event])
    parts = draw(st.lists(st.one_of(one, a_call()), max_size=6))
    if draw(st.booleans()):
        parts.append(draw(a_call(whole=False)))
    events: list[SemanticEvent] = [Started(USAGE), *chain.from_iterable(parts)]
    if draw(st.integers(0, 9)):
        events.append(Finished(draw(st.sampled_from(FinishCause)), USAGE, error="broke"))
    return events


def draft_of(details: bool, keep: bool = False) -> ResponseDraft:
    names, seal = (NAMES, sealed) if details else (None, None)
    return ResponseDraft(head(), origin_of, names=names, seal=seal, keep_events=keep)


def entries(events: list[SemanticEvent]) -> list[int]:
    """The tokens that may have log probabilities."""
    return [
        record.token
        for event in events
        if not isinstance(event, Started | Finished)
        for record in getattr(event, "records", ())
        if record.channel is Channel.TEXT and record.score is not None
    ]


def shown(response: dict[str, Any]) -> list[int]:
    tokens = [
        entry["bytes"]
        for item in response["output"]
        if item["type"] == "message"
        for entry in item["content"][0]["logprobs"]
    ]
    return [ids(bytes(data).decode())[0] for data in tokens]


@settings(max_examples=300, deadline=None)
@given(outputs(), st.booleans(), st.data())
def test_events_are_in_order_and_add_up(
    events: list[SemanticEvent], details: bool, data: st.DataObject
) -> None:
    draft, reader = draft_of(details, keep=True), Reader()
    sent = []
    for raw in raw_events(draft, events):
        sent.append(valid_event(raw))
        reader.take(sent[-1])
        if data.draw(st.integers(0, 5)) == 0 and (beat := draft.heartbeat()):
            sent.append(valid_event(beat))
            reader.take(sent[-1])
    response = json.loads(draft.final)
    assert reader.response == response
    assert [json.loads(payload) for payload in draft.kept] == sent
    assert json.loads(draft.output()) == response["output"]
    if details:
        wanted, found = entries(events), shown(response)
        last_text = max(
            (i for i, e in enumerate(events) if isinstance(e, TextDelta) and e.text), default=-1
        )
        assert found == wanted[: len(found)]
        assert len(found) >= len(entries(events[: last_text + 1]))


@settings(max_examples=150, deadline=None)
@given(outputs())
def test_a_heartbeat_shows_all_that_was_streamed(events: list[SemanticEvent]) -> None:
    draft, reader = draft_of(details=True), Reader()
    for raw in draft.begin():
        reader.take(valid_event(raw))
    for event in events:
        if isinstance(event, Finished):
            break
        for raw in draft.take(event):
            reader.take(valid_event(raw))
        beat = valid_event(draft.heartbeat())
        reader.take(beat)
        assert beat["response"]["output"] == reader.output


@settings(max_examples=150, deadline=None)
@given(outputs(), st.booleans())
def test_a_buffered_response_is_the_streamed_one(
    events: list[SemanticEvent], details: bool
) -> None:
    streamed, buffered = draft_of(details), draft_of(details)
    for _ in raw_events(streamed, events):
        pass
    try:
        for event in events:
            for _ in buffered.take(event):
                pass
        buffered.end()
    except (GenerationFailed, RequestError):
        assert json.loads(streamed.final)["status"] == "failed"
    else:
        assert timeless(json.loads(buffered.final)) == timeless(json.loads(streamed.final))
