"""GET /api/version and /api/tags: what clients of Ollama ask before they speak another protocol."""

from __future__ import annotations

import hashlib
import time

from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
from engine.types import ModelInfo

# Codex refuses to start below this one, and nothing that it looks for came later.
VERSION = "0.13.4"


async def show_version(call: Call) -> Response:
    """The version whose routes these are."""
    return Response(to_json({"version": VERSION}), media_type="application/json")


async def list_tags(call: Call) -> Response:
    """The model under each of its names: a client that misses its own wants to pull the model."""
    info = call.service.info
    others = sorted(info.names - {info.id})
    body = {"models": [encode_tag(info, name) for name in (info.id, *others)]}
    return Response(to_json(body), media_type="application/json")


def encode_tag(info: ModelInfo, name: str) -> dict[str, object]:
    """The model under one of its names; equal until the server restarts."""
    facts = f"{info.checkpoint} {info.engine.dtype}"
    return {
        "name": name,
        "model": name,
        "modified_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(info.created)),
        "size": 0,
        "digest": hashlib.sha256(facts.encode()).hexdigest(),
        "details": {
            "parent_model": "",
            "format": "",
            "family": info.dialect,
            "families": [info.dialect],
            "parameter_size": "",
            "quantization_level": info.engine.dtype,
        },
    }
