"""POST /v1/messages and /v1/messages/count_tokens: Anthropic's conversations."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
from adapters.decode import (
    check_model,
    decode_beams,
    decode_controls,
    decode_stops,
    given,
    optional,
)
from adapters.generation import respond
from adapters.message_edits import apply_edits
from adapters.message_encode import PING, MessageHead, MessageStream, encode, error_event
from adapters.message_history import History, read_history
from adapters.thinking import decode_effort
from adapters.tools import Wanted, choose, is_looping
from engine.conversation import Conversation, Effort, Thinking, ToolChoice
from engine.errors import RequestError
from engine.types import GenerationRequest, OutputConstraint
from generated.messages import (
    CountTokensRequest,
    JSONOutputFormat,
    MessagesRequest,
    OutputConfig,
    PromptFields,
    SelectAny,
    SelectNone,
    SelectTool,
    ThinkingAdaptive,
    ThinkingBetweenTools,
    ThinkingEnabled,
)

_MOST_BUDGET = 2**31 - 1  # Helios: a larger budget is accepted and never cuts
_LOW_BUDGET, _HIGH_BUDGET = 5_000, 20_000  # Helios's ladder from budgets to efforts


async def create_message(call: Call) -> Response:
    """The route's handler."""
    body = cast(MessagesRequest, call.body)
    check_model(body, call)
    decoded = await _decoded(body, call)
    edited, report = await apply_edits(call, decoded.request, body, decoded.history.fixed)
    request = _limited(edited, body)
    if request.beams and cast(Conversation, request.prompt).tools:
        param = "use_beam_search" if body.use_beam_search is True else "num_beams"
        raise RequestError("beam search takes no tools", param)
    streams = body.stream is True
    head = MessageHead(call, omits_thoughts=_omits_thoughts(body), edits=report)
    return await respond(
        call,
        [request],
        lambda generation, outputs: encode(head, outputs[0]),
        (lambda generation: MessageStream(head, generation).events()) if streams else None,
        heartbeat=PING,
        on_error=lambda error: error_event(error, call),
    )


