"""MiniMax M2: invocations in a section, each argument in tags that name it.

    <minimax:tool_call>
    <invoke name="NAME">
    <parameter name="KEY">VALUE</parameter>
    </invoke>
    </minimax:tool_call>

Source: the chat template and the tool calling guide of MiniMax M2, and vLLM's and SGLang's parsers
of it. A section holds all calls of a turn. A string stands bare, with all its white space, anything
else is JSON. An array may be written as several arguments of one name.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import regex

from engine.conversation import Tool, ToolCall, ToolResult
from engine.dialects import tagged_rules
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Closed, Opened, Steps
from engine.dialects.tagged import AWAITED, Ends, TaggedArguments, arguments_of, ends
from engine.dialects.tool_text import signatures
from engine.events import Channel
from engine.grammar.rules import Rules

OPEN, CLOSE = "<minimax:tool_call>", "</minimax:tool_call>"
_NEVER = r"\n\ud800-\udfff"  # in no name: line breaks and tokens
_PARAMETER = r"<parameter\s+name="
_BODY = rf"(?:{_PARAMETER}|</invoke>)"


def named(tag: str, group: str, name: str | None = None) -> str:
    """An expression for an opening tag with a name, which may lack its quotes."""
    forms = [(quote, rf"[^{_NEVER}{quote}]+") for quote in "\"'"]
    forms.append(("", rf"[^{_NEVER}\s<>'\"]+"))
    names = "|".join(f"{quote}(?P<{group}>{name or any_}){quote}" for quote, any_ in forms)
    return rf"<{tag}\s+name=(?:{names})\s*>"


_INVOKE = named("invoke", "name")


class MinimaxParser(OutputParser):
    """The opener always begins calls, where it is a token."""

    def call_head(self) -> tuple[str, str]:
        behind = "" if OPEN in self.marks.tokens else r"\s*<invoke\s"
        return self.marks[OPEN][0], self.marks.re(OPEN) + behind

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader = self.reader
        opened = rf"(?:{self.marks.re(OPEN)})\s*(?={_INVOKE}\s*{_BODY})"
        yield from reader.expect(opened, Channel.CALL)
        step = rf"\s*(?:{_INVOKE}\s*(?={_BODY})|(?:{self.marks.re(CLOSE)}))"
        while (tag := (yield from reader.expect(step, Channel.CALL)))["name"] is not None:
            yield from self._invocation(tag["name"].strip())

    def _invocation(self, name: str) -> Steps[None]:
        yield Opened(name)
        arguments = TaggedArguments(self, name)
        step = rf"\s*(?:{named('parameter', 'key')}|</invoke>)"
        while (tag := (yield from self.reader.expect(step, Channel.CALL)))["key"] is not None:
            key = tag["key"].strip()
            again = rf"\s*{named('parameter', 'key', regex.escape(key))}"
            yield from arguments.value(key, self._ends(arguments, key), again)
        yield from arguments.close()
        yield Closed()

    def _ends(self, arguments: TaggedArguments, key: str) -> Ends:
        """Where a value ends: what it quotes of the syntax goes on otherwise."""
        closed = rf"</parameter>\s*(?={_BODY})"
        if self.expected.trusted:
            return ends("<", [rf"</parameter>\n(?={_PARAMETER}|</invoke>\n)"])
        follows = rf"(?:<invoke\s|{self.marks.re(CLOSE)})"
        return ends(
            "\n<",
            [
                closed,
                rf"\n(?={named('parameter', 'key', AWAITED)})",
                rf"\n?(?=</invoke>\s*{follows})",
            ],
            [r"\n?(?=</invoke>\s*\Z)"],
            accepts=arguments.awaits(key),
            quoted=(rf"{_INVOKE}\s*(?={_BODY})", "</invoke>"),
        )


def grammar(rules: Rules) -> str:
    """A section with one invocation after another, each on lines of its own."""
    end = "</invoke>\n"
    tags = tagged_rules.Tags(
        first='<parameter name="',
        behind='">',
        more='</parameter>\n<parameter name="',
        last=f"</parameter>\n{end}",
        none=end,
        name=r'[^"\n]+',
    )
    opened = rules.text('">\n')

    def body(tool: Tool | None) -> str:
        return f"{opened} {tagged_rules.arguments(rules, tool, tags)}"

    before, line = rules.text('<invoke name="'), rules.text("\n")
    invocation = rules.rule(f"{before} {tagged_rules.calls(rules, body)}")
    calls = rules.repeated(invocation, "")
    return rules.rule(f"{rules.mark(OPEN)} {line} {calls} {rules.mark(CLOSE)}")


def _tools(tools: Sequence[Tool]) -> str:
    return (
        "You can call the tools listed here, one JSON signature a line:\n"
        f"<tools>\n{signatures(tools)}\n</tools>\n\n"
        "To call some, write them like this, with a parameter tag for each argument. A string "
        "stands as it is, anything else is JSON:\n"
        f'{OPEN}\n<invoke name="NAME">\n<parameter name="KEY">VALUE</parameter>\n</invoke>\n{CLOSE}'
    )


def _calls(calls: Sequence[ToolCall]) -> str:
    return f"{OPEN}\n{''.join(map(_written, calls))}{CLOSE}"


def _written(call: ToolCall) -> str:
    parameters = "".join(
        f'<parameter name="{key}">{value}</parameter>\n' for key, value in arguments_of(call)
    )
    return f'<invoke name="{call.name}">\n{parameters}</invoke>\n'


def responses(results: Sequence[ToolResult]) -> str:
    """The turn that answers calls."""
    return "\n".join("<response>" + "\n\n".join(result.texts) + "</response>" for result in results)


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return OPEN in template


MINIMAX = Dialect(
    name="minimax",
    parser=MinimaxParser,
    spellings=("<think>", "</think>", OPEN, CLOSE),
    grammar=grammar,
    rendering=Rendering(_tools, _calls, responses),
    fits=_fits,
    opener=OPEN,
)
