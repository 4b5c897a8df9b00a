"""The response object: what its request said and how far its answer is; the ids of its items."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic_core import to_json

from adapters.envelope import failure
from engine.events import FinishCause, Finished, Usage

Status = Literal["in_progress", "completed", "incomplete", "failed"]

CUT = frozenset(
    {FinishCause.LIMIT, FinishCause.DEADLINE, FinishCause.REPETITION, FinishCause.CONTEXT_FULL}
)
"""The ends that leave a response incomplete. The protocol has one word for all of them."""

_CONTEXT = "context_length_exceeded"
_OF_FUNCTIONS = ("description", "parameters", "strict")
_ITEM_ID = re.compile(r"[a-z]+_([0-9a-f]{32})[0-9a-f]{4,8}")


def new_response_id() -> str:
    """A fresh id, from which those of the items are made."""
    return f"resp_{secrets.token_hex(16)}"


def item_id(prefix: str, response_id: str, index: int) -> str:
    """The id of the item at a place of a response's output."""
    return f"{prefix}_{response_id.removeprefix('resp_')}{index:04x}"


def response_id_of(item: str) -> str | None:
    """The response that an item's id leads back to; None for an id that `item_id` did not make."""
    found = _ITEM_ID.fullmatch(item)
    return f"resp_{found[1]}" if found else None


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What a response says that its output does not change.

    All but `id`, `created_at`, `model`, the sampling values that applied and `dropped_tools` is as
    the client sent it, with the protocol's defaults for what is absent; `text` and `reasoning` are
    completed here, and so are `tools`. `dropped_tools` are the kinds of tools that are not there.
    """

    id: str
    created_at: int
    model: str
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: Sequence[Mapping[str, object]] = ()
    tool_choice: str | Mapping[str, object] = "auto"
    parallel_tool_calls: bool = True
    max_tool_calls: int | None = None
    max_output_tokens: int | None = None
    text: Mapping[str, object] | None = None
    reasoning: Mapping[str, object] | None = None
    top_logprobs: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    store: bool = True
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    user: str | None = None
    dropped_tools: Sequence[str] = ()


@dataclass(slots=True)
class Progress:
    """What a response says about its answer besides the output."""

    status: Status = "in_progress"
    completed_at: int | None = None
    error: dict[str, object] | None = None
    usage: Usage | None = None
    end: Finished | None = None


class ResponseForm:
    """Writes a response at any time of its life; what does not change is encoded once."""

    def __init__(self, head: ResponseHead) -> None:
        start = {"id": head.id, "object": "response", "created_at": head.created_at}
        self._start = to_json(start)[:-1]
        self._rest = to_json(_echo(head))[1:]
        self._dropped = list(head.dropped_tools)

    def write(self, progress: Progress, output: bytes) -> bytes:
        """The object; `output` is the JSON array of its items."""
        incomplete = progress.status == "incomplete"
        usage = None if progress.status == "in_progress" else progress.usage
        state = {
            "status": progress.status,
            "completed_at": progress.completed_at,
            "error": progress.error,
            "incomplete_details": {"reason": "max_output_tokens"} if incomplete else None,
            "usage": None if usage is None else usage_of(usage),
            "flare": self._flare(progress.end),
        }
        parts = (self._start, to_json(state)[1:-1], b'"output":' + output, self._rest)
        return b",".join(parts)

    def _flare(self, end: Finished | None) -> dict[str, object]:
        shown: dict[str, object] = {"dropped_tools": self._dropped}
        if end is not None:
            shown["time_to_first_token_ms"] = round(end.first_token * 1000, 3)
            shown["decode_time_ms"] = round(end.decode * 1000, 3)
        return shown


def usage_of(usage: Usage) -> dict[str, object]:
    """Token counts."""
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.output,
    }


def failure_of(error: Exception) -> dict[str, object]:
    """Why a response failed, in the protocol's words.

    Codex tries again after server_error and rate_limit_exceeded, compacts and gives up after
    context_length_exceeded, and shows the message of invalid_prompt at once: it is the only word
    for any other fault of the client.
    """
    known = failure(error)
    if known.code == _CONTEXT:
        code = _CONTEXT
    elif known.status == 429:
        code = "rate_limit_exceeded"
    else:
        code = "server_error" if known.status >= 500 else "invalid_prompt"
    param = {"param": known.param} if known.param else {}
    return {"code": code, "message": known.message, **param}


def _echo(head: ResponseHead) -> dict[str, object]:
    return {
        "model": head.model,
        "previous_response_id": head.previous_response_id,
        "instructions": head.instructions,
        "tools": list(_echoed_tools(head.tools)),
        "tool_choice": head.tool_choice,
        "parallel_tool_calls": head.parallel_tool_calls,
        "max_tool_calls": head.max_tool_calls,
        "max_output_tokens": head.max_output_tokens,
        "text": _echoed_text(head.text or {}),
        "reasoning": None if head.reasoning is None else _echoed_reasoning(head.reasoning),
        "temperature": head.temperature,
        "top_p": head.top_p,
        "presence_penalty": head.presence_penalty,
        "frequency_penalty": head.frequency_penalty,
        "top_logprobs": head.top_logprobs,
        "truncation": "disabled",
        "metadata": head.metadata,
        "store": head.store,
        "background": False,
        "service_tier": "default",
        "safety_identifier": head.safety_identifier,
        "prompt_cache_key": head.prompt_cache_key,
        "prompt_cache_retention": head.prompt_cache_retention,
        "user": head.user,
    }


def _echoed_tools(tools: Sequence[object]) -> Iterator[object]:
    """Tools with the members that a client may omit and typed readers of the echo want.

    Open Responses requires three of a function, the official SDK the description of a namespace.
    """
    for tool in tools:
        if not isinstance(tool, Mapping):
            yield tool
        elif tool.get("type") == "function":
            yield {**tool, **{name: None for name in _OF_FUNCTIONS if name not in tool}}
        elif tool.get("type") == "namespace":
            members = tool.get("tools")
            inner = list(_echoed_tools(members if isinstance(members, Sequence) else ()))
            yield {**tool, "description": tool.get("description") or "", "tools": inner}
        else:
            yield tool


def _echoed_text(sent: Mapping[str, object]) -> dict[str, object]:
    given = {name: value for name, value in sent.items() if value is not None}
    return {"format": {"type": "text"}, **given}


def _echoed_reasoning(sent: Mapping[str, object]) -> dict[str, object]:
    """The two members that Open Responses requires, and those that were sent."""
    return {"effort": None, "summary": None, **sent}
