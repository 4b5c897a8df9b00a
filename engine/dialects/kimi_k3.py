"""Kimi K3: a message of elements (XTML), whose tags stand between control tokens.

    <|open|>think<|sep|>...<|close|>think<|sep|>
    <|open|>response<|sep|>...<|close|>response<|sep|>
    <|open|>tools<|sep|>
    <|open|>call tool="NAME" index="1"<|sep|>
    <|open|>argument key="KEY" type="string"<|sep|>...<|close|>argument<|sep|>
    <|close|>call<|sep|>
    <|close|>tools<|sep|>
    <|close|>message<|sep|>

(without line breaks). Types are those of JSON; `json` may stand for the arguments. Attributes
escape `&` and `"`. Models go on with the next element without closing the last one
(vllm-project/vllm#53246, #54273).

Source: encoding_k3.py in the repository of moonshotai/Kimi-K3, which has no template.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import ClassVar

import regex

from engine.conversation import Tool, ToolResult
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.elements import Argument, ElementParser, Tags
from engine.dialects.pieces import Steps
from engine.dialects.reader import Stop
from engine.dialects.syntax import ElementCalls, expression
from engine.dialects.tool_text import signatures
from engine.events import Channel
from engine.grammar.form import Composition

OPEN, CLOSE, SEPARATOR = "<|open|>", "<|close|>", "<|sep|>"
THINK, THINK_END = f"{OPEN}think{SEPARATOR}", f"{CLOSE}think{SEPARATOR}"
_ATTRIBUTE = r'\s+[\w-]+="[^"\n]{0,512}"'
_ATTRIBUTES = regex.compile(r'([\w-]+)="([^"\n]*)"')


class KimiK3Parser(ElementParser):
    """What is neither thought nor call is the answer, inside `response` or not."""

    think_open: ClassVar[str | None] = THINK
    think_close: ClassVar[str | None] = THINK_END

    def thought_end(self) -> Stop:
        """The end of a thought, or the element that follows it."""
        open_, close = self.marks[OPEN], self.marks[CLOSE]
        follows = rf"(?={self._opened('response')}|{self._closed('(?:response|message)')})"
        return Stop(
            "close", open_[0] + close[0], regex.compile(f"{self._closed('think')}|{follows}")
        )

    def final_stops(self) -> list[Stop]:
        starts = self.marks[OPEN][0] + self.marks[CLOSE][0]
        return [Stop("element", starts, regex.compile(self._elements))]

    def call_stops(self) -> list[Stop]:
        return [*super().call_stops(), *self.final_stops()]

    def call_head(self) -> tuple[str, str]:
        tags = self._tags()
        section = rf"{tags.section}\s*(?:{tags.call}|{tags.section_end})"
        return self.marks[OPEN][0], rf"{section}|{tags.call}"

    def call(self, head: regex.Match[str]) -> Steps[None]:
        if regex.fullmatch(self._elements, head[0]):
            self.reader.consume(head.end(), Channel.MARKUP)
        else:
            yield from super().call(head)

    @property
    def _elements(self) -> str:
        """The tags around an answer."""
        opened = self._opened("response"), self._opened("message", f"(?:{_ATTRIBUTE})*")
        return "|".join([*opened, self._closed("(?:think|response|message)")])

    def _opened(self, name: str, attributes: str = "") -> str:
        return rf"{self.marks.re(OPEN)}{name}{attributes}\s*{self.marks.re(SEPARATOR)}"

    def _closed(self, name: str) -> str:
        return rf"{self.marks.re(CLOSE)}{name}\s*{self.marks.re(SEPARATOR)}"

    def tags(self, head: regex.Match[str]) -> Tags:
        return self._tags()

    def _tags(self) -> Tags:
        attributes = rf"(?P<attributes>(?:{_ATTRIBUTE})+)"
        argument = rf"{self.marks.re(OPEN)}argument"
        return Tags(
            starts=self.marks[OPEN][0] + self.marks[CLOSE][0],
            section=self._opened("tools"),
            section_end=self._closed("tools"),
            call=self._opened("call", attributes),
            call_end=self._closed("call"),
            argument=self._opened("argument", attributes),
            argument_end=self._closed("argument"),
            named=lambda key: rf'{argument} key="{key}"',
            json=self._opened("json", f"(?:{_ATTRIBUTE})*"),
            json_end=self._closed("json"),
        )

    def call_name(self, tag: regex.Match[str]) -> str:
        return _attributes(tag).get("tool", "").strip()

    def argument(self, tag: regex.Match[str]) -> Argument:
        given = _attributes(tag)
        kind = given.get("type")
        return Argument(given.get("key", ""), None if kind is None else kind == "string")


def _attributes(tag: regex.Match[str]) -> dict[str, str]:
    found = _ATTRIBUTES.findall(tag["attributes"])
    return {name: text.replace("&quot;", '"').replace("&amp;", "&") for name, text in found}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")


def _kind(value: object) -> str:
    """What XTML calls a JSON value that is no string."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


