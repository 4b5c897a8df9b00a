"""Walks every request field of the specs and proves its disposition.

honoured: a case of cases/ shows the effect (its `proves`); refused: values that ask for something
are 400 and named, neutral values change nothing; ignored: a plausible value changes nothing. A
field that is added to a spec without a case fails here.

Anthropic's blocks have the same fields in many places; there, each place is walked.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance import cases, spec, translate
from conformance.replies import comparable, send
from conformance.reply import ANTHROPIC, Reply
from conformance.server import Server

_TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "q"}]},
    {"role": "assistant", "content": "a"},
    {"role": "user", "content": [{"type": "text", "text": "hello"}]},
]
BASE: dict[str, dict[str, Any]] = {
    "chat": {"messages": _TURNS, "stream_options": {"include_usage": True}},
    "completions": {"prompt": "hello", "stream_options": {"include_usage": True}},
    "messages": {"messages": _TURNS, "max_tokens": 2048},
    "count": {"messages": _TURNS},
}
_PLACES = {"user": 2, "assistant": 1}
"""The turn that a turn with a field stands for; of other roles it is put before the last."""
_FORMS = ("response_format", "structured_outputs")
_SCHEMA = {"name": "n", "schema": {"enum": ["Hello"], "type": "string"}}
_ONLY_ASSISTANT = ("tool_use", "thinking", "redacted_thinking")
_ONLY_USER = ("tool_result",)

FIELDS = [field for route in spec.ROUTES for field in spec.fields(route)]
WALKED = [
    field
    for route in spec.ROUTES
    for field in (spec.occurrences(route) if route in ANTHROPIC else spec.fields(route))
]
PROVEN = {pair for case in cases.load() + translate.control_cases() for pair in case.proven()}
PROVEN |= {("count", path) for route, path in PROVEN if route == "messages"}
"""Each message of a case is counted too (cases.py), so what shows there holds for the count."""


def _of(disposition: str, fields: list[spec.Field]) -> list[Any]:
    chosen = {
        str(field): field
        for field in fields
        if field.disposition == disposition and _is_possible(field)
    }
    return [pytest.param(field, id=name) for name, field in chosen.items()]


def _is_possible(field: spec.Field) -> bool:
    """Whether the block that a field is in belongs into the turn that it is in."""
    kinds = [str(holder) for holder in field.around]
    wrong = {"user": _ONLY_ASSISTANT, "assistant": _ONLY_USER}
    return not any(role in kinds and set(kinds) & set(wrong[role]) for role in wrong)


@pytest.mark.parametrize("field", _of("honoured", FIELDS))
def test_honoured(field: spec.Field) -> None:
    """A case shows the field's effect on its route."""
    assert (field.route, field.path) in PROVEN, f"no case proves {field}"


@pytest.mark.parametrize("field", _of("refused", WALKED))
def test_refused(field: spec.Field, scripted: Server) -> None:
    """What asks for the feature is refused by name; what does not is as if it were absent."""
    asking = spec.refused(field)
    assert asking, f"no value asks for {field}"
    for value in asking:
        _is_refused(send(scripted.http, field.route, _with(field, value)), field, value, field.name)
    neutral = spec.accepted(field)
    assert neutral, f"no value of {field} is neutral"
    _changes_nothing(field, neutral, scripted)


@pytest.mark.parametrize("field", _of("ignored", WALKED))
def test_ignored(field: spec.Field, scripted: Server) -> None:
    """Plausible values change nothing."""
    values = [spec.sample(plain, where) for plain, where in _non_null(field)]
    _changes_nothing(field, [*values, None] if _nullable(field) else values, scripted)


FOREIGN = [pair for route in ANTHROPIC for pair in spec.foreign(route) if _is_possible(pair[0])]


@pytest.mark.parametrize(
    ("field", "values"), [pytest.param(*pair, id=str(pair[0])) for pair in FOREIGN]
)
def test_foreign(field: spec.Field, values: list[Any], scripted: Server) -> None:
    """What only Anthropic's servers have is refused by its type, wherever it stands."""
    for value in values:
        kind = (value[0] if isinstance(value, list) else value)["type"]
        _is_refused(send(scripted.http, field.route, _with(field, value)), field, value, kind)


def test_every_disposition_is_tested() -> None:
    """No field is echoed, or is of a disposition that is not known here."""
    assert {field.disposition for field in FIELDS} == {"honoured", "refused", "ignored"}
    assert sum(len(values) for _, values in FOREIGN) > 60


def _is_refused(reply: Reply, field: spec.Field, value: Any, name: str) -> None:
    assert reply.status == 400, f"{field} = {value!r}: {reply.status}"
    assert reply.error and reply.error["type"] == "invalid_request_error"
    if field.route not in ANTHROPIC:
        assert name in (reply.error["param"] or ""), f"{field} = {value!r}: {reply.error}"
    assert name in reply.error["message"], f"{field} = {value!r}: {reply.error}"


def _changes_nothing(field: spec.Field, values: list[Any], server: Server) -> None:
    first = send(server.http, field.route, _around(field)[0])
    assert first.status == 200, f"{field} cannot be tried: {first.error}"
    plain = comparable(first)
    for value in values:
        reply = send(server.http, field.route, _with(field, value))
        assert reply.status == 200, f"{field} = {value!r}: {reply.error}"
        assert comparable(reply) == plain, f"{field} = {value!r} changes the reply"


def _non_null(field: spec.Field) -> list[tuple[spec.Schema, str]]:
    """One schema for each type that the field takes, null aside."""
    pairs = []
    for plain, where in spec.alternatives(field.schema, field.file):
        kinds = plain.get("type", [])
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            if kind != "null":
                pairs.append(({**plain, "type": kind}, where))
    return pairs


def _nullable(field: spec.Field) -> bool:
    plain = spec.alternatives(field.schema, field.file)
    return any("null" in schema.get("type", []) for schema, _ in plain)


def _with(field: spec.Field, value: Any) -> dict[str, Any]:
    """The base request with the field set, wherever it is inside."""
    body, holder = _around(field)
    holder[field.name] = value
    return body


def _around(field: spec.Field) -> tuple[dict[str, Any], dict[str, Any]]:
    """The base request with the objects that a field is in, and the innermost of them."""
    body: dict[str, Any] = _copy(BASE[field.route])
    if field.path.startswith(_FORMS):
        body["max_tokens"] = 8
    here, before = body, ""
    for holder in field.around[1:]:
        name = holder.path.removeprefix(before).lstrip(".")
        made = _copy(_SCHEMA) if name == "json_schema" else spec.least(holder.schema, holder.file)
        if holder.path == "messages[]":
            _place(body["messages"], made)
        elif name.endswith("[]"):
            here[name.removesuffix("[]")] = [made]
        else:
            here[name] = made
        here, before = made, holder.path
    return body, here


def _place(turns: list[Any], turn: dict[str, Any]) -> None:
    place = _PLACES.get(turn["role"])
    if place is None:
        turns.insert(2, turn)
    else:
        turns[place] = turn


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value
