"""Bodies against the generated models: what is wrong, said in the field's own name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from engine.errors import RequestError

Model = TypeVar("Model", bound=BaseModel)
_MOST_REASONS = 3


def validate(model: type[Model], value: object) -> Model:
    """The request as the spec describes it. Raises RequestError naming the field."""
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object", code="invalid_json")
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    location = problems[0]["loc"]
    param = _param(location, value, problems[0])
    refused = _refused_field(model, location)
    if refused is not None:
        name, field = refused
        message = f"`{name}` is not supported: {field.description}"
        raise RequestError(message, param, "unsupported_parameter")
    reasons = list(
        dict.fromkeys(
            problem["msg"]
            for problem in problems
            if _param(problem["loc"], value, problem) == param
        )
    )
    if problems[0]["type"] == "missing":
        raise RequestError(f"`{param}` is required", param, "missing_required_parameter")
    raise RequestError(f"`{param}`: {' or '.join(reasons[:_MOST_REASONS])}", param)


def _param(location: Sequence[int | str], body: object, problem: Any) -> str:
    """The path into the body, as in `messages[0].content`; pydantic's own steps are left out."""
    path = ""
    here = body
    for place, step in enumerate(location):
        if isinstance(step, int) and isinstance(here, list) and step < len(here):
            path += f"[{step}]"
            here = here[step]
        elif isinstance(step, str) and isinstance(here, dict):
            last = place == len(location) - 1
            if step in here or (last and problem["type"] == "missing"):
                path += f".{step}" if path else step
                here = here.get(step)
    if problem["type"].startswith("union_tag"):
        path += "." + str(problem["ctx"]["discriminator"]).strip("'")
    return path


def _refused_field(
    model: type[BaseModel], location: Sequence[int | str]
) -> tuple[str, FieldInfo] | None:
    """The field of disposition `refused` that the location passes through, if any."""
    candidates = [model]
    for step in location:
        if not isinstance(step, str):
            continue
        fields = [item.model_fields[step] for item in candidates if step in item.model_fields]
        if not fields:  # a union tag or a class name, which narrows nothing that matters here
            named = [item for item in candidates if item.__name__ == step]
            candidates = named or candidates
            continue
        for field in fields:
            extra = field.json_schema_extra
            if isinstance(extra, dict) and extra.get("disposition") == "refused":
                return step, field
        candidates = [item for field in fields for item in _models(field.annotation)]
    return None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every model class inside an annotation."""
    annotation = getattr(annotation, "__value__", annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
