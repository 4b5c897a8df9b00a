"""Thoughts that clients of Messages send back: signed, sealed, foreign and changed ones."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

import pytest

from adapters.message_encode import MessageHead, encode
from adapters.messages import create_message, decode
from adapters.seal import Seal
from engine.conversation import Conversation, Message, Reasoning, Text
from engine.events import FinishCause, Output, ReasoningBlock, TextBlock, Usage
from tests.adapters.asgi import SEAL
from tests.adapters.messaging import (
    MODEL,
    TENANT,
    USER,
    CountingService,
    Opened,
    assistant,
    body_of,
    call_of,
    conversation,
    refused,
    said,
    thinking,
    whole_of,
)
from tests.adapters.played import ended

OTHER = Seal(bytes(range(1, 33)))
THOUGHT = "the user 想 wants\n a poem 😀"
OWN = SEAL.sign(THOUGHT)


def sealed(text: str = THOUGHT, tenant: str = TENANT, model: str = MODEL, seal: Seal = SEAL) -> str:
    return seal.seal(text, tenant, model)


def redacted(data: str) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": data}


def replayed(*blocks: dict[str, Any]) -> tuple[tuple[Message, ...], int]:
    """The messages behind the first, and how many thoughts were dropped and counted."""
    service = CountingService()
    call = call_of(service, body=body_of(USER, assistant(*blocks), USER))
    with contextlib.suppress(Opened):
        asyncio.run(create_message(call))
    [request] = service.opened
    _, *middle, _ = cast(Conversation, request.prompt).messages
    return tuple(middle), service.counters.dropped_reasoning


@pytest.mark.parametrize(
    "fields",
    [
        {"signature": OWN},
        {"signature": sealed()},
        {},
        {"signature": None},
        {"signature": ""},
        {"signature": "EqQBCgIYAhIkNDY="},
        {"signature": OTHER.sign(THOUGHT)},
        {"signature": OTHER.sign("something else")},
        {"signature": sealed("something else", seal=OTHER)},
        {"signature": f"flare-thinking-v1:{'0' * 8}:{OWN.rpartition(':')[2]}"},
        {"signature": f"flare-thinking-v2:{SEAL.key_id}:x"},
        {"signature": "flare-thinking-v1:"},
    ],
    ids=str,
)
def test_a_text_that_is_ours_or_anybodys_is_replayed_as_given(fields: dict[str, Any]) -> None:
    block = thinking(THOUGHT, **fields)
    expected = Message("assistant", (Reasoning(THOUGHT), Text("a")))
    assert replayed(block, said("a")) == ((expected,), 0)


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        (f"{THOUGHT} ", OWN),
        (THOUGHT.lower() + "x", OWN),
        (THOUGHT, OWN[:-1]),
        (THOUGHT, f"{OWN}A"),
        (THOUGHT, f"flare-thinking-v1:{SEAL.key_id}:"),
        (THOUGHT, f"flare-thinking-v1:{SEAL.key_id}:sealed:AAAA"),
        (THOUGHT, sealed("something else")),
    ],
)
def test_a_text_that_our_signature_does_not_fit_is_refused(text: str, signature: str) -> None:
    error = refused(USER, assistant(said("a"), thinking(text, signature=signature)))
    assert error.param == "messages[1].content[1].signature"
    assert error.param in error.message and text not in error.message


@pytest.mark.parametrize("tenant", [TENANT, "another", ""])
def test_signatures_hold_for_every_tenant(tenant: str) -> None:
    body = body_of(USER, assistant(thinking(THOUGHT, signature=OWN)))
    messages = decode(body, call_of(tenant=tenant)).history.messages
    assert messages[1].parts == (Reasoning(THOUGHT),)


@pytest.mark.parametrize(
    "block", [thinking("", signature=sealed()), redacted(sealed())], ids=["omitted", "redacted"]
)
def test_a_sealed_thought_comes_back_in_its_place(block: dict[str, Any]) -> None:
    made, dropped = replayed(said("a"), block, said("b"))
    assert made == (Message("assistant", (Text("a"), Reasoning(THOUGHT), Text("b"))),)
    assert dropped == 0


UNREADABLE = {
    "another tenant's": sealed(tenant="another"),
    "another model's": sealed(model="org/other"),
    "another key's": sealed(seal=OTHER),
    "changed": sealed()[:-2] + "AA",
    "cut": sealed()[:60],
    "a signature": OWN,
    "another server's": "EqQBCgIYAhIkNDY=",
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_what_does_not_open_is_dropped_and_counted(content: str) -> None:
    rest = Message("assistant", (Text("a"),))
    assert replayed(thinking("", signature=content), said("a")) == ((rest,), 1)
    assert replayed(redacted(content), said("a")) == ((rest,), 1)
    assert replayed(redacted(content), thinking("", signature=content)) == ((), 2)


@pytest.mark.parametrize("fields", [{}, {"signature": None}, {"signature": ""}], ids=str)
def test_a_block_of_nothing_is_left_out_and_not_counted(fields: dict[str, Any]) -> None:
    assert replayed(thinking("", **fields)) == ((), 0)


def test_opaque_data_never_reaches_the_prompt() -> None:
    made, dropped = replayed(redacted(""), redacted("opaque"), said("a"))
    assert made == (Message("assistant", (Text("a"),)),) and dropped == 2


@pytest.mark.parametrize("omitted", [False, True])
def test_what_the_server_answered_can_be_sent_back(omitted: bool) -> None:
    head = MessageHead(call_of(), omits_thoughts=omitted, edits=None)
    blocks = (ReasoningBlock(THOUGHT), TextBlock("a"), ReasoningBlock("more"), TextBlock("b"))
    output = Output(blocks, ended(FinishCause.END, None, Usage()))
    content = whole_of(encode(head, output))["content"]
    shown = ["", ""] if omitted else [THOUGHT, "more"]
    assert [block["thinking"] for block in content[::2]] == shown
    assert ("poem" in str(content)) is not omitted
    made = conversation(USER, {"role": "assistant", "content": content}, USER).messages
    assert made[1].parts == (Reasoning(THOUGHT), Text("a"), Reasoning("more"), Text("b"))
