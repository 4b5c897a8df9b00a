"""Walks every request field of the specs and proves its disposition.

honoured: a case of cases/ shows the effect (its `proves`); refused: values that ask for something
are 400 and named, neutral values change nothing; ignored: a plausible value changes nothing;
echoed: a plausible value comes back and changes nothing else. A field that is added to a spec
without a case fails here.

Anthropic's blocks and the items of Responses have the same fields in many places; there, each place
is walked.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance import cases, spec, translate
from conformance.profiles import ALIASES
from conformance.replies import COUNTS, PATHS, comparable, send
from conformance.reply import ANTHROPIC, RESPONSES, Reply
from conformance.server import Server

_TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "q"}]},
    {"role": "assistant", "content": "a"},
    {"role": "user", "content": [{"type": "text", "text": "hello"}]},
]
_ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
    {"role": "assistant", "content": "a"},
    {"role": "user", "content": "hello"},
]
BASE: dict[str, dict[str, Any]] = {
    "chat": {"messages": _TURNS, "stream_options": {"include_usage": True}},
    "completions": {"prompt": "hello", "stream_options": {"include_usage": True}},
    "messages": {"messages": _TURNS, "max_tokens": 2048},
    "count": {"messages": _TURNS},
    "responses": {"model": ALIASES[0], "input": _ITEMS},
    "input_tokens": {"model": ALIASES[0], "input": _ITEMS},
    "compact": {"model": ALIASES[0], "input": _ITEMS},
}
_PLACES = {"user": 2, "assistant": 1}
"""The turn that a turn with a field stands for; of other roles it is put before the last."""
_CALLS: dict[str, dict[str, Any]] = {
    "function_call_output": {"type": "function_call", "name": "f", "arguments": "{}"},
    "custom_tool_call_output": {"type": "custom_tool_call", "name": "f", "input": "text"},
    "tool_search_output": {"type": "tool_search_call", "arguments": {}},
}
"""What an item is the result of."""
_FORMS = ("response_format", "structured_outputs", "text.", "input[].text.")
_SCHEMA = {"name": "n", "schema": {"enum": ["Hello"], "type": "string"}}
_ONLY_ASSISTANT = ("tool_use", "thinking", "redacted_thinking")
_ONLY_USER = ("tool_result",)

_NESTED = (*ANTHROPIC, *RESPONSES)
"""The routes whose objects have the same fields in many places."""
FIELDS = [field for route in spec.ROUTES for field in spec.fields(route)]
WALKED = [
    field
    for route in spec.ROUTES
    for field in (spec.occurrences(route) if route in _NESTED else spec.fields(route))
]
PROVEN = {pair for case in cases.load() + translate.control_cases() for pair in case.proven()}
PROVEN |= {(COUNTS[route], path) for route, path in PROVEN if route in COUNTS}
"""Each prompt of a case is counted too (cases.py), so what shows there holds for the count."""


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
        reply = send(scripted.http, field.route, _with(field, value))
        _is_refused(reply, field, value, field.name)
        if field.route not in ANTHROPIC:
            assert reply.error and field.name in (reply.error["param"] or ""), f"{field}: {reply}"
    neutral = spec.accepted(field)
    assert neutral, f"no value of {field} is neutral"
    _changes_nothing(field, neutral, scripted)


@pytest.mark.parametrize("field", _of("ignored", WALKED))
def test_ignored(field: spec.Field, scripted: Server) -> None:
    """Plausible values change nothing."""
    values = [spec.sample(plain, where) for plain, where in _non_null(field)]
    assert values, f"no value of {field} is plausible"
    _changes_nothing(field, [*values, None] if _nullable(field) else values, scripted)


@pytest.mark.parametrize("field", _of("echoed", WALKED))
def test_echoed(field: spec.Field, scripted: Server) -> None:
    """Plausible values come back and change nothing else; only a response tells its fields."""
    values = [spec.sample(plain, where) for plain, where in _non_null(field)]
    values += [value for plain, _ in _non_null(field) for value in plain.get("enum", [])]
    first = send(scripted.http, field.route, _around(field)[0])
    assert first.status == 200, f"{field} cannot be tried: {first.error}"
    for value in (one for one in values if one is not None):
        reply = send(scripted.http, field.route, _with(field, value))
        assert reply.status == 200, f"{field} = {value!r}: {reply.error}"
        assert comparable(reply) == comparable(first), f"{field} = {value!r} changes the reply"
        if field.route == "responses":
            _came_back(field, value, reply, first, scripted)


def _came_back(field: spec.Field, value: Any, reply: Reply, first: Reply, server: Server) -> None:
    """A response tells its fields; what is in the items of its input is in the list of those."""
    if not field.path.startswith("input"):
        assert reply.told is not None and first.told is not None
        outer, *_ = field.path.split(".")
        assert _found(reply.told, field.path.split(".")) == value, f"{field}: {reply.told}"
        rest = {name: told for name, told in reply.told.items() if name != outer}
        assert rest == {name: told for name, told in first.told.items() if name != outer}, field
        return
    listed = server.http.get(f"{PATHS['responses']}/{reply.body['id']}/input_items").json()
    kept = [_found(item, field.path.split(".")[1:]) for item in listed["data"]]
    assert value in kept, f"{field} = {value!r}: {listed}"


def _found(told: Any, path: list[str]) -> Any:
    for name in path:
        told = told.get(name) if isinstance(told, dict) else None
    return told


FOREIGN = [pair for route in _NESTED for pair in spec.foreign(route) if _is_possible(pair[0])]


@pytest.mark.parametrize(
    ("field", "values"), [pytest.param(*pair, id=str(pair[0])) for pair in FOREIGN]
)
def test_foreign(field: spec.Field, values: list[Any], scripted: Server) -> None:
    """What only its vendor's servers have is refused by its type, wherever it stands."""
    for value in values:
        kind = (value[0] if isinstance(value, list) else value)["type"]
        _is_refused(send(scripted.http, field.route, _with(field, value)), field, value, kind)


