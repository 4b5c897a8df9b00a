"""The official anthropic SDK with tools and thoughts: round trips, beta, and its tool runner."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic, beta_async_tool, beta_tool

from conformance.profiles import Pool
from conformance.test_sdk_messages import ADAPTIVE, LOOK, WANTED, asked, say, strict

Client = anthropic.Anthropic


@pytest.fixture(scope="module")
def client(pool: Pool) -> Any:
    with strict(pool.get("thinker")) as sdk:
        yield sdk


def _kinds(content: Any) -> list[str]:
    return [block.type for block in content]


def test_create(client: Client) -> None:
    """The thought, the text and the call, each in its block."""
    answer = client.messages.create(**asked("SDK-TOOL"), tools=[LOOK], thinking=ADAPTIVE)
    assert _kinds(answer.content) == ["thinking", "text", "tool_use"]
    thought, text, call = answer.content
    assert thought.type == "thinking" and thought.thinking == "Where?" and thought.signature
    assert text.type == "text" and text.text == "Let me see."
    assert call.type == "tool_use" and (call.name, call.input) == ("look", WANTED)
    assert answer.stop_reason == "tool_use"
    details = answer.usage.output_tokens_details
    assert details and details.thinking_tokens == len("Where?")


def test_stream_helper(client: Client) -> None:
    """The helper's events of each block, and the message that it accumulates."""
    arguments = asked("SDK-TOOL", tools=[LOOK], thinking=ADAPTIVE)
    with client.messages.stream(**arguments) as stream:
        events = list(stream)
        final = stream.get_final_message()
    whole = client.messages.create(**arguments)
    for mine, other in zip(final.content, whole.content, strict=True):
        assert mine.to_dict() | {"id": ""} == other.to_dict() | {"id": ""}
    kinds = {event.type for event in events}
    assert {"text", "thinking", "signature", "input_json"} <= kinds
    pieces = [event.partial_json for event in events if event.type == "input_json"]
    assert len(pieces) > 3 and events[-1].type == "message_stop"


def test_round_trip(client: Client) -> None:
    """The message goes back as it came, signature included, with a result; an answer follows."""
    messages = say("SDK-TOOL")
    arguments: dict[str, Any] = {"tools": [LOOK], "thinking": ADAPTIVE}
    answer = client.messages.create(**asked() | arguments | {"messages": messages})
    call = answer.content[-1]
    assert call.type == "tool_use"
    messages.append({"role": "assistant", "content": answer.content})
    result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "cold"}
    thanks: Any = {"type": "text", "text": "SDK-TOOL thanks"}
    messages.append({"role": "user", "content": [result, thanks]})
    last = client.messages.create(**asked() | arguments | {"messages": messages})
    (text,) = last.content
    assert text.type == "text" and text.text == "It is cold." and last.stop_reason == "end_turn"


def test_tampered_thought(client: Client) -> None:
    """A thought whose text was changed under our signature is BadRequestError."""
    answer = client.messages.create(**asked("SDK-TOOL"), tools=[LOOK], thinking=ADAPTIVE)
    content = [block.to_dict() for block in answer.content]
    content[0]["thinking"] = "Elsewhere?"
    turns = [*say("q"), {"role": "assistant", "content": content}, *say("r")]
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(**asked() | {"messages": turns})
    assert "signature" in str(caught.value)


def test_omitted_thought(client: Client) -> None:
    """An omitted thought is empty for the client, and goes back by its signature."""
    omitted: Any = {**ADAPTIVE, "display": "omitted"}
    with client.messages.stream(**asked("SDK-TOOL"), tools=[LOOK], thinking=omitted) as stream:
        final = stream.get_final_message()
    thought = final.content[0]
    assert thought.type == "thinking" and thought.thinking == "" and thought.signature
    shown = client.messages.create(**asked("SDK-TOOL"), tools=[LOOK], thinking=ADAPTIVE)
    result: Any = {"type": "tool_result", "tool_use_id": "x", "content": "cold"}
    counts = [
        client.messages.count_tokens(
            model="m",
            messages=[
                *say("SDK-TOOL"),
                {"role": "assistant", "content": answer.content},
                {"role": "user", "content": [result]},
            ],
            tools=[LOOK],
        ).input_tokens
        for answer in (final, shown)
    ]
    assert counts[0] == counts[1]


