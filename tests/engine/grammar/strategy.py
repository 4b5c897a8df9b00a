"""Random JSON Schemas over every keyword that the grammar enforces.

Some are refused for a combination that llguidance cannot express; those must say so.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Schemas = st.SearchStrategy[Any]

NAMES = st.sampled_from(("a", "b", "kind", "x y", "é", 'q"', "n\n", "a/b"))
FORMATS = ("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
           "uri")  # fmt: skip
PATTERNS = ("^a+$", "b", "^[a-c]{2,4}$", r"^\d{3}-\d{2}$", "^(x|yy)", "z$", r"^\S+$", "^.{1,5}$")
WORDS = st.sampled_from(("", "red", "café", "東京", 'a"b', "c\\d", "line\nbreak", "😀"))
SCALARS = st.one_of(
    WORDS, st.integers(-1000, 1000), st.booleans(), st.none(), st.sampled_from((0.5, -2.25, 10.75))
)


def _some(required: dict[str, Schemas], optional: dict[str, Schemas]) -> Schemas:
    return st.fixed_dictionaries(required, optional=optional)


def _span(low: str, high: str, top: int) -> Schemas:
    """One, both or none of two bounds that leave room."""
    return st.tuples(st.integers(0, top), st.integers(0, top), st.integers(0, 3)).map(
        lambda pick: {low: min(pick[:2])} if pick[2] == 1
        else {high: max(pick[:2])} if pick[2] == 2
        else {low: min(pick[:2]), high: max(pick[:2])} if pick[2] == 3
        else {}
    )  # fmt: skip


def _joined(*parts: Schemas) -> Schemas:
    return st.tuples(*parts).map(lambda found: {k: v for part in found for k, v in part.items()})


def _strings() -> Schemas:
    kind = st.just({"type": "string"})
    return st.one_of(
        _joined(kind, _span("minLength", "maxLength", 6)),
        _joined(kind, st.sampled_from([{"pattern": pattern} for pattern in PATTERNS])),
        _joined(kind, st.sampled_from([{"format": name} for name in FORMATS])),
    )


def _numbers() -> Schemas:
    kind = st.sampled_from(({"type": "integer"}, {"type": "number"}))
    low = st.sampled_from(("minimum", "exclusiveMinimum"))
    high = st.sampled_from(("maximum", "exclusiveMaximum"))
    bounds = st.tuples(low, st.integers(-50, 50), high, st.integers(5, 200)).map(
        lambda pick: {pick[0]: pick[1], pick[2]: pick[1] + pick[3]}
    )
    halves = st.tuples(low, st.integers(-99, 99)).map(lambda pick: {pick[0]: pick[1] / 4})
    steps = st.sampled_from(({"multipleOf": 3}, {"multipleOf": 0.5}, {"multipleOf": 0.01}))
    return st.one_of(kind, _joined(kind, bounds), _joined(kind, halves), _joined(kind, steps))


def _literals() -> Schemas:
    values = st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
        max_leaves=3,
    )  # fmt: skip
    enum = st.lists(values, min_size=1, max_size=4, unique_by=repr).map(lambda all_: {"enum": all_})
    return enum | values.map(lambda value: {"const": value})


def _arrays(inner: Schemas) -> Schemas:
    return _joined(
        st.just({"type": "array"}),
        _some({}, {"items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2)}),
        _span("minItems", "maxItems", 3),
    )


def _objects(inner: Schemas) -> Schemas:
    patterns = st.dictionaries(st.sampled_from(("^x-", "^n", "^.y")), inner, min_size=1, max_size=1)
    return _joined(
        st.just({"type": "object"}),
        _some(
            {"properties": st.dictionaries(NAMES, inner, max_size=3)},
            {
                "required": st.lists(NAMES, max_size=3, unique=True),
                "additionalProperties": st.one_of(st.booleans(), inner),
                "patternProperties": patterns,
            },
        ),
        st.sampled_from(({}, {}, {}, {"minProperties": 1}, {"maxProperties": 3})),
    )


def _combined(inner: Schemas) -> Schemas:
    two = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        two.map(lambda options: {"anyOf": options}),
        two.map(lambda options: {"oneOf": options}),
        st.tuples(_objects(inner), _objects(inner)).map(lambda parts: {"allOf": list(parts)}),
        st.tuples(_objects(inner), two).map(lambda pick: {**pick[0], "anyOf": pick[1]}),
        st.sampled_from(({"$ref": "#/$defs/word"}, {"$ref": "#/$defs/node"})),
    )


def _annotated(schema: Any) -> Any:
    return {"title": "T", "description": "D", "default": None, **schema}


def schemas() -> Schemas:
    """Whole documents whose root is an object."""
    leaves = st.one_of(
        _strings(), _numbers(), _literals(),
        st.sampled_from(({"type": "boolean"}, {"type": "null"})),
        st.lists(st.sampled_from(("string", "integer", "null", "boolean")), min_size=1, max_size=3,
                 unique=True).map(lambda kinds: {"type": kinds}),
        st.just({}),
    )  # fmt: skip
    inner = st.recursive(
        leaves, lambda part: st.one_of(_arrays(part), _objects(part), _combined(part)), max_leaves=6
    )
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}},
            "additionalProperties": False}  # fmt: skip
    definitions = st.fixed_dictionaries({"word": leaves, "node": st.just(node)})
    return st.tuples(_objects(inner.map(_annotated)), definitions).map(
        lambda pick: {**pick[0], "$defs": pick[1]}
    )
