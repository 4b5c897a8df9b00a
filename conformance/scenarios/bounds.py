"""The bounds of the specs that are too large for the fuzzer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx2

from conformance import spec
from conformance.profiles import Pool
from conformance.replies import COUNTS, send
from conformance.reply import RESPONSES, Reply
from conformance.server import Server


def bounds(pool: Pool, _: Callable[..., Server]) -> None:
    """Each bound of the specs that is too large for the fuzzer, at its value and one above."""
    client = pool.get("scripted").http
    message = {"role": "user", "content": ""}
    part = {"type": "text", "text": ""}
    short = {"max_tokens": 1}
    for route, most, above in (
        ("chat", [message] * 16_384, [message] * 16_385),
        ("chat", [{"role": "user", "content": [part] * 16_384}], None),
        ("chat", None, [{"role": "user", "content": [part] * 16_385}]),
    ):
        if most is not None:
            reply = send(client, route, {"messages": most, **short})
            full = reply.error and reply.error["code"] == "context_length_exceeded"
            assert reply.status == 200 or full, reply.error
        if above is not None:
            reply = send(client, route, {"messages": above, **short})
            assert reply.status == 400 and reply.error
            assert (reply.error["param"] or "").startswith("messages"), reply.error
            assert reply.error["code"] != "context_length_exceeded", reply.error
    tools = [{"type": "function", "function": {"name": f"f{n}"}} for n in range(1025)]
    reply = send(client, "chat", {"messages": [message], "tools": tools[:1024], **short})
    full = reply.error and reply.error["code"] == "context_length_exceeded"
    assert reply.status == 200 or full, reply.error
    reply = send(client, "chat", {"messages": [message], "tools": tools, **short})
    assert reply.status == 400 and reply.error and reply.error["param"] == "tools"
    many = {str(token): 0.5 for token in range(4097)}
    reply = send(client, "chat", {"messages": [message], "logit_bias": many, **short})
    assert reply.status == 400 and reply.error and reply.error["param"] == "logit_bias"
    many.popitem()
    reply = send(client, "chat", {"messages": [message], "logit_bias": many, **short})
    assert reply.status == 200, reply.error
    for prompts, status in ((["x"] * 200, 200), (["x"] * 1025, 400), ([[1]] * 1025, 400)):
        reply = send(client, "completions", {"prompt": prompts, "max_tokens": 1})
        assert reply.status == status, reply.error
        assert not reply.error or (reply.error["param"] or "").startswith("prompt")
    reply = send(client, "completions", {"prompt": "x", "n": 129})
    assert reply.status == 400 and reply.error and reply.error["param"] == "n"
    _bounds_of_messages(client)
    _bounds_of_responses(client)


def _bounds_of_messages(client: httpx2.Client) -> None:
    turn, block = {"role": "user", "content": ""}, {"type": "text", "text": ""}
    result = {"type": "tool_result", "tool_use_id": "x", "content": [block]}
    tools = [{"name": f"f{number}", "input_schema": {"type": "object"}} for number in range(1025)]
    edit = {"type": "clear_thinking_20251015", "keep": "all"}

    def said(*blocks: object) -> list[dict[str, Any]]:
        return [{"role": "user", "content": list(blocks)}]

    bounds: tuple[tuple[str, Any, Any], ...] = (
        ("messages", [turn] * 16_384, [turn] * 16_385),
        ("messages", said(*[block] * 16_384), said(*[block] * 16_385)),
        ("messages", said(result), said({**result, "content": [block] * 16_385})),
        ("system", [block] * 16_384, [block] * 16_385),
        ("tools", tools[:1024], tools),
        ("context_management", {"edits": [edit] * 16}, {"edits": [edit] * 17}),
        ("stop_sequences", ["x"] * 4, ["x"] * 5),
        ("stop_sequences", ["x" * 4096], ["x" * 4097]),
    )
    for name, most, above in bounds:
        body = {"messages": [turn], "max_tokens": 1}
        reply = send(client, "messages", {**body, name: most})
        full = reply.error and reply.error["message"].startswith("prompt is too long")
        assert reply.status == 200 or full, f"{name}: {reply.error}"
        for route in ("messages", "count") if name != "stop_sequences" else ("messages",):
            reply = send(client, route, {**body, name: above})
            assert reply.status == 400 and reply.error, f"{route} {name}: {reply.status}"
            assert name in reply.error["message"], reply.error


_LARGE = 1024
"""From here on a bound is out of the fuzzer's reach."""
_TEXT = {"type": "input_text", "text": ""}
_FUNCTION = {"type": "function", "name": "f"}


