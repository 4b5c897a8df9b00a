"""What a conversation's system prompt says about an output format that masks enforce anyway."""

from __future__ import annotations

import json

from engine.types import OutputConstraint

_ONLY = (
    "Answer with one JSON {what} and nothing else: no words before or after it, no code fence, "
    "no comments."
)


def instruction(constraint: OutputConstraint) -> str | None:
    """The text for the system prompt; None for formats that are not JSON (Helios, Reasoning)."""
    if constraint.kind == "json_object":
        return _ONLY.format(what="object")
    if constraint.kind != "json_schema":
        return None
    schema = json.dumps(json.loads(constraint.source), ensure_ascii=False, separators=(",", ":"))
    only = _ONLY.format(what="document")
    return f"{only} It must be valid under this JSON Schema:\n{schema}"
