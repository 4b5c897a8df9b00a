"""The system text of Messages, and instructions between its messages."""

from __future__ import annotations

from typing import Any

import pytest

from engine.conversation import Message, Text
from tests.adapters.messaging import (
    USER,
    answered,
    assistant,
    conversation,
    said,
    texts,
    used,
    user,
)

CACHED: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
BILLING = "x-anthropic-billing-header: cc_version=2.1.37; cch=aaaaa;"
DOCUMENT = {"type": "document", "source": {"type": "text", "data": "abc"}}


def messages(*turns: dict[str, Any], **fields: Any) -> tuple[Message, ...]:
    return conversation(*turns, **fields).messages


@pytest.mark.parametrize(
    ("system", "parts"),
    [
        ("be brief", ("be brief",)),
        ([said("a"), said("b")], ("a", "b")),
        ([said(""), said("b")], ("b",)),
        ([said(BILLING), said("a"), said("b")], ("a", "b")),
        ([said("a"), said(BILLING)], ("a", BILLING)),
        ([said(f" {BILLING}"), said("a")], (f" {BILLING}", "a")),
        ([said(BILLING), said(BILLING)], (BILLING,)),
        (BILLING, (BILLING,)),
    ],
    ids=str,
)
def test_the_system_text_leads_without_the_billing_header(
    system: Any, parts: tuple[str, ...]
) -> None:
    first, last = messages(system=system)
    assert first == Message("system", tuple(map(Text, parts)))
    assert last == Message("user", (Text("hi"),))


@pytest.mark.parametrize(
    "system", ["", None, [], [said("")], [said(BILLING)], [said(BILLING, **CACHED)]]
)
def test_a_system_text_of_nothing_is_none(system: Any) -> None:
    assert messages(system=system) == messages()


def test_d048_what_the_user_says_is_kept_whatever_it_begins_with() -> None:
    [message] = messages(user(said(BILLING), said("x")))
    assert message.parts == (Text(BILLING), Text("x"))
    [message] = messages({"role": "system", "content": [said(BILLING)]})
    assert message == Message("system", (Text(BILLING),))


def test_system_messages_stay_where_they_are() -> None:
    turns = messages(
        {"role": "system", "content": "first"}, USER, {"role": "system", "content": [said("a")]},
        {"role": "assistant", "content": "so"}, {"role": "system", "content": None},
        {"role": "system"}, {"role": "system", "content": ""},
        {"role": "system", "content": "last"}, system="top",
    )  # fmt: skip
    shown = [(message.role, *texts(message)) for message in turns]
    assert shown == [
        ("system", "top"), ("system", "first"), ("user", "hi"), ("system", "a"),
        ("assistant", "so"), ("system", "last"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("later", "is_kept"),
    [
        ([], True),
        ([assistant(said("so"))], True),
        ([assistant(used("1")), user(answered("1"))], True),
        ([{"role": "system", "content": "x"}], True),
        ([user()], True),
        ([USER], False),
        ([{"role": "user", "content": ""}], False),
        ([assistant(used("1")), user(answered("1"), said("and"))], False),
        ([assistant(used("1")), user(answered("1")), USER], False),
        ([user(DOCUMENT)], False),
    ],
    ids=str,
)
def test_passing_instructions_end_with_what_the_user_says_next(
    later: list[dict[str, Any]], is_kept: bool
) -> None:
    for clear_at in ("next_user_message", "never", None):
        passing = {"role": "system", "content": "now", "clear_at": clear_at}
        expected = is_kept or clear_at != "next_user_message"
        turns = messages(USER, passing, *later)
        assert (Message("system", (Text("now"),)) in turns) == expected
