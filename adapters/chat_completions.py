"""POST /v1/chat/completions: conversations in, one message or chunks of it out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from starlette.responses import Response

from adapters.call import Call
from adapters.chat_encode import ChatDetails, chunk_form, encode
from adapters.chunks import ChunkEncoder, encode_stream
from adapters.decode import (
    check_model,
    decode_limit,
    decode_logprobs,
    decode_request,
    given,
    optional,
)
from adapters.generation import new_reply, respond
from adapters.logprobs import TokenNames
from adapters.thinking import decode_effort, decode_thinking
from adapters.tools import Wanted, arguments_schema, check_tools, choose, is_looping
from engine.conversation import (
    Conversation,
    CustomFormat,
    Message,
    Part,
    Reasoning,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from engine.errors import RequestError
from engine.generation import Generation
from engine.types import GenerationRequest, LogprobOptions
from generated.chat_completions import (
    AllowedToolsChoice,
    AssistantMessage,
    CalledTool,
    ChatCompletionRequest,
    CustomDefinition,
    CustomGrammarFormat,
    FunctionCallChoice,
    FunctionDefinition,
    FunctionMessage,
    FunctionTool,
    NamedCustomChoice,
    NamedFunctionChoice,
    ThinkingSwitch,
    ToolMessage,
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
    shown = body.include_reasoning is not False

    def encoder(generation: Generation) -> ChunkEncoder:
        wants_more = request.logprobs is not None or request.records
        details = ChatDetails(reply, names, request, generation) if wants_more else None
        options = optional(body.stream_options)
        form = chunk_form(with_reasoning=shown)
        return ChunkEncoder(reply, request.n, form, options, details)

    return await respond(
        call,
        [request],
        lambda generation, outputs: encode(
            reply, names, request, generation, outputs, with_reasoning=shown
        ),
        (lambda generation: encode_stream(generation, encoder(generation))) if streams else None,
    )


def decode(body: ChatCompletionRequest, tenant: str) -> GenerationRequest:
    """The neutral request. Raises RequestError for combinations that the schema cannot express."""
    request = decode_request(body, _conversation(body), tenant)
    limit, param = decode_limit(
        body,
        ("max_completion_tokens", body.max_completion_tokens),
        ("max_tokens", body.max_tokens),
        ("n_predict", body.n_predict),
    )
    if request.beams and cast(Conversation, request.prompt).tools:
        param = "use_beam_search" if body.use_beam_search is True else "num_beams"
        raise RequestError("beam search takes no tools", param)
    prediction = optional(body.prediction)
    return replace(
        request,
        max_tokens=limit,
        max_tokens_param=param or "max_tokens",
        logprobs=_logprobs(body),
        prediction="" if prediction is None else "".join(_texts(prediction.content)),
    )


def _conversation(body: ChatCompletionRequest) -> Conversation:
    messages = tuple(_message(m, f"messages[{i}]") for i, m in enumerate(body.messages))
    tools = check_tools(_tools(body))
    choice = _tool_choice(body, tools)
    if body.suppress_tool_call is True and is_looping(messages):
        choice = ToolChoice("none")
    template_kwargs: dict[str, Any] = given(body.chat_template_kwargs, {})
    if _switched(body) is True:
        template_kwargs = {**template_kwargs, "enable_thinking": True}
    return Conversation(
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parallel_calls=given(body.parallel_tool_calls, True),
        thinking=_thinking(body),
        template_kwargs=template_kwargs,
        add_generation_prompt=given(body.add_generation_prompt, True),
        continue_final=given(body.continue_final_message, False),
        add_special_tokens=given(body.add_special_tokens, False),
    )


def _logprobs(body: ChatCompletionRequest) -> LogprobOptions | None:
    top = given(body.top_logprobs, 0)
    if body.logprobs is not True:
        if top:
            raise RequestError("top_logprobs needs logprobs to be true", "top_logprobs")
        return decode_logprobs(body, None)
    return decode_logprobs(body, top)


def _message(message: Any, param: str) -> Message:
    texts = _texts(given(message.content, ""))
    name = optional(message.name)
    if isinstance(message, ToolMessage | FunctionMessage):
        call_id = given(message.tool_call_id, "") if isinstance(message, ToolMessage) else ""
        return Message("tool", (ToolResult(call_id, tuple(texts), name),))
    parts: list[Part] = [Text(text) for text in texts]
    if isinstance(message, AssistantMessage):
        refusal = optional(message.refusal)
        if refusal and not any(texts):
            parts = [Text(refusal)]
        thoughts = optional(message.reasoning_content) or optional(message.reasoning)
        if thoughts:
            parts.insert(0, Reasoning(thoughts))
        parts += _calls(message, param)
    return Message(message.role, tuple(parts), name)


def _texts(content: Any) -> list[str]:
    return [content] if isinstance(content, str) else [_part_text(part) for part in content]


def _part_text(part: Any) -> str:
    return cast(str, part.refusal if part.type == "refusal" else part.text)


def _calls(message: AssistantMessage, param: str) -> Iterator[ToolCall]:
    calls: list[CalledTool] = given(message.tool_calls, [])
    for place, call in enumerate(calls):
        call_id: str = given(call.id, "")
        function, custom = optional(call.function), optional(call.custom)
        if custom and (call.type == "custom" or not function):
            yield ToolCall(call_id, custom.name, given(custom.input, ""), custom=True)
        elif function:
            yield ToolCall(call_id, function.name, _arguments(function))
        else:
            kind = "custom" if call.type == "custom" else "function"
            missing = f"{param}.tool_calls[{place}].{kind}"
            raise RequestError(f"`{missing}` is required", missing, "missing_required_parameter")
    if function := optional(message.function_call):
        yield ToolCall("", function.name, _arguments(function))


def _arguments(function: Any) -> str:
    return given(function.arguments, "") or "{}"


def _tools(body: ChatCompletionRequest) -> Iterator[tuple[Tool, str]]:
    """The tools with the paths of their names."""
    tools: list[Any] = given(body.tools, [])
    functions: list[FunctionDefinition] = given(body.functions, [])
    if tools and functions:
        raise RequestError("functions is the older form of tools; send one of them", "functions")
    for place, tool in enumerate(tools):
        if isinstance(tool, FunctionTool):
            yield _function(tool.function, f"tools[{place}].function")
        else:
            yield _custom(tool.custom, f"tools[{place}].custom")
    for place, function in enumerate(functions):
        yield _function(function, f"functions[{place}]")


def _function(function: FunctionDefinition, param: str) -> tuple[Tool, str]:
    schema = f"{param}.parameters"
    tool = Tool(
        function.name,
        given(function.description, ""),
        arguments_schema(optional(function.parameters), schema),
        given(function.strict, False),
        param=schema,
    )
    return tool, f"{param}.name"


def _custom(custom: CustomDefinition, param: str) -> tuple[Tool, str]:
    wanted = optional(custom.format)
    form, path = CustomFormat(), f"{param}.format"
    if isinstance(wanted, CustomGrammarFormat):
        form = CustomFormat(wanted.grammar.syntax, wanted.grammar.definition)
        path += ".grammar.definition"
    tool = Tool(custom.name, given(custom.description, ""), format=form, param=path)
    return tool, f"{param}.name"


def _tool_choice(body: ChatCompletionRequest, tools: tuple[Tool, ...]) -> ToolChoice:
    choice, older = optional(body.tool_choice), optional(body.function_call)
    if choice is not None and older is not None:
        raise RequestError(
            "function_call is the older form of tool_choice; send one of them", "function_call"
        )
    if isinstance(older, FunctionCallChoice):
        wanted = Wanted(older.name, custom=False, param="function_call.name")
        return choose(tools, "required", "function_call", [wanted])
    if isinstance(choice, AllowedToolsChoice):
        allowed = choice.allowed_tools
        path = "tool_choice.allowed_tools"
        named = [_named(tool, f"{path}.tools[{i}]") for i, tool in enumerate(allowed.tools)]
        return choose(tools, allowed.mode, path, named)
    if isinstance(choice, NamedFunctionChoice | NamedCustomChoice):
        return choose(tools, "required", "tool_choice", [_named(choice, "tool_choice")])
    return choose(tools, choice or older or "auto", "tool_choice")


def _named(choice: NamedFunctionChoice | NamedCustomChoice, param: str) -> Wanted:
    if isinstance(choice, NamedCustomChoice):
        return Wanted(choice.custom.name, custom=True, param=f"{param}.custom.name")
    return Wanted(choice.function.name, custom=False, param=f"{param}.function.name")


def _thinking(body: ChatCompletionRequest) -> Thinking:
    switch = optional(body.thinking)
    budgets = {
        "thinking_token_budget": optional(body.thinking_token_budget),
        "thinking_budget": optional(body.thinking_budget),
        "reasoning_budget_tokens": optional(body.reasoning_budget_tokens),
    }
    if isinstance(switch, ThinkingSwitch):
        budgets["thinking.budget_tokens"] = optional(switch.budget_tokens)
    effort = decode_effort(optional(body.reasoning_effort), "reasoning_effort")
    return decode_thinking(effort, budgets, off=_switched(body) is False)


def _switched(body: ChatCompletionRequest) -> bool | None:
    """What the client said of thinking itself: on, off, or nothing."""
    switch = optional(body.thinking)
    if isinstance(switch, ThinkingSwitch):
        return {"enabled": True, "disabled": False}.get(switch.type)
    return cast(bool | None, switch)
