"""One turn as the mapping that a chat template reads."""

from __future__ import annotations

from typing import cast

from engine.conversation import ToolCall
from engine.text.abilities import Abilities
from engine.text.arguments import AsWritten, as_mapping, as_text, parse_object
from engine.text.guard import Guard
from engine.text.turns import Turn


def message_of(turn: Turn, abilities: Abilities, guard: Guard) -> dict[str, object]:
    """What is not there has no key, since templates ask for keys."""
    content: object = turn.content
    if turn.calls and not turn.content:
        content = abilities.no_content
    elif abilities.parts:
        content = [{"type": "text", "text": turn.content}]
    message: dict[str, object] = {"role": turn.role, "content": content}
    if turn.reasoning is not None:
        message[abilities.reasoning] = turn.reasoning
    if turn.name is not None:
        message["name"] = turn.name
    if turn.calls:
        message["tool_calls"] = [_call(call, abilities, guard) for call in turn.calls]
    if turn.call_id is not None:
        message["tool_call_id"] = turn.call_id
    return message


def _call(call: ToolCall, abilities: Abilities, guard: Guard) -> dict[str, object]:
    function = {"name": call.name, "arguments": _arguments(call, abilities, guard)}
    return {"id": call.id, "type": "function", "function": function}


def _arguments(call: ToolCall, abilities: Abilities, guard: Guard) -> object:
    """In the form that the template takes, never failing.

    What is no JSON object goes as it is where the template copies text.
    """
    copies = abilities.arguments == "text"
    if abilities.copies_arguments and not copies:
        copies = not call.custom and parse_object(call.arguments) is None
    if copies:
        return guard.text(as_text(call))
    value = cast(dict[str, object], guard.arguments(as_mapping(call)))
    if call.custom or parse_object(call.arguments) is None or not call.arguments.strip():
        return value
    return AsWritten(value, guard.text(call.arguments.strip()))