def test_forced(client: Client) -> None:
    """A strict tool that must be called has typed arguments whatever the model likes."""
    schema: Any = {
        "type": "object",
        "properties": {"verdict": {"enum": ["good"]}, "weight": {"enum": [1]}},
        "required": ["verdict", "weight"],
        "additionalProperties": False,
    }
    answer = client.messages.create(
        **asked("SDK-TOOL prose", max_tokens=400),
        tools=[{"name": "judge", "input_schema": schema, "strict": True}],
        tool_choice={"type": "tool", "name": "judge", "disable_parallel_tool_use": True},
    )
    assert _kinds(answer.content) == ["tool_use"] and answer.stop_reason == "tool_use"
    call = answer.content[0]
    assert call.type == "tool_use" and call.input == {"verdict": "good", "weight": 1}


def test_beta(client: Client) -> None:
    """The beta surface: betas, edits that clear nothing, budgets, and system messages."""
    answer = client.beta.messages.create(
        **asked("SDK-TOOL answer", thinking=ADAPTIVE),
        betas=["context-management-2025-06-27", "unknown-beta-2099-01-01"],
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        output_config={"effort": "xhigh"},
    )
    assert answer.context_management and answer.context_management.applied_edits == []
    assert _kinds(answer.content) == ["thinking", "text"]
    turns: Any = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""}]},
        *say("r"),
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "u", "signature": ""}]},
        *say("SDK-TOOL thanks"),
        {"role": "system", "content": "Be brief.", "clear_at": "next_user_message"},
    ]
    counted = client.beta.messages.count_tokens(
        model="m",
        messages=turns,
        context_management={"edits": [{"type": "clear_thinking_20251015"}]},
    )
    assert counted.context_management
    assert counted.context_management.original_input_tokens >= counted.input_tokens
    with client.beta.messages.stream(**asked("SDK-TOOL", thinking=ADAPTIVE)) as stream:
        assert stream.get_final_message().stop_reason in ("end_turn", "tool_use")


# The tool runner: it asks for a thread that the server would keep, is told that there are none,
# and goes on with the whole conversation in each request.


def _fell_back(caplog: pytest.LogCaptureFixture) -> bool:
    return any("cannot thread this request" in record.getMessage() for record in caplog.records)


def test_tool_runner(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The whole loop: a call, its result, an answer; without tools or history lost on the way."""
    cities = []

    @beta_tool
    def look(city: str, days: int, unit: str) -> str:
        """Looks at the weather."""
        cities.append((city, days, unit))
        return "SDK-RUNNER cold"

    for streams in (False, True):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            runner = client.beta.messages.tool_runner(
                **asked("SDK-TOOL call"), tools=[look], stream=streams
            )
            final = runner.until_done()
        assert _fell_back(caplog), "the runner never asked for a thread"
        assert _kinds(final.content) == ["text"] and final.stop_reason == "end_turn"
        assert final.content[0].type == "text" and final.content[0].text == "It was cold."
    assert cities == [("Oslo", 2, "c")] * 2


def test_tool_runner_prompts(client: Client) -> None:
    """The second request has the history and the tools: its prompt is longer by call and result."""

    @beta_tool
    def look(city: str, days: int, unit: str) -> str:
        """Looks at the weather."""
        return "SDK-RUNNER cold"

    prompts = []
    for answer in client.beta.messages.tool_runner(**asked("SDK-TOOL call"), tools=[look]):
        usage = answer.usage
        prompts.append(usage.input_tokens + (usage.cache_read_input_tokens or 0))
    assert len(prompts) == 2 and prompts[1] > prompts[0], prompts


def test_async_tool_runner(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    """The same of the async client, also streaming."""
    cities = []

    @beta_async_tool
    async def look(city: str, days: int, unit: str) -> str:
        """Looks at the weather."""
        cities.append(city)
        return "SDK-RUNNER cold"

    async def run() -> None:
        async with AsyncAnthropic(
            base_url=pool.get("thinker").url, api_key="x", _strict_response_validation=True
        ) as sdk:
            for streams in (False, True):
                runner = sdk.beta.messages.tool_runner(
                    **asked("SDK-TOOL call"), tools=[look], stream=streams
                )
                final = await runner.until_done()
                assert final.content[0].type == "text"
                assert final.content[0].text == "It was cold."

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    assert cities == ["Oslo", "Oslo"] and _fell_back(caplog)


def test_thread(client: Client) -> None:
    """A client that insists on a thread is told, in the SDK's own words, that there is none."""
    thread = client.beta.messages.thread(model="m", max_tokens=100)
    with pytest.raises(anthropic.BadRequestError) as caught:
        thread.send({"role": "user", "content": "SDK-TOOL thanks"})
    assert caught.value.error_code == "thread_unsupported_request"
    assert caught.value.type == "invalid_request_error"
