"""Buffered equals streamed: text, finish and stop reasons, log probabilities, token ids and usage,
for a matrix of requests.

The replies of both modes come through one accumulator (design.md section 1), so any difference here
is a second path that somebody has opened.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from conformance import cases, profiles
from conformance.replies import comparable, send
from conformance.server import Server

PROMPTS: dict[str, tuple[dict[str, Any], ...]] = {
    "chat": (
        {"messages": [{"role": "user", "content": "hello"}]},
        {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "D145"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "CONTROL-TEXT"}]}]},
    ),
    "completions": (
        {"prompt": "hello"},
        {"prompt": ["one", "D144", ""]},
        {"prompt": [[100, 200, 300], [400]]},
    ),
}
LIMITS: tuple[dict[str, Any], ...] = ({}, {"max_tokens": 1}, {"max_tokens": 4}, {"max_tokens": 200})
CHOICES: tuple[dict[str, Any], ...] = ({}, {"n": 3})
STOPS: tuple[dict[str, Any], ...] = (
    {},
    {"stop": "here, f"},
    {"stop": ["sun", "zzz"]},
    {"stop_token_ids": [28]},
    {"min_tokens": 1, "stop": "H"},
)
EXTRAS: dict[str, tuple[dict[str, Any], ...]] = {
    "chat": ({}, {"ignore_eos": True, "max_tokens": 30}, {"logprobs": True, "top_logprobs": 1}),
    "completions": (
        {},
        {"echo": True},
        {"echo": True, "max_tokens": 0},
        {"echo": True, "logprobs": 1, "return_token_ids": True},
    ),
}
REQUESTS = [
    (route, {**prompt, **limit, **choices, **stops, **extra})
    for route in PROMPTS
    for prompt, limit, choices, stops, extra in itertools.product(
        PROMPTS[route], LIMITS, CHOICES, STOPS, EXTRAS[route]
    )
]

PICK = {
    "type": "object",
    "properties": {"n": {"enum": [7]}, "s": {"enum": ["a b"]}},
    "required": ["n", "s"],
    "additionalProperties": False,
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "pick", "strict": True, "parameters": PICK}},
    {"type": "function", "function": {"name": "look"}},
]
TOOL_PROMPTS: dict[str, tuple[str, ...]] = {
    "thinker": ("hello", "SDK-TOOL", "D068", "D110", "TURNS-THOUGHT"),
    "coder": ("hello", "FAMILY-CODER", "D101", "D103", "D107"),
    "mistral": ("hello", "FAMILY-MISTRAL", "D070-MISTRAL"),
    "harmony": ("hello", "FAMILY-HARMONY", "D126"),
}
"""What cases have the servers of some families say."""
TOOL_FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"tool_choice": "none"},
    {"tool_choice": "required"},
    {"tool_choice": {"type": "function", "function": {"name": "pick"}}},
    {"parallel_tool_calls": False},
    {"json_schema": PICK},
)
TOOL_LIMITS: tuple[dict[str, Any], ...] = tuple(
    {"max_tokens": tokens} for tokens in (7, 31, 47, 150)
)
TOOL_EXTRAS: tuple[dict[str, Any], ...] = (
    {},
    {"n": 2, "stop": ["o", "zzz"]},
    {"logprobs": True, "return_token_ids": True},
)


@pytest.mark.parametrize("part", range(4))
def test_scripted(scripted: Server, part: int) -> None:
    """Every combination, on scripted text."""
    for route, body in REQUESTS[part::4]:
        _compare(scripted, route, body)


@pytest.mark.parametrize("family", TOOL_PROMPTS)
def test_tools(pool: profiles.Pool, family: str) -> None:
    """Calls, thoughts and answers with and without force, cut at many places."""
    for prompt, fields, limit, extra in itertools.product(
        TOOL_PROMPTS[family], TOOL_FIELDS, TOOL_LIMITS, TOOL_EXTRAS
    ):
        messages = [{"role": "user", "content": prompt}]
        body = {"messages": messages, "tools": TOOLS, **fields, **limit, **extra}
        _compare(pool.get(family), "chat", body)


def test_embedded(embedded: Server) -> None:
    """Seeded and greedy text of the model."""
    for route, prompt in (
        ("chat", {"messages": [{"role": "user", "content": "Write a line with an emoji: é 😀"}]}),
        ("completions", {"prompt": "The quick brown"}),
    ):
        for sampling in ({"temperature": 0}, {"temperature": 1.5, "seed": 11, "n": 2}):
            _compare(embedded, route, {**prompt, **sampling, "max_tokens": 5, "stop": [" the"]})
        scores = {"logprobs": True, "top_logprobs": 3} if route == "chat" else {"logprobs": 3}
        _compare(
            embedded, route, {**prompt, **scores, "temperature": 1, "seed": 4, "max_tokens": 6}
        )
        pet = {
            "type": "object",
            "properties": {"pet": {"enum": ["cat", "dog"]}},
            "required": ["pet"],
        }
        _compare(embedded, route, {**prompt, "json_schema": pet, "seed": 3, "max_tokens": 20})
    for choice in ("auto", "required"):
        called = {
            "tools": TOOLS,
            "tool_choice": choice,
            "seed": 3,
            "max_tokens": 40,
            "logprobs": True,
        }
        _compare(embedded, "chat", {**PROMPTS["chat"][0], **called, "logprobs": True})


def test_errors(scripted: Server) -> None:
    """A request that is refused is refused the same way, before any stream begins."""
    for route, body in (
        ("chat", {"messages": []}),
        ("chat", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 9000}),
        ("completions", {"prompt": [[99999]]}),
        ("completions", {"prompt": "x", "best_of": 2}),
    ):
        _compare(scripted, route, body)


def _compare(server: Server, route: str, body: dict[str, Any]) -> None:
    streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
    whole = comparable(send(server.http, route, body))
    assert comparable(send(server.http, route, streamed)) == whole, body


def test_the_matrix_is_not_trivial() -> None:
    """It has requests of both routes, and the script has the texts that it asks for."""
    assert len(REQUESTS) == 360 + 480
    assert "here, f" in profiles.ANSWER and "sun" in profiles.ANSWER
    claimed = {case.id for case in cases.load()} | {
        reply.get("say") for case in cases.load() for reply in case.replies
    }
    assert {p for prompts in TOOL_PROMPTS.values() for p in prompts} - claimed == {"hello"}
