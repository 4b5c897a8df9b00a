"""JSON values and bare text under a schema, as parts of a larger grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from engine.conversation import JsonValue
from engine.grammar.builder import ANY, Builder, escaped, pattern
from engine.grammar.cache import Cache
from engine.grammar.compile import inline
from engine.grammar.document import Refused
from engine.grammar.objects import Schema as Part
from engine.grammar.options import Options, begins, whole
from engine.grammar.schema import Normalised, normalise

Schema = Mapping[str, JsonValue] | bool
_LENGTH = re.compile(r"\(\?s:\.(?:\*\)|\)\{(?P<least>\d+),\d*\})")  # any text of some length
DEFINITIONS = ("$defs", "definitions")
SHARED = (*DEFINITIONS, "$schema")
"""What of a root its parts need to stand alone."""
_NORMALISED = Cache[Normalised](1024 * 1024)  # characters of schemas


def json_object(schema: Mapping[str, JsonValue]) -> str:
    """An inline schema whose root is the object of a call's arguments. Raises Refused."""
    if schema.get("type", "object") != "object":
        raise Refused("the root must be an object", "#/type")
    return inline(normalised(json.dumps(schema or {"type": "object"})))


def json_value(schema: Schema) -> str:
    """An inline schema for any value. Raises Refused."""
    outer, part = _checked(schema)
    return inline(outer, whole(part))


def normalised(schema: str) -> Normalised:
    """See `normalise`."""
    return _NORMALISED.get(schema, lambda: normalise(schema), lambda _: len(schema))


def _checked(schema: Schema) -> tuple[Normalised, Part]:
    """The rewritten schema, and its part that is about the value."""
    document: dict[str, Any] = {"type": "object", "properties": {"value": schema}}
    if isinstance(schema, Mapping):
        document |= {name: schema[name] for name in SHARED if name in schema}
        inside = {name: part for name, part in schema.items() if name not in SHARED}
        document["properties"] = {"value": inside}
    outer = normalised(json.dumps(document))
    part: Part = outer.root["properties"]["value"]
    if part is False:
        raise Refused("no value is allowed")
    return outer, part


def bare(rules: Builder, schema: Schema, closing: str, tokens: Mapping[str, int]) -> str:
    """A value and what closes it: a string bare, all else as JSON. Raises Refused.

    `tokens` are the delimiters that are tokens. The closing text is not part of the value. Where
    both strings and other types are allowed, a string does not begin like one of the latter: the
    lexer could not tell, and whoever reads the value would take it for that.
    """
    outer, part = _checked(schema)
    options = Options(outer.definitions)
    options.add(part)
    if any(closing in text for text in options.literals):
        raise Refused(f"a text of 'enum' holds {closing.strip()!r}, which ends the value")
    parts: list[str] = []
    if options.others:
        value = inline(outer, {"anyOf": options.others} if options.texts else whole(part))
        parts.append(f"{rules.rule(f'%json {value}')} {closed(rules, [], closing, tokens)}")
    begin = "".join(sorted({char for one in options.others for char in begins(one)}))
    but = f"\\s*[{begin}]{ANY}" if begin else ""
    parts += [closed(rules, texts, closing, tokens, but) for texts in options.texts]
    return parts[0] if len(parts) == 1 else rules.rule(" | ".join(parts))


def closed(
    rules: Builder, texts: list[str], closing: str, tokens: Mapping[str, int], but: str = ""
) -> str:
    """Text that matches each of some expressions, and what closes it, or only the latter.

    `but` is an expression that the whole must not match. Text and end are one lexeme: nothing else
    says where the text ends.
    """
    token = next((spelling for spelling in tokens if spelling in closing), None)
    before, _, after = closing.partition(token) if token else (closing, "", "")
    mark = rules.token(token, tokens[token]) if token else ""
    rest = f" {mark} {rules.text(after) if after else ''}" if token else ""
    if not texts:
        return rules.rule((rules.text(before) if before else "") + rest)
    end = escaped(before)
    parts = [pattern(f"(?:{text}){end}") for text in texts] + ([f"~{pattern(but)}"] if but else [])
    if token:
        return rules.rule(rules.terminal(" & ".join(parts)) + rest)
    # The first match ends the text: its end must not have come before, where it did not match.
    length = _LENGTH.fullmatch(texts[0]) if len(texts) == 1 and not but else None
    least = int(length["least"] or 0) if length is not None else None
    if least is None:
        parts.append(f"~{pattern(f'{ANY}{end}(?s:.+)')}")
    elif least > 0:
        parts.append(f"~{pattern(f'(?s:.){{0,{least - 1}}}{end}{ANY}')}")
    return rules.lazy(" & ".join(parts))
