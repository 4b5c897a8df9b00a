"""Random JSON Schemas over the keywords of the public documentation, refused ones among them.

Most are made so that some document satisfies them. One in eight gets a keyword that the
documentation says is refused.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

REFUSED: dict[str, Any] = {
    "not": {"type": "string"},
    "if": {"type": "string"},
    "uniqueItems": True,
    "contains": {"type": "integer"},
    "dependentRequired": {"a": ["b"]},
    "dependentSchemas": {"a": {}},
    "unevaluatedProperties": False,
    "unevaluatedItems": False,
    "propertyNames": {"maxLength": 3},
    "minProperties": 3,
    "minContains": 2,
    "$dynamicRef": "#x",
    "format": "iri",
    "madeUp": 1,
}
"""Keywords that cannot be enforced, with a value that asks for something."""

FORMATS = (
    "date",
    "date-time",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
)
PATTERNS = (
    "^[a-z]{1,5}$",
    "^[A-Z][a-z]+$",
    "^(red|green|blue)$",
    "[0-9]{3}",
    "^é+$",
    "^\\d{4}-\\d{2}$",
)
TOOLS = ("get_weather", "f", "a-b_c.d", "Look", "x9")
NAMES = ("a", "name", "é", "two words", "x_1", 'q"uote', "$ref", "日本", "type")
ANNOTATIONS: tuple[Schema, ...] = (
    {},
    {"title": "T"},
    {"description": "D", "default": 1},
    {"examples": [1]},
)

names = st.sampled_from(NAMES)
texts = st.sampled_from(("", "a", "é😀", 'say "hi"', "line\nbreak", "back\\slash", "日本"))
small = st.integers(0, 4)
literals = st.one_of(texts, st.integers(-50, 50), st.booleans(), st.none(), st.just(1.5))


@st.composite
def strings(draw: st.DrawFn) -> Schema:
    """A bounded string, one with a pattern, or one with a format."""
    kind = draw(st.sampled_from(("length", "pattern", "format")))
    if kind == "pattern":
        return {"type": "string", "pattern": draw(st.sampled_from(PATTERNS)), "maxLength": 12}
    if kind == "format":
        return {"type": "string", "format": draw(st.sampled_from(FORMATS))}
    low = draw(small)
    return {"type": "string", "minLength": low, "maxLength": low + draw(st.integers(0, 12))}


@st.composite
def numbers(draw: st.DrawFn) -> Schema:
    """An integer or a number with any bounds."""
    kind = draw(st.sampled_from(("integer", "number")))
    low = draw(st.integers(-40, 40))
    schema: Schema = {"type": kind}
    schema[draw(st.sampled_from(("minimum", "exclusiveMinimum")))] = low
    schema[draw(st.sampled_from(("maximum", "exclusiveMaximum")))] = low + draw(
        st.integers(12, 900)
    )
    if kind == "integer" and draw(st.booleans()):
        schema["multipleOf"] = draw(st.sampled_from((2, 3, 5)))
    return schema


leaves = st.one_of(
    strings(),
    numbers(),
    st.sampled_from(({"type": "boolean"}, {"type": "null"}, {"type": ["boolean", "null"]})),
    st.lists(literals, min_size=1, max_size=4).map(lambda values: {"enum": values}),
    literals.map(lambda value: {"const": value}),
)


def _inner(schemas: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.one_of(arrays(schemas), objects(schemas), unions(schemas))


@st.composite
def arrays(draw: st.DrawFn, schemas: st.SearchStrategy[Schema]) -> Schema:
    """Items, a prefix, and bounds."""
    low = draw(st.integers(0, 2))
    schema: Schema = {"type": "array", "minItems": low, "maxItems": low + draw(st.integers(0, 2))}
    if draw(st.booleans()):
        schema["prefixItems"] = draw(st.lists(schemas, min_size=1, max_size=2))
    schema["items"] = draw(schemas)
    return schema


@st.composite
def objects(draw: st.DrawFn, schemas: st.SearchStrategy[Schema]) -> Schema:
    """Declared and other properties; closed more often than open, so that answers end."""
    declared = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    schema: Schema = {"type": "object", "properties": {name: draw(schemas) for name in declared}}
    schema["required"] = draw(st.lists(st.sampled_from(declared), unique=True))
    rest = draw(st.sampled_from(("closed", "closed", "closed", "open", "typed", "pattern")))
    if rest == "closed":
        schema["additionalProperties"] = False
        if draw(st.integers(0, 7)) == 7:
            schema["maxProperties"] = len(declared)
    elif rest == "typed":
        schema["additionalProperties"] = draw(schemas)
    elif rest == "pattern":
        schema["patternProperties"] = {"^z[0-9]$": draw(schemas)}
        schema["additionalProperties"] = False
    return schema


@st.composite
def unions(draw: st.DrawFn, schemas: st.SearchStrategy[Schema]) -> Schema:
    """anyOf, oneOf of different types, or allOf of two halves of one schema."""
    kind = draw(st.sampled_from(("anyOf", "oneOf", "allOf")))
    if kind == "anyOf":
        return {"anyOf": draw(st.lists(schemas, min_size=1, max_size=3))}
    if kind == "oneOf":
        return {"oneOf": [draw(strings()), draw(numbers()), {"type": "null"}]}
    low = draw(st.integers(-9, 9))
    halves: list[Schema] = [{"type": "integer", "minimum": low}, {"maximum": low + 99}]
    return {"allOf": halves}


@st.composite
def documents(draw: st.DrawFn) -> Schema:
    """A whole schema: an object at its root, definitions, annotations, and what is refused."""
    schemas = st.recursive(leaves, _inner, max_leaves=5)
    root = draw(objects(schemas))
    if draw(st.booleans()):
        root["$defs"] = {"D": draw(schemas)}
        root["properties"]["of D"] = {"$ref": "#/$defs/D"}
    root |= draw(st.sampled_from(ANNOTATIONS))
    if draw(st.integers(0, 7)) == 7:
        keyword = draw(st.sampled_from(sorted(REFUSED)))
        place = draw(st.sampled_from((root, *root["properties"].values())))
        place[keyword] = REFUSED[keyword]
    return root


@st.composite
def tools(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One to three strict tools with bounded arguments."""
    names = draw(st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3, unique=True))
    inner = st.recursive(
        leaves,
        lambda parts: st.one_of(arrays(parts), objects(parts)),
        max_leaves=4,
    )
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": draw(st.sampled_from(("", "Does it.", 'Says "é" 😀'))),
                "parameters": closed(draw(objects(inner)), draw(st.integers(0, 7)) == 7),
                "strict": True,
            },
        }
        for name in names
    ]


def closed(schema: Any, stays_open: bool = False) -> Any:
    """A schema whose objects end, since the model never ends one that may go on."""
    if isinstance(schema, list):
        return [closed(part, stays_open) for part in schema]
    if not isinstance(schema, dict) or stays_open:
        return schema
    ended = {key: closed(value, stays_open) for key, value in schema.items()}
    if ended.get("type") == "object":
        ended["additionalProperties"] = False
    return ended


def asks_for_refused(schema: Any) -> bool:
    """Whether one of `REFUSED` is anywhere in a schema, with its value."""
    if isinstance(schema, list):
        return any(asks_for_refused(part) for part in schema)
    if not isinstance(schema, dict):
        return False
    here = any(schema.get(keyword) == value for keyword, value in REFUSED.items())
    return here or any(asks_for_refused(part) for part in schema.values())


def keywords(schema: Any) -> set[str]:
    """The keys anywhere in a schema, property names included."""
    if isinstance(schema, list):
        return set().union(*(keywords(part) for part in schema))
    if not isinstance(schema, dict):
        return set()
    return set(schema).union(*(keywords(part) for part in schema.values()))
