"""Walks every request field of the specs and proves its disposition.

honoured: a case of cases/ shows the effect (its `proves`); refused: values that ask for something
are 400 with the field as `param`, neutral values change nothing; ignored: a plausible value changes
nothing. A field that is added to a spec without a case fails here.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance import cases, spec
from conformance.replies import comparable, send
from conformance.server import Server

FIELDS = [field for route in spec.ROUTES for field in spec.fields(route)]
BASE: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "q"}]},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        ],
        "stream_options": {"include_usage": True},
    },
    "completions": {"prompt": "hello", "stream_options": {"include_usage": True}},
}
CONTAINERS: dict[str, Any] = {
    "response_format.json_schema": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"enum": ["Hello"], "type": "string"}},
    },
    "response_format": {"type": "json_object"},
    "structured_outputs": {},
}
"""What a field needs around it besides `BASE`: by the longest path that it is below."""
PROVEN = {pair for case in cases.load() for pair in case.proven()}


def _of(disposition: str) -> list[Any]:
    chosen = [field for field in FIELDS if field.disposition == disposition]
    return [pytest.param(field, id=str(field)) for field in chosen]


@pytest.mark.parametrize("field", _of("honoured"))
def test_honoured(field: spec.Field) -> None:
    """A case shows the field's effect on its route."""
    assert (field.route, field.path) in PROVEN, f"no case proves {field}"


@pytest.mark.parametrize("field", _of("refused"))
def test_refused(field: spec.Field, scripted: Server) -> None:
    """What asks for the feature is refused by name; what does not is as if it were absent."""
    asking = spec.refused(field)
    assert asking, f"no value asks for {field}"
    for value in asking:
        reply = send(scripted.http, field.route, _with(field, value))
        assert reply.status == 400, f"{field} = {value!r}: {reply.status}"
        assert reply.error and reply.error["type"] == "invalid_request_error"
        param, name = reply.error["param"] or "", field.path.split(".")[-1]
        assert name in param, f"{field} = {value!r}: {reply.error}"
        assert name in reply.error["message"], f"{field} = {value!r}: {reply.error}"
    neutral = spec.accepted(field)
    assert neutral, f"no value of {field} is neutral"
    _changes_nothing(field, neutral, scripted)


@pytest.mark.parametrize("field", _of("ignored"))
def test_ignored(field: spec.Field, scripted: Server) -> None:
    """Plausible values change nothing."""
    values = [spec.sample(plain, where) for plain, where in _non_null(field)]
    _changes_nothing(field, [*values, None] if _nullable(field) else values, scripted)


def test_every_disposition_is_tested() -> None:
    """No field is echoed, or is of a disposition that is not known here."""
    assert {field.disposition for field in FIELDS} == {"honoured", "refused", "ignored"}


def _changes_nothing(field: spec.Field, values: list[Any], server: Server) -> None:
    plain = comparable(send(server.http, field.route, _base(field)))
    assert plain["status"] == 200
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


def _base(field: spec.Field) -> dict[str, Any]:
    """The base request, with what the field is below."""
    body: dict[str, Any] = _copy(BASE[field.route])
    found = next((path for path in CONTAINERS if field.path.startswith(f"{path}.")), None)
    if found is not None:
        body[found.split(".")[0]] = _copy(CONTAINERS[found])
        body["max_tokens"] = 8
    return body


def _with(field: spec.Field, value: Any) -> dict[str, Any]:
    """The base request with the field set, wherever it is inside."""
    body = _base(field)
    *way, name = field.path.split(".")
    here: Any = body
    for step in way:
        here = here[step.removesuffix("[]")]
        if step.endswith("[]"):
            assistant = name in ("tool_calls", "function_call", "audio", "annotations")
            here = here[1] if assistant else here[-1]
    here[name] = value
    return body


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value
