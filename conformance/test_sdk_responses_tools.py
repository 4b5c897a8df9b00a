"""The official openai SDK on Responses with tools and thoughts: typed calls, and long turns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, OpenAI, pydantic_function_tool
from openai.types.responses import ParsedResponseFunctionToolCall, Response, ResponseReasoningItem
from pydantic import BaseModel

from conformance.profiles import Pool
from conformance.test_sdk_responses import asked, kinds, strict
from conformance.test_sdk_tools import LOOK, WANTED, Verdict, only


class Judge(BaseModel):
    """Leaves the model no choice."""

    verdict: Literal["good"]
    weight: Literal[1]


JUDGE = pydantic_function_tool(Judge, name="judge")
ENCRYPTED: Any = ["reasoning.encrypted_content"]
FLAT: Any = {"type": "function", "name": "look", "strict": True, **LOOK["function"]}
"""The tool as `create` takes it; the helpers make it of `LOOK`."""
WRITE: Any = {"type": "custom", "name": "write", "description": "Writes."}
QUIET: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
RESULT = {"type": "function_call_output", "output": "cold"}


@pytest.fixture(scope="module")
def client(pool: Pool) -> Iterator[OpenAI]:
    with strict(pool.get("thinker")) as sdk:
        yield sdk


def _thought(response: Response) -> ResponseReasoningItem:
    first = response.output[0]
    assert first.type == "reasoning"
    return first


def test_create(client: OpenAI) -> None:
    """The thought, the text and the call, each in its item."""
    answer = client.responses.create(**asked("SDK-TOOL", tools=[FLAT]))
    assert kinds(answer) == ["reasoning", "message", "function_call"]
    thought = _thought(answer)
    assert [part.text for part in thought.content or ()] == ["Where?"] and thought.summary == []
    assert thought.encrypted_content is None
    said, call = answer.output[1:]
    assert said.type == "message" and said.phase == "commentary"
    assert answer.output_text == "Let me see."
    assert call.type == "function_call" and call.name == "look" and call.status == "completed"
    assert call.call_id.startswith("call_") and json.loads(call.arguments) == WANTED.model_dump()
    assert answer.usage
    assert answer.usage.output_tokens_details.reasoning_tokens == len("Where?")
    assert [tool.to_dict()["name"] for tool in answer.tools] == ["look"]


def test_stream(client: OpenAI) -> None:
    """The pieces of each item join to what it is when it is done."""
    pieces: dict[str, str] = {}
    done: list[Any] = []
    for event in client.responses.create(**asked("SDK-TOOL", tools=[FLAT]), stream=True):
        shown = event.to_dict()
        if event.type == "response.output_item.done":
            done.append(event.item)
        elif event.type.endswith(".delta"):
            place = str(shown["item_id"])
            pieces[place] = pieces.get(place, "") + str(shown["delta"])
    thought, said, call = done
    assert pieces == {thought.id: "Where?", said.id: "Let me see.", call.id: call.arguments}
    assert json.loads(call.arguments) == WANTED.model_dump()


def test_stream_helper(client: OpenAI) -> None:
    """The helper's snapshots of a call, and the typed call that it accumulates."""
    with client.responses.stream(**asked("SDK-TOOL", tools=[LOOK])) as stream:
        shown = [
            event.snapshot
            for event in stream
            if event.type == "response.function_call_arguments.delta"
        ]
        final = stream.get_final_response()
    call = final.output[-1]
    assert isinstance(call, ParsedResponseFunctionToolCall) and call.parsed_arguments == WANTED
    assert shown[-1] == call.arguments and all(map(call.arguments.startswith, shown))
    assert final.output_text == "Let me see."


def test_parse(client: OpenAI) -> None:
    """The parse helper gets the typed arguments of a pydantic tool, and a typed answer."""
    answer = client.responses.parse(**asked("SDK-TOOL", tools=[LOOK]), text_format=Verdict)
    call = answer.output[-1]
    assert isinstance(call, ParsedResponseFunctionToolCall) and call.parsed_arguments == WANTED
    assert answer.output_parsed is None, "commentary is no answer"
    answer = client.responses.parse(**asked("SDK-TOOL answer", tools=[LOOK]), text_format=Verdict)
    assert kinds(answer) == ["reasoning", "message"]
    assert answer.output_parsed == Verdict(v="fine")


def test_parse_forced(client: OpenAI) -> None:
    """Strict arguments are typed whatever the model likes."""

    answer = client.responses.parse(
        **asked("SDK-TOOL prose", tools=[JUDGE]),
        tool_choice={"type": "function", "name": "judge"},
        parallel_tool_calls=False,
        extra_body=QUIET,
    )
    call = only(answer.output)
    assert isinstance(call, ParsedResponseFunctionToolCall)
    assert call.parsed_arguments == Judge(verdict="good", weight=1)


