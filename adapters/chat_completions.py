"""POST /v1/chat/completions: conversations in, one message or chunks of it out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
from adapters.decode import (
    check_model,
    decode_limit,
    decode_logprobs,
    decode_request,
    given,
    optional,
)
from adapters.generation import (
    FINISH_REASONS,
    ChunkEncoder,
    ChunkForm,
    Reply,
    encode_stream,
    new_reply,
    respond,
)
from adapters.logprobs import TokenNames, chat_logprobs, prompt_logprobs
from engine.conversation import Conversation, Message, Part, Reasoning, Text
from engine.errors import RequestError
from engine.events import Output, PromptScored, TextDelta
from engine.generation import Generation
from engine.types import GenerationRequest, LogprobOptions
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
    streams = body.stream is True
    kind = "chat.completion.chunk" if streams else "chat.completion"
    reply = new_reply(call.service.info, body, "chatcmpl-", kind, reasoning=True)
    names = TokenNames(call.service.tokenizer, as_ids=body.return_tokens_as_token_ids is True)

    def encoder(generation: Generation) -> ChunkEncoder:
        wants_more = request.logprobs is not None or request.records
        details = _Details(reply, names, request, generation) if wants_more else None
        options = optional(body.stream_options)
        return ChunkEncoder(reply, request.n, CHUNK_FORM, options, details)

    return await respond(
        call,
        [request],
        lambda generation, outputs: encode(reply, names, request, generation, outputs),
        (lambda generation: encode_stream(generation, encoder(generation))) if streams else None,
    )


def decode(body: ChatCompletionRequest, tenant: str) -> GenerationRequest:
    """The neutral request. Raises RequestError for combinations that the schema cannot express."""
    conversation = Conversation(
        messages=tuple(_message(message) for message in body.messages),
        template_kwargs=given(body.chat_template_kwargs, {}),
        add_generation_prompt=given(body.add_generation_prompt, True),
        continue_final=given(body.continue_final_message, False),
        add_special_tokens=given(body.add_special_tokens, False),
    )
    request = decode_request(body, conversation, tenant)
    limit, param = decode_limit(
        body,
        ("max_completion_tokens", body.max_completion_tokens),
        ("max_tokens", body.max_tokens),
        ("n_predict", body.n_predict),
    )
    return replace(
        request, max_tokens=limit, max_tokens_param=param or "max_tokens", logprobs=_logprobs(body)
    )


def _logprobs(body: ChatCompletionRequest) -> LogprobOptions | None:
    top = given(body.top_logprobs, 0)
    if body.logprobs is not True:
        if top:
            raise RequestError("top_logprobs needs logprobs to be true", "top_logprobs")
        return decode_logprobs(body, None)
    return decode_logprobs(body, top)


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


def encode(
    reply: Reply,
    names: TokenNames,
    request: GenerationRequest,
    generation: Generation,
    outputs: list[Output],
) -> bytes:
    """The whole answer."""
    choices = []
    for index, output in enumerate(outputs):
        reply.count(index, output.end.usage)
        reply.finish(output.end)
        logprobs = chat_logprobs(output.records, names) if request.logprobs else None
        choices.append(
            {
                "index": index,
                "message": {"role": "assistant", "content": output.text, "refusal": None},
                "logprobs": logprobs,
                "finish_reason": FINISH_REASONS[output.end.cause],
                "stop_reason": output.end.stop,
                **reply.observations(output.records),
            }
        )
    answer = {**reply.head, "choices": choices, "usage": reply.usage(), "flare": reply.flare()}
    if request.prompt_top is not None:
        scores = outputs[0].prompt_scores
        answer["prompt_logprobs"] = prompt_logprobs(scores, request.prompt_top, names)
    if reply.shows_ids:
        answer["prompt_token_ids"] = generation.prompts[0]
    return to_json(answer)


class _Details:
    """What chunks carry besides text."""

    def __init__(
        self, reply: Reply, names: TokenNames, request: GenerationRequest, generation: Generation
    ) -> None:
        self._reply = reply
        self._names = names
        self._wants_logprobs = request.logprobs is not None
        self._prompt = generation.prompts[0]
        self._said = False

    def prompt(self, index: int, happened: PromptScored) -> None:
        """Prompt scores are not streamed."""

    def started(self, index: int) -> dict[str, object]:
        if self._said or not self._reply.shows_ids:
            return {}
        self._said = True
        return {"prompt_token_ids": self._prompt}

    def text(self, index: int, happened: TextDelta) -> dict[str, object]:
        logprobs = chat_logprobs(happened.records, self._names) if self._wants_logprobs else None
        return {"logprobs": logprobs, **self._reply.observations(happened.records)}

    def finished(self, index: int) -> dict[str, object]:
        return {}
