"""How families write sections of calls: as text for a prompt, and as a grammar.

In a tag, `{name}`, `{index}`, `{key}` and `{kind}` stand for what varies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import regex

from engine.conversation import Tool, ToolCall
from engine.dialects import tagged_rules
from engine.dialects.json_text import dumps
from engine.dialects.tagged import arguments_of
from engine.grammar.rules import Rules
from engine.grammar.values import Schema

_DEFINITIONS = frozenset(("$defs", "definitions", "$schema"))
_SAYS_NOTHING = _DEFINITIONS | {
    "title", "description", "default", "examples", "deprecated", "$comment",
}  # fmt: skip
_KEY = r'[^"<>&\n]{1,128}'


def expression(rules: Rules, tokens: Sequence[str], tag: str, **parts: str) -> str:
    """A tag in a grammar; `parts` are the expressions of what varies in it."""
    pattern = "|".join(map(regex.escape, [*tokens, *(f"{{{name}}}" for name in parts)]))
    pieces = []
    for piece in filter(None, regex.split(f"({pattern})", tag)):
        if piece in tokens:
            pieces.append(rules.mark(piece))
        else:
            pieces.append(parts.get(piece[1:-1]) or rules.text(piece))
    return " ".join(pieces)


@dataclass(frozen=True, slots=True)
class JsonCalls:
    """Calls whose arguments are one JSON object.

    `tokens` are the delimiters in the tags that are tokens. `gap` may be between calls.
    """

    tokens: tuple[str, ...]
    section: str
    section_end: str
    call: str
    call_end: str
    gap: str = ""

    def calls(self, calls: Sequence[ToolCall]) -> str:
        """The calls of an assistant turn."""
        texts = (
            self.call.replace("{index}", str(index)).replace("{name}", call.name)
            + (call.arguments or "{}")
            + self.call_end
            for index, call in enumerate(calls)
        )
        return self.section + self.gap.join(texts) + self.section_end

    def grammar(self, rules: Rules) -> str:
        """A section of calls of the tools of `rules`."""

        def call(name: str, arguments: str) -> str:
            tag = self._tag(rules, self.call, name=name, index=rules.regex("[0-9]{1,4}"))
            return rules.rule(f"{tag} {arguments} {self._tag(rules, self.call_end)}")

        calls = [call(rules.text(tool.name), rules.arguments(tool)) for tool in rules.tools]
        if rules.open_names:
            calls.append(call(rules.name(), rules.arguments(None)))
        gap = f"{rules.text(self.gap)}?" if self.gap else ""
        several = rules.repeated(rules.rule(" | ".join(calls)), gap)
        return f"{self._tag(rules, self.section)} {several} {self._tag(rules, self.section_end)}"

    def _tag(self, rules: Rules, tag: str, **parts: str) -> str:
        return expression(rules, self.tokens, tag, **parts)


@dataclass(frozen=True, slots=True)
class ElementCalls:
    """Calls that are elements, with one element for each argument, whose strings stand bare.

    `tokens` are the delimiters in the tags that are tokens. `gap` is between calls, and behind each
    argument; `kind` says of a JSON value what the tag of an argument calls it, `json_kinds` are all
    such words as a regular expression, `string_kind` is the word for strings. `spelt` is how a name
    or a key is written.
    """

    tokens: tuple[str, ...]
    section: str
    section_end: str
    call: str
    call_end: str
    argument: str
    argument_end: str
    gap: str
    string_kind: str
    json_kinds: str
    kind: Callable[[object], str]
    spelt: Callable[[str], str] = str

    def calls(self, calls: Sequence[ToolCall]) -> str:
        """The calls of an assistant turn."""
        texts = (self._call(call, index) for index, call in enumerate(calls, 1))
        return self.section + self.gap.join(texts) + self.section_end

    def _call(self, call: ToolCall, index: int) -> str:
        tag = self.call.replace("{index}", str(index)).replace("{name}", self.spelt(call.name))
        given = _members(call)
        body = "".join(self._argument(key, value) for key, value in given.items())
        return tag + (body or self.gap) + self.call_end

    def _argument(self, key: str, value: object) -> str:
        kind = self.string_kind if isinstance(value, str) else self.kind(value)
        tag = self.argument.replace("{kind}", kind).replace("{key}", self.spelt(key))
        text = value if isinstance(value, str) else dumps(value)
        return tag + text + self.argument_end + self.gap

    # As a grammar

    def grammar(self, rules: Rules) -> str:
        """A section of calls of the tools of `rules`."""
        calls = [
            self._call_rule(rules, rules.text(self.spelt(tool.name)), self._body(rules, tool))
            for tool in rules.tools
        ]
        if rules.open_names:
            calls.append(self._call_rule(rules, rules.name(), self._free(rules)))
        call = rules.rule(" | ".join(calls))
        several = rules.repeated(call, self._tag(rules, self.gap))
        return f"{self._opened(rules)} {several} {self._tag(rules, self.section_end)}"

    def _opened(self, rules: Rules) -> str:
        """The tag of a section; free text may end in what stands before its token."""
        token = self.tokens[0]
        before, _, after = self.section.partition(token)
        if not before or token not in rules.tokens:
            return self._tag(rules, self.section)
        return f"({self._tag(rules, before)})? {self._tag(rules, token + after)}"

    def _call_rule(self, rules: Rules, name: str, body: str) -> str:
        tag = self._tag(rules, self.call, name=name, index=rules.regex("[0-9]{1,4}"))
        return rules.rule(f"{tag} {body} {self._tag(rules, self.call_end)}")

    def _body(self, rules: Rules, tool: Tool) -> str:
        """The arguments: one by one where they must be valid, else whatever comes."""
        gap = self._tag(rules, self.gap)
        if tool.format is not None:
            tag = self._tag(rules, self.argument, key='"input"', kind=f'"{self.string_kind}"')
            end, rest = self._end_of_string()
            text = tagged_rules.custom(rules, tool, end)
            return rules.rule(f"{tag} {text} {self._tag(rules, rest)} {gap}")
        if not rules.enforces(tool):
            return self._free(rules)
        parts = []
        for key, schema, is_required in rules.parameters(tool):
            part = self._argument_rule(rules, rules.text(self.spelt(key)), schema)
            parts.append(f"({part} {gap})" if is_required else f"({part} {gap})?")
        return rules.rule(" ".join([*parts, f"{gap}?" if self.gap else ""]) or '""')

    def _free(self, rules: Rules) -> str:
        gap = self._tag(rules, self.gap)
        argument = self._argument_rule(rules, rules.regex(_KEY), True)
        return rules.rule(f"({argument} {gap})* {gap}{'?' if self.gap else ''}")

    def _argument_rule(self, rules: Rules, key: str, schema: Schema) -> str:
        """An argument and its end; its tag says whether it is a string."""
        strings, others = by_kind(schema)
        options = []
        if strings is not None:
            tag = self._tag(rules, self.argument, key=key, kind=f'"{self.string_kind}"')
            end, rest = self._end_of_string()
            options.append(f"{tag} {rules.bare(strings, end)} {self._tag(rules, rest)}")
        if others is not None:
            tag = self._tag(rules, self.argument, key=key, kind=rules.regex(self.json_kinds))
            value = rules.value(others)
            options.append(f"{tag} {value} {self._tag(rules, self.argument_end)}")
        return rules.rule(" | ".join(options))

    def _end_of_string(self) -> tuple[str, str]:
        """The end tag up to its first token, which ends the text, and the rest of it."""
        token = next(token for token in self.tokens if token in self.argument_end)
        before, _, after = self.argument_end.partition(token)
        return before + token, after

    def _tag(self, rules: Rules, tag: str, **parts: str) -> str:
        return expression(rules, self.tokens, tag, **parts)


def _members(call: ToolCall) -> Mapping[str, object]:
    """The arguments of a call; text that is no JSON object is one argument."""
    if not call.custom:
        try:
            given = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            given = None
        if isinstance(given, dict):
            return given
    return dict(arguments_of(call))


def by_kind(schema: Schema) -> tuple[Schema | None, Schema | None]:
    """The part of a schema that is about strings, and the one about all else.

    What cannot be taken apart may be JSON only, of which a string in quotes is a part.
    """
    if not isinstance(schema, bool | Mapping):
        return None, schema
    if isinstance(schema, bool) or not schema.keys() - _SAYS_NOTHING:
        return {"type": "string"}, True
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    if "string" in kinds:
        others = [kind for kind in kinds if kind != "string"]
        return {**schema, "type": "string"}, {**schema, "type": others} if others else None
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if declared is None and isinstance(values, list):
        return _any_of(schema, [{"const": v} for v in values if isinstance(v, str)]), _any_of(
            schema, [{"const": v} for v in values if not isinstance(v, str)]
        )
    branches = schema.get("anyOf")
    if schema.keys() - _SAYS_NOTHING == {"anyOf"} and isinstance(branches, list):
        parts = [by_kind(branch) for branch in branches]
        strings = [part for part, _ in parts if part is not None]
        return _any_of(schema, strings), _any_of(schema, [p for _, p in parts if p is not None])
    return None, schema


def _any_of(schema: Mapping[str, object], options: Sequence[Schema]) -> Schema | None:
    """Any of some schemas, with the definitions of the one that they are from."""
    if not options:
        return None
    known = {name: schema[name] for name in _DEFINITIONS & schema.keys()}
    first = options[0]
    if len(options) == 1:
        return first if not isinstance(first, Mapping) else {**first, **known}
    return {"anyOf": list(options), **known}
