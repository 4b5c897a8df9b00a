"""Gemma 4: `<|tool_call>call:NAME{key:<|"|>text<|"|>,count:3}<tool_call|>`, objects of a new kind.

Keys are bare, strings stand between `<|"|>` and are not escaped; models mix in JSON and Python.
Thoughts are in `<|channel>thought ... <channel|>`. FunctionGemma has the same with other delimiters
and no thoughts. Source: the chat template of google/gemma-4-31B-it; "FunctionGemma formatting and
best practices" at ai.google.dev.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import ClassVar, cast

import regex

from engine.conversation import JsonValue, Tool, ToolCall
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_text import dumps, loads
from engine.dialects.literals import Literals, Members, quoted
from engine.dialects.marks import Marks
from engine.dialects.named_arguments import named_arguments
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Closed, Incomplete, Malformed, Opened, Steps
from engine.dialects.reader import Reader
from engine.dialects.tool_text import arguments_of, show_results, signatures
from engine.dialects.values import Shape
from engine.events import Channel
from engine.grammar.keywords import ANNOTATIONS
from engine.grammar.rules import Rules
from engine.grammar.values import SHARED, Schema

_OUTSIDE = r",{}\[\]\ud800-\udfff"  # what ends bare text
_KEY = rf"[^:=\"'\s{_OUTSIDE}](?:[^:={_OUTSIDE}]{{0,200}}[^:=\s{_OUTSIDE}])?"
_WORD_END = regex.compile(f"[{_OUTSIDE}]")


class GemmaLiterals(Literals):
    """Its values, and those of JSON and Python. Bare words are what the tool's schema says."""

    def __init__(self, reader: Reader, marks: Marks, quote: str) -> None:
        super().__init__(reader, marks)
        self.quote = f"(?:{marks.re(quote)})"
        self._quote = regex.compile(self.quote)

    def string(self) -> Steps[str | None]:
        if (yield from self.reader.take(self.quote, Channel.CALL)) is None:
            return (yield from quoted(self.reader, self.marks))
        text, is_whole = self.part()
        while not is_whole:
            yield from self.reader.wait()
            part, is_whole = self.part()
            text += part
        return text

    def part(self) -> tuple[str, bool]:
        """More of the string that is open, and whether it ended."""
        reader = self.reader
        found = self._quote.search(reader.text, reader.at, partial=True)
        end = len(reader.text) if found is None else found.start()
        text = self.marks.plain(reader.consume(end, Channel.CALL))
        if found is None or found.partial:
            return text, False
        reader.consume(found.end(), Channel.CALL)
        return text, True

    def key(self) -> Steps[str]:
        key = yield from self.string()
        if key is None:
            found = yield from self.reader.expect(rf"({_KEY})(?=\s*+[:=])", Channel.CALL)
            key = found[1]
        yield from self.reader.expect(r"\s*+[:=]\s*+(?=\S)", Channel.CALL)
        return key

    def word(self, shape: Shape) -> Steps[object]:
        reader, text = self.reader, ""
        while True:
            found = _WORD_END.search(reader.text, reader.at)
            end = len(reader.text) if found is None else found.start()
            text += reader.consume(end, Channel.CALL)
            if found is not None:
                break
            yield from reader.wait()
        text = text.strip()
        if not text or found[0] not in ",}]":
            raise Malformed
        if text == "None" and not shape.is_text:
            return None
        known = shape.json_of(text)
        return None if known is None else loads(known)


class Gemma4Parser(OutputParser):
    """A call always begins with its opener; its end may be missing."""

    think_open: ClassVar[str | None] = "<|channel>thought"
    think_close: ClassVar[str | None] = "<channel|>"
    opener: ClassVar[str] = "<|tool_call>"
    closer: ClassVar[str] = "<tool_call|>"
    quote: ClassVar[str] = '<|"|>'

    def call_head(self) -> tuple[str, str]:
        behind = "" if self.opener in self.marks.tokens else r"(?=\s*+call:)"
        return self.marks[self.opener][0], self.marks.re(self.opener) + behind

    def call(self, head: regex.Match[str]) -> Steps[None]:
        reader = self.reader
        yield from reader.expect(self.marks.re(self.opener))
        colon = "" if any(":" in name for name in self.expected.tools or ()) else ":"
        name = rf"[^\s{colon}()\"'{_OUTSIDE}]{{1,256}}"
        found = yield from reader.expect(rf"\s*+(?:call:\s*+)?({name})\s*+\{{", Channel.CALL)
        yield Opened(found[1])
        yield from self._arguments(found[1])
        yield from reader.take(rf"\s*+(?:{self.marks.re(self.closer)})")
        yield Closed()

    def _arguments(self, name: str) -> Steps[None]:
        literals = GemmaLiterals(self.reader, self.marks, self.quote)
        members = Members(self.tool(name), trusted=self.expected.trusted)
        shape = self.shape(name)
        is_first = True
        while not (yield from literals.is_closed("}", is_first)):
            is_first = False
            key = yield from literals.key()
            yield from members.name(key)
            if (yield from self.reader.take(literals.quote, Channel.CALL)) is None:
                yield from members.value((yield from literals.value(shape.member(key))))
            else:
                yield from self._string(literals, members)
        yield from members.end()

    def _string(self, literals: GemmaLiterals, members: Members) -> Steps[None]:
        """The rest of a string, said while it comes."""
        yield from members.quote()
        is_whole = False
        while not is_whole:
            text, is_whole = literals.part()
            yield from members.text(text)
            if not is_whole:
                try:
                    yield from self.reader.wait()
                except Incomplete:
                    yield from members.cut()
                    raise
        yield from members.quote()


