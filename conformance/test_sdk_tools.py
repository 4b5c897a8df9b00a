"""The official openai SDK with tools and thoughts, validating every reply strictly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar, cast

import openai
import pytest
from openai import AsyncOpenAI, OpenAI, pydantic_function_tool
from openai.types.chat import ChatCompletionMessageParam
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from pydantic import BaseModel

from conformance.profiles import Pool
from conformance.server import Server

THINKING_OFF: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}


class Look(BaseModel):
    """Looks at the weather."""

    city: str
    days: int
    unit: Literal["c", "f"]


class Verdict(BaseModel):
    """An answer in a form."""

    v: str


LOOK = pydantic_function_tool(Look, name="look")
WANTED = Look(city="Oslo", days=2, unit="c")


Item = TypeVar("Item")


def only(items: Sequence[Item] | None) -> Item:
    """The one item of a list."""
    assert items and len(items) == 1, items
    return items[0]


def say(text: str) -> list[ChatCompletionMessageParam]:
    """A conversation that a case's script claims."""
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module")
def client(pool: Pool) -> Iterator[OpenAI]:
    with OpenAI(
        base_url=f"{pool.get('thinker').url}/v1",
        api_key="any",
        _strict_response_validation=True,
        max_retries=0,
    ) as sdk:
        yield sdk


def test_create(client: OpenAI) -> None:
    """A call with its id, name and arguments; the text and the thought beside it."""
    answer = client.chat.completions.create(model="m", messages=say("SDK-TOOL"), tools=[LOOK])
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me see."
    assert choice.message.model_dump()["reasoning_content"] == "Where?"
    assert choice.message.function_call is None and choice.message.refusal is None
    assert choice.message.tool_calls and len(choice.message.tool_calls) == 1
    (call,) = choice.message.tool_calls
    assert call.type == "function" and call.id.startswith("call_")
    assert call.function.name == "look"
    assert json.loads(call.function.arguments) == WANTED.model_dump()
    assert answer.usage and answer.usage.completion_tokens_details
    assert answer.usage.completion_tokens_details.reasoning_tokens == len("Where?")


def test_stream(client: OpenAI) -> None:
    """Raw chunks, merged as clients do it, are the buffered message."""
    merged: dict[int, dict[str, str]] = {}
    thoughts = text = ""
    finish = None
    for chunk in client.chat.completions.create(
        model="m", messages=say("SDK-TOOL"), tools=[LOOK], stream=True
    ):
        (choice,) = chunk.choices
        thoughts += _reasoning(choice.delta)
        text += choice.delta.content or ""
        finish = choice.finish_reason or finish
        for part in choice.delta.tool_calls or ():
            call = merged.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
            assert part.function
            call["id"] += part.id or ""
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""
    assert (thoughts, text, finish) == ("Where?", "Let me see.", "tool_calls")
    assert list(merged) == [0] and merged[0]["name"] == "look"
    assert json.loads(merged[0]["arguments"]) == WANTED.model_dump()


def _reasoning(delta: ChoiceDelta) -> str:
    text = (delta.model_extra or {}).get("reasoning_content", "")
    assert isinstance(text, str)
    return text


