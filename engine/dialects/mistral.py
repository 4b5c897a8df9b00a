"""Mistral, Magistral, Ministral and Devstral: `[TOOL_CALLS]` before each call or a list of them.

`[TOOL_CALLS]name[ARGS]{...}` since the tokenizer v11, with `[CALL_ID]` and an id in between in v11,
`[TOOL_CALLS] [{"name": ..., "arguments": {...}, "id": ...}]` before. Thoughts are in
`[THINK]...[/THINK]` since v13; Magistral of June 2025 has `<think>...</think>` in plain text.
Source: mistral-common.
"""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Container, Sequence
from dataclasses import replace

import regex

from engine.conversation import Tool, ToolCall
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_call import arguments, call_object
from engine.dialects.json_text import loads
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import (
    WAIT,
    Closed,
    Incomplete,
    Malformed,
    Opened,
    Piece,
    Steps,
)
from engine.dialects.tool_text import show_results, signatures
from engine.events import Channel
from engine.grammar.rules import Rules

OPEN, ID, ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_ALPHANUMERIC = string.ascii_letters + string.digits


class MistralParser(OutputParser):
    """A thought may quote calls: those in it count only if the output ends with them."""

    think_open = "[THINK]"
    think_close = "[/THINK]"

    _in_thought = False

    def call_head(self) -> tuple[str, str]:
        behind = "" if OPEN in self.marks.tokens else rf"(?=\s*+\[\s*+\{{|{self._compact()})"
        return self.marks[OPEN][0], self.marks.re(OPEN) + behind

    def _compact(self) -> str:
        """What stands before the arguments of a call; the groups are its name and its id."""
        name = r"[^\s\[\]{}\"\ud800-\udfff]{1,256}"
        tokens = (self.marks.re(spelling) for spelling in (ID, ARGS))
        call_id, args = (f"(?:{token})" for token in tokens)
        given = rf"(?:{call_id}\s*+([^\s\[{{\ud800-\udfff]{{1,200}})\s*+)?"
        return rf"\s*+({name})\s*+{given}{args}?\s*+(?=\{{)"

    def thought(self) -> Steps[None]:
        self._in_thought = True
        yield from super().thought()
        self._in_thought = False

    def call(self, head: regex.Match[str]) -> Steps[None]:
        if not self._in_thought:
            yield from self._section()
            return
        held: list[Piece] = []
        again = rf"\s*+(?:{self.marks.re(OPEN)})"
        try:
            while not held or (yield from self.reader.look(again)) is not None:
                for piece in self._section():
                    if piece is WAIT:
                        yield piece
                    else:
                        held.append(piece)
        except Incomplete:
            if held:
                raise Malformed from None
            raise
        yield from self.reader.skip_space()
        if not self.reader.is_over:
            raise Malformed
        yield from held

    def _section(self) -> Steps[None]:
        """One call, or a list of them."""
        reader = self.reader
        yield from reader.expect(rf"\s*+(?:{self.marks.re(OPEN)})")
        if (yield from reader.take(r"\s*+\[\s*+(?=\{)", Channel.CALL)) is None:
            found = yield from reader.expect(self._compact(), Channel.CALL)
            yield Opened(found[1], found[2])
            yield from arguments(self, found[1])
            yield Closed()
            return
        while True:
            yield from self._object()
            yield Closed()
            found = yield from reader.expect(r"\s*+(?:,\s*+(?=\{)|(?:,\s*+)?\])", Channel.CALL)
            if found[0].endswith("]"):
                return

    def _object(self) -> Steps[None]:
        """One of a list. Its id may come last, so the call waits for it if nothing is said yet."""
        if self.expected.trusted:
            yield from call_object(self)
            return
        start = self._read_since_pin()
        held: list[Piece] = []
        try:
            for piece in call_object(self):
                if piece is WAIT:
                    yield piece
                else:
                    held.append(piece)
        except Malformed:
            yield from held
            raise
        text = self.marks.plain(self.reader.since_pin()[start : self._read_since_pin()])
        own_id = _id(text)
        for piece in held:
            yield Opened(piece.name, own_id) if isinstance(piece, Opened) else piece

    def _read_since_pin(self) -> int:
        reader = self.reader
        return len(reader.since_pin()) - len(reader.text) + reader.at


class MagistralParser(MistralParser):
    """Delimiters of thoughts in plain text."""

    think_open = "<think>"
    think_close = "</think>"


def _id(text: str) -> str | None:
    """The id in the object of a call."""
    try:
        call = loads(text)
    except Malformed:
        return None
    found = call.get("id") if isinstance(call, dict) else None
    return found if isinstance(found, str) else None


def grammar(rules: Rules) -> str:
    """The compact form where `[ARGS]` is a token, else the list."""
    return _compact(rules) if rules.is_token(ARGS) else _listed(rules)


def _compact(rules: Rules) -> str:
    calls = [f"{rules.text(t.name)} {rules.mark(ARGS)} {rules.arguments(t)}" for t in rules.tools]
    if rules.open_names:
        calls.append(f"{rules.name()} {rules.mark(ARGS)} {rules.arguments(None)}")
    body = rules.rule(" | ".join(map(rules.rule, calls)))
    return rules.repeated(rules.rule(f"{rules.mark(OPEN)} {body}"), rules.text(""))


def _listed(rules: Rules) -> str:
    def call(name: str, arguments: str) -> str:
        before, after = rules.text('{"name": "'), rules.text('", "arguments": ')
        return rules.rule(f"{before} {name} {after} {arguments} {rules.text('}')}")

    calls = [call(rules.text(_spelt(tool.name)), rules.arguments(tool)) for tool in rules.tools]
    if rules.open_names:
        calls.append(call(rules.name(), rules.arguments(None)))
    listed = rules.repeated(rules.rule(" | ".join(calls)), rules.text(", "))
    return f"{rules.mark(OPEN)} {rules.text(' ')}? {rules.text('[')} {listed} {rules.text(']')}"


def _spelt(name: str) -> str:
    """A name inside the quotes of JSON."""
    return json.dumps(name, ensure_ascii=False)[1:-1]


def takes_id(call_id: str) -> bool:
    """The templates refuse other ids."""
    return re.fullmatch("[A-Za-z0-9]{9}", call_id) is not None


def new_id() -> str:
    """Nine letters and digits: the templates refuse others."""
    return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(9))


def _tools(tools: Sequence[Tool]) -> str:
    return (
        f"These tools are available:\n{signatures(tools)}\n\n"
        "To call one, write this, and nothing after it:\n"
        f"{OPEN}<tool name>{ARGS}{{<arguments as JSON>}}"
    )


def _calls(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{OPEN}{call.name}{ARGS}{call.arguments}" for call in calls)


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return OPEN in template


def _fits_magistral(template: str, control_tokens: Container[str]) -> bool:
    return _fits(template, control_tokens) and "<think>" in template and "[THINK]" not in template


MISTRAL = Dialect(
    name="mistral",
    parser=MistralParser,
    spellings=("[THINK]", "[/THINK]", OPEN, ID, ARGS),
    grammar=grammar,
    rendering=Rendering(_tools, _calls, show_results),
    fits=_fits,
    opener=OPEN,
    new_id=new_id,
    takes_id=takes_id,
)
MAGISTRAL = replace(
    MISTRAL,
    name="magistral",
    parser=MagistralParser,
    spellings=("<think>", "</think>", OPEN, ID, ARGS),
    fits=_fits_magistral,
)
