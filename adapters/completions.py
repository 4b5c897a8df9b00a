"""POST /v1/completions: raw text or token ids in, continuations out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
from adapters.chunks import ChunkEncoder, ChunkForm, encode_stream
from adapters.decode import (
    check_model,
    decode_limit,
    decode_logprobs,
    decode_request,
    given,
    optional,
)
from adapters.generation import FINISH_REASONS, Reply, new_reply, respond
from adapters.logprobs import CompletionLogprobs, TokenNames, prompt_logprobs
from engine.errors import RequestError
from engine.events import Delta, Output, PromptScored, TextDelta
from engine.generation import Generation
from engine.types import GenerationRequest, RawPrompt
from generated.completions import CompletionRequest

DEFAULT_MAX_TOKENS = 16  # the official API's


def _text(index: int, happened: Delta) -> bytes | None:
    return b'"text":' + to_json(happened.text) if isinstance(happened, TextDelta) else None


CHUNK_FORM = ChunkForm(started=None, delta=_text, nothing=b'"text":""', finished={"text": ""})


async def create_completion(call: Call) -> Response:
    """The route's handler."""
    body = cast(CompletionRequest, call.body)
    check_model(body, call)
    requests = decode(body, call.tenant)
    streams = body.stream is True
    reply = new_reply(call.service.info, body, "cmpl-", "text_completion", reasoning=False)
    names = TokenNames(call.service.tokenizer, as_ids=body.return_tokens_as_token_ids is True)

    def encoder(generation: Generation) -> ChunkEncoder:
        wants_more = requests[0].logprobs is not None or requests[0].records
        details = _Details(reply, names, requests[0], generation) if wants_more else None
        options = optional(body.stream_options)
        return ChunkEncoder(reply, generation.num_choices, CHUNK_FORM, options, details)

    return await respond(
        call,
        requests,
        lambda generation, outputs: encode(reply, names, body, requests, generation, outputs),
        (lambda generation: encode_stream(generation, encoder(generation))) if streams else None,
    )


def decode(body: CompletionRequest, tenant: str) -> list[GenerationRequest]:
    """One neutral request per prompt. Raises RequestError for what the schema cannot express."""
    top = optional(body.logprobs)
    echo = given(body.echo, False)
    limit, param = decode_limit(
        body, ("max_tokens", body.max_tokens), ("n_predict", body.n_predict)
    )
    if param is None:
        limit = DEFAULT_MAX_TOKENS
    made = []
    for content in _prompts(body.prompt):
        prompt = RawPrompt(content, given(body.add_special_tokens, True))
        request = decode_request(body, prompt, tenant)
        tops = (request.prompt_top, top if echo else None)
        made.append(
            replace(
                request,
                max_tokens=limit,
                max_tokens_param=param or "max_tokens",
                logprobs=decode_logprobs(body, top),
                prompt_top=max((value for value in tops if value is not None), default=None),
                echo=echo,
                prompt_param="prompt",
            )
        )
    return made


def _prompts(prompt: Any) -> list[str | tuple[int, ...]]:
    if prompt is None or isinstance(prompt, str):
        return [prompt or ""]
    if not prompt:
        raise RequestError("the prompt is empty", "prompt")
    if isinstance(prompt[0], int):
        return [tuple(prompt)]
    return [content if isinstance(content, str) else tuple(content) for content in prompt]


def encode(
    reply: Reply,
    names: TokenNames,
    body: CompletionRequest,
    requests: list[GenerationRequest],
    generation: Generation,
    outputs: list[Output],
) -> bytes:
    """The whole answer."""
    choices = []
    for index, output in enumerate(outputs):
        reply.count(index, output.end.usage)
        reply.finish(output.end)
        request = requests[index // reply.n]
        prompt = generation.prompts[index // reply.n]
        choice = {
            "index": index,
            "text": output.text,
            "logprobs": _logprobs(names, request, prompt, output),
            "finish_reason": FINISH_REASONS[output.end.cause],
            "stop_reason": output.end.stop,
            **reply.observations(output.records),
        }
        if request.prompt_top is not None:
            top = given(body.prompt_logprobs, request.prompt_top)
            choice["prompt_logprobs"] = prompt_logprobs(output.prompt_scores, top, names)
        if reply.shows_ids:
            choice["prompt_token_ids"] = prompt
        choices.append(choice)
    answer = {**reply.head, "choices": choices, "usage": reply.usage(), "flare": reply.flare()}
    return to_json(answer)


def _logprobs(
    names: TokenNames, request: GenerationRequest, prompt: tuple[int, ...], output: Output
) -> dict[str, object] | None:
    if request.logprobs is None:
        return None
    arrays = CompletionLogprobs(names)
    if request.echo:  # a deadline may have come before all of the prompt was scored
        scored = prompt[: len(output.prompt_scores)]
        arrays.add_prompt(scored, output.prompt_scores, request.logprobs.top, 0)
    arrays.add(output.records, output.echoed)
    return arrays.encode()


class _Details:
    """What chunks carry besides the output."""

    def __init__(
        self, reply: Reply, names: TokenNames, request: GenerationRequest, generation: Generation
    ) -> None:
        self._reply = reply
        self._names = names
        self._request = request
        self._prompts = generation.prompts
        self._scored: dict[int, int] = {}  # prompt tokens sent, by choice
        self._offsets: dict[int, int] = {}  # characters of them
        self._echoed: dict[int, int] = {}  # characters of the prompt's text, by choice
        self._began: set[int] = set()

    def prompt(self, index: int, happened: PromptScored) -> dict[str, object] | None:
        """One frame for each piece of the echoed prompt that is scored."""
        if self._request.logprobs is None or not self._request.echo:
            return None
        first = self._scored.get(index, 0)
        self._scored[index] = end = first + len(happened.scores)
        ids = self._prompts[index // self._reply.n][first:end]
        arrays = CompletionLogprobs(self._names)
        offset = self._offsets.get(index, 0)
        top = self._request.logprobs.top
        self._offsets[index] = arrays.add_prompt(ids, happened.scores, top, offset)
        return {"text": "", "logprobs": arrays.encode()}

    def started(self, index: int) -> dict[str, object]:
        return {}

    def delta(self, index: int, happened: Delta) -> dict[str, object]:
        if isinstance(happened, TextDelta):
            self._echoed.setdefault(index, happened.echoed)
        members: dict[str, object] = {"logprobs": None, **self._prompt_ids(index)}
        if self._request.logprobs is not None:
            arrays = CompletionLogprobs(self._names)
            arrays.add(happened.records, self._echoed.get(index, 0))
            members["logprobs"] = arrays.encode()
        return members | self._reply.observations(happened.records)

    def finished(self, index: int) -> dict[str, object]:
        return self._prompt_ids(index)  # an answer without text has no other piece

    def _prompt_ids(self, index: int) -> dict[str, object]:
        """The prompt's ids, on the first piece of a choice."""
        if index in self._began or not self._reply.shows_ids:
            return {}
        self._began.add(index)
        return {"prompt_token_ids": self._prompts[index // self._reply.n]}