_WRITTEN = ElementCalls(
    tokens=(OPEN, CLOSE, SEPARATOR),
    section=f"{OPEN}tools{SEPARATOR}",
    section_end=f"{CLOSE}tools{SEPARATOR}",
    call=f'{OPEN}call tool="{{name}}" index="{{index}}"{SEPARATOR}',
    call_end=f"{CLOSE}call{SEPARATOR}",
    argument=f'{OPEN}argument key="{{key}}" type="{{kind}}"{SEPARATOR}',
    argument_end=f"{CLOSE}argument{SEPARATOR}",
    gap="",
    string_kind="string",
    json_kinds="number|boolean|null|object|array",
    kind=_kind,
    spelt=_escaped,
)


def _compose(parts: Composition) -> str | None:
    """The elements of a message; the prompt has opened the first, a thought or the response."""
    rules, calls = parts.rules, parts.calls
    if calls is None and parts.body is None:
        return None

    def tag(text: str) -> str:
        return expression(rules, _WRITTEN.tokens, text)

    closed = tag(f"{CLOSE}response{SEPARATOR}")
    ended = f"({tag(f'{CLOSE}message{SEPARATOR}')})?"
    if parts.form.must_call:
        response = f"{closed} {calls} {ended}"
    else:
        called = f"({calls})?" if calls is not None else ""
        response = f"{parts.body or parts.loose()} {closed} {called} {ended}"
    if not parts.form.in_thought:
        return response
    thought = f"{parts.loose()} {tag(THINK_END)}"
    return f"{thought} {tag(f'{OPEN}response{SEPARATOR}')} {response}"