def _functions(count: int) -> list[dict[str, Any]]:
    return [{"type": "function", "name": f"f{number}"} for number in range(count)]


def _item(kind: str, **members: Any) -> dict[str, Any]:
    return {"input": [{"type": kind, **members}]}


def _namespace(count: int) -> dict[str, Any]:
    return {"type": "namespace", "name": "n", "tools": _functions(count)}


_OF_RESPONSES: tuple[tuple[str, int, Callable[[int], dict[str, Any]]], ...] = (
    ("input", 16_384, lambda n: {"input": [{"role": "user", "content": ""}] * n}),
    ("input[0].content", 16_384, lambda n: _item("message", role="user", content=[_TEXT] * n)),
    ("input[0].output", 16_384, lambda n: _item("function_call_output", output=[_TEXT] * n)),
    ("input[0].output", 16_384,
     lambda n: _item("custom_tool_call_output", call_id="c", output=[_TEXT] * n)),
    ("input[0].summary", 16_384,
     lambda n: _item("reasoning", summary=[{"type": "summary_text", "text": ""}] * n)),
    ("input[0].content", 16_384,
     lambda n: _item("reasoning", content=[{"type": "reasoning_text", "text": ""}] * n)),
    ("input[0].tools", 1024, lambda n: _item("additional_tools", tools=_functions(n))),
    ("input[0].tools", 1024, lambda n: _item("tool_search_output", tools=_functions(n))),
    ("input[0].tools[0].tools", 1024, lambda n: _item("additional_tools", tools=[_namespace(n)])),
    ("tools", 1024, lambda n: {"tools": _functions(n)}),
    ("tools[0].tools", 1024, lambda n: {"tools": [_namespace(n)]}),
    ("tool_choice.tools", 1024, lambda n: {
        "tools": [_FUNCTION],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [_FUNCTION] * n},
    }),
    ("include", 16, lambda n: {"include": ["reasoning.encrypted_content"] * n}),
    ("model", 1024, lambda n: {"model": "m" * n}),
    ("cache_salt", 1024, lambda n: {"cache_salt": "s" * n}),
    ("reasoning.effort", 64, lambda n: {"reasoning": {"effort": "e" * n}}),
    ("reasoning_effort", 64, lambda n: {"reasoning_effort": "e" * n}),
    ("stop", 4096, lambda n: {"stop": "x" * n}),
    ("guided_choice", 1024, lambda n: {"guided_choice": [str(word) for word in range(n)]}),
    ("structured_outputs.choice", 1024,
     lambda n: {"structured_outputs": {"choice": [str(word) for word in range(n)]}}),
)  # fmt: skip
"""What an error names, its bound, and what of a body has so many of it."""


def _bounds_of_responses(client: httpx2.Client) -> None:
    """On each route that has the field. Where only a count is asked for, what it holds is not: to
    count a thousand tools takes seconds.
    """
    known = {re.sub(r"\d", "", path) for path, *_ in _OF_RESPONSES}
    assert _large("responses") <= known, f"not tried: {_large('responses') - known}"
    for route in RESPONSES:
        names = {field.path for field in spec.fields(route)}
        for path, bound, fields_of in _OF_RESPONSES:
            if re.sub(r"\d", "", path) not in names:
                continue
            held = () if route in COUNTS.values() else (bound,)
            for size in (*held, bound + 1):
                body = {"model": "m", "max_output_tokens": 1, **fields_of(size)}
                reply = send(client, route, body)
                where = f"{route} {path} {size}"
                if size > bound:
                    _is_above(reply, path, bound, where)
                else:
                    full = reply.error and reply.error["code"] == "context_length_exceeded"
                    assert reply.status == 200 or full, f"{where}: {reply.error}"


def _large(route: str) -> set[str]:
    """The fields of a route that take a large number of items or letters, and no more."""
    return {
        field.path
        for field in spec.occurrences(route)
        for plain, _ in spec.alternatives(field.schema, field.file)
        if max(plain.get("maxItems", 0), plain.get("maxLength", 0)) >= _LARGE
    }


def _is_above(reply: Reply, path: str, bound: int, where: str) -> None:
    """It is refused, and the error names the field and its bound."""
    assert reply.status == 400 and reply.error, f"{where}: {reply.status}"
    assert (reply.error["param"] or "").startswith(path), f"{where}: {reply.error}"
    assert f"at most {bound} " in reply.error["message"], f"{where}: {reply.error}"


SCENARIOS = (bounds,)
