"""Chat's requests, and what they lead to, in the words of Responses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

SUFFIX = "+responses"
LOGPROBS = "message.output_text.logprobs"

_FINISHES = {"stop": "completed", "length": "max_output_tokens", "tool_calls": "completed"}
_ONLY_CHAT = (
    "prompt_logprobs", "return_token_timestamps", "return_token_ids", "max_completion_tokens",
    "n_predict", "options", "functions", "function_call", "add_generation_prompt",
    "continue_final_message", "include_reasoning", "add_special_tokens",
    "thinking_budget", "reasoning_budget_tokens",
)  # fmt: skip
_ELSEWHERE = {
    "n", "best_of", "stream_options", "messages", "max_tokens", "tools", "tool_choice", "thinking",
    "reasoning_effort", "logprobs",
}  # fmt: skip
_SAME_WORDS = (
    "text", "text_in", "text_has", "text_lacks", "text_matches", "reasoning", "reasoning_has",
    "reasoning_tokens", "calls", "first_call", "calls_named", "num_calls", "calls_valid",
    "input_matches", "json", "json_keys", "valid", "cached", "cached_least", "model", "chunks",
    "status", "error_has", "tops", "finite", "logprobs", "first_logprob",
)  # fmt: skip
_STEPS = (
    "same_as", "other_text_than", "same_text_as", "same_prompt_as", "same_logprobs_as",
    "logprobs_start_as",
)  # fmt: skip


_PROMPT_WORDS = {"prompt_has", "prompt_lacks", "prompt_ends"}
_PROMPT_STEPS = {"prompt_as", "prompt_not_as"}
_INNER = ("function", "custom", "grammar", "allowed_tools", "tool_calls[]")
"""Objects in Chat's paths that Responses does without."""
_NAMES = {
    "max_tokens": "max_output_tokens", "messages": "input", "messages[]": "input[]",
    "logprobs": "include", "id": "call_id", "tool_call_id": "call_id",
}  # fmt: skip
_LIMITED = {"return_token_ids", "max_tokens"}
_PLAIN = ("bytes", "strict")
"""Servers that show no prompt, or not all of it."""


# Bodies


def _can_be_said(chat: dict[str, Any]) -> bool:
    """Whether a body has only what Responses has too, and is not malformed in Chat's own way."""
    sent = [chat[name] for name in _ONLY_CHAT if chat.get(name) is not None]
    tools = chat.get("tools") or []
    return (
        all(value is False for value in sent)
        and chat.get("include_reasoning") is not False
        and all(chat.get(name, 1) in (None, 1) for name in ("n", "best_of"))
        and all(isinstance(chat.get(name), bool | None) for name in ("logprobs", "thinking"))
        and all(tool["type"] in tool for tool in tools)
        and bool(chat.get("messages", [{}]))
    )


def response_body(chat: dict[str, Any]) -> dict[str, Any] | None:
    """The body that asks Responses for the same; None where it has no word for it."""
    if not _can_be_said(chat):
        return None
    dropped = {*_ONLY_CHAT, *_ELSEWHERE}
    body = {name: value for name, value in chat.items() if name not in dropped}
    if "messages" in chat:
        items = [item for message in chat["messages"] for item in _items(message)]
        if None in items:
            return None
        body["input"] = items
    if "max_tokens" in chat:
        body["max_output_tokens"] = chat["max_tokens"]
    if chat.get("logprobs"):
        body["include"] = [LOGPROBS]
    if chat.get("thinking") is False or chat.get("reasoning_effort"):
        body["reasoning"] = {"effort": chat.get("reasoning_effort") or "none"}
    if chat.get("tools"):
        body["tools"] = [flat(tool) for tool in chat["tools"]]
    if chat.get("tool_choice"):
        body["tool_choice"] = _choice(chat["tool_choice"])
    return body


