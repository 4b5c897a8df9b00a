"""What every spec must state."""

from collections.abc import Iterator

import pytest

from specs.document import Field, Operation, load
from specs.pages import DISPOSITIONS, request_rows, starlette_path

SPECS = load()
FLAT = SPECS.flattened()
OPERATIONS = list(FLAT.operations())


def request_fields() -> Iterator[Field]:
    for operation in OPERATIONS:
        if operation.request:
            yield from FLAT.fields(operation.request)


def test_every_request_field_has_a_disposition_and_a_description() -> None:
    fields = list(request_fields())
    assert len(fields) > 300
    for field in fields:
        assert field.place.schema.get("x-disposition") in DISPOSITIONS, field.place.ref
        assert field.place.schema.get("description"), field.place.ref


def test_every_parameter_has_a_disposition_and_a_description() -> None:
    for operation in OPERATIONS:
        for row in request_rows(FLAT, operation):
            assert row.disposition in DISPOSITIONS
            assert row.description


def test_every_response_field_has_a_description() -> None:
    for operation in OPERATIONS:
        for place in filter(None, (operation.response, operation.event)):
            for field in FLAT.fields(place):
                assert field.place.schema.get("description"), field.place.ref


def test_every_component_is_used() -> None:
    used = SPECS.reachable()
    for stem, document in SPECS.documents.items():
        for kind, components in document["components"].items():
            if kind != "securitySchemes":  # named by `security`, not by reference
                for name in components:
                    assert f"{stem}.yaml#/components/{kind}/{name}" in used


def test_null_means_absent_for_every_optional_field() -> None:
    for operation in OPERATIONS:
        if operation.request:
            schema = next(FLAT.variants(operation.request))
            for name in schema.schema["properties"]:
                if name not in schema.schema["required"]:
                    kinds = FLAT.variants(schema.child("properties", name), refused=False)
                    admitted = [v.schema.get("type") for v in kinds]
                    assert any(kind == "null" or "null" in (kind or ()) for kind in admitted), name


ENVELOPES = {
    "openai": "ErrorEnvelope", "anthropic": "AnthropicError", "by_version": "EitherError"
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.place.schema["operationId"])
def test_every_route_declares_its_errors(operation: Operation) -> None:
    responses = operation.place.schema["responses"]
    declared = {status for status in responses if status != "200"}
    envelope = operation.place.schema["x-envelope"]
    wanted = {"405", "500"}
    if operation.place.schema.get("security") != []:
        wanted |= {"401"}
    if "{" in operation.path:
        wanted |= {"404"}
    if operation.request is not None:
        wanted |= {"400", "404", "413", "415", "503"}
    if operation.request is not None and operation.event is not None:  # a replay takes no place
        wanted |= {"529" if envelope == "anthropic" else "429"}
    assert wanted <= declared
    for status in declared:
        response = FLAT.at(responses[status]["$ref"]).schema
        assert response["headers"]["x-request-id"]
        assert ("Retry-After" in response["headers"]) == (status in ("429", "503", "529"))
        media = response["content"]["application/json"]
        assert media["schema"]["$ref"].endswith(f"/{ENVELOPES[envelope]}")


def test_model_ids_may_hold_slashes() -> None:
    paths = [starlette_path(operation) for operation in OPERATIONS]
    assert "/v1/models/{model:path}" in paths
