"""Levels of effort in whatever words, and the names of the budget."""

from __future__ import annotations

import logging
from typing import get_args

import pytest

from adapters.thinking import decode_effort, decode_thinking
from engine.conversation import Effort, Thinking
from engine.errors import RequestError


@pytest.mark.parametrize("level", get_args(Effort))
def test_known_levels_are_themselves(level: Effort, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert decode_effort(level, "p") == level
    assert not caplog.records


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("ultra", "max"),
        ("ultrathink", "max"),
        ("maximum", "max"),
        ("extra-high", "xhigh"),
        ("Extra High", "xhigh"),
        ("XHIGH", "xhigh"),
        ("very_high", "xhigh"),
        ("High", "high"),
        ("think-hard", "high"),
        ("normal", "medium"),
        ("med", "medium"),
        ("very low", "low"),
        ("minimum", "minimal"),
        ("lowest", "minimal"),
        ("off", "none"),
        ("disabled", "none"),
        ("auto", None),
        ("default", None),
        ("enabled", None),
        ("天", None),
    ],
)
def test_other_words_count_as_what_they_are_like(
    word: str, level: Effort | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert decode_effort(word, "reasoning_effort") == level
    [line] = caplog.messages
    assert line == f"reasoning_effort {word!r} counts as {level or 'the default'}"


def test_a_word_cannot_forge_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        decode_effort("low\nERROR", "p")
    assert "\n" not in caplog.messages[0]


@pytest.mark.parametrize("value", [None, "", "  ", 1, 80, 100])
def test_scores_and_nothing_are_as_given(value: str | int | None) -> None:
    assert decode_effort(value, "p") == (value if isinstance(value, int) else None)


@pytest.mark.parametrize("value", ["80", "80.0", " 7 ", "-1", "50%"])
def test_a_number_in_quotes_is_no_word(value: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode_effort(value, "p")
    assert caught.value.param == "p"


@pytest.mark.parametrize(
    ("budgets", "made"),
    [
        ({}, Thinking("high")),
        ({"a": None, "b": None}, Thinking("high")),
        ({"a": 5, "b": None}, Thinking("high", 5, "a")),
        ({"a": None, "b": 5}, Thinking("high", 5, "b")),
        ({"a": 5, "b": 5}, Thinking("high", 5, "a")),
        ({"a": 5, "b": -1}, Thinking("high", 5, "a")),
        ({"a": -1}, Thinking("high")),
        ({"a": 0}, Thinking("none", None, "a")),
        ({"a": 0, "b": 0}, Thinking("none", None, "a")),
    ],
    ids=str,
)
def test_one_budget_has_many_names(budgets: dict[str, int | None], made: Thinking) -> None:
    assert decode_thinking("high", budgets) == made


def test_off_wins_over_effort_and_budget() -> None:
    assert decode_thinking("high", {"a": 5}, off=True) == Thinking("none", None, "a")
    assert decode_thinking(80, {}, off=True) == Thinking("none")


@pytest.mark.parametrize("budgets", [{"a": 5, "b": 6}, {"a": 0, "b": 6}, {"a": 5, "c": 5, "b": 0}])
def test_two_values_name_the_later(budgets: dict[str, int | None]) -> None:
    with pytest.raises(RequestError) as caught:
        decode_thinking(None, budgets)
    assert caught.value.param == "b" and "a and b" in caught.value.message
