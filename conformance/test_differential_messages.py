"""Messages three ways: buffered and streamed are one message, it says what Chat says of the same
conversation, and count_tokens knows its prompt."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from conformance import profiles
from conformance.replies import comparable, send
from conformance.reply import Reply
from conformance.server import Server
from conformance.test_differential import PICK, TOOL_FIELDS, TOOL_PROMPTS, TOOLS
from conformance.translate import message_body

LIMITS = (31, 150)
STOPS: tuple[dict[str, Any], ...] = (
    {"stop": ["o"]},
    {"stop": ["zzz", "a"]},
    {"stop": []},
    {"stop": "e", "include_stop_str_in_output": True},
)
DISPLAYS: tuple[dict[str, Any], ...] = (
    {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "adaptive", "display": "omitted"}},
    {"thinking": {"type": "adaptive", "display": "updates"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1100},
)
FINISHES = {
    "stop": ("end_turn", "stop_sequence"),
    "length": ("max_tokens",),
    "tool_calls": ("tool_use",),
}
"""What Chat's finish reasons are here."""


def requests(family: str) -> list[dict[str, Any]]:
    """Chat's bodies for a family: with and without force, cut at many places, and with stops."""
    prompts = TOOL_PROMPTS[family]
    tools: list[dict[str, Any]] = [
        {"tools": TOOLS, **fields, "max_tokens": limit}
        for fields, limit in itertools.product(TOOL_FIELDS, LIMITS)
    ]
    stops = [{"tools": TOOLS, **stop, "max_tokens": 100} for stop in STOPS]
    return [
        {"messages": [{"role": "user", "content": prompt}], **fields}
        for prompt, fields in itertools.product(prompts, tools + stops)
    ]


@pytest.mark.parametrize("family", TOOL_PROMPTS)
def test_as_chat(pool: profiles.Pool, family: str) -> None:
    """Text, thoughts, calls, counts and the end are Chat's, whole and streamed."""
    server = pool.get(family)
    for body in requests(family):
        _agree(server, body)


def _agree(server: Server, chat: dict[str, Any]) -> None:
    body = message_body(chat)
    assert body is not None, chat
    said = send(server.http, "chat", chat)
    whole, streamed = _both(server, body)
    assert said.status == whole.status == 200, f"{body}: {said.error} {whole.error}"
    mine, other = streamed.choices[0], said.choices[0]
    assert mine.text == other.text, body
    assert mine.reasoning == other.reasoning, body
    assert [(call.name, call.text) for call in mine.calls] == [
        (call.name, call.text) for call in other.calls
    ], body
    assert other.finish is not None and mine.finish in FINISHES[other.finish], body
    assert mine.stop_reason == other.stop_reason, body
    for reply in (whole, streamed):
        assert reply.prompt_tokens == said.prompt_tokens, body
        assert reply.output_tokens == said.output_tokens, body
        assert reply.thinking_tokens == said.thinking_tokens, body


def _both(server: Server, body: dict[str, Any]) -> tuple[Reply, Reply]:
    """The message whole and streamed, which are the same."""
    whole = send(server.http, "messages", body)
    streamed = send(server.http, "messages", {**body, "stream": True})
    assert comparable(streamed) == comparable(whole), body
    return whole, streamed


@pytest.mark.parametrize("family", TOOL_PROMPTS)
def test_displays(pool: profiles.Pool, family: str) -> None:
    """Thoughts that are off, omitted, shown and limited: the same whole and streamed."""
    server = pool.get(family)
    tools = [
        {"name": tool["function"]["name"], "input_schema": tool["function"].get("parameters", {})}
        for tool in TOOLS
    ]
    options: tuple[dict[str, Any], ...] = ({}, {"tools": tools})
    for prompt, display, shown in itertools.product(TOOL_PROMPTS[family], DISPLAYS, options):
        messages = [{"role": "user", "content": prompt}]
        body: dict[str, Any] = {"messages": messages, "max_tokens": 90, **shown, **display}
        whole, _ = _both(server, body)
        omitted = display["thinking"].get("display") == "omitted"
        thoughts = [block for block in whole.blocks if block.kind == "thinking"]
        assert not omitted or not any(block.text for block in thoughts), body
        assert bool(thoughts) == bool(whole.thinking_tokens), body


def test_scripted(scripted: Server) -> None:
    """A model without thoughts, cut by tokens, stops and its end."""
    stops: tuple[dict[str, Any], ...] = (
        {}, {"stop": "here, f"}, {"stop": ["sun", "zzz"]}, {"stop_token_ids": [28]}
    )  # fmt: skip
    texts = ("hello", "D145", "CONTROL-TEXT", "D144")
    for text, limit, stop in itertools.product(texts, (1, 4, 200), stops):
        body = message_body(
            {"messages": [{"role": "user", "content": text}], "max_tokens": limit, **stop}
        )
        assert body is not None
        _both(scripted, body)


