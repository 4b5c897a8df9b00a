from __future__ import annotations

import pytest

from engine.conversation import Message, Reasoning, Role, Text
from engine.text.turns import Abilities, Turn, arrange, probe

ALL = Abilities(system=True, inline_system=True, repeated_roles=True)
NO_INLINE = Abilities(system=True, inline_system=False, repeated_roles=True)
ALTERNATING = Abilities(system=True, inline_system=False, repeated_roles=False)
NO_SYSTEM = Abilities(system=False, inline_system=False, repeated_roles=False)


def arranged(abilities: Abilities, *messages: tuple[Role, str]) -> list[tuple[str, str]]:
    turns = arrange([Message(role, (Text(text),)) for role, text in messages], abilities)
    return [(turn.role, turn.content) for turn in turns]


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


def test_parts_of_one_message() -> None:
    message = Message(
        "assistant", (Reasoning("r1"), Text("a"), Reasoning("r2"), Text("b")), name="bot"
    )
    assert arrange([message], ALL) == [Turn("assistant", "a\n\nb", "r1\n\nr2", "bot")]
    assert arrange([Message("user", ())], ALL) == [Turn("user", "")]


def test_joined_neighbours_keep_everything() -> None:
    messages = [
        Message("user", (Text("a"),), name="x"),
        Message("user", (Text("b"),)),
        Message("assistant", (Reasoning("r"), Text("c"))),
        Message("assistant", (Text("d"),)),
    ]
    assert arrange(messages, ALTERNATING) == [
        Turn("user", "a\n\nb", None, "x"),
        Turn("assistant", "c\n\nd", "r"),
    ]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (lambda turns: " ".join(turn.content for turn in turns), ALL),
        (lambda turns: None, NO_SYSTEM),
        (
            lambda turns: " ".join(turn.content for turn in turns if turn.role != "system"),
            Abilities(system=False, inline_system=False, repeated_roles=True),
        ),
        (  # moves all system text to the front
            lambda turns: " ".join(
                turn.content for turn in sorted(turns, key=lambda turn: turn.role != "system")
            ),
            NO_INLINE,
        ),
    ],
)
def test_probing(template: object, expected: Abilities) -> None:
    assert callable(template)
    assert probe(template) == expected
