"""`clear_thinking`: a turn is everything between two texts of the user."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.message_edits import apply_edits
from adapters.messages import decode
from engine.conversation import Message, Reasoning
from tests.adapters.messaging import (
    USER,
    CountingService,
    answered,
    assistant,
    body_of,
    call_of,
    said,
    thinking,
    used,
    user,
)
from tests.adapters.test_message_edits import SESSION, THINKING, edited, managed


def thoughts(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for m in messages for part in m.parts if isinstance(part, Reasoning)]


async def test_what_clears_nothing_counts_no_tokens() -> None:
    service = CountingService()
    call, body = call_of(service), body_of(*SESSION, **managed({"type": THINKING, "keep": "all"}))
    request = decode(body, call).request
    assert (await apply_edits(call, request, body, ()))[0] == request
    assert service.counted == []  # Claude Code asks for this edit with every request


ALL = ["1a", "1bb", "2ccc", "2d", "3eeee"]


@pytest.mark.parametrize(
    ("fields", "left", "turns", "tokens"),
    [
        ({"keep": "all"}, ALL, 0, 0),
        ({"keep": {"type": "all"}}, ALL, 0, 0),
        ({"keep": {"type": "thinking_turns", "value": 4}}, ALL, 0, 0),
        ({"keep": {"type": "thinking_turns", "value": 3}}, ALL, 0, 0),
        ({"keep": {"type": "thinking_turns", "value": 2}}, ALL[2:], 1, 5),
        ({"keep": {"type": "thinking_turns", "value": 1}}, ALL[4:], 2, 11),
        ({"keep": None}, ALL[4:], 2, 11),
        ({}, ALL[4:], 2, 11),
    ],
    ids=str,
)
async def test_the_thoughts_of_older_turns_are_left_out(
    fields: dict[str, Any], left: list[str], turns: int, tokens: int
) -> None:
    messages, applied = await edited(*SESSION, **managed({"type": THINKING, **fields}))
    assert thoughts(messages) == left
    report = {
        "type": THINKING, "cleared_thinking_turns": turns, "cleared_input_tokens": tokens,
    }  # fmt: skip
    assert applied == ([report] if turns else [])
    plain, _ = await edited(*SESSION)
    rest = [tuple(p for p in m.parts if not isinstance(p, Reasoning)) for m in plain]
    assert [tuple(p for p in m.parts if not isinstance(p, Reasoning)) for m in messages] == rest


async def test_a_message_of_thoughts_alone_goes_with_them() -> None:
    turns = [USER, assistant(thinking("x")), USER, assistant(thinking("y"), said("a")), USER]
    messages, _ = await edited(*turns, **managed({"type": THINKING}))
    assert [message.role for message in messages] == ["user", "user", "assistant", "user"]


async def test_a_result_beside_text_of_the_user_ends_a_turn() -> None:
    turns = [
        USER, assistant(thinking("1"), used("t1")), user(answered("t1"), said("hurry")),
        assistant(thinking("2"), used("t2")), user(answered("t2")),
    ]  # fmt: skip
    messages, applied = await edited(*turns, **managed({"type": THINKING}))
    assert thoughts(messages) == ["2"]
    assert applied is not None and applied[0]["cleared_thinking_turns"] == 1