def test_every_disposition_is_tested() -> None:
    """No field is of a disposition that is not known here."""
    known = {"honoured", "refused", "ignored", "echoed"}
    assert {field.disposition for field in FIELDS} == known
    assert {field.route for field in FIELDS if field.disposition == "echoed"} == set(RESPONSES)
    assert sum(len(values) for _, values in FOREIGN) > 60
    assert {field.route for field, _ in FOREIGN} == set(_NESTED)


def test_every_body_is_walked() -> None:
    """No operation of the specs that takes a body is forgotten here."""
    taken = {
        path: operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        for path, operations in spec.operations().items()
        for operation in operations.values()
        if "requestBody" in operation
    }
    walked = {PATHS[route]: f"#/components/schemas/{name}" for route, name in spec.ROUTES.items()}
    assert taken == walked


def _is_refused(reply: Reply, field: spec.Field, value: Any, name: str) -> None:
    assert reply.status == 400, f"{field} = {value!r}: {reply.status}"
    assert reply.error and reply.error["type"] == "invalid_request_error"
    assert name in reply.error["message"], f"{field} = {value!r}: {reply.error}"


def _changes_nothing(field: spec.Field, values: list[Any], server: Server) -> None:
    first = _send(server, field, _around(field)[0])
    assert first.status == 200, f"{field} cannot be tried: {first.error}"
    plain = _comparable(first, field)
    for value in values:
        reply = _send(server, field, _with(field, value))
        assert reply.status == 200, f"{field} = {value!r}: {reply.error}"
        assert _comparable(reply, field) == plain, f"{field} = {value!r} changes the reply"
        assert _told(reply, field) == _told(first, field), f"{field} = {value!r}: {reply.told}"


def _send(server: Server, field: spec.Field, body: dict[str, Any]) -> Reply:
    """Send a body, with a note of this server's own in a compaction item."""
    for item in body.get("input", ()) if field.path.startswith("input[]") else ():
        if item.get("type") == "compaction":
            asked = {**BASE["responses"], "input": [*_ITEMS, {"type": "compaction_trigger"}]}
            (note,) = send(server.http, "responses", asked).items
            item["encrypted_content"] = note.value["encrypted_content"]
    return send(server.http, field.route, body)


def _comparable(reply: Reply, field: spec.Field) -> dict[str, Any]:
    """An outcome without what a compaction repeats of a field: it hands messages on as they were.

    Its note is a secret, but the tokens of what it was made from are counted.
    """
    outcome = comparable(reply)
    if field.route == "compact":
        inside = field.path.split(".")[1:]
        outcome["items"] = [_without(item, inside) for item in outcome["items"]]
    return outcome


def _without(told: Any, path: list[str]) -> Any:
    """A JSON value without the member at a path, in every item of the lists on it."""
    if isinstance(told, list):
        return [_without(one, path) for one in told]
    if not isinstance(told, dict) or not path:
        return told
    name, inside = path[0].removesuffix("[]"), path[1:]
    rest = {key: value for key, value in told.items() if key != name}
    return rest | {name: _without(told[name], inside)} if inside and name in told else rest


def _told(reply: Reply, field: spec.Field) -> dict[str, Any]:
    """What a response says of its request; tools are repeated with all that they have."""
    unlike = ("tools",) if field.path.startswith("tools[]") else ()
    return {name: told for name, told in (reply.told or {}).items() if name not in unlike}


def _non_null(field: spec.Field) -> list[tuple[spec.Schema, str]]:
    """One schema for each type that the field takes, null aside."""
    pairs = []
    for plain, where in spec.alternatives(field.schema, field.file):
        kinds = plain.get("type", "object" if "x-opaque" in plain else [])
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
    if field.path.startswith(_FORMS) and field.route != "compact":
        body["max_output_tokens" if field.route in RESPONSES else "max_tokens"] = 8
    here, before = body, ""
    for holder in field.around[1:]:
        name = holder.path.removeprefix(before).lstrip(".")
        made = _least(holder, name)
        if holder.path == "messages[]":
            _place(body["messages"], made)
        elif holder.path == "input[]":
            _place_item(body["input"], made)
        elif name.endswith("[]"):
            here[name.removesuffix("[]")] = [made]
        else:
            here[name] = made
        here, before = made, holder.path
    return body, here


def _least(holder: spec.Holder, name: str) -> dict[str, Any]:
    """The object with what it must have; where it is a form, one that answers can have."""
    if name == "json_schema":
        return dict(_copy(_SCHEMA))
    made = spec.least(holder.schema, holder.file)
    made |= {"tools": []} if "tools" in made else {}
    return made | _copy(_SCHEMA) if made.get("type") == "json_schema" else made


def _place(turns: list[Any], turn: dict[str, Any]) -> None:
    place = _PLACES.get(turn["role"])
    if place is None:
        turns.insert(2, turn)
    else:
        turns[place] = turn


def _place_item(items: list[Any], item: dict[str, Any]) -> None:
    """A message is the last one, a result comes behind its call, tools before all else."""
    match item["type"]:
        case "message":
            items[2] = item
        case "additional_tools":
            items.insert(0, item)
        case "compaction_trigger":
            items.append(item)
        case "compaction":
            items[:2] = [item]
        case kind if kind in _CALLS:
            items[2:2] = [{**_CALLS[kind], "call_id": "c1"}, item]
            item["call_id"] = "c1"
        case _:
            items.insert(2, item)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value
