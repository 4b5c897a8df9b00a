"""Hints that a prefix will come again: `cache_control` wherever a message can have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from conformance.profiles import Pool
from conformance.replies import send
from conformance.server import Server

Body = dict[str, Any]
_HINT = {"cache_control": {"type": "ephemeral"}}
_PAGES, _PAGE = 64, 16
_KEPT = 6 * _PAGE
"""A hinted prefix has more tokens than this, and less than half of the pool, which may be kept."""


def kept_prefixes(_: Pool, start: Callable[..., Server]) -> None:
    """A small cache, and a flood: what has a hint is still there, what has none is gone."""
    tokens = str(_PAGES * _PAGE)
    server = start([{"text": "ok"}], "--max-context", tokens, "--kv-tokens", tokens)
    for number, (path, hinted) in enumerate(_placements()):
        for hint in ({}, _HINT):
            text = f"{number} {bool(hint)} " + "keep these words in mind " * 24
            body = {"max_tokens": 4, "cache_salt": f"{number}{bool(hint)}", **hinted(text, hint)}
            first = send(server.http, "messages", body)
            assert first.status == 200 and first.cached_tokens == 0, f"{path}: {first.error}"
            assert first.prompt_tokens < _PAGES * _PAGE // 2 - _PAGE, f"{path}: {first.usage}"
            _flood(server)
            cached = send(server.http, "messages", body).cached_tokens
            if hint:
                assert cached >= _KEPT, f"{path}: {cached} tokens of a hinted prefix are left"
            else:
                assert cached == 0, f"{path}: {cached} tokens are left without a hint"


def _flood(server: Server) -> None:
    for number in range(4):
        words = f"{number} " + "other words come and go " * 100
        flood = {"messages": [{"role": "user", "content": words}], "cache_salt": "flood"}
        assert send(server.http, "messages", {**flood, "max_tokens": 4}).status == 200


def _placements() -> Iterator[tuple[str, Callable[[str, Body], Body]]]:
    """Where a hint can be: the path, and a body with a text and the hint there."""
    yield "cache_control", lambda text, hint: {**_said(text), **hint}
    yield "system[]", lambda text, hint: {"system": [_text(text, hint)], **_said("q")}
    for name, block in _BLOCKS.items():
        yield f"messages[].content[] {name}", _in_message(block)
        if name != "compaction":
            yield f"messages[].content[].content[] {name}", _in_result(block)
    yield (
        "messages[].content[] tool_use",
        lambda text, hint: _turns([*_call({"text": text}, hint), *_answered("r")]),
    )
    yield (
        "messages[].content[] tool_result",
        lambda text, hint: _turns([*_call({}), *_answered(text, hint)]),
    )
    yield "messages[].content[].content[] tool_reference", _reference
    for change in ("addition", "removal"):
        yield f"messages[].content[] tool_{change}", _tool_change(change)


def _text(text: str, hint: Body) -> Body:
    return {"type": "text", "text": text, **hint}


def _document(text: str, hint: Body) -> Body:
    return {"type": "document", "source": {"type": "text", "data": text}, **hint}


def _document_of_blocks(text: str, hint: Body) -> Body:
    return {"type": "document", "source": {"type": "content", "content": [_text(text, hint)]}}


def _search_result(text: str, hint: Body) -> Body:
    found = [_text(text, {})]
    return {"type": "search_result", "source": "s", "title": "t", "content": found, **hint}


def _search_result_text(text: str, hint: Body) -> Body:
    return {"type": "search_result", "source": "s", "title": "t", "content": [_text(text, hint)]}


def _compaction(text: str, hint: Body) -> Body:
    return {"type": "compaction", "content": text, **hint}


_BLOCKS: dict[str, Callable[[str, Body], Body]] = {
    "text": _text,
    "document": _document,
    "document of blocks": _document_of_blocks,
    "search_result": _search_result,
    "text of search_result": _search_result_text,
    "compaction": _compaction,
}


def _said(text: str) -> Body:
    return {"messages": [{"role": "user", "content": text}]}


def _turns(turns: list[Body]) -> Body:
    return {"messages": [{"role": "user", "content": "q"}, *turns]}


def _call(arguments: Body, hint: Body | None = None) -> list[Body]:
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": arguments, **(hint or {})}
    return [{"role": "assistant", "content": [call]}]


def _answered(content: Any, hint: Body | None = None) -> list[Body]:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": content, **(hint or {})}
    return [{"role": "user", "content": [result]}]


def _in_message(block: Callable[[str, Body], Body]) -> Callable[[str, Body], Body]:
    def body(text: str, hint: Body) -> Body:
        return {"messages": [{"role": "user", "content": [block(text, hint)]}]}

    return body


def _in_result(block: Callable[[str, Body], Body]) -> Callable[[str, Body], Body]:
    return lambda text, hint: _turns([*_call({}), *_answered([block(text, hint)])])


def _reference(text: str, hint: Body) -> Body:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    tool = {"name": "g", "description": text, "input_schema": schema, "defer_loading": True}
    found = {"type": "tool_reference", "tool_name": "g", **hint}
    return {"tools": [tool], **_turns([*_call({}), *_answered([found])])}


def _tool_change(hinted: str) -> Callable[[str, Body], Body]:
    """A tool that comes or goes in a system message behind the text."""

    def body(text: str, hint: Body) -> Body:
        if hinted == "addition":
            definition = {"name": "g", "input_schema": {"type": "object"}}
            tool: Body = {"type": "tool_definition", "definition": definition}
        else:
            tool = {"type": "tool_reference", "name": "g"}
        change = {"type": f"tool_{hinted}", "tool": tool, **hint}
        user = {"role": "user", "content": text}
        return {"messages": [user, {"role": "system", "content": [change]}]}

    return body


SCENARIOS = (kept_prefixes,)
