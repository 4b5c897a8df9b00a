"""MiniMax M3: elements named after the arguments, every tag behind the token of the namespace.

    NS<tool_call>
    NS<invoke name="NAME">NS<KEY>VALUENS</KEY>NS<LIST>NS<item>1NS</item>NS</LIST>NS</invoke>
    NS</tool_call>

NS is `]<]minimax[>[`. An object holds elements in its turn, an array `item`s. Source: the chat
template of MiniMax M3 as vLLM's, SGLang's and llama.cpp's parsers document it. Thoughts stand
between `<mm:think>` and `</mm:think>`. Elements of one name, one after another, are an array; where
a closing tag lacks its namespace, the next tag shows that it is one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress

import regex

from engine.conversation import Tool, ToolCall
from engine.dialects import tagged_rules
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_text import dumps
from engine.dialects.minimax import named, responses
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Closed, Malformed, Opened, Steps
from engine.dialects.tagged import Ends, TaggedArguments, ends, members_of, whole
from engine.dialects.tool_text import signatures
from engine.dialects.values import Shape
from engine.events import Channel
from engine.grammar.arguments import Parameter, listed
from engine.grammar.builder import escaped
from engine.grammar.document import Refused
from engine.grammar.keywords import ANNOTATIONS
from engine.grammar.rules import Rules
from engine.grammar.values import SHARED, Schema, closed

NAMESPACE = "]<]minimax[>["
_NEVER = r"<>\n\ud800-\udfff"  # in no name: tags, line breaks and tokens
_NAME = rf"(?P<name>[^{_NEVER}/\s][^{_NEVER}]*)"
_INVOKE = named("invoke", "tool")
_CALL = Channel.CALL

_MOST_NESTED = 64
_MOST_NESTED_FREELY = 6
_EMPTY = (("array", "[]"), ("object", "{}"))

Element = str | list[tuple[str, "Element"]]
"""The text of an element, or what it holds."""


class MinimaxM3Parser(OutputParser):
    """The opener always begins calls."""

    think_open = "<mm:think>"
    think_close = "</mm:think>"

    def call_head(self) -> tuple[str, str]:
        return self.marks[NAMESPACE][0], self._tag("<tool_call>")

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader = self.reader
        yield from reader.expect(rf"{self._tag('<tool_call>')}\s*(?={self._tag('<invoke')})", _CALL)
        step = rf"\s*(?:{self._tag(_INVOKE)}|{self._tag('</tool_call>')})"
        while (tag := (yield from reader.expect(step, _CALL)))["tool"] is not None:
            yield from self._invocation(tag["tool"].strip())

    def _invocation(self, name: str) -> Steps[None]:
        yield Opened(name)
        arguments = TaggedArguments(self, name)
        step = rf"\s*(?:{self._tag('</invoke>')}|{self._tag(f'<{_NAME}>')})"
        while (tag := (yield from self.reader.expect(step, _CALL)))["name"] is not None:
            key = tag["name"]
            if arguments.streams(key):
                yield from arguments.value(key, self._ends(key))
            else:
                elements = yield from self._argument(key)
                yield from arguments.member(key, _joined(elements, arguments.shape.member(key)))
        yield from arguments.close()
        yield Closed()

    def _argument(self, key: str) -> Steps[list[Element]]:
        """Read an element, and those of the same name that follow."""
        elements = [(yield from self._element(key, 0))]
        again = rf"\s*{self._tag(f'<{regex.escape(key)}>')}"
        while (found := (yield from self.reader.match(again))) is not None:
            self.reader.consume(found.end(), _CALL)
            elements.append((yield from self._element(key, 0)))
        return elements

    def _element(self, key: str, depth: int) -> Steps[Element]:
        """Read an element behind its opening tag, to its end."""
        if depth > _MOST_NESTED:
            raise Malformed
        opening, closing = self._tag(f"<{_NAME}>"), self._tag(self._closing(key))
        text, tag = yield from whole(self, self._ends(key, rf"\s*{opening}"))
        if tag["name"] is None:
            return text
        if text:
            raise Malformed
        children: list[tuple[str, Element]] = []
        while tag["name"] is not None:
            children.append((tag["name"], (yield from self._element(tag["name"], depth + 1))))
            tag = yield from self.reader.expect(rf"\s*(?:{opening}|{closing})", _CALL)
        return children

    def _ends(self, key: str, *others: str) -> Ends:
        """The closing tag of an element."""
        closing = self._closing(key)
        ended = [self._tag(closing), rf"{closing}\s*(?={self._tag('<')})", *others]
        if self.expected.trusted:
            del ended[1]
        return ends(self.marks[NAMESPACE][0] + "< \t\r\n", ended)

    def _closing(self, key: str) -> str:
        """What closes an element; masks leave no other tag in its place, but any name."""
        return r"</[^<>]+>" if self.expected.trusted else rf"</{regex.escape(key)}>"

    def _tag(self, pattern: str) -> str:
        return rf"(?:{self.marks.re(NAMESPACE)})\s*{pattern}"


def _joined(elements: Sequence[Element], shape: Shape) -> str | None:
    """The JSON of elements of one name, if they stand for anything."""
    if len(elements) == 1:
        return _json(elements[0], shape)
    return _array(elements, shape.item if "array" in shape.types else shape)


def _json(element: Element, shape: Shape) -> str | None:
    """The JSON of an element, if it stands for anything."""
    if isinstance(element, str):
        is_empty = not element.strip() and "string" not in shape.types
        empty = [text for kind, text in _EMPTY if is_empty and kind in shape.types]
        return empty[0] if empty else shape.json_of(element)
    containers = shape.types & {"array", "object"}
    is_items = all(name == "item" for name, _ in element)
    if containers == {"array"} or (containers != {"object"} and is_items):
        return _array([child for _, child in element], shape.item)
    names = dict.fromkeys(name for name, _ in element)
    members = (
        (name, _joined([child for other, child in element if other == name], shape.member(name)))
        for name in names
    )
    return "{" + ", ".join(f"{dumps(name)}: {text}" for name, text in members if text) + "}"


def _array(elements: Sequence[Element], shape: Shape) -> str:
    texts = (_json(element, shape) for element in elements)
    return "[" + ", ".join(text for text in texts if text is not None) + "]"


# Calls and results as text


def grammar(rules: Rules) -> str:
    """A section with one invocation after another, each on a line of its own."""
    space, line = rules.mark(NAMESPACE), rules.text("\n")
    end = f"{space} {rules.text('</invoke>')} {line}"

    def body(tool: Tool | None) -> str:
        return f"{rules.text(chr(34) + '>')} {_arguments(rules, tool)} {end}"

    before = f"{space} {rules.text('<invoke name=' + chr(34))}"
    invocation = rules.rule(f"{before} {tagged_rules.calls(rules, body)}")
    opened = f"{space} {rules.text('<tool_call>')} {line}"
    calls = rules.repeated(invocation, "")
    return rules.rule(f"{opened} {calls} {space} {rules.text('</tool_call>')}")


def _arguments(rules: Rules, tool: Tool | None) -> str:
    space = rules.mark(NAMESPACE)
    if tool is not None and tool.format is not None:
        value = tagged_rules.custom(rules, tool, f"{NAMESPACE}</input>")
        return f"{space} {rules.text('<input>')} {value}"
    if tool is None or not rules.enforces(tool):
        return f"({space} {_any_element(rules)})*"
    return _elements(rules, rules.parameters(tool))


def _elements(rules: Rules, parameters: Sequence[Parameter]) -> str:
    """Elements in the order of a schema."""
    elements = []
    for key, schema, required in parameters:
        opened = f"{rules.mark(NAMESPACE)} {rules.text(f'<{key}>')}"
        element = rules.rule(f"{opened} {_content(rules, key, schema)}")
        elements.append(element if required else f"{element}?")
    return " ".join(elements)


def _content(rules: Rules, key: str, schema: Schema) -> str:
    """A value and its closing tag: as elements where the schema says no more, else as JSON."""
    ended = f"{rules.mark(NAMESPACE)} {rules.text(f'</{key}>')}"
    said = schema if isinstance(schema, Mapping) else {}
    item, plain = said.get("items"), said.keys() - ANNOTATIONS - {*SHARED, "type"}
    if said.get("type") == "object" and said.get("properties"):
        with suppress(Refused):
            return f"{_elements(rules, listed(Tool('', parameters=said)))} {ended}"
    if said.get("type") == "array" and isinstance(item, Mapping) and plain == {"items"}:
        shared = {name: said[name] for name in SHARED if name in said}
        opened = f"{rules.mark(NAMESPACE)} {rules.text('<item>')}"
        return f"({opened} {_content(rules, 'item', {**item, **shared})})* {ended}"
    return rules.bare(schema, f"{NAMESPACE}</{key}>")


def _any_element(rules: Rules) -> str:
    """An element behind its namespace, nested a few times at most."""
    space = rules.mark(NAMESPACE)
    if NAMESPACE not in rules.tokens:
        space = rules.lazy(rules.regex(escaped(NAMESPACE)))
    text = closed(rules, ["(?s:.+)"], NAMESPACE, rules.tokens)
    name = rules.regex(r"[^<>/\s][^<>\n]*")
    element = ""
    for _ in range(_MOST_NESTED_FREELY):
        inner = f"({element} {space})*" if element else ""
        element = rules.rule(f'"<" {name} ">" ({text} | {space} {inner}) "</" {name} ">"')
    return element


def _tools(tools: Sequence[Tool]) -> str:
    example = ToolCall("", "NAME", '{"KEY": "VALUE", "LIST": ["FIRST", {"INNER": "SECOND"}]}')
    return (
        "You can call the tools listed here, one JSON signature a line:\n"
        f"<tools>\n{signatures(tools)}\n</tools>\n\n"
        f"To call some, write them like this, with {NAMESPACE} before every tag and one element "
        f"for each argument:\n{_calls([example])}"
    )


def _calls(calls: Sequence[ToolCall]) -> str:
    invocations = "".join(_written(call) for call in calls)
    return f"{NAMESPACE}<tool_call>\n{invocations}{NAMESPACE}</tool_call>"


def _written(call: ToolCall) -> str:
    arguments = "".join(_wrapped(key, value) for key, value in members_of(call).items())
    return f'{NAMESPACE}<invoke name="{call.name}">{arguments}{NAMESPACE}</invoke>\n'


def _wrapped(name: str, value: object) -> str:
    if isinstance(value, dict):
        inner = "".join(_wrapped(key, member) for key, member in value.items())
    elif isinstance(value, list):
        inner = "".join(_wrapped("item", item) for item in value)
    else:
        inner = value if isinstance(value, str) else dumps(value)
    return f"{NAMESPACE}<{name}>{inner}{NAMESPACE}</{name}>"


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return NAMESPACE in template


MINIMAX_M3 = Dialect(
    name="minimax_m3",
    parser=MinimaxM3Parser,
    spellings=("<mm:think>", "</mm:think>", NAMESPACE),
    grammar=grammar,
    rendering=Rendering(_tools, _calls, responses),
    fits=_fits,
    opener=NAMESPACE,
)