def _items(message: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
    """The items that a message is; None where it has more than items can say."""
    role, content = message["role"], message.get("content")
    more = {"reasoning_content", "tool_calls", "tool_call_id"}
    if set(message) - {"role", "content", *more} or not isinstance(content, str | None):
        yield None
        return
    calls = message.get("tool_calls") or ()
    texts = [call[call["type"]].get("arguments") for call in calls if call["type"] == "function"]
    if None in texts or (role in ("tool", "user") and content is None):
        yield None  # items have no null there
        return
    if role == "tool":
        call_id = message.get("tool_call_id")
        yield {"type": "function_call_output", "call_id": call_id, "output": content}
        return
    if message.get("reasoning_content"):
        part = {"type": "reasoning_text", "text": message["reasoning_content"]}
        yield {"type": "reasoning", "summary": [], "content": [part]}
    if content is not None:
        yield {"role": role, "content": content}
    for call in calls:
        inner = call[call["type"]]
        kind = "function_call" if call["type"] == "function" else "custom_tool_call"
        yield {"type": kind, "call_id": call["id"], **inner}


def flat(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool of Chat without the object in it."""
    kind: str = tool["type"]
    inner = dict(tool[kind])
    form = inner.get("format")
    if form and form["type"] == "grammar":
        inner["format"] = {"type": "grammar", **form["grammar"]}
    return {"type": kind, **inner}


def _choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    if choice["type"] == "allowed_tools":
        allowed = choice["allowed_tools"]
        return {**allowed, "type": "allowed_tools", "tools": [flat(t) for t in allowed["tools"]]}
    return flat(choice)


# Steps


def response_step(
    step: dict[str, Any], places: dict[int, int], server: str
) -> dict[str, Any] | None:
    """A step of Chat, its prompt shown where Chat reads it from token ids; None: not possible."""
    sent, expect = step.get("body", {}), step.get("expect", {})
    shows = bool(sent.get("return_token_ids")) and server not in _PLAIN
    if shows and set(expect) <= _PROMPT_WORDS | _PROMPT_STEPS and expect:
        body = response_body({n: v for n, v in sent.items() if n not in _LIMITED})
        steps = {word: places.get(n) for word, n in expect.items() if word in _PROMPT_STEPS}
        if body is None or None in steps.values():
            return None
        return {"bare": True, "show": True, "body": body, "expect": expect | steps}
    body = response_body(sent)
    made = None if body is None else _expected(expect, places)
    if body is None or made is None:
        return None
    return {"bare": True, "body": body, "expect": made}


def _expected(expect: dict[str, Any], places: dict[int, int]) -> dict[str, Any] | None:
    """The expectations of a step of Chat, None where one of them cannot be said."""
    made: dict[str, Any] = {}
    for word, wanted in expect.items():
        if word in _SAME_WORDS:
            made[word] = wanted
        elif word == "content":
            made[word] = wanted or None  # no message is empty
        elif word in _STEPS and wanted in places:
            made[word] = places[wanted]
        elif word == "finish" and wanted in _FINISHES:
            made[word] = _FINISHES[wanted]
        elif word == "usage" and set(wanted) == {"completion_tokens"}:
            made[word] = {"output_tokens": wanted["completion_tokens"]}
        elif word == "param_starts":
            made[word] = _param(wanted)
        elif word == "error":
            made[word] = wanted | ({"param": _param(wanted["param"])} if "param" in wanted else {})
        elif word != "stop_reason" and (word != "choices" or wanted != 1):
            return None
    return made


def _param(chat: str | None) -> str | None:
    """What an error calls a field of Chat."""
    return None if chat is None else proved(chat)


def proved(chat: str) -> str:
    """The path of a field of Chat."""
    first, *below = chat.split(".")
    if first.startswith(("tool", "messages")):
        below = [part for part in below if part not in _INNER]
    parts = [first, *below]
    named = [_NAMES.get(part, part) for part in parts]
    return ".".join(re.sub(r"^messages(?=\[)", "input", part) for part in named)
