"""GET /v1/models: what is loaded, with the limits and defaults that clients plan by."""

from __future__ import annotations

import dataclasses
import hashlib
import time

from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
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


async def list_models(call: Call) -> Response:
    """The list's handler: OpenAI clients read `data`, TypeSafe clients `models`."""
    info = call.service.info
    summary = {
        "name": info.id,
        "description": f"{info.checkpoint}, served by Heliograph",
        "release_date": time.strftime("%Y-%m-%d", time.gmtime(info.created)),
    }
    body = {"object": "list", "data": [encode_card(info)], "models": [summary]}
    return Response(to_json(body), media_type="application/json")


async def retrieve_model(call: Call) -> Response:
    """One card, by any name of the model; an unknown name is 404 whatever the name policy."""
    info = call.service.info
    name = call.request.path_params["model"]
    if name not in info.names:
        raise RequestError(f"The model '{name}' does not exist.", "model", "model_not_found")
    return Response(to_json(encode_card(info)), media_type="application/json")


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
