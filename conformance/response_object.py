"""The object of a response, held against its form."""

from __future__ import annotations

from typing import Any

from conformance.response_items import check_item, check_kept

_OPEN_RESPONSES = {
    "id", "object", "created_at", "completed_at", "status", "incomplete_details", "model",
    "previous_response_id", "instructions", "output", "error", "tools", "tool_choice", "truncation",
    "parallel_tool_calls", "text", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs",
    "temperature", "reasoning", "usage", "max_output_tokens", "max_tool_calls", "store",
    "background", "service_tier", "metadata", "safety_identifier", "prompt_cache_key",
}  # fmt: skip
"""What Open Responses requires of the object."""
_MORE = {"prompt_cache_retention", "user", "flare"}
CHANGING = {
    "status", "completed_at", "error", "incomplete_details", "output", "usage", "flare",
}  # fmt: skip
"""What is not the same in all events of a stream."""
_COMPACTION = {"id", "object", "created_at", "output", "usage"}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "created_at": int, "model": str, "tools": list, "tool_choice": (str, dict),
    "parallel_tool_calls": bool, "text": dict, "top_p": (int, float), "temperature": (int, float),
    "presence_penalty": (int, float), "frequency_penalty": (int, float), "top_logprobs": int,
    "store": bool, "metadata": dict, "output": list,
}  # fmt: skip


def check_object(response: dict[str, Any]) -> None:
    """All that there must be, at any time of its life."""
    known = _OPEN_RESPONSES | _MORE
    assert set(response) == known, f"wrong members: {set(response) ^ known}"
    assert response["object"] == "response" and response["id"].startswith("resp_"), response
    for name, kind in _TYPES.items():
        assert isinstance(response[name], kind), f"{name}: {response[name]!r}"
    fixed = {"truncation": "disabled", "background": False, "service_tier": "default"}
    assert {name: response[name] for name in fixed} == fixed, response
    assert response["model"], response
    assert (response["error"] is None) == (response["status"] != "failed"), response
    incomplete = {"reason": "max_output_tokens"} if response["status"] == "incomplete" else None
    assert response["incomplete_details"] == incomplete, response
    if response["status"] == "completed":
        assert response["completed_at"] >= response["created_at"], response
    else:
        assert response["completed_at"] is None, response


def check_compaction(body: dict[str, Any]) -> None:
    """What a conversation is replaced with: what the user said, then the note of everything."""
    assert set(body) == _COMPACTION, f"wrong members: {set(body) ^ _COMPACTION}"
    assert body["object"] == "response.compaction" and body["id"].startswith("resp_"), body
    assert isinstance(body["created_at"], int), body
    *kept, note = body["output"]
    for item in kept:
        check_kept(item)
    assert note["type"] == "compaction", f"no note at the end: {body}"
    check_item(note)
    assert note["encrypted_content"], f"an empty note: {note}"
    ids = [item["id"] for item in body["output"]]
    assert len(set(ids)) == len(ids), f"an id twice: {ids}"
    check_usage(body["usage"], [note])


def check_usage(usage: dict[str, Any], output: list[dict[str, Any]]) -> None:
    """Token counts that agree with each other.

    No prompt costs nothing, but for a note that the server wrote because no pass fits the window.
    """
    inner = {
        "input_tokens_details": {"cached_tokens", "cache_write_tokens"},
        "output_tokens_details": {"reasoning_tokens"},
    }
    assert set(usage) == {"input_tokens", "output_tokens", "total_tokens", *inner}, usage
    assert all(set(usage[name]) == members for name, members in inner.items()), usage
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"], usage
    details = usage["input_tokens_details"]
    assert 0 <= details["cached_tokens"] <= usage["input_tokens"], usage
    assert details["cache_write_tokens"] == 0, usage
    is_note = [item["type"] for item in output] == ["compaction"]
    assert usage["input_tokens"] > 0 or (is_note and usage["total_tokens"] == 0), usage
    thoughts = usage["output_tokens_details"]["reasoning_tokens"]
    assert 0 <= thoughts <= usage["output_tokens"], usage