def test_embedded(embedded: Server) -> None:
    """On the model: the text of Chat for the same seed, whole and streamed."""
    asked = [{"role": "user", "content": "Write a line with an emoji: \u00e9 \U0001f600"}]
    for fields in ({"temperature": 0}, {"temperature": 1.5, "seed": 11, "stop": [" the"]}):
        body = message_body({"messages": asked, "max_tokens": 6, **fields})
        assert body is not None
        whole, _ = _both(embedded, body)
        said = send(embedded.http, "chat", {"messages": asked, "max_tokens": 6, **fields})
        assert (whole.text, whole.prompt_tokens) == (said.text, said.prompt_tokens)


# Counts

SYSTEMS: tuple[dict[str, Any], ...] = (
    {},
    {"system": "Be brief."},
    {"system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]},
)
TOOLSETS: tuple[dict[str, Any], ...] = (
    {},
    {"tools": [{"name": "pick", "description": "Picks.", "input_schema": PICK, "strict": True}]},
    {"tools": [{"name": "f", "input_schema": {"type": "object"}},
               {"name": "g", "input_schema": {"type": "object"}, "defer_loading": True}],
     "tool_choice": {"type": "any"}},
)  # fmt: skip
THOUGHTS: tuple[dict[str, Any], ...] = (
    {},
    {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
    {"thinking": {"type": "adaptive", "budget_tokens": 1, "display": "omitted"}},
)
FORMS: tuple[dict[str, Any], ...] = (
    {},
    {"output_format": {"type": "json_schema", "schema": PICK}},
)
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "first thought", "signature": "x"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"n": 1}}]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": "a result of some length"}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "more"},
                                      {"type": "text", "text": "a"}]},
    {"role": "user", "content": "hello"},
]  # fmt: skip
EDITS: tuple[dict[str, Any], ...] = (
    {},
    {"context_management": {"edits": [
        {"type": "clear_thinking_20251015"},
        {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 0},
         "keep": {"type": "tool_uses", "value": 0}}]}},
)  # fmt: skip


@pytest.mark.parametrize("family", ["scripted", *TOOL_PROMPTS])
def test_counts(pool: profiles.Pool, family: str) -> None:
    """Whatever a prompt is made from: the count is the prompt of the message's usage."""
    server = pool.get(family)
    sizes = set()
    for parts in itertools.product(SYSTEMS, TOOLSETS, THOUGHTS, FORMS, EDITS):
        body: dict[str, Any] = {"messages": HISTORY, "max_tokens": 2}
        for part in parts:
            body |= part
        counted = send(server.http, "count", body)
        message = send(server.http, "messages", body)
        assert counted.status == message.status == 200, f"{body}: {counted.error} {message.error}"
        assert counted.prompt_tokens == message.prompt_tokens, body
        sizes.add(counted.prompt_tokens)
    assert len(sizes) > 10, "the matrix is trivial"


def test_counted_refusals(scripted: Server) -> None:
    """What cannot be a prompt cannot be counted either, and is refused in the same words."""
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    tool = {"name": "f", "input_schema": {"type": "object"}}
    bad = {"type": "object", "properties": {"a": {"not": {}}}}
    refused: tuple[dict[str, Any], ...] = (
        {"messages": [{"role": "user", "content": [image]}]},
        {"messages": []},
        {"tools": [tool, tool]},
        {"tools": [{**tool, "strict": True, "input_schema": bad}]},
        {"tool_choice": {"type": "any"}},
        {"output_format": {"type": "json_schema", "schema": bad}},
        {"thinking": {"type": "enabled", "budget_tokens": 1}},
        {"temperature": 9},
        {"thread": {"type": "create"}, "mcp_servers": [{"type": "url", "url": "u", "name": "n"}]},
        {"context_management": {"edits": [{"type": "compact_20260112"}]}},
    )
    for fields in refused:
        body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2000, **fields}
        counted = send(scripted.http, "count", body)
        message = send(scripted.http, "messages", body)
        assert counted.status == message.status == 400, f"{fields}: {counted.error}"
        if "thread" not in fields:
            assert counted.error == message.error, fields


def test_the_matrix_is_not_trivial() -> None:
    """Hundreds of requests, with calls and thoughts among them."""
    assert sum(len(requests(family)) for family in TOOL_PROMPTS) >= 200
