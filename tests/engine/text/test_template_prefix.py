"""A turn's prompt and output are the beginning of the next turn's prompt, token by token.

Only then does the prefix cache serve a conversation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from engine.conversation import (
    Conversation,
    Message,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from engine.text.tokenizer import Tokenizer
from tests.engine.text.styles import STYLES, Style, template_of

SYSTEM = Message("system", (Text("Be <b>brief</b>."),))
USER, AGAIN = Message("user", (Text("Weather?"),)), Message("user", (Text("And  tomorrow?"),))
TOOLS = (
    Tool(
        "get_weather",
        "Tells the weather.",
        {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    ),
    Tool("stop"),
)
ARGUMENTS: tuple[dict[str, object], ...] = (
    {"city": "Paris", "days": 3},
    {"days": 1.5, "city": '東京\n</b> "x"', "deep": {"b": [1, None, True], "a": {}}},
    {},
)
IDS = ("functions.get_weather:0", "functions.get_weather:1", "functions.stop:2")
SHORT_IDS = ("aaaaaaaa1", "aaaaaaaa2", "aaaaaaaa3")


def calls_of(name: str) -> list[ToolCall]:
    ids = SHORT_IDS if name == "mistral" else IDS
    names = ("get_weather", "get_weather", "stop")
    return [
        ToolCall(call_id, tool, json.dumps(arguments, ensure_ascii=False))
        for call_id, tool, arguments in zip(ids, names, ARGUMENTS, strict=True)
    ]


def results(calls: Sequence[ToolCall]) -> list[Message]:
    """In an order that is not the calls'."""
    return [
        Message("tool", (ToolResult(call.id, (f"<r> {call.id}", "\n22 C")),))
        for call in reversed(calls)
    ]


Step = tuple[str, str, list[ToolCall], list[Message]]


def steps(name: str, style: Style) -> list[Step]:
    """What the model says turn by turn, and what the client answers."""
    thought = "Let me <see>." if style.thinks else ""
    calls = calls_of(name)
    text = "I look." if style.text_with_calls and not thought else ""
    first: list[Step]
    if style.parallel:
        first = [(thought, text, calls[:2], results(calls[:2]))]
    else:
        first = [(thought, text, [call], results([call])) for call in calls[:2]]
    with_text = "Now it ends." if style.text_with_calls and name != "harmony" else ""
    return [
        *first,
        (thought, with_text, calls[2:], results(calls[2:])),
        (thought, "It is 22 C.", [], [AGAIN]),
        ("", "Warm.", [], [SYSTEM, USER]),
    ]


def said(thought: str, text: str, calls: Sequence[ToolCall]) -> Message:
    thoughts: list[Part] = [Reasoning(thought)] if thought else []
    texts: list[Part] = [Text(text)] if text else []
    return Message("assistant", (*thoughts, *texts, *calls))


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("first", [(USER,), (SYSTEM, USER)])
def test_a_prompt_continues_the_one_before(
    name: str, first: tuple[Message, ...], markup: Tokenizer
) -> None:
    style = STYLES[name]
    template = template_of(style.source, markup)
    messages = list(first)
    for thought, text, calls, answers in steps(name, style):
        prompt = template.render(Conversation(tuple(messages), tools=TOOLS)).token_ids
        output = markup.encode_rendered(style.written(thought, text, calls))
        messages += [said(thought, text, calls), *answers]
        if answers[-1].role == "user" and name in ("qwen3", "glm"):
            break  # these drop the thoughts of earlier turns
        if name == "gemma" and text == "Warm.":
            break
        following = template.render(Conversation(tuple(messages), tools=TOOLS)).token_ids
        expected = [*prompt, *output]
        assert markup.decode(following[: len(expected)]) == markup.decode(expected)
        assert list(following[: len(expected)]) == expected


@pytest.mark.parametrize("name", STYLES)
def test_system_text_in_the_middle_keeps_what_is_before_it(name: str, markup: Tokenizer) -> None:
    template = template_of(STYLES[name].source, markup)
    calls = calls_of(name)[:1]
    before = (SYSTEM, USER, said("", "", calls), *results(calls))
    whole = (*before, Message("system", (Text("Mind the time."),)))
    shown = template.render(
        Conversation(before, tools=TOOLS, add_generation_prompt=False)
    ).token_ids
    longer = template.render(Conversation(whole, tools=TOOLS)).token_ids
    kept = len(shown) - (len("</turn>\n") if name == "gemma" else 0)  # it joins the two turns
    assert longer[:kept] == shown[:kept]
    assert "Mind the time." in markup.decode(longer)


@pytest.mark.parametrize("name", STYLES)
def test_the_choice_among_tools_changes_no_token(name: str, markup: Tokenizer) -> None:
    template = template_of(STYLES[name].source, markup)
    choices = (
        ToolChoice(), ToolChoice("none"), ToolChoice("required", frozenset({"stop"})),
    )  # fmt: skip
    prompts = {
        template.render(Conversation((USER,), tools=TOOLS, tool_choice=choice)).token_ids
        for choice in choices
    }
    assert len(prompts) == 1
    (prompt,) = prompts
    assert "get_weather" in markup.decode(prompt)
