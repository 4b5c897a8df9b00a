"""DeepSeek V3.2, V4 and V4.1: calls in DSML, an element for each argument.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="...">
    <｜DSML｜parameter name="..." string="true|false">...</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

The versions differ in the names of the tags, and one parser reads them all, since a model writes
those of another version too (sgl-project/sglang#40236). `｜DSML｜` is one token without the angle
brackets. A call that spells it in ordinary tokens counts as well, but within a call its spelling is
what the call began with. Nothing is read after the end of the section.

Source: encoding/encoding_dsv32.py, encoding_dsv4.py and encoding.py in the repositories of
deepseek-ai/DeepSeek-V3.2, -V4-Flash and -V4.1-Flash.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

import regex

from engine.conversation import Tool, ToolResult
from engine.dialects.deepseek_templates import V4, V32, V41, Version
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.elements import Argument, ElementParser, Tags
from engine.dialects.json_text import dumps
from engine.dialects.pieces import WAIT, Steps
from engine.dialects.syntax import ElementCalls
from engine.events import Channel

DSML = "｜DSML｜"
_KEY = r"[^\n]{1,256}?"


class DsmlParser(ElementParser):
    """Sections of calls, or calls without one."""

    _is_over = False

    def call_head(self) -> tuple[str, str]:
        tags = self._tags(f"(?:{regex.escape(self.marks[DSML])}|{DSML})")
        head = rf"(?:{tags.section}\s*)?{tags.call}|{tags.section}\s*{tags.section_end}"
        return "<", f"{head}|{self._stray}" if self._stray else head

    @property
    def _stray(self) -> str:
        """End tags that end nothing: the model writes them now and then (vllm#57051)."""
        return rf"</{self.marks[DSML]}[ \w]{{1,20}}>" if DSML in self.marks.tokens else ""

    def tags(self, head: regex.Match[str]) -> Tags:
        is_token = self.marks[DSML] in head[0]
        return self._tags(self.marks[DSML] if is_token else DSML)

    def _tags(self, dsml: str) -> Tags:
        def named(key: str) -> str:
            return rf'<{dsml} ?parameter name="(?P<key>{key})"(?: string="(?P<flag>true|false)")?>'

        return Tags(
            starts="<",
            section=rf"<{dsml}[ \w]{{1,20}}>",
            section_end=rf"</{dsml}[ \w]{{1,20}}>",
            call=rf'<{dsml} ?invoke name="(?P<name>[^"\n]{{1,256}})"\s*(?P<empty>/)?>',
            call_end=rf"</{dsml} ?invoke>",
            argument=named(_KEY),
            argument_end=rf"</{dsml} ?parameter>",
            named=named,
        )

    def call_name(self, tag: regex.Match[str]) -> str:
        return tag["name"].strip()

    def is_empty(self, tag: regex.Match[str]) -> bool:
        return tag["empty"] is not None

    def argument(self, tag: regex.Match[str], tool: Tool | None) -> Argument:
        if tag["flag"] is not None:
            return Argument(tag["key"], tag["flag"] == "true")
        declared = tool.parameters.get("properties") if tool is not None else None
        schema = declared.get(tag["key"]) if isinstance(declared, Mapping) else None
        kind = schema.get("type", "string") if isinstance(schema, Mapping) else "string"
        return Argument(tag["key"], kind == "string")

    def call(self, head: regex.Match[str]) -> Steps[None]:
        if self._stray and regex.match(self._stray, head[0]):
            self.reader.consume(head.end(), Channel.MARKUP)
            return
        calls = self._calls
        yield from super().call(head)
        has_section = regex.match(self.tags(head).section, head[0]) is not None
        self._is_over = has_section and self._calls > calls

    def answer(self) -> Steps[None]:
        if not self._is_over:
            yield from super().answer()
        elif self.reader.at < len(self.reader.text):
            self.reader.consume(len(self.reader.text), Channel.CALL)
        else:
            yield WAIT


def _syntax(section: str, call: str, argument: str) -> ElementCalls:
    return ElementCalls(
        tokens=(DSML,),
        section=f"<{DSML}{section}>\n",
        section_end=f"\n</{DSML}{section}>",
        call=f'<{DSML}{call} name="{{name}}">\n',
        call_end=f"</{DSML}{call}>",
        argument=f'<{DSML}{argument} name="{{key}}" string="{{kind}}">',
        argument_end=f"</{DSML}{argument}>",
        gap="\n",
        string_kind="true",
        json_kinds="false",
        kind=lambda value: "false",
    )


def _schemas(tools: Sequence[Tool]) -> str:
    return "\n".join(
        dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        for tool in tools
    )


def _results_v32(results: Sequence[ToolResult]) -> str:
    texts = ("<result>" + "\n\n".join(result.texts) + "</result>\n" for result in results)
    return "<function_results>\n" + "".join(texts) + "</function_results>"


def _results_v4(results: Sequence[ToolResult]) -> str:
    return "\n\n".join(
        "<tool_result>" + "\n\n".join(result.texts) + "</tool_result>" for result in results
    )


def _dialect(
    name: str,
    version: Version,
    results: Callable[[Sequence[ToolResult]], str],
    token: str,
) -> Dialect:
    """A version. A checkpoint without a template is known by a token that earlier ones lack."""
    syntax = _syntax(*version.tags)

    def fits(template: str, control_tokens: Container[str]) -> bool:
        section = f"{DSML}{version.tags[0]}"
        return section in template if template else token in control_tokens

    return Dialect(
        name=name,
        parser=DsmlParser,
        spellings=("<think>", "</think>", DSML),
        grammar=syntax.grammar,
        rendering=Rendering(
            lambda tools: version.tools.replace("{schemas}", _schemas(tools)), syntax.calls, results
        ),
        fits=fits,
        headers=syntax.header,
        template=version.template,
    )


DEEPSEEK_V41 = _dialect("deepseek_v41", V41, _results_v4, "<｜System｜>")
DEEPSEEK_V4 = _dialect("deepseek_v4", V4, _results_v4, "<｜latest_reminder｜>")
DEEPSEEK_V32 = _dialect("deepseek_v32", V32, _results_v32, DSML)
