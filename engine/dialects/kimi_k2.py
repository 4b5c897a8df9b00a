"""Kimi K2 and its successors up to K2.6: calls between tokens, whose ids hold the names.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}
    <|tool_call_end|><|tool_calls_section_end|>

(on one line). The number counts the calls of the conversation. The id of a call is what stands
there, since the template writes it back and the model refers to it. Models also write the markers
of a section in the singular (ggml-org/llama.cpp#17376), or leave them out.

Source: the chat template and docs/tool_call_guidance.md of moonshotai/Kimi-K2-Thinking.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import regex

from engine.conversation import Tool, ToolCall, ToolResult
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_call import arguments, whole_arguments
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Closed, Opened, Steps
from engine.dialects.syntax import JsonCalls
from engine.dialects.tool_text import signatures
from engine.events import Channel

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
ONE_SECTION, ONE_SECTION_END = "<|tool_call_section_begin|>", "<|tool_call_section_end|>"
CALL, CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
ARGUMENTS = "<|tool_call_argument_begin|>"
_NOISE = r"[^\ud800-\udfff]{0,200}"
_ID = regex.compile(r"\S+:\d+")


class KimiK2Parser(OutputParser):
    """Sections of calls, or calls without one. Words before a section's first call are noise."""

    def call_head(self) -> tuple[str, str]:
        section, call = self.marks.re(SECTION, ONE_SECTION), self.marks.re(CALL)
        section_end = self.marks.re(SECTION_END, ONE_SECTION_END)
        head = rf"(?:{section})\s*(?:{call}|{section_end})|{call}"
        if SECTION in self.marks.tokens:
            head += rf"|{self.marks.re(SECTION)}{_NOISE}{call}"
        strays = [s for s in (SECTION_END, CALL_END, ARGUMENTS) if s in self.marks.tokens]
        spellings = (SECTION, ONE_SECTION, CALL, *strays)
        starts = "".join({self.marks[spelling][0] for spelling in spellings})
        return starts, "|".join([head, *map(self.marks.re, strays)])

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader = self.reader
        if head[0] in (self.marks[SECTION_END], self.marks[CALL_END], self.marks[ARGUMENTS]):
            reader.consume(head.end(), Channel.MARKUP)  # it ends nothing
            return
        section = yield from reader.match(self.marks.re(SECTION, ONE_SECTION))
        before = r"\s*"
        if section is not None:
            reader.consume(section.end(), Channel.MARKUP)
            before = _NOISE if SECTION in self.marks.tokens else before
        call = self.marks.re(CALL)
        while (tag := (yield from reader.match(before + call))) is not None:
            reader.consume(tag.end(), Channel.CALL)
            yield from self._one_call()
            before = r"\s*"
        if section is not None:
            yield from reader.expect(rf"\s*(?:{self.marks.re(SECTION_END, ONE_SECTION_END)})")

    def _one_call(self) -> Steps[None]:
        reader, end = self.reader, self.marks.re(CALL_END)
        inside = r"[^\s{\ud800-\udfff]"
        name = rf"(?P<name>{inside}(?:[^\n{{\ud800-\udfff]{{0,255}}?{inside})??)"
        call_id = rf"(?P<id>(?:functions\.)?{name}(?P<index>:\d+)?)"
        start = rf"(?:{self.marks.re(ARGUMENTS)}|(?=\{{))"
        found = yield from reader.expect(rf"\s*{call_id}\s*{start}\s*(?=\S)", Channel.CALL)
        yield Opened(found["name"], found["id"] if found["index"] else None)
        if (yield from reader.match(end)) is None:
            yield from arguments(self, found["name"])
        else:
            yield whole_arguments(self.tool(found["name"]), "{}")
        others = self.marks.re(SECTION_END, ONE_SECTION_END, CALL)
        yield from reader.expect(rf"\s*(?:{end}|(?={others}))")
        yield Closed()


_WRITTEN = JsonCalls(
    tokens=(SECTION, SECTION_END, CALL, CALL_END, ARGUMENTS),
    section=SECTION,
    section_end=SECTION_END,
    call=f"{CALL}functions.{{name}}:{{index}}{ARGUMENTS}",
    call_end=CALL_END,
)


def _tools(tools: Sequence[Tool]) -> str:
    example = _WRITTEN.calls([ToolCall("", "<name>", "{<arguments>}")])
    return (
        "You can call the tools listed here, one JSON signature a line:\n"
        f"<tools>\n{signatures(tools)}\n</tools>\n\n"
        "To call some, write their names and their arguments as JSON objects, and count the calls "
        f"from 0 on:\n{example}"
    )


def _calls(calls: Sequence[ToolCall]) -> str:
    """The ids are the model's own where they have its form."""
    texts = (
        f"{CALL}{call.id if _ID.fullmatch(call.id) else f'functions.{call.name}:{index}'}"
        f"{ARGUMENTS}{call.arguments or '{}'}{CALL_END}"
        for index, call in enumerate(calls)
    )
    return SECTION + "".join(texts) + SECTION_END


def _results(results: Sequence[ToolResult]) -> str:
    return "\n".join(
        f"## Return of {result.call_id}\n" + "\n\n".join(result.texts) for result in results
    )


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return SECTION in template if template else SECTION in control_tokens


KIMI_K2 = Dialect(
    name="kimi_k2",
    parser=KimiK2Parser,
    spellings=(
        "<think>", "</think>", SECTION, SECTION_END, ONE_SECTION, ONE_SECTION_END,
        CALL, CALL_END, ARGUMENTS,
    ),
    grammar=_WRITTEN.grammar,
    rendering=Rendering(_tools, _calls, _results),
    fits=_fits,
    opener=SECTION,
)  # fmt: skip
