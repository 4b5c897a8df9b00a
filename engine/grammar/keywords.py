"""The JSON Schema keywords that masks can enforce, and what their values must be.

Every entry is probed against the installed llguidance in `tests/engine/grammar/test_schema.py`: a
document that breaks the keyword is rejected. What is in no table here is refused by name, because
llguidance ignores keywords that it does not know.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")

# Without effect on which documents are valid (JSON Schema 2020-12, and OpenAPI's `discriminator`)
ANNOTATIONS = frozenset(
    ("$anchor", "$comment", "$defs", "$schema", "$vocabulary", "contentEncoding",
     "contentMediaType", "contentSchema", "default", "definitions", "deprecated", "description",
     "discriminator", "example", "examples", "externalDocs", "readOnly", "title", "writeOnly")
)  # fmt: skip

OBJECT_KEYWORDS = ("properties", "patternProperties", "additionalProperties", "required")

# What llguidance knows, less `unknown`, which it takes for a name of its own
FORMATS = frozenset(
    ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid")
)

# Older dialects are read as the newest one; their differences are refused or rewritten.
NEWEST = "draft/2020-12/schema"
_DIALECT = re.compile(r"https?://json-schema\.org/(draft(?:-0[67]|/20(?:19-09|20-12))/schema)#?")
_EXACT = 2**53  # llguidance computes in doubles

# llguidance's own `date` knows no leap years.
_DAYS = (
    r"(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8])"
)
_LEAP = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29"
CALENDAR = f"^(?:[0-9]{{4}}-(?:{_DAYS})|{_LEAP})"


def dialect_of(value: object) -> str | None:
    """The name of the dialect that `$schema` asks for; None when it is not known."""
    found = _DIALECT.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, (int, float)) and _is_number(value) and value >= 0 == value % 1


def _is_step(value: object) -> bool:
    return isinstance(value, (int, float)) and _is_number(value) and value > 0


def _is_type(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _is_format(value: object) -> bool:
    return isinstance(value, str) and value in FORMATS


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


COUNTS = frozenset(
    ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
)
BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))

# Forms of other keywords that every document satisfies; schema generators write them.
HARMLESS: dict[str, tuple[object, ...]] = {
    "uniqueItems": (False,),
    "nullable": (False,),
    "propertyNames": (True, {}, {"type": "string"}),
    "unevaluatedProperties": (True, {}),
    "unevaluatedItems": (True, {}),
}

# keyword: (whether the value is usable, what it must be)
VALUES: dict[str, tuple[Callable[[object], bool], str]] = {
    "type": (_is_type, f"one or more of {', '.join(TYPES)}"),
    "required": (_is_names, "a list of names"),
    "format": (_is_format, f"one of {', '.join(sorted(FORMATS))}"),
    "multipleOf": (_is_step, "a positive number"),
    "pattern": (lambda value: isinstance(value, str), "a string"),
    **dict.fromkeys(COUNTS, (_is_count, "a whole number of at least 0")),
    **dict.fromkeys(BOUNDS, (_is_number, "a number")),
}


def inner_bound(keyword: str, bound: int | float, *, fractions: bool) -> int | float:
    """The bound, or one inside it where a reader that has doubles would round across it.

    llguidance rounds large bounds. It takes 24.0000000000000001 for more than 24; readers do not.
    Upper bounds stay as they are: behind long ones it refuses 24.9 where 24.999999 is the bound.
    """
    crosses = fractions and keyword == "exclusiveMinimum"
    if abs(bound) <= _EXACT and not crosses:
        return bound
    return math.nextafter(float(bound), math.inf if "inimum" in keyword else -math.inf)


def types_of(schema: Mapping[str, object]) -> tuple[object, ...]:
    """The types that a schema names; none where it names none."""
    named = schema.get("type", ())
    return tuple(named) if isinstance(named, (list, tuple)) else (named,)


def is_exact(value: object) -> bool:
    """Whether llguidance can spell a value that `enum` or `const` lists."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return True
    return abs(value) <= _EXACT and "e" not in repr(value) and repr(value) != "-0.0"


def foreign_construct(pattern: str) -> str | None:
    """What in a character class means something else to llguidance than to JSON Schema."""
    inside, at = False, 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 2
            continue
        if inside and pattern[at : at + 2] in ("&&", "--", "~~"):
            return pattern[at : at + 2]
        if inside and pattern[at] == "[":
            return "[ in a character class"
        if pattern[at] == "[" and pattern[at + 1 : at + 3].lstrip("^")[:1] == "]":
            return "an empty character class"
        if pattern[at] in "[]":
            inside = pattern[at] == "["
        at += 1
    return None
