"""DeepSeek V3 and R1, and V3.1: calls between tokens, their arguments as JSON.

V3 and R1 name the kind of tool, then the tool, and fence the JSON:

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME
    ```json
    {...}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

V3.1 writes `NAME<｜tool▁sep｜>{...}` between the tokens of a call. Distilled models keep the form
of the template that they were trained on, so the parser reads both (raullenchai/Rapid-MLX#795).

Source: the chat templates of deepseek-ai/DeepSeek-V3-0324, -R1-0528 and -V3.1.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import regex

from engine.conversation import Tool, ToolCall, ToolResult
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_call import arguments, whole_arguments
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Closed, Opened, Steps
from engine.dialects.syntax import JsonCalls
from engine.dialects.tool_text import signatures
from engine.events import Channel

SECTION, SECTION_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
SEPARATOR = "<｜tool▁sep｜>"
_KIND = "function"


class DeepSeekV3Parser(OutputParser):
    """Sections of calls, or calls without one."""

    def call_head(self) -> tuple[str, str]:
        section, call = self.marks.re(SECTION), self.marks.re(CALL)
        head = rf"(?:{section}\s*)?{call}|{section}\s*{self.marks.re(SECTION_END)}"
        strays = [end for end in (SECTION_END, CALL_END) if end in self.marks.tokens]
        starts = "".join({self.marks[spelling][0] for spelling in (SECTION, CALL, *strays)})
        return starts, "|".join([head, *map(self.marks.re, strays)])

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader, section_end = self.reader, self.marks.re(SECTION_END)
        if head[0] in (self.marks[SECTION_END], self.marks[CALL_END]):
            reader.consume(head.end(), Channel.MARKUP)  # it ends nothing
            return
        section = yield from reader.match(self.marks.re(SECTION))
        if section is not None:
            reader.consume(section.end(), Channel.MARKUP)
        while (tag := (yield from reader.match(rf"\s*{self.marks.re(CALL)}"))) is not None:
            reader.consume(tag.end(), Channel.MARKUP)
            yield from self._one_call()
        if section is not None:
            yield from reader.expect(rf"\s*{section_end}")

    def _one_call(self) -> Steps[None]:
        reader, separator, end = self.reader, self.marks.re(SEPARATOR), self.marks.re(CALL_END)
        kind = rf"{_KIND}\s*{separator}\s*{_name('fenced')}\s*(?:```(?:json)?\s*)?(?=\{{)"
        bare = rf"{_name('bare')}\s*{separator}\s*(?=[{{\"]|{end})"
        found = yield from reader.expect(rf"\s*(?:{kind}|{bare})", Channel.CALL)
        name = found["fenced"] or found["bare"]
        yield Opened(name)
        if (yield from reader.match(rf"(?:{end})")) is None:
            yield from arguments(self, name)
        else:
            yield whole_arguments(self.tool(name), "{}")
        others = "|".join(map(self.marks.re, (SECTION_END, CALL)))
        yield from reader.expect(rf"\s*(?:```\s*)?(?:{end}|(?={others}))", Channel.CALL)
        yield Closed()


def _name(group: str) -> str:
    """A tool's name, as a regular expression."""
    inside = r"[^\s`{\ud800-\udfff]"
    return rf"(?P<{group}>{inside}(?:[^\n`{{\ud800-\udfff]{{0,255}}?{inside})?)"


_TOKENS = (SECTION, SECTION_END, CALL, CALL_END, SEPARATOR)
_V3 = JsonCalls(
    tokens=_TOKENS,
    section=SECTION,
    section_end=SECTION_END,
    call=f"{CALL}{_KIND}{SEPARATOR}{{name}}\n```json\n",
    call_end=f"\n```{CALL_END}",
    gap="\n",
)
_V31 = replace(_V3, call=f"{CALL}{{name}}{SEPARATOR}", call_end=CALL_END, gap="")


def _results(results: Sequence[ToolResult]) -> str:
    return "\n".join(
        "<tool_result>\n" + "\n\n".join(result.texts) + "\n</tool_result>" for result in results
    )


def _dialect(name: str, written: JsonCalls, is_fenced: bool) -> Dialect:
    example = written.calls([ToolCall("", "<name>", "{<arguments>}")])

    def tools(tools: Sequence[Tool]) -> str:
        return (
            "You can call the tools listed here, one JSON signature a line:\n"
            f"<tools>\n{signatures(tools)}\n</tools>\n\n"
            f"To call one, write its name and its arguments as a JSON object:\n{example}"
        )

    def fits(template: str, control_tokens: Container[str]) -> bool:
        return SECTION in template and ("```json" in template) is is_fenced

    return Dialect(
        name=name,
        parser=DeepSeekV3Parser,
        spellings=("<think>", "</think>", *_TOKENS),
        grammar=written.grammar,
        rendering=Rendering(tools, written.calls, _results),
        fits=fits,
        opener=SECTION,
    )


DEEPSEEK_V3 = _dialect("deepseek_v3", _V3, is_fenced=True)
DEEPSEEK_V31 = _dialect("deepseek_v31", _V31, is_fenced=False)
