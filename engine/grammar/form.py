"""The parts of an output in order: what may be thought, said, called and answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.config import Constrain
from engine.conversation import Tool, ToolChoice
from engine.grammar.builder import ANY, escaped, pattern
from engine.grammar.compile import bounded, choice, inline, inline_checked
from engine.grammar.document import RefusedTool
from engine.grammar.headers import Header, headers
from engine.grammar.lark import checked
from engine.grammar.rules import Rules
from engine.grammar.values import json_object, normalised
from engine.types import OutputConstraint

_FREE_CHOICE = ToolChoice()
_TEXT = pattern("(?s:.+)")
_SPACE = pattern("[ \\n]{1,4}") + "?"


@dataclass(frozen=True, slots=True)
class OutputForm:
    """What an output may be, by its request and by the dialect and vocabulary of the model.

    `tokens` are the delimiters of the dialect that are one token here, `others` the ids of visible
    control tokens that free text may hold besides. `think_open` and `think_close` are None where
    the model does not think; `in_thought` is whether the prompt has opened a thought. `calls`
    builds the expression of calls, which begin with `opener`, or with text that `headers` knows;
    see `engine.dialects.dialect`. `answer` is the format of the answer, if it has one. `compose`
    makes the whole expression for families whose outputs have another shape.
    """

    tokens: Mapping[str, int]
    tools: Sequence[Tool] = ()
    choice: ToolChoice = _FREE_CHOICE
    parallel: bool = True
    answer: OutputConstraint | None = None
    in_thought: bool = False
    think_open: str | None = None
    think_close: str | None = None
    calls: Callable[[Rules], str] | None = None
    opener: str | None = None
    headers: Callable[[str], str] | None = None
    compose: Callable[[Composition], str | None] | None = None
    others: Sequence[int] = ()
    constrain: Constrain = "strict"

    @property
    def callable(self) -> list[Tool]:
        """The tools that may be called."""
        names = self.choice.names
        if self.choice.mode == "none" or self.calls is None:
            return []
        return [tool for tool in self.tools if names is None or tool.name in names]

    @property
    def must_call(self) -> bool:
        return self.choice.mode == "required"

    @property
    def has_opener(self) -> bool:
        """Whether one token begins every call."""
        return self.opener in self.tokens


@dataclass(frozen=True, slots=True)
class Composition:
    """What an output is made of: expressions over the rules.

    `calls` are all calls, None where there are none; `body` is an answer that has a format.
    """

    form: OutputForm
    rules: Rules
    calls: str | None
    body: str | None

    def loose(self, *, but: str = "", delimiters: Sequence[str | None] = ()) -> str:
        """Free text, perhaps none: any text but that which holds a match of `but`.

        It may hold those `delimiters` that are tokens.
        """
        text = _TEXT
        if but:
            text = self.rules.terminal(f"{_TEXT} & ~{pattern(f'{ANY}(?:{but}){ANY}')}")
        inside = [text, *self._others(delimiters)]
        return self.rules.rule(f"({' | '.join(inside)})*")

    def _others(self, delimiters: Sequence[str | None]) -> list[str]:
        tokens = self.form.tokens
        ids = [*self.form.others, *(tokens[one] for one in delimiters if one in tokens and one)]
        return [self.rules.token("<|other|>", *sorted(set(ids)))] if ids else []

    def space(self) -> str:
        """A line break or two that a model may write between its parts."""
        return self.rules.rule(_SPACE)


def is_wanted(tool: Tool) -> bool:
    """Whether a client relies on calls of this tool to be valid."""
    return tool.strict or tool.format is not None


def expression(composition: Composition) -> str | None:
    """The whole output; None where nothing can be constrained."""
    form = composition.form
    if form.compose is not None:
        return form.compose(composition)
    if composition.body is None and not form.must_call:
        return _free(composition)
    return _after_thought(composition)


def body_of(rules: Rules, answer: OutputConstraint) -> str:
    """The answer in its format. Raises Refused."""
    source = answer.source
    if answer.kind == "json_object":
        return rules.rule(f"%json {json_object({})}")
    if answer.kind == "json_schema":
        return rules.rule(f"%json {inline(normalised(source))}")
    if answer.kind == "lark":
        return rules.rule(rules.inner(checked(source, inline_checked)))
    if answer.kind == "choice":
        return rules.terminal(choice(source))
    return pattern(bounded(source))


def _free(parts: Composition) -> str | None:
    """Free text with its thoughts, then calls, if any."""
    form, calls = parts.form, parts.calls
    thinks = (form.think_open, form.think_close)
    if calls is None or form.has_opener:
        loose = parts.loose(delimiters=thinks)
        return loose if calls is None else f"{loose} {calls}?"
    names = [tool.name for tool in form.callable]
    known, missed = headers(parts.rules, calls, names, form.headers)
    for tool in form.callable:
        if tool.name in missed and is_wanted(tool) and parts.rules.enforces(tool):
            raise RefusedTool("its calls cannot be told from this model's text", tool)
    if not known:
        return None
    begun = parts.rules.rule(" | ".join(_begun(parts.rules, known)))
    heads = "|".join(escaped(header.text) for header in known if header.is_certain)
    return _text_and_thoughts(parts, heads, begun)


def _begun(rules: Rules, known: Sequence[Header]) -> list[str]:
    """Text up to the beginning of a call, and the call."""
    texts: dict[tuple[str, bool], list[str]] = {}
    for header in known:
        texts.setdefault((header.rest, header.is_certain), []).append(escaped(header.text))
    found = []
    for (rest, is_certain), begins in texts.items():
        text = pattern(f"{ANY}(?:{'|'.join(begins)})")
        found.append(f"{rules.lazy(text) if is_certain else rules.terminal(text)} {rest}")
    return found


def _text_and_thoughts(parts: Composition, heads: str, begun: str) -> str:
    """Text in which a header begins calls, and thoughts in which it does not."""
    form, rules, loose = parts.form, parts.rules, parts.loose()
    text = parts.loose(but=heads)
    opened, close = form.think_open, form.think_close
    if close is None or not rules.starts_as_token(close):
        return f"{text} {begun}?"
    closed = rules.mark(close)
    if opened is not None and rules.starts_as_token(opened):
        thought = f"{rules.mark(opened)} {loose}"
        said = rules.rule(f"{text} ({thought} {closed} {text})* ({begun} | {thought})?")
    else:
        said = rules.rule(f"{text} {begun}?")
    return f"{loose} ({closed} {said})?" if form.in_thought else said


def _after_thought(parts: Composition) -> str:
    """A thought, then calls or an answer in its format."""
    form, rules, calls, space = parts.form, parts.rules, parts.calls, parts.space()
    allowed = [calls] if calls is not None else []
    if not form.must_call and parts.body is not None:
        allowed.append(parts.body)
    after = rules.rule(" | ".join(allowed))
    close = form.think_close
    if close is None:
        return after
    early = calls if calls is not None and form.has_opener else None
    if rules.starts_as_token(close):
        ended = f"{rules.mark(close)} {space} {after}"
        thought = f"{parts.loose()} ({f'{ended} | {early}' if early else ended})"
    else:
        loose = parts.loose(but=escaped(close))
        thought = f"{loose} {rules.lazy(pattern(ANY + escaped(close)))} {space} {after}"
        thought = f"({thought} | {loose} {early})" if early else thought
    if form.in_thought:
        return thought
    if form.think_open is None:
        return after
    opened = f"{space} {rules.mark(form.think_open)} {thought}"
    return f"{space} {after} | {opened}" if form.must_call else f"{after} | {opened}"
