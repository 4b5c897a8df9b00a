"""One choice of a reply, put together as the official SDKs do it, and the rules of its pieces."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

_TEXTS = {"function": "arguments", "custom": "input"}
"""Where a call's text is, by its type."""
_CONTENTS = ("content", "reasoning_content", "tool_calls")


@dataclass
class Call:
    """A tool call; `text` is its arguments or input, `deltas` the pieces of that in a stream."""

    id: str
    type: str
    name: str
    text: str = ""
    deltas: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> Any:
        """The value of its JSON arguments; fails when they are not JSON.

        A name may be there twice: masks do not forbid it.
        """
        value = json.loads(self.text)
        json.dumps(value, allow_nan=False)
        return value


@dataclass
class Choice:
    """One choice, whole.

    `text` is "" where `content` is null. `logprobs` has one entry for each token: Chat's entries as
    they are, and of Completions' arrays {"token", "logprob", "top_logprobs", "text_offset"}. What
    stands at the reply on Chat (prompt_token_ids, prompt_logprobs) is with every choice here.
    """

    text: str = ""
    finish: str | None = None
    stop_reason: Any = None
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    content_is_null: bool = False
    deltas: list[str] = field(default_factory=list)
    reasoning_deltas: list[str] = field(default_factory=list)
    logprobs: list[dict[str, Any]] | None = None
    token_ids: list[int] | None = None
    timestamps: list[float] | None = None
    prompt_token_ids: list[int] | None = None
    prompt_logprobs: list[dict[str, Any] | None] | None = None

    def outcome(self) -> tuple[Any, ...]:
        """All that must be equal when the same request is sent again, streamed or not.

        Ids of calls are new each time. Without a token, there is no piece of a stream that could
        have an empty list.
        """
        return (
            self.text,
            self.finish,
            self.stop_reason,
            self.reasoning,
            [(call.type, call.name, call.text) for call in self.calls],
            self.logprobs or None,
            self.token_ids or None,
            self.prompt_token_ids,
        )

    def check_end(self) -> None:
        """A finish reason that clients can trust."""
        ids = [call.id for call in self.calls]
        assert all(ids) and len(set(ids)) == len(ids), f"ids of calls: {ids}"
        if self.finish == "tool_calls":
            assert self.calls, "finish_reason tool_calls, and no call"
            for call in self.calls:
                if call.type == "function":
                    assert isinstance(call.arguments, dict), f"no object: {call}"


def read_message(choice: Choice, message: dict[str, Any]) -> None:
    """The message of a buffered reply."""
    known = {"role", "content", "refusal", "reasoning_content", "tool_calls"}
    assert set(message) <= known, f"unknown members: {message}"
    assert message["role"] == "assistant" and message["refusal"] is None
    assert message["content"] is None or isinstance(message["content"], str), message
    choice.text = message["content"] or ""
    choice.content_is_null = message["content"] is None
    if "reasoning_content" in message:
        choice.reasoning = message["reasoning_content"]
        assert isinstance(choice.reasoning, str) and choice.reasoning, "empty reasoning is left out"
    if "tool_calls" in message:
        assert message["tool_calls"], "empty tool_calls are left out"
        choice.calls = [_whole_call(call) for call in message["tool_calls"]]
    if choice.calls or choice.reasoning:
        assert message["content"] != "", "no content is null beside calls and reasoning"


def _whole_call(call: dict[str, Any]) -> Call:
    kind = call["type"]
    assert set(call) == {"id", "type", kind}, f"wrong members: {call}"
    inner, text = call[kind], _TEXTS[kind]
    assert set(inner) == {"name", text}, f"wrong members: {call}"
    assert isinstance(inner[text], str), f"not a text: {call}"
    return Call(call["id"], kind, inner["name"], inner[text])


def take_delta(choice: Choice, piece: dict[str, Any], *, first: bool) -> None:
    """A delta of a stream, held against the rules that strict clients rely on."""
    delta = piece["delta"]
    assert ("role" in delta) == first, "the role comes with the first piece, and only then"
    if first:
        assert delta == {"role": "assistant", "content": ""}, delta
        assert piece["finish_reason"] is None
        return
    assert set(delta) <= set(_CONTENTS), f"unknown members: {delta}"
    assert len(delta) <= 1, f"content, reasoning and calls come in chunks of their own: {delta}"
    for name, value in delta.items():
        assert value is not None and value != [], f"{name} is {value!r}"
    shown = ("logprobs", "token_ids", "token_timestamps")
    if delta.get("content") == "" and not any(piece.get(name) for name in shown):
        raise AssertionError(f"an empty piece of content: {piece}")
    assert delta.get("reasoning_content") != "", f"an empty piece of reasoning: {piece}"
    if delta.get("content"):
        choice.text += delta["content"]
        choice.deltas.append(delta["content"])
    if "reasoning_content" in delta:
        choice.reasoning += delta["reasoning_content"]
        choice.reasoning_deltas.append(delta["reasoning_content"])
    for call in delta.get("tool_calls", ()):
        _take_call(choice, call)


def _take_call(choice: Choice, delta: dict[str, Any]) -> None:
    """Merged by index: id, type and name come once, the text in pieces."""
    index = delta["index"]
    assert isinstance(index, int) and not isinstance(index, bool), delta
    if index == len(choice.calls):
        kind = delta["type"]
        assert set(delta) == {"index", "id", "type", kind}, f"a first delta: {delta}"
        inner, text = delta[kind], _TEXTS[kind]
        assert set(inner) == {"name", text} and inner["name"], f"a first delta: {delta}"
        choice.calls.append(Call(delta["id"], kind, inner["name"]))
    else:
        assert index == len(choice.calls) - 1, f"call {index} of {len(choice.calls)}: {delta}"
        kind = choice.calls[index].type
        text = _TEXTS[kind]
        assert set(delta) == {"index", kind}, f"a later delta: {delta}"
        assert set(delta[kind]) == {text}, f"a later delta: {delta}"
        assert delta[kind][text], f"an empty piece: {delta}"
    if delta[kind][text]:
        choice.calls[index].text += delta[kind][text]
        choice.calls[index].deltas.append(delta[kind][text])
