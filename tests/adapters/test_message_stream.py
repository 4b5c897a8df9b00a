"""The events of a message: their grammar, and that they make the whole message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.generation import guarded
from adapters.message_edits import EditReport
from adapters.message_encode import (
    PING,
    STOP_REASONS,
    MessageHead,
    MessageStream,
    encode,
    error_event,
)
from engine.choice import BROKEN
from engine.events import FinishCause, Usage
from tests.adapters.asgi import SEAL
from tests.adapters.messaging import call_of, events_of, rebuilt, whole_of
from tests.adapters.played import (
    Batch,
    accumulated,
    called,
    ended,
    finished,
    played,
    started,
    text,
    thought,
)

CALLS, LIMIT = FinishCause.TOOL_CALLS, FinishCause.LIMIT
PROMPT = (1, 2, 3, 4, 5)


def head(*, omitted: bool = False, edits: EditReport | None = None) -> MessageHead:
    return MessageHead(call_of(), omits_thoughts=omitted, edits=edits)


def streamed(message: MessageHead, *batches: Batch) -> AsyncGenerator[bytes, None]:
    return MessageStream(message, played(*batches, prompts=[PROMPT])).events()


async def events(*batches: Batch, **options: Any) -> list[dict[str, Any]]:
    return events_of([item async for item in streamed(head(**options), *batches)])


def shown(found: list[dict[str, Any]]) -> list[str]:
    """The events between start and end, as short lines."""
    lines = []
    for event in found[1:-2]:
        if event["type"] == "content_block_start":
            lines.append(f"{event['index']} {event['content_block']['type']}")
        elif event["type"] == "content_block_delta":
            delta = {key: value for key, value in event["delta"].items() if key != "type"}
            [(member, value)] = delta.items()
            lines.append(f"{event['index']} {member} {value}")
        else:
            lines.append(f"{event['index']} end")
    return lines


def signed(thought: str, index: int = 0) -> str:
    return f"{index} signature {SEAL.sign(thought)}"


TURNS: dict[str, tuple[list[Batch], list[str]]] = {
    "nothing": ([[started()], [finished()]], []),
    "text": (
        [[started(), text("a")], [text("b"), finished()]],
        ["0 text", "0 text a", "0 text b", "0 end"],
    ),
    "thoughts alone": (
        [[started(), thought("x"), thought("y")], [finished(LIMIT)]],
        ["0 thinking", "0 thinking x", "0 thinking y", signed("xy"), "0 end"],
    ),
    "thoughts and text": (
        [[started(), thought("x")], [text("a")], [finished()]],
        ["0 thinking", "0 thinking x", signed("x"), "0 end", "1 text", "1 text a", "1 end"],
    ),
    "a call": (
        [[started()], called("f", '{"a":', "1}"), [finished(CALLS)]],
        ["0 tool_use", '0 partial_json {"a":', "0 partial_json 1}", "0 end"],
    ),
    "a call without arguments": (
        [[started()], called("f"), [finished(CALLS)]],
        ["0 tool_use", "0 end"],
    ),
    "two calls behind a text": (
        [[started(), text("a")], called("f", "{}"), called("g", call=1), [finished(CALLS)]],
        ["0 text", "0 text a", "0 end", "1 tool_use", "1 partial_json {}", "1 end",
         "2 tool_use", "2 end"],
    ),
    "everything in turns": (
        [[thought("x")], called("f", "{}"), [thought("y"), text("a"), thought("z"), text("b")],
         called("g", "{}", call=1), [text("c"), finished(CALLS)]],
        ["0 thinking", "0 thinking x", signed("x"), "0 end",
         "1 tool_use", "1 partial_json {}", "1 end",
         "2 thinking", "2 thinking y", signed("y", 2), "2 end", "3 text", "3 text a", "3 end",
         "4 thinking", "4 thinking z", signed("z", 4), "4 end", "5 text", "5 text b", "5 end",
         "6 tool_use", "6 partial_json {}", "6 end", "7 text", "7 text c", "7 end"],
    ),
    "empty pieces": (
        [[started(), text(""), thought("")], [thought("x"), text(""), thought("y"), thought("")],
         called("f", "", "{}", ""), [text(""), finished(CALLS)]],
        ["0 thinking", "0 thinking x", "0 thinking y", signed("xy"), "0 end",
         "1 tool_use", "1 partial_json {}", "1 end"],
    ),
    "a cut call": (
        [[started(), text("a")], called("f", '{"a":"b', whole=False), [finished(LIMIT)]],
        ["0 text", "0 text a", "0 end", "1 tool_use", '1 partial_json {"a":"b', "1 end"],
    ),
    "a call without an end before another": (
        [[started()], called("f", '{"a":', whole=False), called("g", call=1), [finished(CALLS)]],
        ["0 tool_use", '0 partial_json {"a":', "0 end", "1 tool_use", "1 end"],
    ),
    "a call cut before its arguments": (
        [[started()], called("f", whole=False), [finished(FinishCause.CONTEXT_FULL)]],
        ["0 tool_use", "0 end"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("turn", TURNS)
async def test_blocks_follow_one_another(turn: str) -> None:
    batches, lines = TURNS[turn]
    found = await events(*batches)
    assert shown(found) == lines
    assert rebuilt(found)["content"] == _content(batches)


def _content(batches: list[Batch], **options: Any) -> Any:
    return whole_of(encode(head(**options), accumulated(*batches)[0]))["content"]


@pytest.mark.parametrize("turn", TURNS)
async def test_omitted_thoughts_have_no_deltas(turn: str) -> None:
    batches, lines = TURNS[turn]
    found = await events(*batches, omitted=True)
    kept = [line for line in lines if not line[2:].startswith(("thinking ", "signature "))]
    assert [line for line in shown(found) if not line[2:].startswith("signature ")] == kept
    assert rebuilt(found)["content"] == _content(batches, omitted=True)


async def test_a_stream_begins_with_the_whole_prompt_and_ends_with_all_counts() -> None:
    usage = Usage(5, 4, 9, 2)
    start, end, stop = await events([started(), (0, ended(LIMIT, None, usage))])
    message = start["message"]
    assert message["id"].startswith("msg_") and message["model"] == "first"
    counts = message["usage"]
    assert (counts["input_tokens"], counts["cache_read_input_tokens"]) == (len(PROMPT), 0)
    assert counts["output_tokens"] == 0
    nothing = {"stop_details": None, "container": None}
    assert end["delta"] == {"stop_reason": "max_tokens", "stop_sequence": None, **nothing}
    assert (end["usage"]["input_tokens"], end["usage"]["cache_read_input_tokens"]) == (1, 4)
    assert (end["usage"]["output_tokens"], end["usage"]["output_tokens_details"]) == (
        9, {"thinking_tokens": 2},
    )  # fmt: skip
    assert "context_management" not in end and stop == {"type": "message_stop"}


async def test_edits_are_reported_at_the_end() -> None:
    for applied in ((), ({"type": "clear_thinking_20251015", "cleared_thinking_turns": 1,
                          "cleared_input_tokens": 7},)):  # fmt: skip
        start, end, _ = await events([finished()], edits=EditReport(applied))
        assert end["context_management"] == {"applied_edits": list(applied)}
        assert "context_management" not in start["message"]


async def test_the_ping_is_an_event_of_the_protocol() -> None:
    assert events_of([PING]) == [{"type": "ping"}]


NASTY = 'quote " backslash \\ newline \n\r nul \0 \u2028 é 😀 event: x\n\ndata: y'


async def test_every_kind_of_delta_survives_whatever_it_holds() -> None:
    batches = [[thought(NASTY), text(NASTY)], called(NASTY, NASTY, NASTY), [finished(CALLS)]]
    found = await events(*batches)
    pieces = [e["delta"] for e in found if e["type"] == "content_block_delta"]
    assert [list(piece.values())[1] for piece in pieces] == [
        NASTY, SEAL.sign(NASTY), NASTY, NASTY, NASTY,
    ]  # fmt: skip
    blocks = [e["content_block"] for e in found if e["type"] == "content_block_start"]
    assert [block.get("name") for block in blocks] == [None, None, NASTY]


# Failures


@pytest.mark.parametrize("cause", sorted(BROKEN, key=str))
@pytest.mark.parametrize(
    "begun",
    [
        [],
        [text("a")],
        [thought("x")],
        called("f", '{"a":', whole=False),
        [text("a"), *called("f", "{}")],
    ],
    ids=lambda value: f"{len(value)} events",
)
async def test_d063_a_failure_ends_the_stream_with_an_error_and_nothing_else(
    begun: Batch, cause: FinishCause
) -> None:
    stream = streamed(head(), [started(), *begun], [finished(cause)], [text("never")])
    on_error = partial(error_event, call=call_of())
    *before, error = events_of([item async for item in guarded(stream, on_error)])
    fault = cause is FinishCause.DEAD_END
    assert error["error"]["type"] == ("invalid_request_error" if fault else "api_error")
    assert error["error"]["message"] and error["request_id"] == "req_1"
    whole = events_of([item async for item in streamed(head(), [started(), *begun])])
    assert before[1:] == whole[1:]  # what was said until then, and no end of it
    kinds = [event["type"] for event in before]
    opened, closed = (kinds.count(f"content_block_{kind}") for kind in ("start", "stop"))
    cut = bool(begun) and kinds[-1] != "content_block_stop"
    assert opened - closed == cut
    assert not {"message_delta", "message_stop"} & set(kinds)


async def test_an_unknown_error_says_nothing_of_itself() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield PING
        raise KeyError("secret")

    on_error = partial(error_event, call=call_of())
    ping, error = events_of([item async for item in guarded(broken(), on_error)])
    assert ping == {"type": "ping"} and error["error"]["type"] == "api_error"
    assert "secret" not in json.dumps(error)


# Whatever happens

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ARGUMENTS = st.one_of(
    st.dictionaries(WORDS, st.one_of(st.integers(), st.floats(), WORDS, st.lists(WORDS))).map(
        json.dumps
    ),
    WORDS,
)


@st.composite
def turns(draw: st.DrawFn) -> list[Batch]:
    """Any turn that a generation can make, in any batches."""
    happened: Batch = [started()]
    for number in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["text", "thought", "call"]))
        if kind == "call":
            arguments = draw(ARGUMENTS)
            cut = draw(st.integers(0, len(arguments)))
            happened += called("f", arguments[:cut], arguments[cut:], call=number)
        else:
            say = text if kind == "text" else thought
            happened.append(say(draw(WORDS)))
    cause = draw(st.sampled_from(sorted(STOP_REASONS, key=str)))
    if draw(st.booleans()):
        arguments = draw(ARGUMENTS)
        cut = draw(st.integers(0, len(arguments)))
        happened += called("g", arguments[:cut], call=9, whole=False)
    counts = draw(st.tuples(*[st.integers(0, 9)] * 4))
    usage = Usage(counts[0] + counts[1], counts[1], counts[2] + counts[3], counts[3])
    happened.append((0, ended(cause, "END", usage)))
    ends = sorted(draw(st.lists(st.integers(0, len(happened)), max_size=4)))
    return [
        happened[low:high] for low, high in zip([0, *ends], [*ends, len(happened)], strict=True)
    ]


@settings(deadline=None)
@given(turns(), st.booleans(), st.booleans())
def test_a_streamed_message_is_the_whole_one(
    batches: list[Batch], omitted: bool, reports: bool
) -> None:
    message = head(omitted=omitted, edits=EditReport(()) if reports else None)

    async def collected() -> list[bytes]:
        return [item async for item in streamed(message, *batches)]

    found = events_of(asyncio.run(collected()))
    assert rebuilt(found) == whole_of(encode(message, accumulated(*batches)[0]))
