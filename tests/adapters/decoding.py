"""Bodies of the OpenAI generation routes as neutral requests."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from adapters import chat_completions, completions
from engine.errors import RequestError
from engine.types import GenerationRequest
from generated.chat_completions import ChatCompletionRequest
from generated.completions import CompletionRequest

ROUTES = ("chat", "completions")


def decoded(route: str = "chat", **fields: Any) -> GenerationRequest:
    if route == "chat":
        body = {"messages": [{"role": "user", "content": "x"}], **fields}
        return chat_completions.decode(
            ChatCompletionRequest.model_validate(body, strict=True), "tenant"
        )
    body = {"prompt": "x", **fields}
    [made] = completions.decode(CompletionRequest.model_validate(body, strict=True), "tenant")
    return made


def refused(route: str = "chat", **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        decoded(route, **fields)
    return caught.value


def at(request: GenerationRequest, path: str) -> Any:
    return reduce(getattr, path.split("."), request)
