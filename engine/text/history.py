"""How the calls and results of a history reach a template, whatever it can show of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from engine.conversation import Conversation, ToolCall, ToolResult
from engine.dialects.dialect import Rendering
from engine.text.abilities import Abilities
from engine.text.arguments import as_json, as_mapping, dumps
from engine.text.definitions import guarded, listed
from engine.text.guard import Guard
from engine.text.turns import Turn, arrange, in_call_order, lower

_SHORT = re.compile(r"[A-Za-z0-9]{9}")


def turns_of(
    conversation: Conversation, abilities: Abilities, rendering: Rendering, guard: Guard
) -> list[Turn]:
    """The turns for a template of some abilities; `rendering` is for what it cannot show."""
    turns = in_call_order(lower(conversation.messages, guard))
    if not abilities.calls:
        turns = spoken(turns, rendering, guard)
    else:
        if not abilities.orphaned_results:
            turns = _adopted(turns, rendering)
        turns = fitted(turns, abilities)
    tools = ""
    if conversation.tools and not abilities.tools:
        tools = rendering.tools(guarded(listed(conversation.tools), guard))
    uses_tools = conversation.tools or any(turn.calls or turn.role == "tool" for turn in turns)
    if uses_tools and not abilities.system_stays:
        # Templates that move or drop the system text while tools run would break every prefix.
        abilities = replace(abilities, system=False)
    return arrange(turns, abilities, guard, tools)


# Calls and results as text


def spoken(turns: Sequence[Turn], rendering: Rendering, guard: Guard) -> list[Turn]:
    """Calls behind the text of their turn, results as the text of a turn that answers it."""
    told: list[Turn] = []
    for is_result, group in groupby(turns, lambda turn: turn.role == "tool"):
        if is_result:
            told.append(_told(group, rendering))
        else:
            told += [_spoken(turn, rendering, guard) for turn in group]
    return told


def _adopted(turns: Sequence[Turn], rendering: Rendering) -> list[Turn]:
    """Results behind an assistant turn that called nothing, or behind none, as text."""
    found: list[Turn] = []
    called = False
    for is_result, group in groupby(turns, lambda turn: turn.role == "tool"):
        members = list(group)
        if is_result and not called:
            found.append(_told(members, rendering))
            continue
        found += members
        answers = [turn for turn in members if turn.role == "assistant"]
        called = bool(answers[-1].calls) if answers else called
    return found


def _told(turns: Iterable[Turn], rendering: Rendering) -> Turn:
    results = [ToolResult(turn.call_id or "", (turn.content,), turn.name) for turn in turns]
    return Turn(rendering.result_role, rendering.results(results))


def _spoken(turn: Turn, rendering: Rendering, guard: Guard) -> Turn:
    if not turn.calls:
        return turn
    calls = [replace(call, arguments=_json(call, guard), custom=False) for call in turn.calls]
    text = "\n".join(filter(None, (turn.content, rendering.calls(calls))))
    return replace(turn, content=text, calls=())


def _json(call: ToolCall, guard: Guard) -> str:
    """Arguments as the text of an object, which a rendering may copy or read.

    Read, they may spell what their escapes hide; so they stay as they were sent only if there is
    nothing to guard in them.
    """
    text, value = as_json(call), as_mapping(call)
    guarded_value = guard.arguments(value)
    if guarded_value == value and guard.text(text) == text:
        return text
    return dumps(guarded_value, ensure_ascii=False)


# Calls and results in the template's own way


def fitted(turns: Sequence[Turn], abilities: Abilities) -> list[Turn]:
    """Calls and results in the shape that the template shows."""
    shaped = _renamed(turns, abilities) if abilities.ids != "any" else list(turns)
    if abilities.text_with_calls == "apart":
        shaped = [part for turn in shaped for part in _apart(turn)]
    if not abilities.thought_with_text:
        shaped = [_thought(turn) for turn in shaped]
    return shaped if abilities.parallel_calls else list(_one_by_one(shaped))


def _renamed(turns: Sequence[Turn], abilities: Abilities) -> list[Turn]:
    """Ids in the format that the template wants; the model's own are in it already.

    "short" is nine letters and digits (Mistral). "named" is `functions.NAME:INDEX` (Kimi), where
    the template shows no other name of the tool.
    """
    ids: dict[str, str] = {}
    count = 0

    def renamed(call: ToolCall) -> ToolCall:
        nonlocal count
        new = _short(call.id)
        if abilities.ids == "named":
            new = call.id if call.name in call.id else f"functions.{call.name}:{count}"
        count += 1
        ids[call.id] = new
        return replace(call, id=new)

    found = []
    for turn in turns:
        answers = turn.call_id
        if answers is not None:
            unknown = answers if abilities.ids == "named" else _short(answers)
            answers = ids.get(answers, unknown)
        found.append(replace(turn, calls=tuple(map(renamed, turn.calls)), call_id=answers))
    return found


def _short(call_id: str) -> str:
    if _SHORT.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]


def _apart(turn: Turn) -> Iterator[Turn]:
    """The text, behind the thought that led to it, as a turn before that of the calls."""
    if turn.calls and turn.content:
        yield replace(turn, calls=())
        yield replace(turn, content="", reasoning=None)
    else:
        yield turn


def _thought(turn: Turn) -> Turn:
    """Text beside calls as the end of the thought, for templates that refuse both."""
    if not (turn.calls and turn.content and turn.reasoning):
        return turn
    return replace(turn, content="", reasoning=f"{turn.reasoning}\n\n{turn.content}")


def _one_by_one(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Each call as a turn of its own, with its result behind it where every call has one."""
    at = 0
    while at < len(turns):
        turn = turns[at]
        at += 1
        if len(turn.calls) < 2:
            yield turn
            continue
        results = turns[at : at + len(turn.calls)]
        complete = [result.call_id for result in results] == [call.id for call in turn.calls]
        for place, call in enumerate(turn.calls):
            first = replace(turn, calls=(call,))
            yield first if place == 0 else replace(first, content="", reasoning=None)
            if complete:
                yield results[place]
        at += len(results) if complete else 0
