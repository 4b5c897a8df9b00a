"""Responses two ways: whole and streamed are one response, and it says what Chat says of the same
conversation."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from conformance import profiles
from conformance.models import model_of
from conformance.replies import comparable, send
from conformance.reply import Reply
from conformance.response_translate import LOGPROBS, flat, response_body
from conformance.server import Server
from conformance.test_differential import PICK, TOOL_PROMPTS, TOOLS

CUSTOM: list[dict[str, Any]] = [
    {"type": "custom", "custom": {"name": "write"}},
    {"type": "custom", "custom": {"name": "code", "format": {
        "type": "grammar", "grammar": {"syntax": "regex", "definition": "[A-Z]{3}[0-9]+"}}}},
]  # fmt: skip
ALL_TOOLS = [*TOOLS, *CUSTOM]
PIECES = (
    "So.", " It is \u00e9 and \U0001f600", "\n\n", "one two three", " < ", "{\"a\": 1}", "`x`",
    "\t", " [1]", "o", "The end",
)  # fmt: skip
CALLS = (
    '{"name": "look", "arguments": {}}',
    '{"name": "look", "arguments": {"q": "\u00e9 \\u00e9 \\"x\\"", "n": [1, {"a": null}]}}',
    '{"name": "pick", "arguments": {"n": 7, "s": "a b"}}',
    '{"name": "write", "arguments": {"input": "*** Begin\\n+\u00e9 \\"q\\"\\n*** End"}}',
    '{"name": "code", "arguments": {"input": "ABC12"}}',
)
FIELDS: tuple[dict[str, Any], ...] = (
    {"max_tokens": 300},
    {"max_tokens": 300, "parallel_tool_calls": False},
    {"max_tokens": 300, "tool_choice": "none"},
    {"max_tokens": 300, "tool_choice": "required"},
    {"max_tokens": 300, "stop": ["o"]},
    {"max_tokens": 300, "stop": ["zzz", "a"], "include_stop_str_in_output": True},
    {"max_tokens": 300, "logprobs": True},
    {"max_tokens": 300, "json_schema": PICK},
    {"max_tokens": 300, "chat_template_kwargs": {"enable_thinking": False}},
    {"max_tokens": 300, "thinking_token_budget": 3},
)
CUTS = (1, 2, 5, 9, 17, 31, 47, 60, 80, 120, 160)
OUTPUTS = 200
UNCUT = ("mistral", "harmony")
"""Families whose thoughts cannot be limited."""
FINISHES = {"stop": "completed", "length": "max_output_tokens", "tool_calls": "completed"}
"""What Chat's finish reasons are here."""


def written(seed: int) -> str:
    """What a model like the profile thinker's may write: a thought, text and calls, or parts."""
    choose = random.Random(seed)
    text = "".join(choose.choices(PIECES, k=choose.randrange(4)))
    thought = "".join(choose.choices(PIECES, k=choose.randrange(4)))
    calls = choose.choices(CALLS, k=choose.randrange(4))
    parts = [f"<think>\n{thought}\n</think>\n\n"] if choose.random() < 0.6 else []
    parts.append(text)
    parts += [f"\n<tool_call>\n{call}\n</tool_call>" for call in calls]
    if choose.random() < 0.2:
        parts.append(choose.choice(PIECES))
    return "".join(parts)


def limits(seed: int) -> dict[str, Any]:
    """How the answer is limited: one of the fields, and for half of them a cut."""
    choose = random.Random(-seed)
    fields = dict(FIELDS[seed % len(FIELDS)])
    if choose.random() < 0.5:
        fields["max_tokens"] = choose.choice(CUTS)
    return fields


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server whose model writes the outputs of the seeds."""
    model = model_of("thinker")
    assert model is not None
    folder = tmp_path_factory.mktemp("writer")
    replies = [
        {"match": f"^output {seed}$", "token_ids": model.ids(written(seed))}
        for seed in range(OUTPUTS)
    ]
    script = profiles.write_script(folder / "script.json", replies)
    path = str(model.write(folder / "model"))
    with Server("--scripted", str(script), "--model", path, "--max-context", "8192") as server:
        yield server


@pytest.mark.parametrize("part", range(4))
def test_outputs(writer: Server, part: int) -> None:
    """Whatever a model writes, and wherever it is cut: text, thoughts and calls are Chat's."""
    kinds: set[str] = set()
    finishes: set[str | None] = set()
    for seed in range(part, OUTPUTS, 4):
        messages = [{"role": "user", "content": f"output {seed}"}]
        reply = _agree(writer, {"messages": messages, "tools": ALL_TOOLS, **limits(seed)})
        kinds |= {item.kind for item in reply.items}
        finishes.add(reply.finish)
    assert kinds == {"message", "reasoning", "function_call", "custom_tool_call"}, kinds
    assert finishes == {"completed", "max_output_tokens"}, finishes


@pytest.mark.parametrize("family", TOOL_PROMPTS)
def test_families(pool: profiles.Pool, family: str) -> None:
    """The same of what cases have the families say."""
    for prompt, fields in itertools.product(TOOL_PROMPTS[family], FIELDS):
        if family in UNCUT and "thinking_token_budget" in fields:
            continue
        messages = [{"role": "user", "content": prompt}]
        for limit in (31, 150):
            body = {"messages": messages, "tools": TOOLS, **fields, "max_tokens": limit}
            _agree(pool.get(family), body)


