"""Issue 4: random tools under `required` on the real model: what it completes is valid.

The model cannot call tools by itself; the masks do all of it. Calls that the output limit cuts are
counted and listed. Each request is sent whole and streamed.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from conformance.bars import schemas
from conformance.bars.examples import examples
from conformance.bench.measure import table
from conformance.choice import Call
from conformance.replies import Reply, comparable, send
from conformance.server import Server

TOGETHER = 16
PATIENCE = 600  # seconds for a buffered reply: sixteen share the machine with whatever else runs
Tool = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request's tools, and what it is sent with."""

    tools: list[Tool]
    body: dict[str, Any]


@pytest.mark.bars
def test_a_thousand(embedded: Server) -> None:
    """1,000 schemas, 128 tokens each at most."""
    _run(embedded, _forced(1000, 128))


def test_subset(embedded: Server) -> None:
    """Ten in the gate."""
    _run(embedded, _forced(10, 96))


@pytest.mark.bars
def test_a_hundred_beside_a_format(embedded: Server) -> None:
    """100 schemas as `response_format` beside tools that may be called."""
    _run(embedded, _beside(100, 96))


def test_subset_beside_a_format(embedded: Server) -> None:
    """Five in the gate."""
    _run(embedded, _beside(5, 64))


# What is asked


def _forced(count: int, tokens: int) -> list[Asked]:
    """Each tool choice that forces a call in turn."""
    asked = []
    for number, declared in enumerate(examples("tools", count)):
        named = {"type": "function", "function": {"name": declared[0]["function"]["name"]}}
        body = {
            "tools": declared,
            "tool_choice": named if number % 3 == 2 else "required",
            "parallel_tool_calls": number % 4 == 3,
        }
        asked.append(Asked(declared, body | _sampling(number, tokens)))
    return asked


def _beside(count: int, tokens: int) -> list[Asked]:
    """A format beside tools, which the model is free to call."""
    asked = []
    for number, (schema, declared) in enumerate(examples("format and tools", count)):
        form = {"name": "s", "strict": True, "schema": schemas.closed(schema)}
        body = {
            "tools": declared,
            "parallel_tool_calls": False,
            "response_format": {"type": "json_schema", "json_schema": form},
        }
        asked.append(Asked(declared, body | _sampling(number, tokens)))
    return asked


def _sampling(number: int, tokens: int) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": "Use a tool."}],
        "max_tokens": tokens,
        "seed": number,
        "temperature": (0, 1, 1.5)[number % 3],
    }


# What comes back


def _run(server: Server, asked: list[Asked]) -> None:
    begun = time.monotonic()
    with (
        httpx2.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client,
        ThreadPoolExecutor(TOGETHER) as threads,
    ):
        pairs = list(threads.map(lambda one: _both(client, one), asked))
    seconds = time.monotonic() - begun
    server.until_idle()
    ends: Counter[str] = Counter()
    wrong, cut = [], []
    refusals: Counter[str] = Counter()
    for one, (whole, streamed) in zip(asked, pairs, strict=True):
        kind, problem = _outcome(one, whole)
        ends[kind] += 1
        if comparable(whole) != comparable(streamed):
            problem = f"streamed is not buffered: {comparable(whole)} {comparable(streamed)}"
        if problem:
            wrong.append(f"{problem}: {_shown(one, whole)}")
        elif kind == "cut":
            cut.append(_shown(one, whole)[:160])
        elif whole.error:
            refusals[whole.error["message"][:100]] += 1
    tokens = sum(r.usage["completion_tokens"] for pair in pairs for r in pair if r.usage)
    rows = [(kind, str(number)) for kind, number in sorted(ends.items())]
    rows.append(("tokens in seconds", f"{tokens} in {seconds:.0f}"))
    rows += [(f"  refused: {why}", str(number)) for why, number in refusals.most_common(12)]
    print(f"\n{len(asked)} random requests, {len(wrong)} wrong\n" + table(rows))
    print("\n".join(f"  cut: {line}" for line in cut))
    assert not wrong, "\n\n".join(wrong[:20])
    assert ends["complete"] > ends["cut"], f"most are cut: {ends}"
    assert ends["refused"] <= ends["complete"], f"most are refused: {ends}"


def _both(client: httpx2.Client, one: Asked) -> tuple[Reply, Reply]:
    """The replies of both modes; seeds make them the same."""
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    whole = send(client, "chat", one.body)
    return whole, send(client, "chat", one.body | stream)


def _outcome(one: Asked, reply: Reply) -> tuple[str, str | None]:
    """How a request ended, and what is wrong with that."""
    if reply.status != 200:
        unfit = reply.error is not None and reply.error["code"] == "invalid_schema"
        return "refused", None if unfit else f"status {reply.status}, {reply.error}"
    choice = reply.choices[0]
    if "tool_choice" in one.body and choice.text:
        return "other", "text beside a forced call"
    if choice.finish == "length":
        return "cut", _problem(one, choice.calls[:-1])
    if choice.finish == "stop" and "response_format" in one.body:
        schema = one.body["response_format"]["json_schema"]["schema"]
        return "complete", _invalid(schema, choice.text)
    if choice.finish != "tool_calls" or not choice.calls:
        return "other", f"finish_reason {choice.finish} with {len(choice.calls)} calls"
    return "complete", _problem(one, choice.calls)


def _problem(one: Asked, calls: list[Call]) -> str | None:
    """What is wrong with complete calls."""
    if not one.body.get("parallel_tool_calls", True) and len(calls) > 1:
        return "several calls, where one is allowed"
    declared = {tool["function"]["name"]: tool["function"]["parameters"] for tool in one.tools}
    choice = one.body.get("tool_choice")
    allowed = {choice["function"]["name"]} if isinstance(choice, dict) else set(declared)
    if not {call.name for call in calls} <= allowed:
        return f"{[call.name for call in calls]} are not of {allowed}"
    problems = (_invalid(declared[call.name], call.text) for call in calls)
    return next((problem for problem in problems if problem), None)


def _invalid(schema: schemas.Schema, text: str) -> str | None:
    try:
        value = json.loads(text)  # an object may have a name twice: masks do not forbid it
    except ValueError as error:
        return f"not JSON ({error})"
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    problems = [error.message for error in validator.iter_errors(value)]
    return f"not valid ({problems[0]})" if problems else None


def _shown(one: Asked, reply: Reply) -> str:
    choice = reply.choices.get(0)
    calls = [(call.name, call.text) for call in choice.calls] if choice else []
    text = choice.text if choice else ""
    return f"{calls or text!r} {reply.error or ''} under {json.dumps(one.body, ensure_ascii=False)}"
