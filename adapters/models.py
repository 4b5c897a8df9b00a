"""GET /v1/models: what is loaded, with the limits and defaults that clients plan by."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
from collections.abc import Mapping

from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
from adapters.envelope import speaks_anthropic
from engine.errors import RequestError
from engine.types import ModelInfo

_RANGED = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
_NO_IMAGES = (
    "max_images_per_prompt",
    "max_image_tokens_per_prompt",
    "image_feature_window_tokens",
    "max_image_tokens_per_image",
    "max_image_pixels",
    "max_image_bytes",
)
_CURSORS = ("after_id", "before_id")
_LIMIT = r"[1-9][0-9]{0,2}|1000"


async def list_models(call: Call) -> Response:
    """The list, in the shape that the client looks for."""
    info, query = call.service.info, call.request.query_params
    if not re.fullmatch(_LIMIT, query.get("limit", "1")):
        raise RequestError("`limit` must be an integer from 1 to 1000", "limit")
    body = _page(info, query) if speaks_anthropic(call.request) else _list(info)
    return Response(to_json(body), media_type="application/json")


async def retrieve_model(call: Call) -> Response:
    """One model, by any name of it; an unknown name is 404 whatever the name policy."""
    info = call.service.info
    name = call.request.path_params["model"]
    if name not in info.names:
        raise RequestError(f"The model '{name}' does not exist.", "model", "model_not_found")
    body = encode_model(info) if speaks_anthropic(call.request) else encode_card(info)
    return Response(to_json(body), media_type="application/json")


def _list(info: ModelInfo) -> dict[str, object]:
    """OpenAI clients read `data`, TypeSafe clients `models`."""
    summary = {
        "name": info.id,
        "description": f"{info.checkpoint}, served by Heliograph",
        "release_date": _time("%Y-%m-%d", info),
    }
    return {"object": "list", "data": [encode_card(info)], "models": [summary]}


def _page(info: ModelInfo, query: Mapping[str, str]) -> dict[str, object]:
    """Anthropic's list: nothing is behind the only model, and nothing before it."""
    cursors = [name for name in _CURSORS if name in query]
    for name in cursors:
        if query[name] not in info.names:
            raise RequestError(f"`{name}` is not the id of a model", name)
    data = [] if cursors else [encode_model(info)]
    end = info.id if data else None
    return {"data": data, "first_id": end, "last_id": end, "has_more": False}


def encode_model(info: ModelInfo) -> dict[str, object]:
    """The model as Anthropic describes one; equal until the server restarts."""
    window = info.engine.max_context
    return {
        "id": info.id,
        "type": "model",
        "display_name": info.id,
        "created_at": _time("%Y-%m-%dT%H:%M:%SZ", info),
        "lifecycle": "active",
        "max_input_tokens": window,
        "max_tokens": min(info.default_max_tokens or window, window),
    }


def _time(form: str, info: ModelInfo) -> str:
    return time.strftime(form, time.gmtime(info.created))


def encode_card(info: ModelInfo) -> dict[str, object]:
    """The card; equal until the server restarts."""
    window = info.engine.max_context
    return {
        "id": info.id,
        "object": "model",
        "created": info.created,
        "owned_by": "local",
        "root": info.checkpoint,
        "parent": None,
        "max_model_len": window,
        "context_length": window,
        "context_window": window,
        "permission": [_permission(info)],
        "flare": _flare(info),
    }


def _permission(info: ModelInfo) -> dict[str, object]:
    digest = hashlib.sha256(f"{info.checkpoint} {info.created}".encode()).hexdigest()
    return {
        "id": f"modelperm-{digest[:32]}",
        "object": "model_permission",
        "created": info.created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }


def _flare(info: ModelInfo) -> dict[str, object]:
    defaults = dataclasses.asdict(info.defaults)
    return {
        "vocab_size": info.engine.vocab_size,
        "max_top_logprobs": 20,
        "max_concurrency": info.engine.max_concurrency,
        "prefill_chunk_size": info.engine.prefill_chunk,
        "default_max_tokens": info.default_max_tokens,
        "sampling_defaults": {name: defaults[name] for name in ("seed", *_RANGED)},
        "thinking_token_budget": info.thinking_budget,
        "dialect": info.dialect,
        "reasoning_efforts": list(info.efforts),
        "sampling_ranges": {name: _range(info, name) for name in _RANGED},
        **dict.fromkeys(_NO_IMAGES, 0),
        "input_modalities": ["text"],
        "output_modalities": ["text"],
    }


def _range(info: ModelInfo, name: str) -> dict[str, float] | None:
    """The declared range; None where values are used as given."""
    if name not in info.sampling_ranges:
        return None
    low, high = info.sampling_ranges[name]
    return {"min": low, "max": high}
