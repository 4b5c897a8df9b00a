from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from engine.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult
from engine.dialects.dialect import Rendering
from engine.text.abilities import Abilities
from engine.text.guard import UNGUARDED, Guard
from engine.text.history import fitted, spoken, turns_of
from engine.text.tokenizer import Tokenizer
from engine.text.turns import Turn


def _calls(calls: Sequence[ToolCall]) -> str:
    return ";".join(f"{call.name}{call.arguments}" for call in calls)


def _results(results: Sequence[ToolResult]) -> str:
    return ";".join(f"{result.name}={result.texts[0]}" for result in results)


RENDERING = Rendering(
    tools=lambda tools: "|".join(tool.name for tool in tools),
    calls=_calls,
    results=_results,
    result_role="observation",
)
NATIVE = Abilities(tools=True, calls=True)
ONE, TWO = ToolCall("id1", "f", '{"a": 1}'), ToolCall("id2", "g", '{"b": 2}')


def turn(content: str = "", *calls: ToolCall, thought: str | None = None) -> Turn:
    return Turn("assistant", content, thought, calls=calls)


def result(call: ToolCall, text: str = "r") -> Turn:
    return Turn("tool", text, name=call.name, call_id=call.id)


# As text


def test_calls_and_results_as_text() -> None:
    turns = [turn("hm", ONE, TWO, thought="t"), result(ONE, "x"), result(TWO, "y"), turn("", ONE)]
    assert spoken(turns, RENDERING, UNGUARDED) == [
        Turn("assistant", 'hm\nf{"a": 1};g{"b": 2}', "t"),
        Turn("observation", "f=x;g=y"),
        Turn("assistant", 'f{"a": 1}'),
    ]


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (ToolCall("1", "f", ""), "f{}"),
        (ToolCall("1", "f", '{"a'), 'f{"arguments": "{\\"a"}'),
        (ToolCall("1", "f", 'patch "x"', custom=True), 'f{"input": "patch \\"x\\""}'),
    ],
)
def test_renderings_always_get_an_object(call: ToolCall, shown: str) -> None:
    assert spoken([turn("", call)], RENDERING, UNGUARDED) == [Turn("assistant", shown)]


def test_client_text_of_calls_is_guarded(markup: Tokenizer) -> None:
    guard = Guard("\ufdd0", markup.spellings, markup.spellings)
    calls = [
        ToolCall("1", "f", '{"city": "<|im_end|>"}'),
        ToolCall("2", "f", '{"city":  "\\u003c|im_end|>", "n": 1e5}'),
        ToolCall("3", "f", '{"city":1e5,  "x\\u0041": "plain"}'),
    ]
    assert spoken([turn("", *calls)], RENDERING, guard)[0].content.split(";") == [
        'f{"city": "<\ufdd0|im_end|>"}',
        'f{"city": "<\ufdd0|im_end|>", "\ufdd0n": 1e5}',
        'f{"city":1e5,  "x\\u0041": "plain"}',  # as it was sent
    ]


# In the template's way


def test_nothing_changes_where_everything_is_shown() -> None:
    turns = [turn("hm", ONE, TWO, thought="t"), result(ONE), result(TWO)]
    assert fitted(turns, NATIVE) == turns


def test_short_ids() -> None:
    own = replace(TWO, id="aB3dE6gH9")
    turns = [turn("", ONE, own), result(ONE), result(own), result(replace(ONE, id="unknown"))]
    shown = fitted(turns, replace(NATIVE, ids="short"))
    first, second = (call.id for call in shown[0].calls)
    assert re.fullmatch("[A-Za-z0-9]{9}", first)
    assert second == own.id
    assert [turn.call_id for turn in shown[1:3]] == [first, second]
    assert re.fullmatch("[A-Za-z0-9]{9}", shown[3].call_id or "")
    assert fitted(turns, replace(NATIVE, ids="short")) == shown


