"""A conversation: what a client meant, in order, whatever protocol it spoke.

Every protocol decodes to these values; templates and dialects render them. All are immutable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["system", "developer", "user", "assistant", "tool"]
JsonValue = object


@dataclass(frozen=True, slots=True)
class Text:
    """A run of text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The thoughts of an earlier assistant turn, replayed by the template's own rules."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that an assistant turn made.

    `arguments` is the text that the model wrote: JSON for a function (not necessarily valid), the
    free text for a custom tool.
    """

    id: str
    name: str
    arguments: str
    custom: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the client's tool answered to the call `call_id`; the only part of a `tool` message."""

    call_id: str
    texts: tuple[str, ...]
    name: str | None = None
    is_error: bool = False


Part = Text | Reasoning | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Message:
    """One turn; `parts` in the order the client gave them.

    `keep`: the prompt up to here is worth keeping in the prefix cache longer than others. `inline`:
    an instruction that stays at its place where a client's are moved to the front.
    """

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    keep: bool = False
    inline: bool = False


@dataclass(frozen=True, slots=True)
class CustomFormat:
    """What the free text of a custom tool must match; `source` is a Lark grammar or a regex."""

    kind: Literal["text", "lark", "regex"] = "text"
    source: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the client runs: a function with JSON arguments, or, with `format`, a custom one.

    `parameters` is the JSON Schema of the arguments, an object; `strict` has it enforced. A tool
    that is not `listed` can be called, but the conversation itself tells the model of it: it is not
    in the prompt's list of tools. `param` is the path of the client's field, for errors.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] = field(default_factory=lambda: {"type": "object"})
    strict: bool = False
    format: CustomFormat | None = None
    listed: bool = True
    param: str = "tools"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the answer must be a call. `names` are the tools it may call; None allows all."""

    mode: Literal["auto", "none", "required"] = "auto"
    names: frozenset[str] | None = None


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

# Agents send words that nobody defined. What a word holds tells its level; the first line wins.
_LIKE: tuple[tuple[Effort, str], ...] = (
    ("none", "none|nothink|off|disable|false"),
    ("max", "max|ultra|highest"),
    ("minimal", "min|lowest"),
    ("low", "low|light|brief|fast"),
    ("medium", "med|moderate|normal|standard|balanced"),
    ("xhigh", "xhigh|extra|very"),
    ("high", "high|hard|deep|heavy"),
)


def nearest_effort(word: str) -> Effort | None:
    """The level that a word means, if it means one."""
    letters = "".join(char for char in word.lower() if char.isalpha())
    return next((level for level, like in _LIKE if re.search(like, letters)), None)


@dataclass(frozen=True, slots=True)
class Thinking:
    """How much the model may think before it answers.

    `effort` is a level, a number where the template takes one, or None for the template's default;
    "none" switches thinking off. `budget` caps the tokens of the thought, which is then closed;
    `budget_param` is the client's name for it. None is no cap of the request's own. An `advisory`
    budget does nothing where the model's thoughts cannot be cut, instead of being refused.
    """

    effort: Effort | int | None = None
    budget: int | None = None
    budget_param: str = "thinking_token_budget"
    advisory: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the client meant, in order; becomes token ids through the chat template.

    `parallel_calls` False ends the turn with its first call. `continue_final` leaves the last
    message open so that generation goes on inside it; `continue_param` is the client's field that
    asked for it, for errors.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_calls: bool = True
    thinking: Thinking = Thinking()
    template_kwargs: Mapping[str, JsonValue] = field(default_factory=dict)
    add_generation_prompt: bool = True
    continue_final: bool = False
    continue_param: str = "continue_final_message"
    add_special_tokens: bool = False
