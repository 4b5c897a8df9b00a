"""`context_management` of Messages: what is cleared from a conversation before it is a prompt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import cast

from adapters.call import Call
from adapters.decode import given, optional
from engine.conversation import (
    Conversation,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from engine.types import GenerationRequest
from generated.messages import (
    ClearThinking,
    ClearToolUses,
    Edit,
    InputTokensCount,
    KeepTurns,
    PromptFields,
    ToolUsesCount,
)

CLEARED = "[This result was cleared to save space.]"
_TRIGGER = InputTokensCount(type="input_tokens", value=100_000)  # the official defaults
_KEEP = ToolUsesCount(type="tool_uses", value=3)
_KEEP_TURNS = 1


@dataclass(frozen=True, slots=True)
class EditReport:
    """What the edits of a request did, in their order, as replies say it."""

    applied: tuple[dict[str, object], ...]


class _Sized:
    """A request, and the tokens of its prompt, which are counted once and only if asked for."""

    def __init__(self, call: Call, request: GenerationRequest) -> None:
        self.request = request
        self._call = call
        self._tokens: int | None = None

    @property
    def conversation(self) -> Conversation:
        return cast(Conversation, self.request.prompt)

    def of(self, conversation: Conversation) -> _Sized:
        """The same request with another conversation."""
        return _Sized(self._call, replace(self.request, prompt=conversation))

    async def tokens(self) -> int:
        if self._tokens is None:
            self._tokens = await self._call.service.count(self.request)
        return self._tokens


async def apply_edits(
    call: Call, request: GenerationRequest, body: PromptFields, fixed: Collection[str]
) -> tuple[GenerationRequest, EditReport | None]:
    """The request after its edits, and what they did; None where it names none.

    The results of the calls `fixed` stay. The prompt's tokens are counted only for edits that
    depend on them or change something.
    """
    management = optional(body.context_management)
    if management is None:
        return request, None
    edits: list[Edit] = given(management.edits, [])
    applied: list[dict[str, object]] = []
    now = _Sized(call, request)
    for edit in edits:
        if isinstance(edit, ClearThinking):
            edited, count = clear_thinking(now.conversation, edit)
            name = "cleared_thinking_turns"
        elif await _is_triggered(now, edit):
            edited, count = clear_tool_uses(now.conversation, edit, fixed)
            name = "cleared_tool_uses"
        else:
            continue
        if not count:
            continue
        then = now.of(edited)
        saved = await now.tokens() - await then.tokens()
        if isinstance(edit, ClearToolUses) and saved < _least(edit):
            continue
        now = then
        applied.append({"type": edit.type, name: count, "cleared_input_tokens": max(saved, 0)})
    return now.request, EditReport(tuple(applied))


async def _is_triggered(now: _Sized, edit: ClearToolUses) -> bool:
    trigger = given(edit.trigger, _TRIGGER)
    if isinstance(trigger, ToolUsesCount):
        return len(_calls(now.conversation)) > trigger.value
    return await now.tokens() > trigger.value


def _least(edit: ClearToolUses) -> int:
    least = optional(edit.clear_at_least)
    return 0 if least is None else cast(InputTokensCount, least).value


def clear_thinking(conversation: Conversation, edit: ClearThinking) -> tuple[Conversation, int]:
    """Without the thoughts of all turns but the last ones, and how many turns lost theirs.

    A turn of the assistant is all that it says and calls between two messages of the user.
    """
    keep = optional(edit.keep)
    if keep is not None and not isinstance(keep, KeepTurns):
        return conversation, 0
    kept = _KEEP_TURNS if keep is None else keep.value
    turns = list(_turns(conversation.messages))
    thinking = sorted(
        {turn for turn, m in zip(turns, conversation.messages, strict=True) if _thinks(m)}
    )
    cleared = set(thinking[:-kept])
    messages = _mapped(
        conversation,
        lambda place, part: (
            None if isinstance(part, Reasoning) and turns[place] in cleared else part
        ),
    )
    return replace(conversation, messages=messages), len(cleared)


def _turns(messages: tuple[Message, ...]) -> Iterator[int]:
    turn = 0
    for message in messages:
        turn += message.role == "user" and any(isinstance(part, Text) for part in message.parts)
        yield turn


def _thinks(message: Message) -> bool:
    return any(isinstance(part, Reasoning) for part in message.parts)


def clear_tool_uses(
    conversation: Conversation, edit: ClearToolUses, fixed: Collection[str]
) -> tuple[Conversation, int]:
    """With a note in place of the results of older calls, and how many calls those are."""
    excluded: list[str] = given(edit.exclude_tools, [])
    calls = _calls(conversation)
    first_kept = max(len(calls) - given(edit.keep, _KEEP).value, 0)
    old, kept = calls[:first_kept], {call.id for call in calls[first_kept:]}
    answered = {
        part.call_id
        for m in conversation.messages
        for part in m.parts
        if isinstance(part, ToolResult)
    }
    cleared = {
        call.id
        for call in old
        if call.name not in excluded
        and call.id in answered
        and call.id not in fixed
        and call.id not in kept  # where a client uses an id twice
    }
    inputs = optional(edit.clear_tool_inputs)

    def change(_: int, part: Part) -> Part:
        if isinstance(part, ToolResult) and part.call_id in cleared:
            return replace(part, texts=(CLEARED,))
        if isinstance(part, ToolCall) and part.id in cleared and inputs:
            named = inputs is True or part.name in cast(list[str], inputs)
            return replace(part, arguments="{}") if named else part
        return part

    return replace(conversation, messages=_mapped(conversation, change)), len(cleared)


def _calls(conversation: Conversation) -> list[ToolCall]:
    parts = (part for message in conversation.messages for part in message.parts)
    return [part for part in parts if isinstance(part, ToolCall)]


def _mapped(
    conversation: Conversation, change: Callable[[int, Part], Part | None]
) -> tuple[Message, ...]:
    """The messages with each part changed by its message's place, None leaving it out.

    A message of which nothing is left goes too.
    """
    changed = []
    for place, message in enumerate(conversation.messages):
        parts = tuple(p for part in message.parts if (p := change(place, part)) is not None)
        if parts or not message.parts:
            changed.append(replace(message, parts=parts))
    return tuple(changed)
