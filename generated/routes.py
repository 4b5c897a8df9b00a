# Generated from specs/; do not edit. Run: nox -s generate
"""Every route of the server, as the specs declare it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from . import chat_completions, completions, messages, models, operations


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, with the models of what goes in and out."""

    method: str
    path: str  # in Starlette's form
    stem: str  # the adapter's module
    operation: str  # the adapter's function
    request: type[BaseModel] | None
    response: Any  # the model of a JSON answer, or a union of models; None without
    event: Any  # the same of the data of a streamed event
    stream: bool
    authenticated: bool
    envelope: str  # the protocol whose errors it answers with


ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/chat/completions",
        stem="chat_completions",
        operation="create_chat_completion",
        request=chat_completions.ChatCompletionRequest,
        response=chat_completions.ChatCompletion,
        event=chat_completions.ChatCompletionChunk,
        stream=True,
        authenticated=True,
        envelope="openai",
    ),
    Route(
        method="POST",
        path="/v1/completions",
        stem="completions",
        operation="create_completion",
        request=completions.CompletionRequest,
        response=completions.Completion,
        event=completions.CompletionChunk,
        stream=True,
        authenticated=True,
        envelope="openai",
    ),
    Route(
        method="POST",
        path="/v1/messages",
        stem="messages",
        operation="create_message",
        request=messages.MessagesRequest,
        response=messages.MessageReply,
        event=messages.MessageEvent,
        stream=True,
        authenticated=True,
        envelope="anthropic",
    ),
    Route(
        method="POST",
        path="/v1/messages/count_tokens",
        stem="messages",
        operation="count_message_tokens",
        request=messages.CountTokensRequest,
        response=messages.TokenCount,
        event=None,
        stream=False,
        authenticated=True,
        envelope="anthropic",
    ),
    Route(
        method="GET",
        path="/v1/models",
        stem="models",
        operation="list_models",
        request=None,
        response=models.ModelListReply,
        event=None,
        stream=False,
        authenticated=True,
        envelope="by_version",
    ),
    Route(
        method="GET",
        path="/v1/models/{model:path}",
        stem="models",
        operation="retrieve_model",
        request=None,
        response=models.ModelReply,
        event=None,
        stream=False,
        authenticated=True,
        envelope="by_version",
    ),
    Route(
        method="GET",
        path="/health",
        stem="operations",
        operation="health",
        request=None,
        response=operations.Health,
        event=None,
        stream=False,
        authenticated=False,
        envelope="openai",
    ),
    Route(
        method="GET",
        path="/metrics",
        stem="operations",
        operation="metrics",
        request=None,
        response=operations.MetricsSnapshot,
        event=None,
        stream=False,
        authenticated=False,
        envelope="openai",
    ),
    Route(
        method="GET",
        path="/openapi.json",
        stem="operations",
        operation="openapi_document",
        request=None,
        response=None,
        event=None,
        stream=False,
        authenticated=False,
        envelope="openai",
    ),
    Route(
        method="GET",
        path="/docs",
        stem="operations",
        operation="docs",
        request=None,
        response=None,
        event=None,
        stream=False,
        authenticated=False,
        envelope="openai",
    ),
)
