"""One conversation rendered in one way, and the end of its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from engine.conversation import Conversation
from engine.dialects.dialect import Rendering
from engine.errors import RequestError
from engine.text.abilities import Abilities
from engine.text.definitions import as_mappings, guarded, listed, simplified
from engine.text.guard import Guard
from engine.text.history import turns_of
from engine.text.message import message_of
from engine.text.turns import Turn


class Run(Protocol):
    """Runs a template. Raises RequestError where it fails."""

    def __call__(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] | None,
        options: Mapping[str, object],
        add_generation_prompt: bool,
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class Protection:
    """What keeps a request's text apart: its guard, and a character that no text of it has."""

    guard: Guard
    mark: str


class Attempt:
    """A conversation under a template, for some abilities of that template."""

    def __init__(
        self,
        run: Run,
        conversation: Conversation,
        abilities: Abilities,
        rendering: Rendering,
        options: Mapping[str, object],
        protection: Protection,
    ) -> None:
        self._run = run
        self._conversation = conversation
        self._abilities = abilities
        self._options = options
        self._guard, self._mark = protection.guard, protection.mark
        self._turns = turns_of(conversation, abilities, rendering, self._guard)
        self._tools: list[dict[str, object]] | None = None
        if abilities.tools and conversation.tools:
            tools = guarded(listed(conversation.tools), self._guard)
            self._tools = as_mappings(simplified(tools) if abilities.simple_schemas else tools)

    def text(self) -> str:
        """The whole prompt, guarded. Raises RequestError for what the template cannot express."""
        if not self._conversation.continue_final:
            return self._rendered(self._turns, self._tools)
        text = self._rendered([*self._turns[:-1], self._open(self._turns[-1])], self._tools)
        end = text.rfind(self._mark)
        if end < 0:
            param = self._conversation.continue_param
            raise RequestError(
                f"{param}: the chat template does not show the text of the last message", param
            )
        return text[:end].replace(self._mark, "")

    def tail(self, text: str) -> str:
        """The end of the prompt, guarded, from behind the last text of the client.

        An open last message is a part of it. It is found in a conversation of few turns, since
        templates look no further back at the end, and checked against the whole `text`.
        """
        if self._conversation.continue_final:
            return self._open_message(text)
        *before, last = self._turns
        short = self._behind_mark([*_needed(before, last), replace(last, content=self._mark)], None)
        if short is not None and text.endswith(short):
            return short
        whole = self._behind_mark([*before, replace(last, content=self._mark)], self._tools)
        return whole or ""

    def _open_message(self, text: str) -> str:
        last = self._turns[-1]
        if last.role != "assistant":
            return ""
        try:
            output = self._rendered([Turn("user", self._mark), self._open(last)], None)
        except RequestError:
            return last.content
        pieces = output.split(self._mark)
        return pieces[1] if len(pieces) == 3 and text.endswith(pieces[1]) else last.content

    def _open(self, turn: Turn) -> Turn:
        return replace(turn, content=turn.content + self._mark)

    def _behind_mark(
        self, turns: Sequence[Turn], tools: Sequence[Mapping[str, object]] | None
    ) -> str | None:
        try:
            _, found, behind = self._rendered(turns, tools).rpartition(self._mark)
        except RequestError:
            return None
        return behind if found else None

    def _rendered(self, turns: Sequence[Turn], tools: Sequence[Mapping[str, object]] | None) -> str:
        messages = [message_of(turn, self._abilities, self._guard) for turn in turns]
        generates = self._conversation.add_generation_prompt
        return self._run(messages, tools, self._options, generates)


def _needed(before: Sequence[Turn], last: Turn) -> list[Turn]:
    """What a last turn needs in front of it: a user turn, and the calls that it answers."""
    if last.role == "user":
        return []
    calls = next((at for at in range(len(before) - 1, -1, -1) if before[at].calls), None)
    answered = before[calls:] if last.role == "tool" and calls is not None else []
    return [Turn("user", "."), *answered]
