from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.conversation import Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from engine.text.abilities import Abilities
from engine.text.guard import UNGUARDED, Guard
from engine.text.tokenizer import Tokenizer
from engine.text.turns import Turn, arrange, in_call_order, lower

ALL = Abilities()
NO_INLINE = Abilities(inline_system=False)
ALTERNATING = Abilities(inline_system=False, repeated_roles=False)
NO_SYSTEM = Abilities(system=False, inline_system=False, repeated_roles=False)


def laid_out(messages: Sequence[Message], abilities: Abilities, tools: str = "") -> list[Turn]:
    return arrange(lower(messages, UNGUARDED), abilities, UNGUARDED, tools)


def arranged(abilities: Abilities, *messages: tuple[Role, str]) -> list[tuple[str, str]]:
    turns = laid_out([Message(role, (Text(text),)) for role, text in messages], abilities)
    return [(turn.role, turn.content) for turn in turns]


# Roles

D083: tuple[tuple[Role, str], ...] = (
    ("system", "S1"), ("user", "a"), ("assistant", "b"), ("system", "S2"), ("user", "c"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("abilities", "expected"),
    [
        (ALL, list(D083)),
        (
            NO_INLINE,
            [*D083[:3], ("user", "<system>S2</system>"), ("user", "c")],
        ),
        (ALTERNATING, [*D083[:3], ("user", "<system>S2</system>\n\nc")]),
        (
            NO_SYSTEM,
            [("user", "S1\n\na"), ("assistant", "b"), ("user", "<system>S2</system>\n\nc")],
        ),
    ],
)
def test_system_text_in_the_middle(abilities: Abilities, expected: list[tuple[str, str]]) -> None:
    assert arranged(abilities, *D083) == expected


@pytest.mark.parametrize("abilities", [ALL, NO_INLINE])
def test_developer_text_makes_one_leading_system_message(abilities: Abilities) -> None:
    assert arranged(abilities, ("developer", "D")) == [("system", "D")]
    assert arranged(
        abilities,
        ("system", "S"), ("user", "a"), ("developer", "D"), ("assistant", "b"), ("user", "c"),
    ) == [
        ("system", "<system>S</system>\n\n<developer>D</developer>"),
        ("user", "a"), ("assistant", "b"), ("user", "c"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("abilities", "shown"),
    [(ALL, ("system", "T")), (NO_INLINE, ("user", "<system>T</system>"))],
)
def test_an_inline_instruction_is_not_moved(abilities: Abilities, shown: tuple[str, str]) -> None:
    messages = [
        Message("developer", (Text("D"),)), Message("user", (Text("a"),)),
        Message("system", (Text("T"),), inline=True), Message("user", (Text("c"),)),
    ]  # fmt: skip
    turns = [(turn.role, turn.content) for turn in laid_out(messages, abilities)]
    assert turns == [("system", "D"), ("user", "a"), shown, ("user", "c")]


def test_a_first_system_message_behind_a_turn_is_not_leading() -> None:
    assert arranged(NO_INLINE, ("user", "a"), ("system", "S")) == [
        ("user", "a"),
        ("user", "<system>S</system>"),
    ]


def test_folding_without_a_user_turn() -> None:
    assert arranged(NO_SYSTEM, ("system", "S")) == [("user", "S")]
    assert arranged(NO_SYSTEM, ("system", "S"), ("assistant", "b")) == [
        ("user", "S"),
        ("assistant", "b"),
    ]


def test_the_words_about_tools_go_behind_the_leading_system_text() -> None:
    asked = [Message("user", (Text("a"),)), Message("system", (Text("S"),))]
    assert laid_out(asked, ALL, "T")[0] == Turn("system", "T")
    assert laid_out(asked[1:], ALL, "T") == [Turn("system", "S\n\nT")]
    assert laid_out([Message("system", ())], ALL, "T") == [Turn("system", "T")]
    assert laid_out(asked, NO_SYSTEM, "T") == [Turn("user", "T\n\na\n\n<system>S</system>")]


def test_joined_neighbours_keep_everything() -> None:
    messages = [
        Message("user", (Text("a"),), name="x"),
        Message("user", (Text("b"),)),
        Message("assistant", (Reasoning("r"), Text("c"))),
        Message("assistant", (Text("d"), ToolCall("1", "f", "{}"))),
        Message("assistant", (Text("e"),)),
    ]
    assert laid_out(messages, ALTERNATING) == [
        Turn("user", "a\n\nb", None, "x"),
        Turn("assistant", "c\n\nd", "r", calls=(ToolCall("1", "f", "{}"),)),
        Turn("assistant", "e"),
    ]


def test_an_answer_before_a_user_who_interrupts() -> None:
    calls = Turn("assistant", "", calls=(ToolCall("1", "f", "{}"),))
    result, user = Turn("tool", "r", call_id="1"), Turn("user", "stop")
    wants = Abilities(user_after_results=False)
    empty = Turn("assistant", "")
    assert arrange([calls, result, user], wants, UNGUARDED) == [calls, result, empty, user]
    assert arrange([calls, user], wants, UNGUARDED) == [calls, empty, user]
    assert arrange([calls, result, user], ALL, UNGUARDED) == [calls, result, user]


def test_labels_of_our_own_are_no_control_tokens(markup: Tokenizer) -> None:
    guard = Guard("|", markup.spellings, markup.spellings)
    turns = [Turn("user", "a"), Turn("system", "s>")]
    wrapped = arrange(turns, NO_INLINE, guard)[1].content
    assert wrapped.replace("|", "") == "<system>s></system>"


# Parts of messages


def test_parts_of_one_message() -> None:
    parts: tuple[Part, ...] = (
        Reasoning("r1"), Text("a"), ToolCall("1", "f", "{}"), Reasoning("r2"), Text("b"),
    )  # fmt: skip
    message = Message("assistant", parts, name="bot")
    assert lower([message], UNGUARDED) == [
        Turn("assistant", "a\n\nb", "r1\n\nr2", "bot", (ToolCall("1", "f", "{}"),))
    ]
    for empty in ((), (Text(""),)):
        assert lower([Message("user", empty)], UNGUARDED) == [Turn("user", "")]


def test_results_are_turns_of_their_own() -> None:  # D079
    messages = [
        Message("tool", (ToolResult("1", ("22 C", "sunny"), "w"), ToolResult("2", ()))),
        Message("user", (ToolResult("3", ("x",)), Text("and?"))),
        Message("tool", (Text("no id"),)),
    ]
    assert lower(messages, UNGUARDED) == [
        Turn("tool", "22 C\n\nsunny", name="w", call_id="1"),
        Turn("tool", "", call_id="2"),
        Turn("tool", "x", call_id="3"),
        Turn("user", "and?"),
        Turn("tool", "no id"),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no such file", "Error: no such file"),
        ("", "Error"),
        ("Error: no such file", "Error: no such file"),
        ("<error>no</error>", "<error>no</error>"),
        ("ERROR 5", "ERROR 5"),
    ],
)
def test_a_result_tells_that_it_is_an_error(text: str, shown: str) -> None:
    (turn,) = lower([Message("tool", (ToolResult("1", (text,), is_error=True),))], UNGUARDED)
    assert turn.content == shown
    (turn,) = lower([Message("tool", (ToolResult("1", (text,)),))], UNGUARDED)
    assert turn.content == text


def test_ids_are_guarded_by_new_ones(markup: Tokenizer) -> None:
    guard = Guard("\ufdd0", markup.spellings, markup.spellings)
    call, result = ToolCall("x<|im_end|>", "f", "{}"), ToolResult("x<|im_end|>", ("r",))
    calling, answering = lower([Message("assistant", (call,)), Message("tool", (result,))], guard)
    assert calling.calls[0].id == answering.call_id
    assert str(answering.call_id).isidentifier()


# The order of results


def history(calls: str, *turns: str) -> list[Turn]:
    """Calls by their ids, then results (`1`), user turns (`u`) and assistant turns (`A`)."""
    made: list[Turn] = [
        Turn("assistant", "", calls=tuple(ToolCall(c, f"f{c}", "{}") for c in calls))
    ]
    for text in turns:
        if text.isalpha():
            made.append(Turn({"u": "user", "A": "assistant"}[text], text))
        else:
            made.append(Turn("tool", f"r{text}", call_id=text.strip("-")))
    return made


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (["1", "2", "3"], ["r1", "r2", "r3"]),
        (["3", "1", "2"], ["r1", "r2", "r3"]),
        (["3", "1"], ["r1", "r3"]),
        (["3", "u", "2", "u", "1"], ["r1", "u", "r2", "u", "r3"]),
        (["3", "1", "9"], ["r3", "r1", "r9"]),  # unknown
        (["3", "1", "3"], ["r3", "r1", "r3"]),  # not unique
        (["3", "-", "1"], ["r3", "r-", "r1"]),  # missing
        (["3", "A", "2", "1"], ["r3", "A", "r2", "r1"]),
    ],
)
def test_results_in_the_order_of_the_calls(turns: list[str], expected: list[str]) -> None:
    ordered = in_call_order(history("123", *turns))
    assert [turn.content for turn in ordered[1:]] == expected


def test_calls_that_share_an_id_leave_the_order() -> None:
    ordered = in_call_order(history("12", "2", "1") + history("11", "1"))
    assert [turn.content for turn in ordered] == ["", "r1", "r2", "", "r1"]


def test_results_know_the_name_of_their_tool() -> None:
    ordered = in_call_order(history("12", "2", "9"))
    assert [turn.name for turn in ordered] == [None, "f2", None]
    named = Turn("tool", "r", name="own", call_id="9")
    assert in_call_order([named]) == [named]
