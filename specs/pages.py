"""Renders what is read from the specs: the route table, the parity tables and the page of /docs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .codegen import HEADER
from .document import FOLDER, Field, Json, Operation, Place, Specs

DISPOSITIONS = ("honoured", "echoed", "ignored", "refused")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table of fields."""

    path: str
    owner: str
    type: str
    required: bool
    disposition: str
    description: str


def route_table(specs: Specs) -> str:
    """The text of generated/routes.py."""
    operations = list(specs.operations())
    stems = sorted({operation.stem for operation in operations})
    return _render(
        "routes.py.j2",
        stems=stems,
        operations=operations,
        path=starlette_path,
        model=_model,
        authenticated=lambda operation: bool(
            operation.place.schema.get(
                "security", specs.documents[operation.stem].get("security", [])
            )
        ),
    )


def literals() -> str:
    """The text of generated/literals.py."""
    return _render("literals.py.j2")


def parity_page(specs: Specs, stem: str) -> str:
    """The text of docs/parity/<stem>.md."""
    flat = specs.flattened()
    tables = [
        (operation, rows, Counter(row.disposition for row in rows))
        for operation in flat.operations()
        if operation.stem == stem
        for rows in [request_rows(flat, operation)]
    ]
    return _render(
        "parity.md.j2", info=flat.documents[stem]["info"], tables=tables, dispositions=DISPOSITIONS
    )


def docs_page(specs: Specs) -> str:
    """The text of generated/docs.html."""
    flat = specs.flattened()
    sections = [
        (info, [o for o in flat.operations() if o.stem == stem])
        for stem, info in ((s, d["info"]) for s, d in flat.documents.items() if d.get("paths"))
    ]
    return _render(
        "docs.html.j2",
        sections=sections,
        requests=lambda operation: request_rows(flat, operation),
        answers=lambda operation: _answers(flat, operation),
        errors=lambda operation: _errors(flat, operation),
    )


def request_rows(specs: Specs, operation: Operation) -> list[Row]:
    """Parameters and body fields at every depth."""
    rows = [
        Row(
            parameter["name"],
            parameter["in"],
            type_text(specs, place.child("schema")),
            parameter.get("required", False),
            parameter["x-disposition"],
            parameter["description"],
        )
        for place in specs.parameters(operation)
        for parameter in [place.schema]
    ]
    return rows + (_rows(specs, operation.request) if operation.request else [])


def _rows(specs: Specs, place: Place) -> list[Row]:
    return [_row(specs, field) for field in specs.fields(place)]


def _row(specs: Specs, field: Field) -> Row:
    written = field.place.schema
    return Row(
        field.path,
        field.owner,
        type_text(specs, field.place),
        field.required,
        written.get("x-disposition", ""),
        written.get("description", ""),
    )


def type_text(specs: Specs, place: Place) -> str:
    """The admitted values of a schema in a few words."""
    texts: list[str] = []
    for variant in specs.variants(place, refused=False):
        for text in _variant_texts(specs, variant):
            if text not in texts:
                texts.append(text)
    return " or ".join(sorted(texts, key=lambda text: text == "null"))


def _variant_texts(specs: Specs, place: Place) -> list[str]:
    schema = place.schema
    if "const" in schema:
        return [_value(schema["const"])]
    if "enum" in schema:
        return [_value(value) for value in schema["enum"]]
    if "properties" in schema:
        return [place.name]
    kinds = schema.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return [_kind(specs, place, kind) for kind in kinds]


def _kind(specs: Specs, place: Place, kind: str) -> str:
    schema = place.schema
    if kind == "array":
        if schema.get("maxItems") == 0:
            return "empty list"
        return f"list of {type_text(specs, place.child('items'))}" if "items" in schema else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {type_text(specs, place.child('additionalProperties'))}"
    if kind in ("integer", "number"):
        return (kind + _range(schema)).strip()
    return kind


def _range(schema: Json) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and low == high:
        return f" {low}"
    if schema.get("exclusiveMinimum") is not None:
        return f" above {schema['exclusiveMinimum']}, at most {high}"
    if low is not None and high is not None:
        return f" {low} to {high}"
    return f" from {low}" if low is not None else ""


def _value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f'"{value}"' if isinstance(value, str) else str(value)


def _answers(specs: Specs, operation: Operation) -> list[tuple[str, str, list[Row]]]:
    answers = []
    for title, place in (("Answer", operation.response), ("Streamed event", operation.event)):
        if place is not None and (rows := _rows(specs, place)):
            answers.append((title, next(specs.variants(place)).name, rows))
    return answers


def _errors(specs: Specs, operation: Operation) -> list[tuple[str, str]]:
    return [
        (status, specs.at(response["$ref"]).schema["description"])
        for status, response in operation.place.schema["responses"].items()
        if "$ref" in response
    ]


def starlette_path(operation: Operation) -> str:
    """The path in the form that Starlette routes, `{name:path}` where a value may hold slashes."""
    path = operation.path
    for parameter in operation.place.schema.get("parameters", []):
        if "name" in parameter and parameter.get("x-spans-slashes"):
            path = path.replace(f"{{{parameter['name']}}}", f"{{{parameter['name']}:path}}")
    return path


def _model(place: Place | None) -> str:
    if place is None or "$ref" not in place.schema:
        return "None"
    file, pointer = place.schema["$ref"].split("#/")
    return f"{file.removesuffix('.yaml')}.{pointer.rsplit('/', 1)[1]}"


def _render(template: str, **values: object) -> str:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=template.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(header=HEADER, **values)
