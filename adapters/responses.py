"""POST /v1/responses and what belongs to it: OpenAI's Responses."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any, cast

from pydantic_core import to_json
from starlette.responses import Response

from adapters.call import Call
from adapters.decode import (
    check_model,
    check_model_name,
    decode_beams,
    decode_controls,
    decode_logprobs,
    decode_stops,
    given,
    optional,
)
from adapters.envelope import HttpError
from adapters.generation import buffered, streamed
from adapters.logprobs import TokenNames
from adapters.response_answer import Answering, Asked, head_of
from adapters.response_compaction import compact
from adapters.response_events import ResponseDraft
from adapters.response_items import (
    ItemHistory,
    ItemReader,
    complete_item,
    input_items,
    written_items,
)
from adapters.response_object import new_response_id, usage_of
from adapters.response_stored import (
    cancel_response,
    delete_response,
    dumped,
    earlier_items,
    list_input_items,
    resolved_items,
    retrieve_response,
    save_response,
)
from adapters.response_tools import ResponseTools
from adapters.thinking import decode_effort, decode_thinking
from adapters.tools import is_looping
from engine.conversation import Conversation, Thinking, ToolChoice
from engine.errors import RequestError
from engine.types import GenerationRequest, LogprobOptions, OutputConstraint
from generated.responses import (
    CompactionRule,
    CompactRequest,
    InputFields,
    InputTokensRequest,
    MessageItem,
    ObjectFormat,
    ReasoningConfig,
    ResponseRequest,
    SchemaFormat,
    TextConfig,
)

__all__ = [
    "cancel_response",
    "compact_response",
    "complete_body",
    "count_input_tokens",
    "create_response",
    "delete_response",
    "list_input_items",
    "refuse_upgrade",
    "retrieve_response",
]

_LOGPROBS = "message.output_text.logprobs"
_ENCRYPTED = "reasoning.encrypted_content"


def complete_body(body: Any) -> None:
    """What the spec lets a body leave out although models need it."""
    if isinstance(body, dict) and isinstance(body.get("input"), list):
        for item in body["input"]:
            complete_item(item)


async def refuse_upgrade(call: Call) -> Response:
    """A WebSocket is refused so that Codex speaks HTTP at once; anything else is no method here."""
    offered = call.request.headers.get("upgrade", "").lower().split(",")
    if "websocket" in map(str.strip, offered):
        raise HttpError(
            426,
            "responses are streamed over HTTP; send POST",
            code="upgrade_required",
            headers={"Upgrade": "HTTP/1.1"},
        )
    message = f"{call.request.url.path} does not take {call.request.method}"
    raise HttpError(405, message, code="method_not_allowed", headers={"Allow": "POST"})


async def count_input_tokens(call: Call) -> Response:
    """The size of the prompt that `create_response` would use."""
    body = cast(InputTokensRequest, call.body)
    check_model(body, call)
    asked = await read(body, call)
    count = await call.service.count(asked.request)
    counted = {"object": "response.input_tokens", "input_tokens": count}
    return Response(to_json(counted), media_type="application/json")


# What is asked


async def read(body: InputFields, call: Call) -> Asked:
    """The neutral request. Raises RequestError for what the schema cannot express."""
    earlier, own = await _items(body, call)
    tools = ResponseTools(given(body.tools, []))
    history = _history(call, tools, earlier, own, optional(body.instructions))
    text, place = history.text or (given(body.text, TextConfig()), "")
    value: str | list[str] = given(getattr(body, "stop", None), [])
    strings = tuple([value] if isinstance(value, str) else value)
    request = decode_controls(
        body,
        _conversation(body, history, tools),
        call.tenant,
        stops=decode_stops(body, strings, "stop"),
        constraints=[_format(text, f"{place}text.format")],
    )
    return Asked(replace(request, prompt_param="input"), tools, own, history.triggers)


async def _items(body: InputFields | CompactRequest, call: Call) -> tuple[list[Any], list[Any]]:
    """Those of the response that is continued, and the body's own."""
    own = await resolved_items(call, input_items(optional(body.input)))
    previous = optional(body.previous_response_id)
    return (await earlier_items(call, previous) if previous else []), own


def _history(
    call: Call,
    tools: ResponseTools,
    earlier: list[Any],
    own: list[Any],
    instructions: str | None,
) -> ItemHistory:
    reader = ItemReader(tools, call.seal, call.tenant, call.service.info.checkpoint)
    history = reader.read(earlier, own, instructions)
    call.service.counters.dropped_reasoning += history.dropped_thoughts
    return history


def _conversation(body: InputFields, history: ItemHistory, tools: ResponseTools) -> Conversation:
    choice = tools.choose(given(body.tool_choice, "auto"))
    if body.suppress_tool_call is True and is_looping(history.messages):
        choice = ToolChoice("none")
    return Conversation(
        messages=history.messages,
        tools=tools.callable(),
        tool_choice=choice,
        parallel_calls=given(body.parallel_tool_calls, True),
        thinking=_thinking(body, history),
        template_kwargs=given(body.chat_template_kwargs, cast(dict[str, Any], {})),
    )


