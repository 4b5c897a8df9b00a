"""The items of a response's output, held against their forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_FORMS: dict[str, tuple[str, set[str], set[str]]] = {
    "message": ("msg_", {"role", "status", "content"}, {"phase"}),
    "reasoning": ("rs_", {"summary", "content", "status"}, {"encrypted_content"}),
    "function_call": ("fc_", {"call_id", "name", "arguments", "status"}, {"namespace"}),
    "custom_tool_call": ("ctc_", {"call_id", "name", "input", "status"}, {"namespace"}),
    "tool_search_call": ("tsc_", {"call_id", "execution", "arguments", "status"}, set()),
    "compaction": ("cmp_", {"encrypted_content"}, set()),
}
"""How the ids of a kind begin, what it has besides id and type, and what it may have."""
CALLS = ("function_call", "custom_tool_call", "tool_search_call")
TEXTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Where the text of a call is, for which there are deltas."""
_PARTS = {"message": "output_text", "reasoning": "reasoning_text"}
_PART_MEMBERS = {
    "output_text": {"type", "text", "annotations", "logprobs"},
    "reasoning_text": {"type", "text"},
}
_KEPT = {"id", "type", "role", "status", "content"}
_KEPT_PARTS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
"""What a part of a message of the user may be, and the member that has its text."""
_ENTRY = {"token", "bytes", "logprob"}
_GROWING = {"status", "content", "arguments", "input", "phase", "encrypted_content"}


def check_item(item: dict[str, Any]) -> None:
    """An item of any age."""
    prefix, members, more = _FORMS[item["type"]]
    needed = {"id", "type", *members}
    assert needed <= set(item) <= needed | more, f"wrong members: {item}"
    assert item["id"].startswith(prefix) and len(item["id"]) > len(prefix), item
    match item["type"]:
        case "message" | "reasoning":
            _check_content(item)
        case "tool_search_call":
            assert item["execution"] == "client" and isinstance(item["arguments"], dict), item
        case "function_call" | "custom_tool_call":
            assert item["name"] and isinstance(item[TEXTS[item["type"]]], str), item
            assert item.get("namespace", "x"), f"an empty namespace: {item}"
        case _:
            assert isinstance(item["encrypted_content"], str), item
    if item["type"] in CALLS:
        assert item["call_id"], f"a call without an id: {item}"


def _check_content(item: dict[str, Any]) -> None:
    if item["type"] == "message":
        assert item["role"] == "assistant", item
        assert item.get("phase", "commentary") in ("commentary", "final_answer"), item
    else:
        assert item["summary"] == [], item
        assert item.get("encrypted_content", "x"), f"an empty secret: {item}"
    assert len(item["content"]) <= 1, f"more than one part: {item}"
    for part in item["content"]:
        check_part(part, item["type"])


def check_part(part: dict[str, Any], kind: str) -> None:
    """A part of an item of a kind."""
    assert part["type"] == _PARTS[kind], part
    assert set(part) == _PART_MEMBERS[part["type"]], f"wrong members: {part}"
    assert isinstance(part["text"], str), part
    if kind == "message":
        assert part["annotations"] == [], part
        check_entries(part["logprobs"])


def check_entries(entries: list[dict[str, Any]]) -> None:
    """The log probabilities of a text."""
    assert isinstance(entries, list), entries
    for entry in entries:
        assert set(entry) == _ENTRY | {"top_logprobs"}, entry
        for one in (entry, *entry["top_logprobs"]):
            assert _ENTRY <= set(one) <= _ENTRY | {"top_logprobs"}, one
            shown = bytes(one["bytes"]).decode("utf-8", "replace")
            assert one["token"] == shown or one["token"].startswith("token_id:"), one
            assert -9999.0 <= one["logprob"] <= 0, one


def check_kept(item: dict[str, Any]) -> None:
    """A message of the user that a compaction hands on as it was, in the form of lists of items."""
    assert _KEPT <= set(item) <= _KEPT | {"phase"}, f"wrong members: {item}"
    assert item["type"] == "message" and item["role"] == "user", item
    assert item["id"] and item["status"], item
    assert isinstance(item["content"], list), f"no parts: {item}"
    for part in item["content"]:
        assert isinstance(part[_KEPT_PARTS[part["type"]]], str), item


def check_begun(item: dict[str, Any]) -> None:
    """An item that has begun and has nothing in it yet."""
    check_item(item)
    assert item.get("status", "in_progress") == "in_progress", item
    for name in ("content", "arguments", "input"):
        assert not item.get(name), f"it begins with content: {item}"
    assert not item.get("encrypted_content") and "phase" not in item, item


def check_done(item: dict[str, Any], begun: dict[str, Any]) -> None:
    """An item that is announced as done: it is the one that began, and whole."""
    check_item(item)
    for name in set(item) | set(begun) - _GROWING:
        assert name in _GROWING or item[name] == begun[name], f"{name}: {begun} became {item}"
    assert item.get("status") != "in_progress", item
    if item["type"] in CALLS:
        assert item["status"] == "completed", f"a cut call is announced: {item}"
    if item["type"] == "compaction":
        assert item["encrypted_content"], item


def text_of(item: dict[str, Any]) -> str:
    """The text of an item that has deltas."""
    if item["type"] in _PARTS:
        return "".join(part["text"] for part in item["content"])
    return str(item.get(TEXTS.get(item["type"], ""), ""))


def check_output(items: Sequence[dict[str, Any]], status: str) -> None:
    """The items of a response that has ended: only the last can be a part of what it would be."""
    for place, item in enumerate(items):
        check_item(item)
        is_last = place == len(items) - 1
        allowed = ("completed",) if status == "completed" else ("completed", "incomplete")
        wanted = allowed if is_last else ("completed",)
        assert item.get("status", "completed") in wanted, f"{status}: {item}"
        if item["type"] in _PARTS and status != "failed":
            assert text_of(item), f"an empty item: {item}"
        if item["type"] == "message" and (status != "failed" or not is_last):
            phase = "final_answer" if is_last else "commentary"
            assert item.get("phase") == phase, f"{phase}: {items}"
        if item["type"] == "function_call" and item["status"] == "completed":
            value = json.loads(item["arguments"])
            assert isinstance(value, dict), f"no object: {item}"
            json.dumps(value, allow_nan=False)
    for name in ("id", "call_id"):
        ids = [item[name] for item in items if name in item]
        assert len(set(ids)) == len(ids), f"{name} twice: {ids}"
