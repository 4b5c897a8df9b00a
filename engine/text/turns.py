"""A conversation as the turns that a chat template takes, whatever roles the template knows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from engine.conversation import Message, Reasoning, Text, ToolCall, ToolResult
from engine.text.abilities import Abilities
from engine.text.guard import Guard

_GAP = "\n\n"  # between the blocks of one turn
_ERROR = re.compile(r"\W*error", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message for the template.

    Its texts are guarded, but for the arguments of `calls`, which stay as the client sent them
    until it is known how the template takes them. `call_id` is the call that a turn of the role
    `tool` answers. `inline` is the message's.
    """

    role: str
    content: str
    reasoning: str | None = None
    name: str | None = None
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    inline: bool = False


def lower(messages: Iterable[Message], guard: Guard) -> list[Turn]:
    """The turns as the client has them, each result a turn of its own.

    An absent content, an empty one and one of no parts are the same.
    """
    return [turn for message in messages for turn in _lowered(message, guard)]


def _lowered(message: Message, guard: Guard) -> Iterator[Turn]:
    protect = guard.answer if message.role == "assistant" else guard.text
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        name = None if result.name is None else guard.text(result.name)
        text = guard.text(_result_text(result))
        yield Turn("tool", text, name=name, call_id=_plain_id(result.call_id, guard))
    texts = [protect(part.text) for part in message.parts if isinstance(part, Text)]
    if results and not texts:
        return
    thoughts = [guard.text(part.text) for part in message.parts if isinstance(part, Reasoning)]
    calls = (part for part in message.parts if isinstance(part, ToolCall))
    yield Turn(
        role="user" if results else message.role,
        content=_GAP.join(texts),
        reasoning=_GAP.join(thoughts) if thoughts else None,
        name=None if message.name is None else guard.text(message.name),
        calls=tuple(
            replace(call, id=_plain_id(call.id, guard), name=guard.text(call.name))
            for call in calls
        ),
        inline=message.inline,
    )


def _result_text(result: ToolResult) -> str:
    """What the tool answered. No template has a place for failure, so the text must tell of it."""
    text = _GAP.join(result.texts)
    if not result.is_error or _ERROR.match(text):
        return text
    return f"Error: {text}" if text else "Error"


def _plain_id(call_id: str, guard: Guard) -> str:
    """The id, or one made of it: templates measure and cut ids, so no guard may be in them."""
    if guard.text(call_id) == call_id:
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:24]


# The order of results


def in_call_order(turns: Sequence[Turn]) -> list[Turn]:
    """The results of parallel calls in the order of the calls (Helios), each with its tool's name.

    Turns between them keep their places. Results whose ids are missing, not unique, or of no call
    of the assistant turn before them keep the order that they came in.
    """
    ordered = list(turns)
    calls: tuple[ToolCall, ...] = ()
    places: list[int] = []
    for at, turn in enumerate(turns):
        if turn.role == "assistant":
            _order(ordered, places, calls)
            calls, places = turn.calls, []
        elif turn.role == "tool":
            places.append(at)
    _order(ordered, places, calls)
    return ordered


def _order(turns: list[Turn], places: Sequence[int], calls: Sequence[ToolCall]) -> None:
    ids = [call.id for call in calls]
    names = {call.id: call.name for call in calls}
    results = [
        replace(turns[at], name=names.get(turns[at].call_id or "", turns[at].name)) for at in places
    ]
    answered = [result.call_id for result in results]
    unique = len(set(ids)) == len(ids) and len(set(answered)) == len(answered)
    if unique and set(answered) <= set(ids):
        results.sort(key=lambda result: ids.index(result.call_id or ""))
    for at, result in zip(places, results, strict=True):
        turns[at] = result


# Roles


def arrange(
    turns: Sequence[Turn], abilities: Abilities, guard: Guard, tools: str = ""
) -> list[Turn]:
    """Turns that the template accepts, with every instruction of the client in them.

    * With developer messages, all instructions become one leading system message, but for inline
      ones. Where there are several, each is wrapped in its role's name.
    * Without, a leading system message stays. Later ones stay too where the template can show them,
      else each becomes a user turn at its place, wrapped in `<system>`. What is before it keeps its
      tokens, and with them its place in the prefix cache. So it is with inline ones.
    * `tools`, a text about the tools, goes behind the leading system message's.
    * Under a template without a system role, the leading text goes in front of the first user turn;
      under one that wants roles to alternate, neighbours of one role are joined, and where it wants
      an answer to results before the user speaks again, there is an empty one.
    """
    arranged = [turn for at, turn in enumerate(turns) if not (at and _says_nothing(turn))]
    if any(turn.role == "developer" for turn in arranged):
        arranged = _hoisted(arranged, guard)
    if not abilities.inline_system:
        arranged = [
            _wrapped(turn, guard) if at and turn.role == "system" else turn
            for at, turn in enumerate(arranged)
        ]
    if tools:
        arranged = _told(arranged, tools)
    if not abilities.system and arranged[0].role == "system":
        arranged = _folded(arranged)
    if not abilities.repeated_roles:
        arranged = _joined(arranged)
    return arranged if abilities.user_after_results else list(_answered(arranged))


def _says_nothing(turn: Turn) -> bool:
    """Instructions without text are none (Helios)."""
    return turn.role in ("system", "developer") and not turn.content.strip()


def _hoisted(turns: list[Turn], guard: Guard) -> list[Turn]:
    sections: list[Turn] = []
    rest: list[Turn] = []
    for turn in turns:
        is_moved = turn.role in ("system", "developer") and not turn.inline
        (sections if is_moved else rest).append(turn)
    labelled = [_labelled(turn, guard) for turn in sections]
    text = sections[0].content if len(sections) == 1 else _GAP.join(labelled)
    return [Turn("system", text), *rest]


def _labelled(turn: Turn, guard: Guard) -> str:
    return guard.text(f"<{turn.role}>") + turn.content + guard.text(f"</{turn.role}>")


def _wrapped(turn: Turn, guard: Guard) -> Turn:
    return replace(turn, role="user", content=_labelled(turn, guard))


def _told(turns: list[Turn], tools: str) -> list[Turn]:
    if turns[0].role != "system":
        return [Turn("system", tools), *turns]
    text = _GAP.join(filter(None, (turns[0].content, tools)))
    return [replace(turns[0], content=text), *turns[1:]]


def _folded(turns: list[Turn]) -> list[Turn]:
    system, rest = turns[0], turns[1:]
    if rest and rest[0].role == "user":
        return [_together(system, rest[0]), *rest[1:]]
    return [replace(system, role="user"), *rest]


def _joined(turns: list[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for turn in turns:
        last = joined[-1] if joined else None
        if (
            last
            and last.role == turn.role
            and turn.role in ("user", "assistant")
            and not last.calls
        ):
            joined[-1] = _together(last, turn)
        else:
            joined.append(turn)
    return joined


def _together(first: Turn, second: Turn) -> Turn:
    """Both texts as one turn of the second's role."""
    thoughts = [turn.reasoning for turn in (first, second) if turn.reasoning is not None]
    return replace(
        second,
        content=_GAP.join(filter(None, (first.content, second.content))),
        reasoning=_GAP.join(thoughts) if thoughts else None,
        name=second.name or first.name,
    )


def _answered(turns: list[Turn]) -> Iterator[Turn]:
    """An empty answer between calls or their results and a user who goes on without one."""
    yield from turns[:1]
    for before, turn in pairwise(turns):
        if turn.role == "user" and (before.role == "tool" or before.calls):
            yield Turn("assistant", "")
        yield turn
