"""No thoughts and no calls: all of an output is the answer, as base models write it."""

from __future__ import annotations

from collections.abc import Container, Sequence

from engine.conversation import Tool, ToolCall
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_text import dumps
from engine.dialects.parser import OutputParser
from engine.dialects.tool_text import arguments_of, show_results, signatures


class PlainParser(OutputParser):
    """Says what comes."""

    think_open = None
    think_close = None


def _calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(dumps({"name": call.name, "arguments": arguments_of(call)}) for call in calls)


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return False


def _tools(tools: Sequence[Tool]) -> str:
    return f"These tools exist:\n{signatures(tools)}"


PLAIN = Dialect(
    name="plain",
    parser=PlainParser,
    spellings=(),
    grammar=None,
    rendering=Rendering(_tools, _calls, show_results),
    fits=_fits,
)
