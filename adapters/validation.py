"""Bodies against the generated models: what is wrong, said in the field's own name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from engine.errors import RequestError

Model = TypeVar("Model", bound=BaseModel)
_MOST_REASONS = 3
_MOST_SHOWN = 40  # characters of a client's value in a message
_MOST_LISTED = 200  # characters of the values that a field may have instead

_TYPES = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
    "finite_number": "a finite number",
}
_BOUNDS = {
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "at least {min_length} characters long",
    "string_too_long": "at most {max_length} characters long",
    "string_pattern_mismatch": "text of the form {pattern}",
    "multiple_of": "a multiple of {multiple_of}",
}


def validate(model: type[Model], value: object) -> Model:
    """The request as the spec describes it. Raises RequestError naming the field."""
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object", code="invalid_json")
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    placed = [(_path(problem, value), problem) for problem in problems]
    # Of a union's branches, the one that got furthest into the body is the one that was meant.
    path, worst = max(placed, key=lambda item: len(item[0]))
    param = "".join(path).lstrip(".")
    refused = _refused_field(model, worst["loc"])
    if refused is not None:
        name, field = refused
        message = f"`{name}` is not supported: {field.description}"
        raise RequestError(message, param, "unsupported_parameter")
    if worst["type"] in ("missing", "union_tag_not_found"):
        raise RequestError(f"`{param}` is required", param, "missing_required_parameter")
    reasons = dict.fromkeys(_reason(problem) for other, problem in placed if other == path)
    raise RequestError(f"`{param}` {' or '.join(list(reasons)[:_MOST_REASONS])}", param)


def _path(problem: Any, body: object) -> list[str]:
    """The steps into the body, as in `.messages`, `[0]`, `.content`, without pydantic's own."""
    path: list[str] = []
    here = body
    location = problem["loc"]
    for place, step in enumerate(location):
        if isinstance(step, int) and isinstance(here, list) and step < len(here):
            path.append(f"[{step}]")
            here = here[step]
        elif isinstance(step, str) and isinstance(here, dict):
            last = place == len(location) - 1
            if step in here or (last and problem["type"] == "missing"):
                path.append(f".{_shown(step)}")
                here = here.get(step)
    if problem["type"].startswith("union_tag"):
        path.append("." + str(problem["ctx"]["discriminator"]).strip("'"))
    return path


def _reason(problem: Any) -> str:
    """One problem in plain words."""
    kind, details = problem["type"], problem.get("ctx", {})
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}"
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind].format(**details)}"
    if kind in ("too_long", "too_short"):
        few, count = kind == "too_short", details.get("min_length", details.get("max_length"))
        return f"must have at {'least' if few else 'most'} {count} items"
    if kind == "union_tag_invalid":
        return _unknown_tag(str(details["tag"]), str(details["expected_tags"]))
    if kind == "literal_error":
        given = problem["input"]
        prefix = f"'{_shown(given)}' is not supported: it " if isinstance(given, str) else ""
        return f"{prefix}must be {details['expected']}"
    return "has a value that does not fit"


def _unknown_tag(tag: str, known: str) -> str:
    """What is wrong with the kind of a thing; lists of many kinds would hide it."""
    listed = f": it must be one of {known}" if len(known) <= _MOST_LISTED else " here"
    return f"'{_shown(tag)}' is not supported{listed}"


def _shown(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


def _refused_field(
    model: type[BaseModel], location: Sequence[int | str]
) -> tuple[str, FieldInfo] | None:
    """The field of disposition `refused` that the location passes through, if any."""
    candidates = [model]
    for step in location:
        if not isinstance(step, str):
            continue
        fields = [field for item in candidates if (field := _field(item, step)) is not None]
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


def _field(model: type[BaseModel], name: str) -> FieldInfo | None:
    """A model's field by its name on the wire, which is the alias where there is one."""
    fields = model.model_fields
    return next((item for key, item in fields.items() if name == (item.alias or key)), None)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every model class inside an annotation."""
    annotation = getattr(annotation, "__value__", annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