async def count_message_tokens(call: Call) -> Response:
    """The route's handler: the prompt that `create_message` would use."""
    body = cast(CountTokensRequest, call.body)
    check_model(body, call)
    decoded = await _decoded(body, call)
    request, report = await apply_edits(call, decoded.request, body, decoded.history.fixed)
    size = await call.service.count(request)
    count: dict[str, object] = {"input_tokens": size}
    if report is not None:
        original = await call.service.count(decoded.request) if report.applied else size
        count["context_management"] = {"original_input_tokens": original}
    return Response(to_json(count), media_type="application/json")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A request as the engine takes it, with what its history says besides."""

    request: GenerationRequest
    history: History


async def _decoded(body: PromptFields, call: Call) -> Decoded:
    """Decode on a frontend thread: a history may hold megabytes, and thoughts to be opened."""
    decoded = await call.service.offload(lambda: decode(body, call))
    call.service.counters.dropped_reasoning += decoded.history.dropped_thoughts
    return decoded


def decode(body: PromptFields, call: Call) -> Decoded:
    """The neutral request. Raises RequestError for what the schema cannot express."""
    seal, model = call.seal, call.service.info.checkpoint
    history = read_history(body, seal, call.tenant, model)
    strings = tuple(given(getattr(body, "stop_sequences", None), cast(list[str], [])))
    config = given(body.output_config, OutputConfig())
    request = decode_controls(
        body,
        _conversation(body, history),
        call.tenant,
        stops=decode_stops(body, strings, "stop_sequences"),
        constraints=[
            _format(config.format, "output_config.format"),
            _format(body.output_format, "output_format"),
        ],
    )
    return Decoded(request, history)


def _limited(request: GenerationRequest, body: MessagesRequest) -> GenerationRequest:
    return replace(
        request,
        beams=decode_beams(body, request, 1),
        max_tokens=body.max_tokens,
        clamps_max_tokens=True,
    )


def _conversation(body: PromptFields, history: History) -> Conversation:
    choice, parallel = _tool_choice(body, history)
    if body.suppress_tool_call is True and is_looping(history.messages):
        choice = ToolChoice("none")
    kwargs: dict[str, Any] = given(body.chat_template_kwargs, {})
    thinking = _thinking(body)
    if thinking is None:
        thinking = Thinking(None if _mentions_thinking(kwargs) else "none")
        budget = optional(body.thinking_token_budget)
        thinking = replace(thinking, budget=budget)
    elif thinking.effort != "none":
        kwargs = {**kwargs, "enable_thinking": True}
    return Conversation(
        messages=history.messages,
        tools=history.tools,
        tool_choice=choice,
        parallel_calls=parallel,
        thinking=thinking,
        template_kwargs=kwargs,
        add_generation_prompt=not history.continues,
        continue_final=history.continues,
        continue_param="messages",
    )


# Tools


def _tool_choice(body: PromptFields, history: History) -> tuple[ToolChoice, bool]:
    """What may be called, and whether more than once."""
    selected = optional(body.tool_choice)
    if isinstance(selected, SelectNone):
        return choose(history.tools, "none", "tool_choice"), True
    once = selected is not None and selected.disable_parallel_tool_use is True
    remaining = [tool for tool in history.tools if tool.name not in history.removed]
    if isinstance(selected, SelectTool):
        wanted = [Wanted(selected.name, custom=False, param="tool_choice.name")]
        return choose(remaining, "required", "tool_choice", wanted), not once
    kept = [Wanted(tool.name, custom=False, param="tools") for tool in remaining]
    mode: Literal["required", "auto"] = "required" if isinstance(selected, SelectAny) else "auto"
    only = kept if history.removed else None
    return choose(history.tools, mode, "tool_choice", only), not once


# Thinking


def _thinking(body: PromptFields) -> Thinking | None:
    """What `thinking` and the effort ask for; None where `thinking` is absent.

    Raises RequestError for budgets that contradict each other or the output limit.
    """
    config = optional(body.thinking)
    if config is None:
        return None
    if not isinstance(config, ThinkingEnabled | ThinkingAdaptive | ThinkingBetweenTools):
        return Thinking("none", budget=optional(body.thinking_token_budget))
    asked = None
    if not isinstance(config, ThinkingBetweenTools):
        asked = optional(config.budget_tokens)
    _check_budget(asked, body)
    effort = _effort(body)
    if effort is None and asked is not None:
        effort = _effort_of(asked)
    own = optional(body.thinking_token_budget)
    if own is not None:
        return Thinking(effort, own)
    budget = None if asked is None or asked > _MOST_BUDGET else asked
    return Thinking(effort, budget, "thinking.budget_tokens", advisory=True)


def _check_budget(asked: int | None, body: PromptFields) -> None:
    if asked is None:
        return
    name = "thinking.budget_tokens"
    limit = optional(getattr(body, "max_tokens", None))
    if isinstance(body, MessagesRequest) and limit is not None and asked >= limit:
        raise RequestError(f"`max_tokens` must be greater than `{name}`", name)
    own = optional(body.thinking_token_budget)
    if own is not None and own != asked:
        message = f"{name} and thinking_token_budget are one budget with two values"
        raise RequestError(message, "thinking_token_budget")


def _effort(body: PromptFields) -> Effort | int | None:
    config = given(body.output_config, OutputConfig())
    effort = decode_effort(optional(config.effort), "output_config.effort")
    if effort is None:
        effort = decode_effort(optional(body.reasoning_effort), "reasoning_effort")
    return effort


def _effort_of(budget: int) -> Effort:
    if budget <= _LOW_BUDGET:
        return "low"
    return "high" if budget <= _HIGH_BUDGET else "max"


def _mentions_thinking(kwargs: dict[str, Any]) -> bool:
    """Whether a client switches thinking by the template's own options."""
    names = ("enable_thinking", "thinking", "reasoning_effort")
    return any(kwargs.get(name) is not None for name in names)


def _omits_thoughts(body: MessagesRequest) -> bool:
    config = optional(body.thinking)
    shown = isinstance(config, ThinkingEnabled | ThinkingAdaptive)
    return shown and optional(config.display) == "omitted"


def _format(wanted: Any, param: str) -> OutputConstraint | None:
    form = optional(wanted)
    if not isinstance(form, JSONOutputFormat):
        return None
    return OutputConstraint("json_schema", json.dumps(form.schema_), f"{param}.schema")