# `sort_keys`: a declaration that a client sends in another order is the same prompt.
_TEMPLATE = """
{%- set thinks = true %}
{%- if enable_thinking is defined %}{% set thinks = enable_thinking %}{% endif %}
{%- if thinking is defined %}{% set thinks = thinking %}{% endif %}
{%- set effort = reasoning_effort if reasoning_effort in ['low', 'high', 'max'] else 'max' %}
{%- macro attribute(key, text) %}
{{- ' ' + key + '="' + (text | string).replace('&', '&amp;').replace('"', '&quot;') + '"' }}
{%- endmacro %}
{%- macro opened(role) %}{{ '<|open|>message role="' + role + '"' }}{% endmacro %}
{%- macro ended() %}{{ '<|close|>message<|sep|><|end_of_msg|>' }}{% endmacro %}
{%- macro call_block(calls) %}
{{- '<|open|>tools<|sep|>' }}
{%- for call in calls %}
{%- set function = call.function or call %}
{{- '<|open|>call' + attribute('tool', function.name) + attribute('index', loop.index) }}
{{- '<|sep|>' }}
{%- if function.arguments is string %}
{{- '<|open|>json type="object"<|sep|>' + function.arguments + '<|close|>json<|sep|>' }}
{%- else %}
{%- for key, value in (function.arguments or {}).items() %}
{%- if value is string %}{% set kind = 'string' %}
{%- elif value is boolean %}{% set kind = 'boolean' %}
{%- elif value is none %}{% set kind = 'null' %}
{%- elif value is mapping %}{% set kind = 'object' %}
{%- elif value is number %}{% set kind = 'number' %}
{%- else %}{% set kind = 'array' %}{% endif %}
{{- '<|open|>argument' + attribute('key', key) + attribute('type', kind) + '<|sep|>' }}
{{- (value if value is string else value | tojson) + '<|close|>argument<|sep|>' }}
{%- endfor %}
{%- endif %}
{{- '<|close|>call<|sep|>' }}
{%- endfor %}
{{- '<|close|>tools<|sep|>' }}
{%- endmacro %}
{%- if tools %}
{{- opened('system') + ' type="tool-declare"<|sep|># Tools\\n' }}
{{- 'Their signatures, in JSON:\\n\\n```json\\n' }}
{{- (tools | tojson(separators=(',', ':'), sort_keys=true)) + '\\n```' + ended() }}
{%- endif %}
{%- if thinks %}
{{- opened('system') + ' type="thinking-effort"<|sep|>Think before the response, with ' }}
{{- '`thinking_effort=' + effort + '`.' + ended() }}
{%- endif %}
{%- set state = namespace(index=0, calls=[]) %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{%- set state.index = 0 %}
{%- set state.calls = message.tool_calls or [] %}
{{- opened('assistant') + (attribute('name', message.name) if message.name else '') + '<|sep|>' }}
{%- if thinks %}
{{- '<|open|>think<|sep|>' + (message.reasoning_content or '') + '<|close|>think<|sep|>' }}
{%- endif %}
{{- '<|open|>response<|sep|>' + message.content + '<|close|>response<|sep|>' }}
{%- if state.calls %}{{ call_block(state.calls) }}{% endif %}
{%- elif message.role == 'tool' %}
{%- set state.index = state.index + 1 %}
{%- set call = state.calls[state.index - 1] if state.index <= state.calls | length else {} %}
{%- set name = message.name or (call.function or call).name or 'unknown' %}
{{- opened('tool') + attribute('tool', name) + attribute('index', state.index) + '<|sep|>' }}
{{- message.content }}
{%- else %}
{{- opened(message.role) + (attribute('name', message.name) if message.name else '') + '<|sep|>' }}
{{- message.content }}
{%- endif %}
{{- ended() }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- opened('assistant') + '<|sep|><|open|>' + ('think' if thinks else 'response') + '<|sep|>' }}
{%- endif %}"""


def _tools(tools: Sequence[Tool]) -> str:
    return (
        "You can call the tools listed here, one JSON signature a line:\n"
        f"<tools>\n{signatures(tools)}\n</tools>\n\n"
        "To call some, write elements like these after your response, with the JSON type of each "
        f"argument:\n{_WRITTEN.section}"
        f'{OPEN}call tool="NAME" index="1"{SEPARATOR}'
        f'{OPEN}argument key="KEY" type="string"{SEPARATOR}VALUE{_WRITTEN.argument_end}'
        f"{_WRITTEN.call_end}{_WRITTEN.section_end}"
    )


def _results(results: Sequence[ToolResult]) -> str:
    return "\n".join(
        "<tool_result>\n" + "\n\n".join(result.texts) + "\n</tool_result>" for result in results
    )


def _fits(template: str, control_tokens: Container[str]) -> bool:
    if template:
        return OPEN in template and "argument" in template
    return OPEN in control_tokens and SEPARATOR in control_tokens


KIMI_K3 = Dialect(
    name="kimi_k3",
    parser=KimiK3Parser,
    spellings=(OPEN, CLOSE, SEPARATOR),
    grammar=_WRITTEN.grammar,
    rendering=Rendering(_tools, _WRITTEN.calls, _results),
    fits=_fits,
    compose=_compose,
    template=_TEMPLATE,
)