def test_custom(client: OpenAI) -> None:
    """A custom tool's text, whole and in pieces; with a grammar it is of that language."""
    answer = client.responses.create(**asked("SDK-TOOL custom", tools=[WRITE]))
    call = only(answer.output)
    assert call.type == "custom_tool_call" and call.name == "write"
    assert call.input == 'a "line"\nof text'
    events = list(client.responses.create(**asked("SDK-TOOL custom", tools=[WRITE]), stream=True))
    pieces = [e.delta for e in events if e.type == "response.custom_tool_call_input.delta"]
    (done,) = [e.input for e in events if e.type == "response.custom_tool_call_input.done"]
    assert "".join(pieces) == done == call.input
    for syntax, definition in (("lark", 'start: "yes"'), ("regex", "yes")):
        form = {"type": "grammar", "syntax": syntax, "definition": definition}
        answer = client.responses.create(
            **asked("SDK-TOOL prose", tools=[{**WRITE, "format": form}]),
            tool_choice={"type": "custom", "name": "write"},
            parallel_tool_calls=False,
            extra_body=QUIET,
        )
        forced = only(answer.output)
        assert forced.type == "custom_tool_call" and forced.input == "yes"
    broken = {"type": "grammar", "syntax": "lark", "definition": "start: ("}
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**asked(tools=[{**WRITE, "format": broken}]))
    assert caught.value.code == "invalid_grammar" and "tools" in str(caught.value.param)


def test_namespace(client: OpenAI) -> None:
    """A tool of a namespace comes back with both names, and with its arguments."""
    inner: Any = {"type": "function", **JUDGE["function"]}
    space: Any = {"type": "namespace", "name": "court", "description": "d", "tools": [inner]}
    answer = client.responses.parse(
        **asked("SDK-TOOL prose", tools=[space]),
        tool_choice="required",
        parallel_tool_calls=False,
        extra_body=QUIET,
    )
    call = only(answer.output)
    assert isinstance(call, ParsedResponseFunctionToolCall)
    assert (call.namespace, call.name) == ("court", "judge")
    assert call.parsed_arguments == {"verdict": "good", "weight": 1}


def test_unknown_choice(client: OpenAI) -> None:
    """A choice that names no tool is BadRequestError."""
    for choice in ("required", {"type": "function", "name": "nothing"}):
        tools: Any = [] if choice == "required" else [FLAT]
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(**asked(tools=tools, tool_choice=choice))
        assert str(caught.value.param).startswith("tool_choice")


def test_round_trip(client: OpenAI) -> None:
    """All items go back as they came, with a result; an answer follows."""
    first = client.responses.create(**asked("SDK-TOOL", tools=[FLAT], store=False))
    call = first.output[-1]
    assert call.type == "function_call"
    items: Any = [
        {"role": "user", "content": "SDK-TOOL"},
        *first.output,
        {**RESULT, "call_id": call.call_id},
        {"role": "user", "content": "SDK-TOOL thanks"},
    ]
    last = client.responses.create(**asked(tools=[FLAT], store=False) | {"input": items})
    assert last.output_text == "It is cold." and kinds(last) == ["message"]
    assert last.usage and first.usage and last.usage.input_tokens > first.usage.input_tokens


def test_encrypted_thoughts(client: OpenAI) -> None:
    """A thought that comes back by its secret alone is the same to the prompt as its text."""
    first = client.responses.create(
        **asked("SDK-TOOL", tools=[FLAT], store=False, include=ENCRYPTED)
    )
    thought = _thought(first)
    assert thought.encrypted_content and first.store is False
    secret = {**thought.to_dict(), "content": None}
    plain = {**thought.to_dict(), "encrypted_content": None}
    foreign = {**secret, "encrypted_content": "gAAAA-of-another-server"}
    call = first.output[-1]
    assert call.type == "function_call"

    def tokens(*thoughts: Any) -> int:
        items: Any = [
            {"role": "user", "content": "q"},
            *thoughts,
            *(item.to_dict() for item in first.output[1:]),
            {**RESULT, "call_id": call.call_id},
        ]
        counted = client.responses.input_tokens.count(model="m", input=items, tools=[FLAT])
        return counted.input_tokens

    assert tokens(secret) == tokens(plain) > tokens() == tokens(foreign)


def test_async(pool: Pool) -> None:
    """The async client: a typed call by both helpers, and its thought in secret."""

    async def all_of_it() -> None:
        async with AsyncOpenAI(
            base_url=f"{pool.get('thinker').url}/v1", api_key="x",
            _strict_response_validation=True, max_retries=0,
        ) as sdk:  # fmt: skip
            arguments = asked("SDK-TOOL", tools=[LOOK], include=ENCRYPTED)
            parsed = await sdk.responses.parse(**arguments)
            async with sdk.responses.stream(**arguments) as stream:
                final = await stream.get_final_response()
            for answer in (parsed, final):
                assert _thought(answer).encrypted_content
                call = answer.output[-1]
                assert isinstance(call, ParsedResponseFunctionToolCall)
                assert call.parsed_arguments == WANTED

    asyncio.run(all_of_it())
