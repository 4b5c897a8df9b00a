"""What the protocols have in common about tools: what may be declared, and what is chosen of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.conversation import JsonValue, Message, Tool, ToolCall, ToolChoice
from engine.errors import RequestError

_LOOP = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool that a choice names. `param` is the path of that name."""

    name: str
    custom: bool
    param: str


def check_tools(tools: Iterable[tuple[Tool, str]]) -> tuple[Tool, ...]:
    """The tools, each of which comes with the path of its name.

    Raises RequestError for a name that two tools have.
    """
    found: dict[str, Tool] = {}
    for tool, param in tools:
        if tool.name in found:
            raise RequestError(f"{param} is the name of an earlier tool", param)
        found[tool.name] = tool
    return tuple(found.values())


def arguments_schema(schema: Mapping[str, JsonValue] | None, param: str) -> Mapping[str, JsonValue]:
    """The schema of a function's arguments. Raises RequestError where they are no object."""
    schema = schema or {}
    if schema.get("type", "object") != "object":
        raise RequestError(f"{param} must be the schema of an object", param)
    return schema if "type" in schema else {"type": "object", **schema}


def choose(
    tools: Sequence[Tool],
    mode: Literal["auto", "none", "required"],
    param: str,
    wanted: Iterable[Wanted] | None = None,
) -> ToolChoice:
    """The choice among the tools; `wanted` None leaves all of them.

    Raises RequestError for what is not declared, and for a call that is required without tools.
    """
    names = None if wanted is None else _declared(tools, wanted)
    allowed = len(tools) if names is None else len(names)
    if mode == "required" and not allowed:
        raise RequestError(f"{param} requires a call, but there is no tool to call", param)
    if not tools:
        return ToolChoice()
    return ToolChoice(mode, names) if allowed else ToolChoice("none")


def _declared(tools: Sequence[Tool], wanted: Iterable[Wanted]) -> frozenset[str]:
    customs = {tool.name: tool.format is not None for tool in tools}
    names = set()
    for item in wanted:
        if item.name not in customs:
            raise RequestError(f"{item.param} is not among the tools of this request", item.param)
        if customs[item.name] != item.custom:
            kind = "custom tool" if customs[item.name] else "function"
            raise RequestError(f"{item.param} is the name of a {kind}", item.param)
        names.add(item.name)
    return frozenset(names)


def introduction(tool: Tool) -> str:
    """How a conversation tells the model of a tool that is not in the prompt's list of tools."""
    shown: dict[str, JsonValue] = {"name": tool.name, "description": tool.description}
    if tool.format is None:
        shown["parameters"] = tool.parameters
    elif tool.format.source:
        shown["input"] = {"syntax": tool.format.kind, "definition": tool.format.source}
    text = json.dumps(shown, ensure_ascii=False)
    return f"The tool {tool.name} can be called from now on:\n{text}"


def is_looping(messages: Iterable[Message]) -> bool:
    """Whether the last three calls of a history are one and the same: a model that goes round."""
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
    last = calls[-_LOOP:]
    return len(last) == _LOOP and len({(call.name, call.arguments) for call in last}) == 1
