"""Hermes, and Qwen2.5 and Qwen3: a JSON object between `<tool_call>` and `</tool_call>`.

Source: NousResearch/Hermes-Function-Calling; the chat templates of Qwen3.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence

import regex

from engine.conversation import Tool, ToolCall, ToolResult
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_call import call_object
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Closed, Steps
from engine.events import Channel
from engine.grammar.rules import Rules

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_NAME, _ARGUMENTS = '"name":', '"arguments":'


class HermesParser(OutputParser):
    """Calls follow each other, each between its own delimiters."""

    def call_head(self) -> tuple[str, str]:
        is_token = OPEN in self.marks.tokens
        behind = "" if is_token else r"\s*\{\s*\""  # prose quotes the tag, not the object
        return self.marks[OPEN][0], f"(?:{self.marks.re(OPEN)}){behind}"

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader = self.reader
        yield from reader.expect(rf"(?:{self.marks.re(OPEN)})\s*(?=\S)")
        yield from call_object(self)
        yield from reader.expect(rf"\s*(?:{self.marks.re(CLOSE)})", Channel.MARKUP)
        yield Closed()


def grammar(rules: Rules) -> str:
    """`<tool_call>`, the object on lines of its own, `</tool_call>`; a line break between calls.

    Between the parts of the object there may be one blank or none.
    """
    blank = f"{rules.text(' ')}?"

    def body(name: str, arguments: str) -> str:
        before = f"{rules.text('{')} {blank} {rules.text(_NAME)} {blank}"
        after = f"{rules.text(',')} {blank} {rules.text(_ARGUMENTS)} {blank}"
        return rules.rule(f"{before} {name} {after} {arguments} {blank} {rules.text('}')}")

    bodies = [body(rules.text(_quoted(tool.name)), rules.arguments(tool)) for tool in rules.tools]
    if rules.open_names:
        bodies.append(body(f'"\\"" {rules.name()} "\\""', rules.arguments(None)))
    line = rules.text("\n")
    call = f"{rules.mark(OPEN)} {line}? ({' | '.join(bodies)}) {line}? {rules.mark(CLOSE)}"
    return rules.repeated(rules.rule(call), f"{line}?")


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _tools(tools: Sequence[Tool]) -> str:
    listed = "\n".join(
        json.dumps(
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            },
            ensure_ascii=False,
        )
        for tool in tools
    )
    return (
        "You can call the tools listed here, one JSON signature a line:\n"
        f"<tools>\n{listed}\n</tools>\n\n"
        "To call one, write its name and its arguments as a JSON object between these tags:\n"
        f'{OPEN}\n{{"name": "<name>", "arguments": {{<arguments>}}}}\n{CLOSE}'
    )


def _calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(
        f'{OPEN}\n{{"name": {_quoted(call.name)}, "arguments": {call.arguments}}}\n{CLOSE}'
        for call in calls
    )


def _results(results: Sequence[ToolResult]) -> str:
    return "\n".join(
        "<tool_response>\n" + "\n\n".join(result.texts) + "\n</tool_response>" for result in results
    )


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return OPEN in template and '"arguments"' in template


HERMES = Dialect(
    name="hermes",
    parser=HermesParser,
    spellings=("<think>", "</think>", OPEN, CLOSE),
    grammar=grammar,
    rendering=Rendering(_tools, _calls, _results),
    fits=_fits,
    opener=OPEN,
)
