"""Qwen3-Coder, and Qwen3.5 and later: a function and its parameters as tags, values bare.

    <tool_call>
    <function=NAME>
    <parameter=KEY>
    VALUE
    </parameter>
    </function>
    </tool_call>

Source: the chat templates of Qwen3-Coder and Qwen3.6, and vLLM's and SGLang's parsers of them. The
line breaks around a value are not part of it. Models leave `<tool_call>` out, and closing tags.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import ClassVar

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
_NAME = r"[^<>\n\ud800-\udfff]+"  # without tags and tokens
_FUNCTION = rf"<function=(?P<name>{_NAME})>"
_BODY = r"(?:<parameter=|</function>)"


class QwenXmlParser(OutputParser):
    """A call is certain once a function has a parameter or an end, with or without the outer tag.

    `around` is the white space that stands on both sides of a value and is not part of it.
    """

    around: ClassVar[str] = "\n"

    def call_head(self) -> tuple[str, str]:
        function = rf"{_FUNCTION}\s*(?={_BODY})"
        if OPEN in self.marks.tokens:
            return self.marks[OPEN] + "<", rf"{self.marks.re(OPEN)}|{function}"
        return "<", rf"(?:{OPEN}\s*)?{function}"

    def try_call(self, head: regex.Match[str]) -> Steps[bool]:
        """Masks vouch only for what follows the outer tag."""
        expected = self.expected
        if not head[0].startswith(self.marks[OPEN]):
            self.expected = replace(expected, trusted=False)
        is_read = yield from super().try_call(head)
        self.expected = expected
        return is_read

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader, close = self.reader, self.marks.re(CLOSE)
        outer = rf"(?:(?:{self.marks.re(OPEN)})\s*)?"
        found = yield from reader.expect(rf"{outer}{_FUNCTION}\s*(?={_BODY}|{close})", Channel.CALL)
        name = found["name"].strip()
        yield Opened(name)
        arguments = TaggedArguments(self, name)
        start = r"(?:\n|(?=[^\n]))" if self.around else ""
        parameter = rf"<parameter=(?P<key>{_NAME})(?:>{start}|\n)"
        step = rf"\s*(?:{parameter}|</function>|(?={close}))"
        while (tag := (yield from reader.expect(step, Channel.CALL)))["key"] is not None:
            key = tag["key"].strip()
            again = rf"\s*<parameter={regex.escape(key)}>{start}"
            yield from arguments.value(key, self._ends(arguments, key), again)
        yield from arguments.close()
        yield Closed()
        yield from reader.take(rf"\s*(?:{close})", Channel.CALL)

    def _ends(self, arguments: TaggedArguments, key: str) -> Ends:
        """Where a value ends: what it quotes of the syntax goes on otherwise."""
        close = self.marks.re(CLOSE)
        if self.expected.trusted:
            follows = rf"(?:<parameter=|</function>\n(?:{close}))"
            return ends("\n<", [rf"{self.around}</parameter>\n(?={follows})"])
        line, dropped = ("\n", r"\n?") if self.around else (r"\n?", "")
        follows = rf"(?:{close}|{self.marks.re(OPEN)}|<function=)"
        return ends(
            "\n<",
            [
                rf"{dropped}</parameter>\s*(?={_BODY}|{close})",
                rf"\n(?=<parameter={AWAITED}>)",
                rf"{line}(?=</function>\s*{follows})",
            ],
            [rf"{line}(?=</function>\s*\Z)"],
            accepts=arguments.awaits(key),
            quoted=(rf"{_FUNCTION}\s*(?={_BODY})", "</function>"),
        )


def grammar(rules: Rules) -> str:
    """One call after another, each on lines of its own."""
    return grammar_around(rules, "\n")


def grammar_around(rules: Rules, around: str) -> str:
    """The grammar with some white space around values."""
    end = f"</function>\n{CLOSE}"
    tags = tagged_rules.Tags(
        first="<parameter=",
        behind=f">{around}",
        more=f"{around}</parameter>\n<parameter=",
        last=f"{around}</parameter>\n{end}",
        none=end,
        name=r"[^<>\n]+",
    )

    def body(tool: Tool | None) -> str:
        return f"{opened} {tagged_rules.arguments(rules, tool, tags)}"

    line, opened = rules.text("\n"), rules.text(">\n")
    named = tagged_rules.calls(rules, body)
    call = f"{rules.mark(OPEN)} {line} {rules.text('<function=')} {named}"
    return rules.repeated(rules.rule(call), line)


def _tools(tools: Sequence[Tool]) -> str:
    return explained(tools, "\nVALUE\n")


def explained(tools: Sequence[Tool], value: str) -> str:
    """Tools and how to call them; `value` is how a value is written."""
    return (
        "You can call the tools listed here, one JSON signature a line:\n"
        f"<tools>\n{signatures(tools)}\n</tools>\n\n"
        "To call one, write it like this, with a parameter tag for each argument. A string stands "
        "as it is, over as many lines as it has; anything else is JSON:\n"
        f"{OPEN}\n<function=NAME>\n<parameter=KEY>{value}</parameter>\n</function>\n{CLOSE}"
    )


def _calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(written(call, "\n") for call in calls)


def written(call: ToolCall, around: str) -> str:
    """A call as the model writes it; `around` is the white space on both sides of a value."""
    parameters = "".join(
        f"<parameter={key}>{around}{value}{around}</parameter>\n"
        for key, value in arguments_of(call)
    )
    return f"{OPEN}\n<function={call.name}>\n{parameters}</function>\n{CLOSE}"


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return OPEN in template and regex.search(r"(?:\n|\\n)</parameter>", template) is not None


QWEN_XML = Dialect(
    name="qwen_xml",
    parser=QwenXmlParser,
    spellings=("<think>", "</think>", OPEN, CLOSE),
    grammar=grammar,
    rendering=Rendering(_tools, _calls, tool_responses),
    fits=_fits,
    opener=OPEN,
)
