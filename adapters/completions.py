"""POST /v1/completions: raw text or token ids in, continuations out."""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
from adapters.generation import (
    FINISH_REASONS,
    ChunkForm,
    Reply,
    check_model,
    decode_sampling,
    decode_stops,
    encode_stream,
    given,
    optional,
    respond,
)
from engine.errors import RequestError
from engine.types import GenerationRequest, Output, RawPrompt
from generated.completions import CompletionRequest

DEFAULT_MAX_TOKENS = 16  # the official API's
CHUNK_FORM = ChunkForm(started=None, before_text=b'"text":', after_text=b"", finished={"text": ""})


async def create_completion(call: Call) -> Response:
    """The route's handler."""
    body = cast(CompletionRequest, call.body)
    check_model(body, call)
    requests = decode(body, call.tenant)
    n = requests[0].n
    reply = Reply(call.service.info, "cmpl-", "text_completion", n, reasoning=False)
    options = optional(body.stream_options)
    return await respond(
        call,
        requests,
        body.stream is True,
        lambda outputs: encode(reply, outputs),
        lambda generation: encode_stream(reply, generation, options, CHUNK_FORM),
    )


def decode(body: CompletionRequest, tenant: str) -> list[GenerationRequest]:
    """One neutral request per prompt. Raises RequestError for what the schema cannot express."""
    n = given(body.n, 1)
    if given(body.best_of, n) != n:
        raise RequestError(f"best_of must equal n, which is {n}: choices are not ranked", "best_of")
    return [
        GenerationRequest(
            prompt=RawPrompt(content, given(body.add_special_tokens, True)),
            sampling=decode_sampling(body),
            stops=decode_stops(body),
            max_tokens=given(body.max_tokens, DEFAULT_MAX_TOKENS),
            n=n,
            echo=given(body.echo, False),
            tenant=tenant,
            cache_salt=given(body.cache_salt, ""),
            prompt_param="prompt",
        )
        for content in _prompts(body.prompt)
    ]


def _prompts(prompt: Any) -> list[str | tuple[int, ...]]:
    if prompt is None or isinstance(prompt, str):
        return [prompt or ""]
    if not prompt:
        raise RequestError("the prompt is empty", "prompt")
    if isinstance(prompt[0], int):
        return [tuple(prompt)]
    return [content if isinstance(content, str) else tuple(content) for content in prompt]


def encode(reply: Reply, outputs: list[Output]) -> bytes:
    """The whole answer."""
    choices = []
    for index, output in enumerate(outputs):
        reply.count(index, output.usage)
        choices.append(
            {
                "index": index,
                "text": output.text,
                "logprobs": None,
                "finish_reason": FINISH_REASONS[output.cause],
                "stop_reason": output.stop,
            }
        )
    return to_json({**reply.head, "choices": choices, "usage": reply.usage()})
