"""Xiaomi MiMo: the tags of Qwen's XML calls, but values that begin and end right at their tags.

    <tool_call>
    <function=NAME>
    <parameter=KEY>VALUE</parameter>
    </function>
    </tool_call>

Source: SGLang's and vLLM's parsers of MiMo-V2. White space in a value is part of it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from engine.conversation import Tool, ToolCall
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.qwen_xml import CLOSE, OPEN, QwenXmlParser, explained, grammar_around, written
from engine.dialects.tagged import tool_responses
from engine.grammar.rules import Rules


class MimoParser(QwenXmlParser):
    """As Qwen's, but for the white space around values."""

    around = ""


def grammar(rules: Rules) -> str:
    """As Qwen's, but for the white space around values."""
    return grammar_around(rules, "")


def _tools(tools: Sequence[Tool]) -> str:
    return explained(tools, "VALUE")


def _calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(written(call, "") for call in calls)


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return all(tag in template for tag in (OPEN, "<function=", "<parameter=", "</parameter>"))


MIMO = Dialect(
    name="mimo",
    parser=MimoParser,
    spellings=("<think>", "</think>", OPEN, CLOSE),
    grammar=grammar,
    rendering=Rendering(_tools, _calls, tool_responses),
    fits=_fits,
    opener=OPEN,
)
