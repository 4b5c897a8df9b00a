"""What a bare value may be under a schema: texts, and values that are written as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.grammar.builder import ANY, escaped
from engine.grammar.document import Refused
from engine.grammar.keywords import CALENDAR
from engine.grammar.objects import Schema
from engine.grammar.regexes import containing

_MOST_FOLLOWED = 16
_WORDS = {"null": ("null",), "boolean": ("true", "false")}
_ABOUT_STRINGS = frozenset(("minLength", "maxLength", "pattern", "format"))
_STARTS = {"array": r"\[", "object": r"\{", "number": r"0-9\-", "integer": r"0-9\-"}
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_TIME = (
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
# Texts of each format, if not all of them
_FORMATS = {
    "date": containing(CALENDAR + "$"),
    "time": _TIME,
    "date-time": f"(?:{containing(CALENDAR + '$')})T{_TIME}",
    "duration": r"P(?:[0-9]{1,9}[YMWD]|T[0-9]{1,9}[HMS]|[0-9]{1,9}DT[0-9]{1,9}[HMS])",
    "email": rf"[A-Za-z0-9_+-]{{1,30}}(?:\.[A-Za-z0-9_+-]{{1,30}})?@{_LABEL}(?:\.{_LABEL}){{1,2}}",
    "hostname": rf"{_LABEL}(?:\.{_LABEL}){{0,2}}",
    "ipv4": rf"{_OCTET}(?:\.{_OCTET}){{3}}",
    "ipv6": r"(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}:[0-9a-f]{1,4}|::1?",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "uri": r"[a-z][a-z0-9+.-]*:(?:\/\/[A-Za-z0-9._~-]+(?::[0-9]{1,5})?)?"
    r"(?:\/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*(?:\?[A-Za-z0-9._~!$&'()*+,;=:@\/?-]*)?",
}


@dataclass
class Options:
    """The forms of a value, by schemas that are normalised.

    `texts` are strings, each as expressions that all must match; nulls and booleans are among them
    where there are others. `literals` are those that are listed, `others` schemas of all else.
    """

    definitions: Mapping[str, Schema]
    texts: list[list[str]] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)

    def add(self, part: Schema) -> None:
        """The forms of one schema. Raises Refused."""
        words: list[dict[str, Any]] = []
        self._add(part, words, 0)
        if not self.texts:
            self.others = [*self.others, *words]
        elif words:
            spelt = [word for one in words for word in _words_of(one)]
            self.texts.append(["|".join(spelt)])

    def _add(self, part: Schema, words: list[dict[str, Any]], followed: int) -> None:
        if isinstance(part, bool) or not part:
            self.texts.append([ANY])
            return
        if followed > _MOST_FOLLOWED:
            raise Refused("a schema of references alone cannot be enforced unquoted")
        inner: list[Schema] = []
        if part.keys() == {"$ref"}:
            inner = [self.definitions[str(part["$ref"]).rsplit("/", 1)[1]]]
        elif part.keys() in ({"anyOf"}, {"oneOf"}, {"allOf"}):
            (inner,) = part.values()
        if len(inner) > 1 and "allOf" in part:
            raise Refused("'allOf' cannot be enforced for an unquoted value")
        for option in inner:
            self._add(option, words, followed + 1)
        if not inner and ("enum" in part or "const" in part):
            self._literals(part, words)
        elif not inner:
            self._typed(part, words)

    def _literals(self, part: dict[str, Any], words: list[dict[str, Any]]) -> None:
        values = part["enum"] if "enum" in part else [part["const"]]
        strings = [value for value in values if isinstance(value, str)]
        if not strings:
            self.others.append(part)
            return
        if part.keys() - {"enum", "const", "type"} or {"enum", "const"} <= part.keys():
            raise Refused("'enum' with other conditions cannot be enforced for an unquoted value")
        self.texts.append(["|".join(map(escaped, strings))])
        self.literals += strings
        spelt = [value for value in values if value is None or isinstance(value, bool)]
        rest = [v for v in values if v is not None and not isinstance(v, (str, bool))]
        words += [{"enum": spelt}] if spelt else []
        self.others += [{"enum": rest}] if rest else []

    def _typed(self, part: dict[str, Any], words: list[dict[str, Any]]) -> None:
        kind = part.get("type")
        if kind is None:
            raise Refused("a schema without 'type' cannot be enforced for an unquoted value")
        kinds = kind if isinstance(kind, list) else [kind]
        if "string" in kinds:
            self.texts.append(_conditions(part, alone=len(kinds) == 1) or [ANY])
        for name in kinds:
            rest = {word: value for word, value in part.items() if word not in _ABOUT_STRINGS}
            if name in _WORDS:
                words.append({"type": name})
            elif name != "string":
                self.others.append({**rest, "type": name})


def begins(part: dict[str, Any]) -> list[str]:
    """What the values of one of the others begin with, as the inside of a class."""
    if "type" in part:
        return [_STARTS.get(str(part["type"]), "")]
    values = part["enum"] if "enum" in part else [part["const"]]
    return [escaped(json.dumps(value)[0]) for value in values]


def whole(part: Schema) -> dict[str, Any]:
    """A schema as an object."""
    return {} if isinstance(part, bool) else part


def _words_of(part: dict[str, Any]) -> tuple[str, ...]:
    if "enum" in part:
        return tuple(json.dumps(value) for value in part["enum"])
    return _WORDS[part["type"]]


def _conditions(part: dict[str, Any], *, alone: bool) -> list[str]:
    """What strings must match; none when anything will do. Raises Refused."""
    known = {"type", *_ABOUT_STRINGS}
    calendar = [{"pattern": CALENDAR}]
    if part.get("format") in ("date", "date-time") and part.get("allOf") == calendar:
        known.add("allOf")
    unknown = sorted(part.keys() - known)
    if unknown and alone:
        raise Refused(f"'{unknown[0]}' cannot be enforced for an unquoted value")
    found = [containing(part["pattern"])] if "pattern" in part else []
    if "minLength" in part or "maxLength" in part:
        found.append(f"(?s:.){{{part.get('minLength', 0)},{part.get('maxLength', '')}}}")
    if "format" in part:
        found.append(_FORMATS[part["format"]])
    return found
