"""Joins the specs of all routes into one OpenAPI document."""

from __future__ import annotations

from .document import Json, Specs, rewrite, without

INFO = {
    "title": "Heliograph",
    "version": "1",
    "description": "One loaded model, served over the protocols that its clients already speak.",
}


def bundle(specs: Specs) -> Json:
    """The document that GET /openapi.json returns; it holds no unused component.

    Raises ValueError when two files give one name to different components.
    """
    flat = specs.flattened()
    paths: Json = {}
    for operation in flat.operations():
        secured = {"security": flat.documents[operation.stem].get("security", [])}
        item = paths.setdefault(operation.path, {})
        item[operation.method.lower()] = secured | operation.place.schema
    document = {
        "openapi": "3.2.0",
        "info": INFO,
        "paths": paths,
        "components": _components(flat),
    }
    inside: Json = rewrite(document, lambda ref: ref[ref.index("#") :])
    public: Json = without(inside, "x-official", "x-opaque")
    return public


def _components(specs: Specs) -> Json:
    joined: Json = {"securitySchemes": specs.documents["shared"]["components"]["securitySchemes"]}
    used = specs.reachable()
    for stem, document in specs.documents.items():
        for kind, components in document["components"].items():
            for name, component in components.items():
                if f"{stem}.yaml#/components/{kind}/{name}" not in used:
                    continue
                section = joined.setdefault(kind, {})
                if name in section:
                    raise ValueError(f"{name} is defined twice, once in specs/{stem}.yaml")
                section[name] = component
    return {kind: dict(sorted(section.items())) for kind, section in sorted(joined.items())}