class FunctionGemmaParser(Gemma4Parser):
    """The small model that only calls functions."""

    think_open = None
    think_close = None
    opener = "<start_function_call>"
    closer = "<end_function_call>"
    quote = "<escape>"


def grammar(rules: Rules, parser: type[Gemma4Parser] = Gemma4Parser) -> str:
    """Strings between the delimiters; where a schema is enforced, JSON inside lists and objects."""
    quote = rules.mark(parser.quote)
    comma = rules.text(",")
    free_name = rules.regex(r"[A-Za-z0-9_@$.-]{1,100}")
    free = f"{free_name} {rules.text(':')} {_anything(rules, parser.quote, free_name)}"

    def member(name: str, schema: Schema) -> str:
        spelt = rules.text(name) if _is_bare(name) else f"{quote} {rules.text(name)} {quote}"
        return f"{spelt} {rules.text(':')} {_valid(rules, parser.quote, schema)}"

    def call(name: str, tool: Tool | None) -> str:
        if tool is not None and tool.format is not None:
            text = rules.custom(tool) if rules.enforces(tool) else rules.until(parser.quote)
            arguments = f"{rules.text('input:')} {quote} {text}"
            arguments += f" {quote}" if rules.enforces(tool) else ""
        else:
            arguments = named_arguments(rules, tool, comma=comma, member=member, free=free)
        return rules.rule(f"{name} {rules.text('{')} {arguments} {rules.text('}')}")

    calls = [call(rules.text(tool.name), tool) for tool in rules.tools]
    if rules.open_names:
        calls.append(call(rules.name(), None))
    body = rules.rule(" | ".join(calls))
    whole = f"{rules.mark(parser.opener)} {rules.text('call:')} {body} {rules.mark(parser.closer)}"
    return rules.repeated(rules.rule(whole), rules.text(""))


def _valid(rules: Rules, quote: str, schema: Schema) -> str:
    """A value under a schema: a string between the delimiters, all else as JSON."""
    if not isinstance(schema, Mapping):
        return rules.value(schema)
    shared = {name: schema[name] for name in SHARED if name in schema}
    kinds = schema.get("type")
    branches: list[JsonValue] = [schema]
    if isinstance(kinds, list):
        branches = [{**schema, "type": kind} for kind in kinds]
    elif isinstance(schema.get("anyOf"), list) and schema.keys() <= {
        "anyOf",
        *SHARED,
        *ANNOTATIONS,
    }:
        branches = list(cast(list[JsonValue], schema["anyOf"]))
    texts = [one for one in branches if Shape([one], schema).is_text]
    if len(texts) != 1 or not isinstance(texts[0], Mapping):
        return rules.value(schema)
    text = f"{rules.mark(quote)} {rules.bare({**texts[0], **shared}, quote)}"
    others = [one for one in branches if one is not texts[0]]
    return f"({text} | {rules.value({'anyOf': others, **shared})})" if others else text


def _anything(rules: Rules, quote: str, name: str, depth: int = 6) -> str:
    """A value of any type; at the bottom of deep ones is JSON."""
    text = rules.rule(f"{rules.mark(quote)} {rules.until(quote)}")
    if depth == 0:
        return rules.rule(f"{text} | {rules.value(True)}")
    inner = _anything(rules, quote, name, depth - 1)
    comma = rules.regex(", ?")
    word = rules.regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null")
    items = f"({inner} ({comma} {inner})*)?"
    member = rules.rule(f"{name} {rules.text(':')} {inner}")
    members = f"({member} ({comma} {member})*)?"
    in_list = f"{rules.text('[')} {items} {rules.text(']')}"
    in_object = f"{rules.text('{')} {members} {rules.text('}')}"
    return rules.rule(f"{text} | {word} | {in_list} | {in_object}")


def _tools(parser: type[Gemma4Parser], tools: Sequence[Tool]) -> str:
    quote = parser.quote
    return (
        f"These tools are available:\n{signatures(tools)}\n\n"
        "To call one, write:\n"
        f"{parser.opener}call:NAME{{key:{quote}text{quote},other:3}}{parser.closer}"
    )


def _calls(parser: type[Gemma4Parser], calls: Sequence[ToolCall]) -> str:
    return "".join(
        f"{parser.opener}call:{call.name}{_shown(arguments_of(call), parser.quote)}{parser.closer}"
        for call in calls
    )


def _shown(value: object, quote: str) -> str:
    """A value; a string that holds the delimiter of strings is one of JSON."""
    if isinstance(value, dict):
        members = (f"{_key(key, quote)}:{_shown(inner, quote)}" for key, inner in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_shown(inner, quote) for inner in value) + "]"
    if isinstance(value, str) and quote not in value:
        return quote + value + quote
    return dumps(value)


def _key(key: str, quote: str) -> str:
    return key if _is_bare(key) else _shown(key, quote)


def _is_bare(key: str) -> bool:
    """Whether a key needs no quotes, as it holds nothing that could be a delimiter."""
    return regex.fullmatch(_KEY, key) is not None and "<" not in key


def _fits(opener: str, template: str, control_tokens: Container[str]) -> bool:
    return opener in template


def _family(name: str, parser: type[Gemma4Parser], thoughts: tuple[str, ...] = ()) -> Dialect:
    return Dialect(
        name=name,
        parser=parser,
        spellings=(*thoughts, parser.opener, parser.closer, parser.quote),
        grammar=partial(grammar, parser=parser),
        rendering=Rendering(partial(_tools, parser), partial(_calls, parser), show_results),
        fits=partial(_fits, parser.opener),
        opener=parser.opener,
    )


GEMMA4 = _family("gemma4", Gemma4Parser, ("<|channel>", "<|channel>thought", "<channel|>"))
FUNCTIONGEMMA = _family("functiongemma", FunctionGemmaParser)