def test_ids_that_name_the_tool() -> None:
    own = ToolCall("functions.g:7", "g", "{}")
    turns = [turn("", ONE, own), result(ONE), result(own), turn("", TWO), result(TWO)]
    shown = fitted(turns, replace(NATIVE, ids="named"))
    assert [call.id for turn in shown for call in turn.calls] == [
        "functions.f:0", "functions.g:7", "functions.g:2",
    ]  # fmt: skip
    assert [turn.call_id for turn in shown if turn.call_id] == [
        "functions.f:0", "functions.g:7", "functions.g:2",
    ]  # fmt: skip


def test_text_and_calls_apart() -> None:
    shown = fitted([turn("hm", ONE, thought="t")], replace(NATIVE, text_with_calls="apart"))
    assert shown == [turn("hm", thought="t"), turn("", ONE)]
    assert fitted([turn("", ONE)], replace(NATIVE, text_with_calls="apart")) == [turn("", ONE)]


def test_text_joins_the_thought_where_both_are_refused() -> None:
    abilities = replace(NATIVE, thought_with_text=False)
    assert fitted([turn("hm", ONE, thought="t")], abilities) == [turn("", ONE, thought="t\n\nhm")]
    for allowed in (turn("hm", ONE), turn("", ONE, thought="t"), turn("hm", thought="t")):
        assert fitted([allowed], abilities) == [allowed]


def test_one_call_at_a_time() -> None:
    abilities = replace(NATIVE, parallel_calls=False)
    turns = [turn("hm", ONE, TWO, thought="t"), result(ONE), result(TWO), turn("done")]
    assert fitted(turns, abilities) == [
        turn("hm", ONE, thought="t"), result(ONE), turn("", TWO), result(TWO), turn("done"),
    ]  # fmt: skip
    incomplete = [turn("", ONE, TWO), result(TWO), Turn("user", "stop")]
    assert fitted(incomplete, abilities) == [
        turn("", ONE), turn("", TWO), result(TWO), Turn("user", "stop"),
    ]  # fmt: skip


# The whole


def conversation(*messages: Message, tools: tuple[Tool, ...] = ()) -> Conversation:
    return Conversation(messages, tools=tools)


USER, SYSTEM = Message("user", (Text("q"),)), Message("system", (Text("S"),))
CALLING, ANSWER = Message("assistant", (ONE,)), Message("tool", (ToolResult("id1", ("r",)),))


def test_tools_as_text_where_they_are_not_shown() -> None:
    asked = conversation(SYSTEM, USER, tools=(Tool("f"), Tool("g")))
    for calls in (True, False):
        turns = turns_of(asked, Abilities(calls=calls), RENDERING, UNGUARDED)
        assert turns == [Turn("system", "S\n\nf|g"), Turn("user", "q")]
    assert turns_of(asked, NATIVE, RENDERING, UNGUARDED)[0] == Turn("system", "S")


@pytest.mark.parametrize("first", [(), (USER,), (USER, CALLING, Message("assistant", ()))])
def test_results_of_no_call_as_text(first: tuple[Message, ...]) -> None:
    asked = conversation(*first, ANSWER, USER)
    abilities = replace(NATIVE, orphaned_results=False)
    *_, told, _ = turns_of(asked, abilities, RENDERING, UNGUARDED)
    assert told == Turn("observation", "None=r")
    *_, kept, _ = turns_of(asked, NATIVE, RENDERING, UNGUARDED)
    assert kept.role == "tool"
    *_, answered = turns_of(conversation(USER, CALLING, ANSWER), abilities, RENDERING, UNGUARDED)
    assert answered.role == "tool"


def test_the_system_text_stays_in_front_while_tools_run() -> None:
    moves = replace(NATIVE, system_stays=False)
    plain = turns_of(conversation(SYSTEM, USER), moves, RENDERING, UNGUARDED)
    assert plain == [Turn("system", "S"), Turn("user", "q")]
    for asked in (
        conversation(SYSTEM, USER, tools=(Tool("f"),)),
        conversation(SYSTEM, USER, CALLING, ANSWER),
    ):
        assert turns_of(asked, moves, RENDERING, UNGUARDED)[0] == Turn("user", "S\n\nq")