def test_stream_helper(client: OpenAI) -> None:
    """The helper's events of a call, and the message that it accumulates."""
    with client.chat.completions.stream(
        model="m", messages=say("SDK-TOOL"), tools=[LOOK], stream_options={"include_usage": True}
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert [event.parsed_arguments for event in done] == [WANTED]
    pieces = [event for event in events if event.type == "tool_calls.function.arguments.delta"]
    assert "".join(event.arguments_delta for event in pieces) == done[0].arguments
    message = final.choices[0].message
    assert message.content == "Let me see."
    assert message.tool_calls and message.tool_calls[0].function.parsed_arguments == WANTED
    assert final.usage and final.usage.completion_tokens > 0


def test_parse(client: OpenAI) -> None:
    """The parse helper gets the typed arguments of a pydantic tool."""
    answer = client.chat.completions.parse(model="m", messages=say("SDK-TOOL"), tools=[LOOK])
    call = only(answer.choices[0].message.tool_calls)
    assert call.function.parsed_arguments == WANTED


def test_parse_forced(client: OpenAI) -> None:
    """Strict arguments are typed whatever the model likes."""
    answer = client.chat.completions.parse(
        model="m",
        messages=say("SDK-TOOL prose"),
        tools=[pydantic_function_tool(Verdicts)],
        tool_choice="required",
        parallel_tool_calls=False,
        extra_body=THINKING_OFF,
    )
    call = only(answer.choices[0].message.tool_calls)
    assert call.function.parsed_arguments == Verdicts(verdict="good", weight=1)


class Verdicts(BaseModel):
    """Only one value fits each member, so that masks alone write it."""

    verdict: Literal["good"]
    weight: Literal[1]


def test_parse_with_tools_and_format(client: OpenAI) -> None:
    """A format beside tools: a call leaves `parsed` empty, an answer has it."""
    asked: dict[str, Any] = {"model": "m", "tools": [LOOK], "response_format": Verdict}
    called = client.chat.completions.parse(messages=say("SDK-TOOL call"), **asked)
    assert called.choices[0].finish_reason == "tool_calls"
    assert called.choices[0].message.parsed is None
    assert called.choices[0].message.content is None
    call = only(called.choices[0].message.tool_calls)
    assert call.function.parsed_arguments == WANTED
    answered = client.chat.completions.parse(messages=say("SDK-TOOL answer"), **asked)
    assert answered.choices[0].message.parsed == Verdict(v="fine")
    assert answered.choices[0].message.model_dump()["reasoning_content"] == "Hm."
    with client.chat.completions.stream(messages=say("SDK-TOOL answer"), **asked) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == Verdict(v="fine")


def test_parse_cut(client: OpenAI) -> None:
    """A call that the limit cuts is the SDK's LengthFinishReasonError, not half a call."""
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(
            model="m", messages=say("SDK-TOOL call"), tools=[LOOK], max_tokens=40
        )


def test_custom_tool(client: OpenAI) -> None:
    """A custom tool's call has its own type, with free text."""
    answer = client.chat.completions.create(
        model="m",
        messages=say("SDK-TOOL custom"),
        tools=[{"type": "custom", "custom": {"name": "write", "format": {"type": "text"}}}],
    )
    call = only(answer.choices[0].message.tool_calls)
    assert call.type == "custom" and call.custom.name == "write"
    assert call.custom.input == 'a "line"\nof text'


def test_round_trip(client: OpenAI) -> None:
    """The message goes back as it came, with its result; the answer follows."""
    messages = say("SDK-TOOL")
    answer = client.chat.completions.create(model="m", messages=messages, tools=[LOOK])
    message = answer.choices[0].message
    call = only(message.tool_calls)
    messages.append(cast(ChatCompletionMessageParam, message.to_dict()))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "cold"})
    messages += say("SDK-TOOL thanks")
    last = client.chat.completions.create(model="m", messages=messages, tools=[LOOK])
    assert last.choices[0].message.content == "It is cold."
    assert last.choices[0].finish_reason == "stop" and not last.choices[0].message.tool_calls


def test_refusals(client: OpenAI) -> None:
    """What cannot be enforced, and what is not declared, is BadRequestError with its place."""
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model="m",
            messages=say("x"),
            tools=[LOOK],
            tool_choice={"type": "function", "function": {"name": "other"}},
        )
    assert caught.value.param == "tool_choice.function.name"
    unfit: dict[str, object] = {"type": "object", "properties": {"a": {"not": {"type": "string"}}}}
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model="m",
            messages=say("x"),
            tools=[
                {
                    "type": "function",
                    "function": {"name": "f", "parameters": unfit, "strict": True},
                }
            ],
        )
    assert caught.value.code == "invalid_schema" and "'not'" in caught.value.message
    assert (caught.value.param or "").startswith("tools[0].function.parameters")


def test_reasoning(client: OpenAI) -> None:
    """`reasoning_effort` is a parameter of the SDK; the thought is an extra member."""
    answer = client.chat.completions.create(
        model="m", messages=say("SDK-TOOL answer"), reasoning_effort="low"
    )
    assert answer.choices[0].message.model_dump()["reasoning_content"] == "Hm."
    assert answer.choices[0].message.content == '{"v": "fine"}'
    off = client.chat.completions.create(
        model="m", messages=say("SDK-TOOL thanks"), reasoning_effort="none"
    )
    assert "reasoning_content" not in off.choices[0].message.model_dump(exclude_unset=True)
    assert off.usage and off.usage.completion_tokens_details
    assert off.usage.completion_tokens_details.reasoning_tokens == 0


def test_async(pool: Pool) -> None:
    """The async client's helper sees the same call."""

    async def run(server: Server) -> None:
        async with (
            AsyncOpenAI(
                base_url=f"{server.url}/v1", api_key="any", _strict_response_validation=True
            ) as sdk,
            sdk.chat.completions.stream(
                model="m", messages=say("SDK-TOOL"), tools=[LOOK]
            ) as stream,
        ):
            final = await stream.get_final_completion()
        call = only(final.choices[0].message.tool_calls)
        assert call.function.parsed_arguments == WANTED

    asyncio.run(run(pool.get("thinker")))


def test_model(embedded: Server) -> None:
    """On the model, which cannot call tools by itself: a forced call has typed arguments."""

    class Pet(BaseModel):
        kind: Literal["cat", "dog"]
        age: Literal[1, 2, 3]

    with OpenAI(
        base_url=f"{embedded.url}/v1", api_key="x", _strict_response_validation=True
    ) as sdk:
        answer = sdk.chat.completions.parse(
            model="m",
            messages=say("Invent a pet."),
            tools=[pydantic_function_tool(Pet, name="adopt")],
            tool_choice="required",
            parallel_tool_calls=False,
            max_tokens=80,
            seed=1,
        )
    assert answer.choices[0].finish_reason == "tool_calls"
    call = only(answer.choices[0].message.tool_calls)
    assert isinstance(call.function.parsed_arguments, Pet)
