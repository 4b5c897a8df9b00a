"""Llama 3.1 to 3.3, and Llama 4 by its own template: `{"name": ..., "parameters": {...}}`.

`<|python_tag|>` may come first, and `;` separates calls. Source: Meta's prompt formats of Llama
3.1, 3.2 and 4, and the chat templates of those checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence

import regex

from engine.conversation import Tool, ToolCall
from engine.dialects.bare_call import BareCallParser
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.tool_text import show_results, signatures
from engine.grammar.rules import Rules

TAG, START, END = "<|python_tag|>", "<|python_start|>", "<|python_end|>"


class LlamaParser(BareCallParser):
    """The tags of Llama 3 and Llama 4 are markup, whether or not a call is next to them."""

    def openers(self) -> tuple[str, str]:
        tags = [self.marks.re(tag) + self._behind(tag) for tag in (TAG, START, END)]
        starts = "".join(self.marks[tag][0] for tag in (TAG, START, END))
        return starts, "|".join(tags)

    def _behind(self, tag: str) -> str:
        return "" if tag in self.marks.tokens else r"(?=\s*+[{\[])"

    def closer(self) -> str:
        return regex.escape(self.marks[END])


def grammar(rules: Rules) -> str:
    """The object on one line; `; ` between objects."""

    def call(name: str, arguments: str) -> str:
        before, after = rules.text('{"name": '), rules.text(', "parameters": ')
        return rules.rule(f"{before} {name} {after} {arguments} {rules.text('}')}")

    calls = [call(rules.text(json.dumps(tool.name)), rules.arguments(tool)) for tool in rules.tools]
    if rules.open_names:
        quote = rules.text('"')
        calls.append(call(f"{quote} {rules.name()} {quote}", rules.arguments(None)))
    return rules.repeated(rules.rule(" | ".join(calls)), rules.text("; "))


def _header(name: str) -> str:
    return f'{{"name": {json.dumps(name, ensure_ascii=False)}, "parameters": '


def _tools(tools: Sequence[Tool]) -> str:
    return (
        "You have access to these functions:\n\n"
        f"{signatures(tools)}\n\n"
        "To call one, answer with nothing but a JSON object of this form:\n"
        '{"name": "<function name>", "parameters": {<its arguments>}}\n'
        "Several such objects are separated by `; `. Values are literals."
    )


def _calls(calls: Sequence[ToolCall]) -> str:
    return "; ".join(f"{_header(call.name)}{call.arguments}}}" for call in calls)


def _fits(template: str, control_tokens: Container[str]) -> bool:
    is_llama = "<|start_header_id|>" in template or "<|header_start|>" in template
    return is_llama and '"parameters"' in template


LLAMA_JSON = Dialect(
    name="llama_json",
    parser=LlamaParser,
    spellings=(TAG, START, END),
    grammar=grammar,
    rendering=Rendering(_tools, _calls, show_results),
    fits=_fits,
    headers=_header,
)
