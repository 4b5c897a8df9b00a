"""A conversation as the turns that a chat template takes, whatever roles the template knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.conversation import Message, Reasoning, Text

_GAP = "\n\n"  # between the blocks of one turn


@dataclass(frozen=True, slots=True)
class Turn:
    """One message for the template."""

    role: str
    content: str
    reasoning: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a template can express: found by trying, not by reading it."""

    system: bool  # a system message in front
    inline_system: bool  # a system message between turns, at its place
    repeated_roles: bool  # two turns of one role in a row


def probe(render: Callable[[Sequence[Turn]], str | None]) -> Abilities:
    """Try the template on made-up turns. `render` returns None where the template fails."""

    def in_order(*turns: Turn) -> bool:
        output = render(turns)
        at = 0
        for turn in turns:
            at = -1 if output is None else output.find(turn.content, at)
            if at < 0:
                return False
        return True

    system, first = Turn("system", "probe-alpha"), Turn("user", "probe-bravo")
    answer, later = Turn("assistant", "probe-charlie"), Turn("system", "probe-delta")
    last = Turn("user", "probe-echo")
    return Abilities(
        system=in_order(system, first),
        inline_system=in_order(system, first, answer, later, last),
        repeated_roles=in_order(first, last),
    )


def arrange(messages: Sequence[Message], abilities: Abilities) -> list[Turn]:
    """Turns that the template accepts, with every instruction of the client in them.

    * With developer messages, all instructions become one leading system message. Where there are
      several, each is wrapped in its role's name.
    * Without, a leading system message stays. Later ones stay too where the template can show them,
      else each becomes a user turn at its place, wrapped in `<system>`. What is before it keeps its
      tokens, and with them its place in the prefix cache.
    * Under a template without a system role, the leading text goes in front of the first user turn;
      under one that wants roles to alternate, neighbours of one role are joined.
    """
    turns = [_lowered(message) for message in messages]
    if any(turn.role == "developer" for turn in turns):
        turns = _hoisted(turns)
    elif not abilities.inline_system:
        turns = [
            _wrapped(turn) if at and turn.role == "system" else turn
            for at, turn in enumerate(turns)
        ]
    if not abilities.system and turns[0].role == "system":
        turns = _folded(turns)
    return turns if abilities.repeated_roles else _joined(turns)


def _lowered(message: Message) -> Turn:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    thoughts = [part.text for part in message.parts if isinstance(part, Reasoning)]
    reasoning = _GAP.join(thoughts) if thoughts else None
    return Turn(message.role, _GAP.join(texts), reasoning, message.name)


def _hoisted(turns: list[Turn]) -> list[Turn]:
    sections = [turn for turn in turns if turn.role in ("system", "developer")]
    labelled = [f"<{turn.role}>{turn.content}</{turn.role}>" for turn in sections]
    text = sections[0].content if len(sections) == 1 else _GAP.join(labelled)
    rest = [turn for turn in turns if turn.role not in ("system", "developer")]
    return [Turn("system", text), *rest]


def _wrapped(turn: Turn) -> Turn:
    return replace(turn, role="user", content=f"<system>{turn.content}</system>")


def _folded(turns: list[Turn]) -> list[Turn]:
    system, rest = turns[0], turns[1:]
    if rest and rest[0].role == "user":
        return [_together(system, rest[0]), *rest[1:]]
    return [replace(system, role="user"), *rest]


def _joined(turns: list[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for turn in turns:
        if joined and joined[-1].role == turn.role != "system":
            joined[-1] = _together(joined[-1], turn)
        else:
            joined.append(turn)
    return joined


def _together(first: Turn, second: Turn) -> Turn:
    """Both texts as one turn of the second's role."""
    thoughts = [turn.reasoning for turn in (first, second) if turn.reasoning is not None]
    return Turn(
        role=second.role,
        content=_GAP.join(filter(None, (first.content, second.content))),
        reasoning=_GAP.join(thoughts) if thoughts else None,
        name=second.name or first.name,
    )
