"""Whether a value is valid, by the generated model and by the spec itself."""

from typing import Any

import jsonschema_rs
from pydantic import BaseModel, ValidationError

from specs.bundle import bundle
from specs.document import load

DOCUMENT = bundle(load())


def accepted(model: type[BaseModel], value: dict[str, Any]) -> bool:
    """Whether the model takes a value; the schema must say the same."""
    pointer = f"#/components/schemas/{model.__name__}"
    spec = jsonschema_rs.Draft202012Validator(
        {"$ref": pointer, "components": DOCUMENT["components"]}
    )
    try:
        model.model_validate(value, strict=True)
        verdict = True
    except ValidationError:
        verdict = False
    assert verdict == spec.is_valid(value)
    return verdict
