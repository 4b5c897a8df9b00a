"""GLM: the name of a tool, then keys and values in turn, each in its tags.

    <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>

GLM 4.5 and 4.6 write it over several lines, 4.7 and 5 without a break; both are read. Source: the
chat templates of GLM 4.6 and 4.7, and vLLM's and SGLang's parsers of them. A string stands bare,
with all its white space, anything else is JSON. Models forget tags on either side of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

import regex

from engine.conversation import Tool, ToolCall
from engine.dialects import tagged_rules
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Closed, Opened, Steps
from engine.dialects.tagged import (
    AWAITED,
    Ends,
    TaggedArguments,
    arguments_of,
    ends,
    tool_responses,
)
from engine.dialects.tool_text import signatures
from engine.events import Channel
from engine.grammar.rules import Rules

OPEN, CLOSE = "<tool_call>", "</tool_call>"
KEY, KEY_END, VALUE, VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
_NAME = r"\n?(?P<name>[\w.-][\w.:/-]{0,255})\s*"
_TAG = r"<\ud800-\udfff"  # what tags begin with, as text and as tokens
_INSIDE, _BARE = rf"[^{_TAG}]", rf"[^\s{_TAG}]"


class GlmParser(OutputParser):
    """A call is certain once its name is followed by a key or by the end."""

    def call_head(self) -> tuple[str, str]:
        opened = self.marks.re(OPEN)
        behind = "" if OPEN in self.marks.tokens else rf"{_NAME}(?={self.marks.re(KEY, CLOSE)})"
        return self.marks[OPEN][0], opened + behind

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader, tag = self.reader, self.marks.re
        opened = rf"{tag(OPEN)}{_NAME}(?={tag(KEY, CLOSE)})"
        name = (yield from reader.expect(opened, Channel.CALL))["name"]
        yield Opened(name)
        arguments = TaggedArguments(self, name)
        pair = rf"{tag(KEY)}(?P<key>{_INSIDE}+){tag(KEY_END)}"
        step = rf"\s*(?:{pair}\s*(?:{tag(VALUE)}|(?={_BARE}))|{tag(CLOSE)})"
        while (found := (yield from reader.expect(step, Channel.CALL)))["key"] is not None:
            key = found["key"].strip()
            yield from arguments.value(key, self._ends(arguments, key))
        yield from arguments.close()
        yield Closed()

    def _ends(self, arguments: TaggedArguments, key: str) -> Ends:
        """Where a value ends: what it quotes of the syntax goes on otherwise."""
        tag = self.marks.re
        starts = "\n" + self.marks[VALUE_END][0] + self.marks[CLOSE][0] + self.marks[KEY][0]
        closed = rf"{tag(VALUE_END)}\s*(?={tag(KEY, CLOSE)})"
        if self.expected.trusted:
            return ends(starts, [closed])
        call = rf"{tag(OPEN)}{_NAME}"
        return ends(
            starts + self.marks[OPEN][0],
            [
                closed,
                rf"\n?(?={tag(KEY)}{AWAITED}{tag(KEY_END)})",
                rf"\n?(?={tag(CLOSE)}\s*{call}(?:{tag(KEY, CLOSE)}))",
            ],
            [rf"\n?(?={tag(CLOSE)}\s*\Z)"],
            accepts=arguments.awaits(key),
            quoted=(rf"{call}(?={tag(KEY)})", tag(CLOSE)),
        )


def _grammar(line: str) -> Callable[[Rules], str]:
    """`line` is what stands between two tags."""

    def grammar(rules: Rules) -> str:
        between = rules.text(line) if line else ""

        def argument(key: str, value: str) -> str:
            """An argument; its value is closed."""
            named = f"{rules.mark(KEY)} {key} {rules.mark(KEY_END)}"
            return rules.rule(f"{named} {between} {rules.mark(VALUE)} {value} {between}")

        def arguments(tool: Tool | None) -> str:
            if tool is not None and tool.format is not None:
                text = tagged_rules.custom(rules, tool, VALUE_END)
                return argument(rules.text("input"), text)
            if tool is None or not rules.enforces(tool):
                return f"{argument(rules.regex('[^<>]+'), rules.bare(True, VALUE_END))}*"
            listed = (
                argument(rules.text(key), rules.bare(schema, VALUE_END)) + ("" if required else "?")
                for key, schema, required in rules.parameters(tool)
            )
            return " ".join(listed)

        def body(tool: Tool | None) -> str:
            return f"{between} {arguments(tool)} {rules.mark(CLOSE)}"

        call = rules.rule(f"{rules.mark(OPEN)} {tagged_rules.calls(rules, body)}")
        return rules.repeated(call, between)

    return grammar


def _rendering(line: str) -> Rendering:
    """`line` is what stands between two tags."""

    def written(name: str, arguments: Sequence[tuple[str, str]]) -> str:
        pairs = "".join(
            f"{KEY}{key}{KEY_END}{line}{VALUE}{value}{VALUE_END}{line}" for key, value in arguments
        )
        return f"{OPEN}{name}{line}{pairs}{CLOSE}"

    def tools(listed: Sequence[Tool]) -> str:
        return (
            "You can call the tools listed here, one JSON signature a line:\n"
            f"<tools>\n{signatures(listed)}\n</tools>\n\n"
            "To call one, write it like this, with a pair of tags for each argument. A string "
            "stands as it is, anything else is JSON:\n" + written("NAME", [("KEY", "VALUE")])
        )

    def calls(made: Sequence[ToolCall]) -> str:
        return line.join(written(call.name, arguments_of(call)) for call in made)

    return Rendering(tools, calls, tool_responses)


def _fits(pattern: str) -> Callable[[str, Container[str]], bool]:
    def fits(template: str, control_tokens: Container[str]) -> bool:
        return KEY in template and regex.search(pattern, template) is not None

    return fits


def _dialect(name: str, line: str, fits: str) -> Dialect:
    return Dialect(
        name=name,
        parser=GlmParser,
        spellings=("<think>", "</think>", OPEN, CLOSE, KEY, KEY_END, VALUE, VALUE_END),
        grammar=_grammar(line),
        rendering=_rendering(line),
        fits=_fits(fits),
        opener=OPEN,
    )


GLM_45 = _dialect("glm45", "\n", r"</arg_key>(?:\n|\\n)")
GLM_47 = _dialect("glm47", "", VALUE)