def _thinking(body: InputFields, history: ItemHistory) -> Thinking:
    reasoning, place = history.reasoning or (given(body.reasoning, ReasoningConfig()), "")
    effort = decode_effort(optional(reasoning.effort), f"{place}reasoning.effort")
    if effort is None:
        effort = decode_effort(optional(body.reasoning_effort), "reasoning_effort")
    budget = optional(body.thinking_token_budget)
    return decode_thinking(effort, {"thinking_token_budget": budget})


def _format(text: TextConfig, param: str) -> OutputConstraint | None:
    form = optional(text.format)
    if isinstance(form, SchemaFormat):
        return OutputConstraint("json_schema", json.dumps(form.schema_), f"{param}.schema")
    if isinstance(form, ObjectFormat):
        return OutputConstraint("json_object", "", param)
    return None


def _generated(asked: Asked, body: ResponseRequest) -> GenerationRequest:
    """The request with what only an answer needs. Raises RequestError."""
    request = replace(
        asked.request,
        max_tokens=optional(body.max_output_tokens),
        max_tokens_param="max_output_tokens",
        logprobs=_logprobs(body),
    )
    beams = decode_beams(body, request, 1)
    if beams and asked.tools.callable():
        param = "use_beam_search" if body.use_beam_search is True else "num_beams"
        raise RequestError("beam search takes no tools", param)
    return replace(request, beams=beams)


def _logprobs(body: ResponseRequest) -> LogprobOptions | None:
    top = given(body.top_logprobs, 0)
    if _LOGPROBS in given(body.include, cast(list[str], [])):
        return decode_logprobs(body, top)
    if top:
        raise RequestError(f"top_logprobs needs {_LOGPROBS} in include", "top_logprobs")
    return decode_logprobs(body, None)


# What is answered


async def create_response(call: Call) -> Response:
    """The route's handler."""
    body = cast(ResponseRequest, call.body)
    check_model(body, call)
    keeps = _keeps(body, call)
    asked = await read(body, call)
    request = _generated(asked, body)
    response_id = new_response_id()
    includes: list[str] = given(body.include, [])
    as_ids = body.return_tokens_as_token_ids is True
    draft = ResponseDraft(
        head_of(body, response_id, asked.tools.dropped, call.service.info, keeps=keeps),
        asked.tools.origin,
        names=TokenNames(call.service.tokenizer, as_ids=as_ids) if _LOGPROBS in includes else None,
        seal=(lambda text: _sealed(text, call)) if _ENCRYPTED in includes else None,
        keep_events=keeps,
    )
    previous = optional(body.previous_response_id) or None
    kept = dumped(written_items(asked.items, response_id)) if keeps else b""

    async def save() -> None:
        if keeps:
            await save_response(call, draft, response_id, kept, previous)

    answering = Answering(call, asked, request, draft, save, _threshold(body, call))
    await answering.open()
    if body.stream is True:
        return streamed(
            call, answering, answering.events(), heartbeat=draft.heartbeat, on_error=draft.failed
        )
    return await buffered(call, answering, answering.whole())


async def compact_response(call: Call) -> Response:
    """The route's handler: nothing is generated but the note, and nothing is kept."""
    body = cast(CompactRequest, call.body)
    check_model_name(optional(body.model), call)
    earlier, own = await _items(body, call)
    history = _history(call, ResponseTools([]), earlier, own, None)
    compaction_id = new_response_id()
    said = [
        item for item in (*earlier, *own) if isinstance(item, MessageItem) and item.role == "user"
    ]
    kept = written_items(said, compaction_id)
    instructions = optional(body.instructions)
    made = await compact(call, history.messages, instructions, optional(body.max_compaction_tokens))
    answer = {
        "id": compaction_id,
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*kept, made.item],
        "usage": usage_of(made.usage),
    }
    return Response(dumped(answer), media_type="application/json")


def _sealed(text: str, call: Call) -> str:
    return call.seal.seal(text, call.tenant, call.service.info.checkpoint)


def _keeps(body: ResponseRequest, call: Call) -> bool:
    """Whether the response is stored. Raises RequestError where it should be and cannot."""
    if call.store is None and body.store is True:
        raise RequestError("store: this server keeps no responses; send false", "store")
    return call.store is not None and given(body.store, True)


def _threshold(body: ResponseRequest, call: Call) -> int | None:
    """From how many prompt tokens on the conversation is compacted first; None for never."""
    rules: list[CompactionRule] = given(body.context_management, [])
    if not rules:
        return None
    return given(rules[0].compact_threshold, call.service.info.engine.max_context * 3 // 4)
