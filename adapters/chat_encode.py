"""Chat Completions' answers: what a generation made as a message, or as the deltas of one."""

from __future__ import annotations

from pydantic_core import to_json

from adapters.chunks import ChunkForm
from adapters.generation import FINISH_REASONS, Reply
from adapters.logprobs import TokenNames, chat_logprobs, prompt_logprobs
from engine.events import (
    CallBlock,
    CallDelta,
    CallStart,
    Delta,
    Output,
    PromptScored,
    ReasoningDelta,
    TextDelta,
)
from engine.generation import Generation
from engine.types import GenerationRequest


def encode(
    reply: Reply,
    names: TokenNames,
    request: GenerationRequest,
    generation: Generation,
    outputs: list[Output],
    *,
    with_reasoning: bool = True,
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
                "message": _message(output, with_reasoning),
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


def _message(output: Output, with_reasoning: bool) -> dict[str, object]:
    text, reasoning, calls = output.text, output.reasoning, output.calls
    content = text if text or not (reasoning or calls) else None
    message: dict[str, object] = {"role": "assistant", "content": content, "refusal": None}
    if reasoning and with_reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    return message


def _call(call: CallBlock) -> dict[str, object]:
    if call.custom:
        made = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": made}
    made = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": made}


def chunk_form(*, with_reasoning: bool = True) -> ChunkForm:
    """How one answer is written in chunks."""
    return ChunkForm(
        started=b'"delta":{"role":"assistant","content":""}',
        delta=_Deltas(with_reasoning).write,
        nothing=b'"delta":{}',
        finished={"delta": {}},
    )


class _Deltas:
    """Writes the deltas of one answer; remembers which of its calls are of custom tools."""

    def __init__(self, with_reasoning: bool) -> None:
        self._with_reasoning = with_reasoning
        self._customs: set[tuple[int, int]] = set()

    def write(self, index: int, happened: Delta) -> bytes | None:
        if isinstance(happened, TextDelta):
            return b'"delta":{"content":' + to_json(happened.text) + b"}"
        if isinstance(happened, ReasoningDelta):
            if not self._with_reasoning or not happened.text:
                return None
            return b'"delta":{"reasoning_content":' + to_json(happened.text) + b"}"
        if isinstance(happened, CallStart):
            return self._start(index, happened)
        if isinstance(happened, CallDelta) and happened.arguments:
            field = b',"function":{"arguments":'
            if (index, happened.call) in self._customs:
                field = b',"custom":{"input":'
            return _tool_call(happened.call, field + to_json(happened.arguments) + b"}")
        return None

    def _start(self, index: int, begun: CallStart) -> bytes:
        kind, text = ("custom", "input") if begun.custom else ("function", "arguments")
        if begun.custom:
            self._customs.add((index, begun.call))
        call = {"id": begun.id, "type": kind, kind: {"name": begun.name, text: ""}}
        return _tool_call(begun.call, b"," + to_json(call)[1:-1])


def _tool_call(number: int, members: bytes) -> bytes:
    """The delta of one call; `members` follow its number."""
    return b'"delta":{"tool_calls":[{"index":' + str(number).encode() + members + b"}]}"


class ChatDetails:
    """What chunks carry besides the output."""

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

    def delta(self, index: int, happened: Delta) -> dict[str, object]:
        logprobs = chat_logprobs(happened.records, self._names) if self._wants_logprobs else None
        return {"logprobs": logprobs, **self._reply.observations(happened.records)}

    def finished(self, index: int) -> dict[str, object]:
        return {}
