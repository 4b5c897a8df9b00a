"""Finds the abilities of a chat template by rendering made-up conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, Protocol

from engine.conversation import Tool, ToolCall
from engine.text.abilities import Abilities
from engine.text.definitions import as_mappings
from engine.text.guard import UNGUARDED
from engine.text.history import fitted
from engine.text.message import message_of
from engine.text.turns import Turn


class Render(Protocol):
    """Renders messages with some tools; None where the template fails."""

    def __call__(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> str | None: ...


_SYSTEM, _FIRST = Turn("system", "probe-alpha"), Turn("user", "probe-bravo")
_ANSWER, _LATER = Turn("assistant", "probe-charlie"), Turn("system", "probe-delta")
_LAST = Turn("user", "probe-echo")
_KEY, _VALUE = "probe_key", "probe-foxtrot"
_ARGUMENTS = json.dumps({_KEY: _VALUE})
_CALL = ToolCall("call_0probe1golf2hotel3india4", "probe_tool", _ARGUMENTS)
_CALLS = Turn("assistant", "", calls=(_CALL,))
_RESULT = Turn("tool", "probe-juliet", name=_CALL.name, call_id=_CALL.id)
_SECOND = replace(_CALL, id="call_5probe6kilo7lima8mike9", arguments='{"probe_key": "probe-kilo"}')
_SECOND_RESULT = Turn("tool", "probe-lima", name=_CALL.name, call_id=_SECOND.id)
_THOUGHT, _TEXT = "probe-mike", "probe-november"
_TOOL = Tool(
    "probe_tool", "probe-oscar", {"type": "object", "properties": {_KEY: {"type": "string"}}}
)


def probe(render: Render) -> Abilities:
    """The abilities of a template."""
    return _Probe(render).found()


@dataclass(frozen=True, slots=True)
class _Probe:
    render: Render

    def found(self) -> Abilities:
        base = Abilities()
        if not self._shows([_FIRST], base):
            base = replace(base, parts=self._shows([_FIRST], replace(base, parts=True)))
        base = replace(
            base,
            system=self._shows([_SYSTEM, _FIRST], base),
            system_stays=self._shows([_SYSTEM, _FIRST, _ANSWER, _LAST], base),
            inline_system=self._shows([_SYSTEM, _FIRST, _ANSWER, _LATER, _LAST], base),
            repeated_roles=self._shows([_FIRST, _LAST], base),
            tools=self._shows_tools(base),
        )
        with_calls = self._calls(base)
        if with_calls is not None:
            base = self._beside_calls(with_calls)
        return replace(base, reasoning=self._reasoning(base))

    def _shows_tools(self, abilities: Abilities) -> bool:
        tools = as_mappings([_TOOL])
        outputs = (self._output(turns, abilities, tools) for turns in ([_FIRST], [_SYSTEM, _FIRST]))
        return any(output is not None and _TOOL.name in output for output in outputs)

    def _calls(self, base: Abilities) -> Abilities | None:
        """How calls and results are shown; None where they are not."""
        ids: tuple[Literal["any", "short"], ...] = ("any", "short")
        contents: tuple[Literal[""] | None, ...] = ("", None)
        for id_format, no_content in product(ids, contents):
            trial = replace(base, calls=True, ids=id_format, no_content=no_content)
            found = self._arguments(trial)
            if found is not None:
                return replace(found, ids="named") if self._names_by_id(found) else found
        return None

    def _names_by_id(self, abilities: Abilities) -> bool:
        """Whether only its id tells which tool a call is of."""
        output = self._output([_FIRST, _CALLS, replace(_RESULT, name=None)], abilities)
        return output is not None and _CALL.name not in output and _CALL.id in output

    def _arguments(self, trial: Abilities) -> Abilities | None:
        """The form of arguments that is shown properly: neither as Python nor as JSON in JSON.

        Text is better where both look the same: it is what the model wrote.
        """
        mapping = replace(trial, arguments="mapping")
        text = replace(trial, arguments="text", copies_arguments=True)
        of_mapping, of_text = self._shown_call(mapping), self._shown_call(text)
        if of_mapping is not None and str({_KEY: _VALUE}) in of_mapping:
            of_mapping = None
        if of_text is not None and json.dumps(_ARGUMENTS)[1:-1] in of_text:
            of_text = None
        if of_text is not None and of_mapping in (None, of_text):
            return text
        if of_mapping is None:
            return None
        return replace(mapping, copies_arguments=of_text is not None)

    def _shown_call(self, abilities: Abilities) -> str | None:
        """The output, if it has a call with its arguments and the result."""
        turns = [_FIRST, _CALLS, _RESULT]
        output = self._output(turns, abilities)
        words = (_FIRST.content, _VALUE, _RESULT.content)
        if output is None or _KEY not in output or not _in_order(output, words):
            return None
        return output if _CALL.name in output or _CALL.id in output else None

    def _beside_calls(self, base: Abilities) -> Abilities:
        """What else a template that shows calls can show with them."""
        both = [_FIRST, replace(_CALLS, calls=(_CALL, _SECOND)), _RESULT, _SECOND_RESULT]
        words = (_VALUE, "probe-kilo", _RESULT.content, _SECOND_RESULT.content)
        system = [_SYSTEM, _FIRST, _CALLS, _RESULT]
        return replace(
            base,
            parallel_calls=self._shows(both, base, words),
            system_stays=base.system_stays and self._shows(system, base),
            orphaned_results=self._shows([_FIRST, _RESULT], base),
            user_after_results=self._shows([_FIRST, _CALLS, _RESULT, _LAST], base),
            text_with_calls=self._text_with_calls(base),
            thought_with_text=self._accepts_thought_with_text(base),
        )

    def _text_with_calls(self, base: Abilities) -> Literal["together", "apart", "never"]:
        """Whether text is shown in front of the calls.

        In a turn of its own it may count as an answer, so it must leave room for another.
        """
        turns = [_FIRST, replace(_CALLS, content=_TEXT), _RESULT]
        words = [_TEXT, _VALUE, _RESULT.content]
        if self._shows(turns, replace(base, text_with_calls="together"), words):
            return "together"
        turns += [_ANSWER, _LAST]
        words += [_ANSWER.content, _LAST.content]
        apart = self._shows(turns, replace(base, text_with_calls="apart"), words)
        return "apart" if apart else "never"

    def _accepts_thought_with_text(self, base: Abilities) -> bool:
        keys = ("reasoning_content", "reasoning", "thinking")
        turn = replace(_CALLS, content=_TEXT, reasoning=_THOUGHT)
        trials = [replace(base, reasoning=key, thought_with_text=True) for key in keys]
        return all(self._output([_FIRST, turn, _RESULT], trial) is not None for trial in trials)

    def _reasoning(self, base: Abilities) -> str:
        """The template's name for thoughts: the first under which it shows them."""
        histories = [[_FIRST, replace(_ANSWER, reasoning=_THOUGHT)]]
        if base.calls:
            histories.append([_FIRST, replace(_CALLS, reasoning=_THOUGHT), _RESULT])
        switches: tuple[dict[str, object], ...] = ({}, {"enable_thinking": True, "thinking": True})
        for key in ("reasoning_content", "reasoning", "thinking"):
            trial = replace(base, reasoning=key)
            outputs = (
                self._output(turns, trial, options=options)
                for turns, options in product(histories, switches)
            )
            if any(output is not None and _THOUGHT in output for output in outputs):
                return key
        return base.reasoning

    def _shows(
        self, turns: Sequence[Turn], abilities: Abilities, words: Sequence[str] | None = None
    ) -> bool:
        """Whether the words, or the texts of all turns, are there in order."""
        output = self._output(turns, abilities)
        words = [turn.content for turn in turns] if words is None else words
        return output is not None and _in_order(output, words)

    def _output(
        self,
        turns: Sequence[Turn],
        abilities: Abilities,
        tools: Sequence[Mapping[str, object]] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> str | None:
        shaped = fitted(turns, abilities)
        messages = [message_of(turn, abilities, UNGUARDED) for turn in shaped]
        return self.render(messages, tools, options)


def _in_order(output: str, words: Sequence[str]) -> bool:
    at = 0
    for word in words:
        at = output.find(word, at)
        if at < 0:
            return False
    return True
