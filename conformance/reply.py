"""One view of a reply of any protocol, buffered or streamed, and the envelopes of failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx2

from conformance.choice import Choice

ANTHROPIC = ("messages", "count")
"""The routes that speak Anthropic's protocol."""
RESPONSES = ("responses", "input_tokens", "compact")
"""The routes that speak OpenAI's Responses."""
_NEW_EACH_TIME = {"id", "call_id", "encrypted_content"}
_ERROR_KEYS = {"message", "type", "param", "code"}


@dataclass
class Block:
    """One content block of a message, put together as the official SDK does it.

    `raw` is the JSON text of a call's input as a stream brought it, `deltas` the pieces of whatever
    the block holds. A block of a stream is open until its content_block_stop.
    """

    kind: str
    text: str = ""
    signature: str = ""
    id: str = ""
    name: str = ""
    input: Any = None
    raw: str = ""
    deltas: list[str] = field(default_factory=list)
    open: bool = False
    signed: bool = False

    def shown(self) -> dict[str, Any]:
        """The block as a buffered message has it, without what is new each time."""
        match self.kind:
            case "text":
                return {"type": "text", "text": self.text}
            case "thinking":
                return {"type": "thinking", "thinking": self.text, "signature": self.signature}
            case _:
                return {"type": "tool_use", "name": self.name, "input": self.input}


@dataclass
class Item:
    """One item of a response's output: its JSON as last shown, and how far a stream is with it.

    `stage` counts the kinds of events that it has had, `deltas` are the pieces of its text,
    `logprobs` the entries of its tokens.
    """

    value: dict[str, Any]
    deltas: list[str] = field(default_factory=list)
    logprobs: list[dict[str, Any]] = field(default_factory=list)
    stage: int = 0

    @property
    def kind(self) -> str:
        return str(self.value["type"])

    def shown(self) -> dict[str, Any]:
        """The item without what is new each time."""
        return {name: value for name, value in self.value.items() if name not in _NEW_EACH_TIME}


@dataclass
class Reply:
    """What came back. `error` is the inner error object; `done` whether a stream ended well.

    A message is one choice, whose finish is its stop_reason and whose stop_reason is its
    stop_sequence; `blocks` has its content, `edits` its context_management. A response is one
    choice, whose finish is its status, or the reason of an incomplete one; `items` has its output,
    `told` what it says of its request. `comments` counts the signs of life of a stream. `prompt` is
    what a template showed instead of an answer.
    """

    status: int
    headers: httpx2.Headers
    body: Any = None
    choices: dict[int, Choice] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    chunks: list[dict[str, Any]] = field(default_factory=list)
    comments: int = 0
    done: bool = False
    blocks: list[Block] = field(default_factory=list)
    edits: dict[str, Any] | None = None
    items: list[Item] = field(default_factory=list)
    told: dict[str, Any] | None = None
    prompt: str | None = None

    @property
    def texts(self) -> list[str]:
        return [self.choices[index].text for index in sorted(self.choices)]

    @property
    def finishes(self) -> list[str | None]:
        return [self.choices[index].finish for index in sorted(self.choices)]

    @property
    def text(self) -> str:
        """The text of the only choice."""
        assert list(self.choices) == [0], f"{len(self.choices)} choices: {self.body}{self.error}"
        return self.choices[0].text

    @property
    def finish(self) -> str | None:
        assert list(self.choices) == [0], f"{len(self.choices)} choices: {self.body}{self.error}"
        return self.choices[0].finish

    @property
    def is_message(self) -> bool:
        """Whether it is Anthropic's, whole or streamed."""
        first = self.chunks[0] if self.chunks else self.body or {}
        return first.get("type") in ("message", "message_start")

    @property
    def prompt_tokens(self) -> int:
        """The tokens of the prompt, cached ones included, whatever the protocol calls them."""
        assert self.usage is not None, f"no usage: {self.body}"
        if "prompt_tokens" in self.usage:
            return int(self.usage["prompt_tokens"])
        return int(self.usage["input_tokens"] + self.usage.get("cache_read_input_tokens", 0))

    @property
    def cached_tokens(self) -> int:
        """Those of them that were not computed again."""
        assert self.usage is not None, f"no usage: {self.body}"
        if "cache_read_input_tokens" in self.usage:
            return int(self.usage["cache_read_input_tokens"])
        details = "input" if "input_tokens_details" in self.usage else "prompt"
        return int(self.usage[f"{details}_tokens_details"]["cached_tokens"])

    @property
    def output_tokens(self) -> int:
        """The tokens generated, thoughts included."""
        assert self.usage is not None, f"no usage: {self.body}"
        return int(self.usage.get("completion_tokens", self.usage.get("output_tokens", 0)))

    @property
    def thinking_tokens(self) -> int:
        """The tokens of thoughts."""
        assert self.usage is not None, f"no usage: {self.body}"
        if "output_tokens_details" in self.usage:
            (thoughts,) = self.usage["output_tokens_details"].values()
            return int(thoughts)
        return int(self.usage["completion_tokens_details"]["reasoning_tokens"])

    def outcome(self) -> dict[str, Any]:
        """All that must be equal when the same request is sent again, streamed or not."""
        choices = [(index, c.outcome()) for index, c in sorted(self.choices.items())]
        if self.is_message:  # its blocks say the rest; how JSON is spaced shows in streams only
            choices = [(0, (c.finish, c.stop_reason)) for c in self.choices.values()]
        return {
            "status": self.status,
            "error": self.error,
            "choices": choices,
            "blocks": [block.shown() for block in self.blocks],
            "edits": self.edits,
            "items": [item.shown() for item in self.items],
            "usage": self.usage,
        }


def error_of(body: Any) -> dict[str, Any]:
    """The error object of an OpenAI envelope; fails when the envelope is not exactly that."""
    assert isinstance(body, dict) and set(body) == {"error"}, f"not an error envelope: {body}"
    error: dict[str, Any] = body["error"]
    assert set(error) == _ERROR_KEYS, f"wrong keys: {error}"
    assert isinstance(error["message"], str) and error["message"], f"no message: {error}"
    assert isinstance(error["type"], str) and error["type"], f"no type: {error}"
    for name in ("param", "code"):
        assert error[name] is None or isinstance(error[name], str), f"{name}: {error}"
    return error


def anthropic_error_of(body: Any, headers: httpx2.Headers) -> dict[str, Any]:
    """The error object of an Anthropic envelope; fails when the envelope is not exactly that.

    The id in it is that of the headers, which have it twice.
    """
    assert isinstance(body, dict), f"not an error envelope: {body}"
    assert set(body) == {"type", "error", "request_id"}, f"wrong keys: {body}"
    assert body["type"] == "error", body
    assert body["request_id"] == headers["request-id"] == headers["x-request-id"], body
    error: dict[str, Any] = body["error"]
    assert {"type", "message"} <= set(error) <= {"type", "message", "details"}, error
    assert isinstance(error["message"], str) and error["message"], f"no message: {error}"
    assert isinstance(error["type"], str) and error["type"], f"no type: {error}"
    if "details" in error:
        assert isinstance(error["details"]["error_code"], str), error
    return error


def failure_of(response: httpx2.Response) -> dict[str, Any]:
    """The error of a failure, in the envelope of the protocol whose path it is."""
    if f"{response.request.url.path}/".startswith("/v1/messages/"):
        return anthropic_error_of(response.json(), response.headers)
    return error_of(response.json())
