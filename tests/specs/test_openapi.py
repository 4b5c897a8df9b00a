"""The bundled document is OpenAPI, and the models are what it says."""

import json
from collections import Counter
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import ValidationError
from schemathesis import GenerationMode
from schemathesis.core.result import Ok

from generated.routes import ROUTES, Route
from specs.bundle import bundle
from specs.document import load, references

DOCUMENT = bundle(load())
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)


def test_it_is_valid_openapi() -> None:
    SCHEMA.validate()


def test_every_schema_is_a_valid_json_schema() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)


def test_every_reference_is_inside() -> None:
    for ref in references(DOCUMENT):
        assert ref.startswith("#/components/")
        kind, name = ref.split("/")[2:]
        assert name in DOCUMENT["components"][kind]


def test_schemathesis_finds_every_route() -> None:
    results = [result for result in SCHEMA.get_all_operations() if isinstance(result, Ok)]
    found = {(result.ok().method.upper(), result.ok().path) for result in results}
    assert found == {(route.method, route.path.replace(":path}", "}")) for route in ROUTES}


def folded(value: Any) -> Any:
    """A JSON value as the server reads it: integral numbers are integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [folded(inner) for inner in value]
    if isinstance(value, dict):
        return {key: folded(inner) for key, inner in value.items()}
    return value


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("route", [r for r in ROUTES if r.request], ids=lambda route: route.stem)
def test_model_and_schema_agree_on_any_body(route: Route, mode: GenerationMode) -> None:
    model = route.request
    assert model
    pointer = f"#/components/schemas/{model.__name__}"
    spec = jsonschema_rs.Draft202012Validator(
        {"$ref": pointer, "components": DOCUMENT["components"]}
    )
    verdicts: Counter[bool] = Counter()

    @given(SCHEMA[route.path][route.method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def agree(case: Any) -> None:
        try:
            body = folded(json.loads(json.dumps(case.body)))
        except (TypeError, ValueError):  # not JSON at all: the server's parser answers it
            return
        try:
            model.model_validate(body, strict=True)
            accepted = True
        except ValidationError:
            accepted = False
        assert accepted == spec.is_valid(body)
        verdicts[accepted] += 1

    agree()
    if mode is GenerationMode.POSITIVE:
        assert set(verdicts) == {True}


BOOLEANS = [False, True, 0, 1, 0.0, "false", None]


@pytest.mark.parametrize("value", BOOLEANS, ids=repr)
@pytest.mark.parametrize(("field", "only"), [("echo", False), ("logprobs", None)])
def test_a_number_is_not_a_boolean(field: str, only: bool | None, value: Any) -> None:
    model = next(route.request for route in ROUTES if route.stem == "chat_completions")
    assert model
    body = {"messages": [{"role": "user", "content": "x"}], field: value}
    if value is None or (isinstance(value, bool) and only in (None, value)):
        model.model_validate(body, strict=True)
    else:
        with pytest.raises(ValidationError):
            model.model_validate(body, strict=True)
