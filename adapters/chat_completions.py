"""POST /v1/chat/completions: conversations in, one message or chunks of it out."""

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
from engine.types import Conversation, GenerationRequest, Message, Output, Part, Reasoning, Text
from generated.chat_completions import AssistantMessage, ChatCompletionRequest

CHUNK_FORM = ChunkForm(
    started=b'"delta":{"role":"assistant","content":""}',
    before_text=b'"delta":{"content":',
    after_text=b"}",
    finished={"delta": {}},
)


async def create_chat_completion(call: Call) -> Response:
    """The route's handler."""
    body = cast(ChatCompletionRequest, call.body)
    check_model(body, call)
    request = decode(body, call.tenant)
    kind = "chat.completion.chunk" if body.stream is True else "chat.completion"
    reply = Reply(call.service.info, "chatcmpl-", kind, request.n, reasoning=True)
    options = optional(body.stream_options)
    return await respond(
        call,
        [request],
        body.stream is True,
        lambda outputs: encode(reply, outputs),
        lambda generation: encode_stream(reply, generation, options, CHUNK_FORM),
    )


def decode(body: ChatCompletionRequest, tenant: str) -> GenerationRequest:
    """The neutral request. Raises RequestError for combinations that the schema cannot express."""
    newer, older = optional(body.max_completion_tokens), optional(body.max_tokens)
    return GenerationRequest(
        prompt=Conversation(
            messages=tuple(_message(message) for message in body.messages),
            template_kwargs=given(body.chat_template_kwargs, {}),
            add_generation_prompt=given(body.add_generation_prompt, True),
            continue_final=given(body.continue_final_message, False),
            add_special_tokens=given(body.add_special_tokens, False),
        ),
        sampling=decode_sampling(body),
        stops=decode_stops(body),
        max_tokens=older if newer is None else newer,
        n=given(body.n, 1),
        tenant=tenant,
        cache_salt=given(body.cache_salt, ""),
        max_tokens_param="max_tokens" if newer is None else "max_completion_tokens",
    )


def _message(message: Any) -> Message:
    content = given(message.content, "")
    texts = [content] if isinstance(content, str) else [_part_text(part) for part in content]
    parts: list[Part] = [Text(text) for text in texts]
    if isinstance(message, AssistantMessage):
        refusal = optional(message.refusal)
        if refusal and not any(texts):
            parts = [Text(refusal)]
        thoughts = optional(message.reasoning_content) or optional(message.reasoning)
        if thoughts:
            parts.insert(0, Reasoning(thoughts))
    return Message(message.role, tuple(parts), optional(message.name))


def _part_text(part: Any) -> str:
    return cast(str, part.refusal if part.type == "refusal" else part.text)


def encode(reply: Reply, outputs: list[Output]) -> bytes:
    """The whole answer."""
    choices = []
    for index, output in enumerate(outputs):
        reply.count(index, output.usage)
        choices.append(
            {
                "index": index,
                "message": {"role": "assistant", "content": output.text, "refusal": None},
                "logprobs": None,
                "finish_reason": FINISH_REASONS[output.cause],
                "stop_reason": output.stop,
            }
        )
    return to_json({**reply.head, "choices": choices, "usage": reply.usage()})
