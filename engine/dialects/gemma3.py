"""Gemma 1 to 3, whose templates know no tools: calls as Google has them prompted.

That is a list of Python calls or a JSON object, bare or in a code fence, often one named
`tool_code`. Source: "Function calling with Gemma" and the Gemma 3 cookbook at ai.google.dev.
"""

from __future__ import annotations

from collections.abc import Container
from typing import ClassVar

from engine.dialects.bare_call import BareCallParser
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.pythonic import grammar, header, show_calls, show_tools
from engine.dialects.tool_text import show_results


class Gemma3Parser(BareCallParser):
    """A fence holds calls if they are calls of declared tools; else it is a part of the answer."""

    declared_only: ClassVar[bool] = True

    def openers(self) -> tuple[str, str]:
        return "`", r"```(?:tool_code|tool_call|python|json)[^\S\n]*+\n"

    def closer(self) -> str:
        return "```"


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return "<start_of_turn>" in template


GEMMA3 = Dialect(
    name="gemma3",
    parser=Gemma3Parser,
    spellings=(),
    grammar=grammar,
    rendering=Rendering(show_tools, show_calls, show_results),
    fits=_fits,
    headers=header,
)
