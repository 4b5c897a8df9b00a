"""Whole messages: blocks, arguments as they were written, ends and counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.message_edits import EditReport
from adapters.message_encode import STOP_REASONS, MessageHead, encode
from engine.choice import BROKEN
from engine.events import (
    Block,
    CallBlock,
    FinishCause,
    Output,
    ReasoningBlock,
    TextBlock,
    Usage,
)
from tests.adapters.asgi import SEAL
from tests.adapters.messaging import MODEL, TENANT, call_of, whole_of
from tests.adapters.played import ended

USAGE = Usage(5, 0, 3)
DIRECT = {"type": "direct"}
NASTY = 'quote " backslash \\ newline \n nul \0 \u2028 é 😀 </tool_call>'
APPLIED: dict[str, object] = {
    "type": "clear_tool_uses_20250919", "cleared_tool_uses": 2, "cleared_input_tokens": 9,
}  # fmt: skip


def head(*, omitted: bool = False, edits: EditReport | None = None) -> MessageHead:
    return MessageHead(call_of(), omits_thoughts=omitted, edits=edits)


def encoded(
    *blocks: Block,
    cause: FinishCause = FinishCause.END,
    stop: str | int | None = None,
    usage: Usage = USAGE,
    omitted: bool = False,
    edits: EditReport | None = None,
) -> bytes:
    return encode(head(omitted=omitted, edits=edits), Output(blocks, ended(cause, stop, usage)))


def call(arguments: str, *, complete: bool = True, name: str = "f", id_: str = "c1") -> CallBlock:
    return CallBlock(id_, name, arguments, custom=False, complete=complete)


def inputs(*calls: CallBlock) -> list[Any]:
    return [block["input"] for block in whole_of(encoded(*calls))["content"]]


def test_blocks_keep_their_order() -> None:
    body = whole_of(
        encoded(
            ReasoningBlock("hm\n"), TextBlock("a"), call('{"x": 1}'), ReasoningBlock("so"),
            call("{}", name="g", id_="c2"), TextBlock(NASTY),
        )
    )  # fmt: skip
    assert body["content"] == [
        {"type": "thinking", "thinking": "hm\n", "signature": SEAL.sign("hm\n")},
        {"type": "text", "text": "a", "citations": None},
        {"type": "tool_use", "id": "c1", "name": "f", "caller": DIRECT, "input": {"x": 1}},
        {"type": "thinking", "thinking": "so", "signature": SEAL.sign("so")},
        {"type": "tool_use", "id": "c2", "name": "g", "caller": DIRECT, "input": {}},
        {"type": "text", "text": NASTY, "citations": None},
    ]


def test_every_string_survives_whatever_it_holds() -> None:
    arguments = json.dumps({NASTY: NASTY})
    [thought, answer, made] = whole_of(
        encoded(ReasoningBlock(NASTY), TextBlock(NASTY), call(arguments, name=NASTY, id_=NASTY))
    )["content"]
    assert (thought["thinking"], answer["text"]) == (NASTY, NASTY)
    assert (made["id"], made["name"], made["input"]) == (NASTY, NASTY, {NASTY: NASTY})


def test_a_message_says_who_made_it() -> None:
    first, second = whole_of(encoded(TextBlock("a"))), whole_of(encoded())
    assert (first["type"], first["role"], first["model"]) == ("message", "assistant", "first")
    assert first["id"].startswith("msg_") and first["id"] != second["id"]
    assert second["content"] == []
    assert "context_management" not in first


@pytest.mark.parametrize("applied", [(), (APPLIED,)], ids=len)
def test_edits_are_reported_where_there_were_any_to_make(applied: tuple[Any, ...]) -> None:
    body = whole_of(encoded(edits=EditReport(applied)))
    assert body["context_management"] == {"applied_edits": list(applied)}


# Arguments


@pytest.mark.parametrize(
    "written",
    [
        "{}",
        '{"b":1,"a":2,"é":"😀"}',
        '{ "x" : 1.0, "y": 1e3, "z": -0.0, "w": 12345678901234567890123 }',
        '{"t": "\\u00e9\\ud83d\\ude00\\/\\n", "u": "\u2028"}',
        '{"a": {"b": [1, {"c": null}], "d": true}}\n',
    ],
)
def test_arguments_are_as_the_model_wrote_them(written: str) -> None:
    data = encoded(call(written))
    assert b'"input":' + written.encode() + b"}" in data
    assert whole_of(data)["content"][0]["input"] == json.loads(written)


@pytest.mark.parametrize("written", ['{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 2}}'])
def test_a_name_that_comes_twice_is_there_once(written: str) -> None:
    data = encoded(call(written))
    assert data.count(b'"a":') == 1
    assert whole_of(data)["content"][0]["input"] == json.loads(written)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", {}),
        ("   ", {}),
        ("{", {}),
        ('{"a"', {}),
        ('{"a": "b', {}),
        ('{"a": 1, "b": "c', {"a": 1}),
        ('{"a": 1, "b": {"c": [1, 2', {"a": 1, "b": {"c": [1, 2]}}),
        ('{"a": "é", "b": "\\u00', {"a": "é"}),
        ('{"a": tru', {}),
        ('{"a": 1}', {"a": 1}),
        ("[1, 2", {}),
        ('"text', {}),
        ("nonsense", {}),
        ('{"a": 1} x', {"a": 1}),
        ('{"a": ' * 500, {}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_of_a_cut_call_there_is_what_can_be_read(written: str, read: dict[str, Any]) -> None:
    assert inputs(call(written, complete=False)) == [read]


@pytest.mark.parametrize(
    "written",
    ["", "nonsense", "[1]", "null", '"{}"', "1", '{"a": NaN}', '{"a": Infinity}', '{"a": "\n"}',
     '{"a" 1}', "[" * 100_000],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_is_no_object_is_an_empty_one(written: str) -> None:
    assert inputs(call(written)) == [{}]


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("written", ['{"a": 1e999}', '{"a": 1e999', '{"b": 1, "a": -1e999'])
def test_no_number_makes_the_message_invalid(written: str, complete: bool) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    json.loads(encoded(call(written, complete=complete)), parse_constant=refuse)


def test_lone_surrogates_are_escaped() -> None:
    data = encoded(call('{"a": "\ud800"}'))
    assert json.loads(data)["content"][0]["input"] == {"a": "\ud800"}


# Ends

REASONS = {
    FinishCause.END: "end_turn",
    FinishCause.STOP_STRING: "stop_sequence",
    FinishCause.STOP_TOKEN: "end_turn",
    FinishCause.COMPLETE: "end_turn",
    FinishCause.TOOL_CALLS: "tool_use",
    FinishCause.LIMIT: "max_tokens",
    FinishCause.DEADLINE: "max_tokens",
    FinishCause.REPETITION: "max_tokens",
    FinishCause.CONTEXT_FULL: "model_context_window_exceeded",
}


def test_every_cause_has_a_reason_or_is_a_failure() -> None:
    assert set(REASONS) == set(STOP_REASONS)
    assert set(REASONS) | set(BROKEN) == set(FinishCause)
    assert not set(REASONS) & set(BROKEN)


@pytest.mark.parametrize("cause", REASONS)
@pytest.mark.parametrize("stop", [None, "END", 7])
def test_only_a_string_is_a_stop_sequence(cause: FinishCause, stop: str | int | None) -> None:
    if cause is FinishCause.STOP_STRING:
        stop = "END"
    body = whole_of(encoded(TextBlock("a"), cause=cause, stop=stop))
    assert body["stop_reason"] == REASONS[cause]
    assert body["stop_sequence"] == ("END" if cause is FinishCause.STOP_STRING else None)


@pytest.mark.parametrize(
    ("usage", "fresh", "cached", "output", "thoughts"),
    [
        (Usage(), 0, 0, 0, 0),
        (Usage(20, 0, 7), 20, 0, 7, 0),
        (Usage(20, 16, 7, 5), 4, 16, 7, 5),
        (Usage(20, 20, 1, 1), 0, 20, 1, 1),
    ],
)
def test_cached_tokens_are_counted_apart(
    usage: Usage, fresh: int, cached: int, output: int, thoughts: int
) -> None:
    assert whole_of(encoded(usage=usage))["usage"] == {
        "input_tokens": fresh,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": thoughts},
        "service_tier": "standard",
        "cache_creation": None,
        "server_tool_use": None,
        "inference_geo": None,
    }


# Thoughts that are not shown


def test_an_omitted_thought_is_in_its_signature_alone() -> None:
    data = encoded(ReasoningBlock(f"secret {NASTY}"), TextBlock("a"), omitted=True)
    thought, answer = whole_of(data)["content"]
    assert thought["thinking"] == "" and b"secret" not in data
    assert SEAL.unseal(thought["signature"], TENANT, MODEL) == f"secret {NASTY}"
    assert SEAL.unseal(thought["signature"], "another", MODEL) is None
    assert SEAL.unseal(thought["signature"], TENANT, "org/other") is None
    assert answer == {"type": "text", "text": "a", "citations": None}


def test_the_same_thought_has_the_same_signature() -> None:
    for omitted in (False, True):
        made = {head(omitted=omitted).signature("x") for _ in range(3)}
        assert len(made) == 1