def _agree(server: Server, chat: dict[str, Any]) -> Reply:
    body = response_body(chat)
    assert body is not None, chat
    said = send(server.http, "chat", chat)
    whole, streamed = _both(server, body)
    assert said.status == whole.status == 200, f"{body}: {said.error} {whole.error}"
    mine, other = streamed.choices[0], said.choices[0]
    assert mine.text == other.text, body
    assert mine.reasoning == other.reasoning, body
    assert [(call.type, call.name, call.text) for call in mine.calls] == [
        (call.type, call.name, call.text) for call in other.calls
    ], body
    cut = streamed.items and streamed.items[-1].value.get("status") == "incomplete"
    assert other.finish is not None
    assert mine.finish == ("max_output_tokens" if cut else FINISHES[other.finish]), body
    if mine.logprobs:
        entries = iter(other.logprobs or [])
        assert all(entry in entries for entry in mine.logprobs), f"{body}: in another order"
    for reply in (whole, streamed):
        assert reply.prompt_tokens == said.prompt_tokens, body
        assert reply.output_tokens == said.output_tokens, body
        assert reply.thinking_tokens == said.thinking_tokens, body
    return streamed


def _both(server: Server, body: dict[str, Any]) -> tuple[Reply, Reply]:
    """The response whole and streamed, which are the same."""
    body = {"model": "m", **body}
    whole = send(server.http, "responses", body)
    streamed = send(server.http, "responses", {**body, "stream": True})
    assert comparable(streamed) == comparable(whole), body
    assert streamed.told == whole.told, body
    return whole, streamed


def test_scripted(scripted: Server) -> None:
    """A model without thoughts, cut by tokens, stops and its end, with log probabilities."""
    stops: tuple[dict[str, Any], ...] = (
        {}, {"stop": "here, f"}, {"stop": ["sun", "zzz"]}, {"stop_token_ids": [28]}
    )  # fmt: skip
    scores: tuple[dict[str, Any], ...] = ({}, {"include": [LOGPROBS], "top_logprobs": 1})
    texts = ("hello", "D145", "CONTROL-TEXT", "D144")
    for text, limit, stop, shown in itertools.product(texts, (1, 4, 200), stops, scores):
        body = {"input": text, "max_output_tokens": limit, **stop, **shown}
        whole, _ = _both(scripted, body)
        assert bool(whole.choices[0].logprobs) == bool(shown and whole.text), body


def test_embedded(embedded: Server) -> None:
    """On the model: the text of Chat for the same seed, whole and streamed."""
    asked = [{"role": "user", "content": "Write a line with an emoji: \u00e9 \U0001f600"}]
    for fields in ({"temperature": 0}, {"temperature": 1.5, "seed": 11, "stop": [" the"]}):
        _agree(embedded, {"messages": asked, "max_tokens": 6, **fields})


# Counts

HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "q"},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "first"}]},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"n": 1}'},
    {"type": "function_call_output", "call_id": "c1", "output": "a result of some length"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
    {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
]
PARTS: tuple[tuple[dict[str, Any], ...], ...] = (
    ({}, {"instructions": "Be brief."}),
    ({}, {"tools": [flat(tool) for tool in ALL_TOOLS]}, {"tools": [
        {"type": "namespace", "name": "n", "description": "d", "tools": [flat(TOOLS[0])]},
        {"type": "web_search"}]}),
    ({}, {"reasoning": {"effort": "high"}}, {"reasoning": {"effort": "none"}}),
    ({}, {"text": {"format": {"type": "json_schema", "name": "f", "schema": PICK}}}),
)  # fmt: skip


@pytest.mark.parametrize("family", ["scripted", *TOOL_PROMPTS])
def test_counts(pool: profiles.Pool, family: str) -> None:
    """Whatever a prompt is made from: the count is the prompt of the response's usage."""
    server = pool.get(family)
    sizes = set()
    for parts in itertools.product(*PARTS):
        body: dict[str, Any] = {"model": "m", "input": HISTORY}
        for part in parts:
            body |= part
        counted = send(server.http, "input_tokens", body)
        reply = send(server.http, "responses", {**body, "max_output_tokens": 2})
        assert counted.status == reply.status == 200, f"{body}: {counted.error} {reply.error}"
        assert counted.prompt_tokens == reply.prompt_tokens, body
        sizes.add(counted.prompt_tokens)
    assert len(sizes) >= 6, f"the matrix is trivial: {sizes}"


def test_counted_refusals(scripted: Server) -> None:
    """What cannot be a prompt cannot be counted either, and is refused in the same words."""
    image = {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}
    tool = {"type": "function", "name": "f"}
    bad = {"type": "object", "properties": {"a": {"not": {}}}}
    refused: tuple[dict[str, Any], ...] = (
        {"input": [{"role": "user", "content": [image]}]},
        {"input": [{"type": "item_reference", "id": "msg_none"}]},
        {"previous_response_id": "resp_none"},
        {"tools": [tool, tool]},
        {"tools": [{**tool, "strict": True, "parameters": bad}]},
        {"tool_choice": "required"},
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": bad}}},
        {"temperature": 9},
        {"truncation": "auto"},
        {"conversation": "conv_1"},
    )
    for fields in refused:
        body = {"model": "m", "input": "x", **fields}
        counted = send(scripted.http, "input_tokens", body)
        reply = send(scripted.http, "responses", body)
        assert counted.status == reply.status == 400, f"{fields}: {counted} {reply}"
        assert counted.error == reply.error, fields
