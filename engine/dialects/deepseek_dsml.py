"""DeepSeek V3.2, V4 and V4.1: calls in DSML, an element for each argument.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="...">
    <｜DSML｜parameter name="..." string="true|false">...</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

The versions differ in the names of the tags, and one parser reads them all, since a model writes
those of another version too (sgl-project/sglang#40236). `｜DSML｜` is one token without the angle
brackets. A call that spells it in ordinary tokens counts as well, where no mask guarantees that
calls are well-formed; within a call, its spelling is what the call began with. Nothing is read
after the end of the section.

Source: encoding/encoding_dsv32.py, encoding_dsv4.py and encoding.py in the repositories of
deepseek-ai/DeepSeek-V3.2, -V4-Flash and -V4.1-Flash.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

import regex

from engine.conversation import ToolResult
from engine.dialects.deepseek_templates import V4, V32, V41, Version
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.elements import Argument, ElementParser, Tags
from engine.dialects.pieces import WAIT, Steps
from engine.dialects.syntax import ElementCalls
from engine.dialects.tool_text import signatures
from engine.events import Channel

DSML = "｜DSML｜"
_SECTION = r" ?[a-z_]{0,16}calls"  # models vary the name (vllm-project/vllm#51914)
_KEY = r"[^\n]{1,256}?"


class DsmlParser(ElementParser):
    """Sections of calls, or calls without one."""

    _is_over = False

    def call_head(self) -> tuple[str, str]:
        token = self.marks[DSML]
        is_token = DSML in self.marks.tokens
        spellings = (token,) if is_token and self.expected.trusted else (token, DSML)
        tags = self._tags(*spellings)
        head = rf"(?:{tags.section}\s*)?{tags.call}|{tags.section}\s*{tags.section_end}"
        return tags.starts, f"{head}|{self._stray}" if is_token else head

    @property
    def _stray(self) -> str:
        """End tags that end nothing: the model writes them now and then (vllm#57051)."""
        return rf"</{self.marks[DSML]}(?: ?parameter| ?invoke|{_SECTION})>"

    def tags(self, head: regex.Match[str]) -> Tags:
        return self._tags(self.marks[DSML] if self.marks[DSML] in head[0] else DSML)

    def _tags(self, *spellings: str) -> Tags:
        """The tags in which one of these stands for DSML."""
        dsml = f"(?:{'|'.join(spellings)})"
        # Masks begin at the token, so the bracket before it is free and may be missing.
        left = "|".join(f"<{one}" if one == DSML else f"<?{one}" for one in spellings)

        def named(key: str) -> str:
            return rf'<{dsml} ?parameter name="(?P<key>{key})"(?: string="(?P<flag>true|false)")?>'

        return Tags(
            starts="<" + self.marks[DSML][0],
            section=rf"(?:{left}){_SECTION}>",
            section_end=rf"</{dsml}{_SECTION}>",
            call=rf'(?:{left}) ?invoke name="(?P<name>[^"\n]{{1,256}})"\s*(?P<empty>/)?>',
            call_end=rf"</{dsml} ?invoke>",
            argument=named(_KEY),
            argument_end=rf"</{dsml} ?parameter>",
            named=named,
        )

    def call_name(self, tag: regex.Match[str]) -> str:
        return tag["name"].strip()

    def is_empty(self, tag: regex.Match[str]) -> bool:
        return tag["empty"] is not None

    def argument(self, tag: regex.Match[str]) -> Argument:
        flag = tag["flag"]
        return Argument(tag["key"], None if flag is None else flag == "true")

    def call(self, head: regex.Match[str]) -> Steps[None]:
        if DSML in self.marks.tokens and regex.match(self._stray, head[0]):
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


def _written(section: str, call: str, argument: str) -> ElementCalls:
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


def _results_v32(results: Sequence[ToolResult]) -> str:
    texts = ("<result>" + "\n\n".join(result.texts) + "</result>\n" for result in results)
    return "<function_results>\n" + "".join(texts) + "</function_results>"


def _results_v4(results: Sequence[ToolResult]) -> str:
    return "\n\n".join(
        "<tool_result>" + "\n\n".join(result.texts) + "</tool_result>" for result in results
    )


def _version_of(template: str, control_tokens: Container[str]) -> str:
    """Which version a checkpoint is; nothing where it is none of them.

    Templates that others wrote put the tags together from parts. Without one, it is known by the
    tokens that earlier versions lack.
    """
    if DSML not in (template or control_tokens):
        return ""
    if not template:
        newer = (token for token in _NEWER if token in control_tokens)
        return _NEWER.get(next(newer, ""), V32.name)
    if regex.search(r"[｜'\"] invoke\b", template):
        return V41.name
    return V32.name if "function_calls" in template else V4.name


_NEWER = {"<｜System｜>": V41.name, "<｜latest_reminder｜>": V4.name}


def _dialect(version: Version, results: Callable[[Sequence[ToolResult]], str]) -> Dialect:
    written = _written(*version.tags)
    return Dialect(
        name=version.name,
        parser=DsmlParser,
        spellings=("<think>", "</think>", DSML),
        grammar=written.grammar,
        rendering=Rendering(
            lambda tools: version.tools.replace("{schemas}", signatures(tools)),
            written.calls,
            results,
        ),
        fits=lambda template, tokens: _version_of(template, tokens) == version.name,
        opener=DSML,
        template=version.template,
    )


DEEPSEEK_V32 = _dialect(V32, _results_v32)
DEEPSEEK_V4 = _dialect(V4, _results_v4)
DEEPSEEK_V41 = _dialect(V41, _results_v4)
