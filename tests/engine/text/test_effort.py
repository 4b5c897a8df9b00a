from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from engine.conversation import Conversation, Message, Text, Thinking, nearest_effort
from engine.text.effort import LEVELS, Applied, Controls, Defaults
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.engine.text.styles import DEEPSEEK, GEMMA, GLM, HARMONY, QWEN3, QWEN_CODER, template_of

USER = (Message("user", (Text("q"),)),)
NUMBERS = (  # as DeepSeek's scores; refuses what is no number from 1 to 100
    "{% set n = reasoning_effort | default(75) %}"
    "{% if n is not number or n < 1 or n > 100 %}{{ raise_exception('no score') }}{% endif %}"
    "{{ messages[0].content }} effort={{ n }}"
)
BOTH = (  # words and scores, and a switch
    "{% set words = {'low': 50, 'high': 75, 'max': 100} %}"
    "{% set e = reasoning_effort | default('high') %}{{ messages[0].content }}"
    "{% if thinking | default(true) %} effort={{ e if e is number else words[e] + 0 }}{% endif %}"
)
BUDGET = (  # as Seed's
    "{{ messages[0].content }}{% set budget = thinking_budget | default(-1) %}"
    "{{ 'no thinking' if budget == 0 else 'budget ' ~ budget if budget != -1 }}"
)
SOME = (  # takes every word, knows two
    "{{ messages[0].content }}{{ 'briefly' if reasoning_effort == 'low' }}"
    "{{ 'long' if reasoning_effort == 'max' }}{{ 'not' if reasoning_effort == 'none' }}"
)
SWITCH_OF_LEVEL = (  # as Nemotron's
    "{{ messages[0].content }}{{ 'briefly' if low_effort is defined and low_effort }}"
    "{{ '</think>' if enable_thinking is defined and not enable_thinking }}"
)
KIMI = (
    "{{ messages[0].content }}{% set e = thinking_effort | default('max') %}"
    "{% if e not in ['low', 'medium', 'high', 'max'] %}{{ raise_exception('unknown') }}{% endif %}"
    "{{ e if thinking is not defined or thinking }}"
)


def applied(
    source: str,
    tokenizer: Tokenizer,
    effort: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    defaults: Defaults | None = None,
    budget: int | None = None,
) -> Applied:
    template = template_of(source, tokenizer)
    if defaults is not None:
        template = ChatTemplate(source, tokenizer, defaults=defaults)
    return template.applied(
        Conversation(USER, thinking=Thinking(effort, budget), template_kwargs=kwargs or {})
    )


def words(*levels: str, key: str = "reasoning_effort") -> dict[str, dict[str, str]]:
    return {level: {key: level} for level in levels}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (QWEN3, {"off": {"enable_thinking": False}, "on": {"enable_thinking": True}}),
        (DEEPSEEK, {"off": {"thinking": False}, "on": {"thinking": True}, "default_on": False}),
        (QWEN_CODER, {"levels": words("low", "medium", "xhigh")}),
        (HARMONY, {"levels": words("low", "medium", "high")}),
        (GEMMA, {}),
        (NUMBERS, {"number": "reasoning_effort"}),
        (
            BOTH,
            {
                "off": {"thinking": False}, "on": {"thinking": True},
                "levels": words("low", "high", "max"), "number": "reasoning_effort",
            },
        ),
        (BUDGET, {"off": {"thinking_budget": 0}, "budget": "thinking_budget"}),
        (SOME, {"off": {"reasoning_effort": "none"}, "levels": words("low", "max")}),
        (
            SWITCH_OF_LEVEL,
            {
                "off": {"enable_thinking": False}, "on": {"enable_thinking": True},
                "levels": {"low": {"low_effort": True}, "high": {}},
            },
        ),
        (
            KIMI,
            {
                "off": {"thinking": False}, "on": {"thinking": True},
                "levels": words("low", "medium", "high", "max", key="thinking_effort"),
            },
        ),
        ("{{ messages[0].content }}{{ 1 / 0 }}", {}),
        ("{# reasoning_effort, enable_thinking, thinking_budget #}{{ messages[0].content }}", {}),
    ],
)  # fmt: skip
def test_what_a_template_does_about_thinking(
    source: str, expected: dict[str, Any], markup: Tokenizer
) -> None:
    assert ChatTemplate(source, markup).controls == Controls(**expected)


# Precedence


@pytest.mark.parametrize(
    ("effort", "kwargs", "defaults", "thinks"),
    [
        (None, {}, None, True),
        ("none", {}, None, False),
        ("high", {"enable_thinking": False}, None, True),
        ("none", {"enable_thinking": True, "reasoning_effort": "high"}, None, False),
        (None, {"reasoning_effort": "none", "enable_thinking": True}, None, False),
        (None, {"reasoning_effort": "high", "enable_thinking": False}, None, True),
        (None, {"reasoning_effort": None, "enable_thinking": False}, None, False),
        (None, {"enable_thinking": False}, Defaults(True, "high"), False),
        (None, {"thinking": False}, None, False),  # the other name of the switch
        (None, {"enable_thinking": True}, Defaults(False), True),
        (None, {}, Defaults(False), False),
        (None, {}, Defaults(False, "high"), False),
        (None, {}, Defaults(None, "none"), False),
        ("low", {}, Defaults(False), True),
    ],
)
def test_who_decides(
    effort: Any,
    kwargs: dict[str, Any],
    defaults: Defaults | None,
    thinks: bool,
    markup: Tokenizer,
) -> None:
    found = applied(QWEN3, markup, effort, kwargs, defaults)
    assert found.thinks is thinks
    wanted = {} if not (effort or kwargs or defaults) else {"enable_thinking": thinks}
    assert found.kwargs == wanted


def test_a_template_that_does_not_think_by_itself(markup: Tokenizer) -> None:
    assert applied(DEEPSEEK, markup) == Applied(None, False, {})
    assert applied(DEEPSEEK, markup, "high") == Applied(None, True, {"thinking": True})
    assert applied(DEEPSEEK, markup, None, {"enable_thinking": True}).kwargs == {"thinking": True}
    assert applied(DEEPSEEK, markup, defaults=Defaults(True)).kwargs == {"thinking": True}


def test_other_options_stay(markup: Tokenizer) -> None:
    kwargs = {"date": "x", "thinking": {"type": "own"}, "enable_thinking": True}
    assert applied(QWEN3, markup, "none", kwargs).kwargs == {
        "date": "x", "thinking": {"type": "own"}, "enable_thinking": False,
    }  # fmt: skip
    assert applied(GEMMA, markup, None, {"anything": 1}) == Applied(None, True, {"anything": 1})


def test_the_templates_own_names_win_over_the_server(markup: Tokenizer) -> None:
    defaults = Defaults(True, "high")
    own = {"thinking_effort": "low"}
    assert applied(KIMI, markup, None, own, defaults) == Applied(None, True, own)
    found = applied(KIMI, markup, "max", own, defaults)
    assert found.kwargs == {"thinking": True, "thinking_effort": "max"}


# Levels


@pytest.mark.parametrize(
    ("source", "nearest"),
    [
        (QWEN_CODER, ["low", "low", "low", "medium", "xhigh", "xhigh", "xhigh"]),
        (HARMONY, ["low", "low", "low", "medium", "high", "high", "high"]),
        (NUMBERS, [1, 25, 50, 62, 75, 87, 100]),
        (BOTH, ["none", "low", "low", "high", "high", "max", "max"]),
        (SOME, ["none", "low", "low", "low", "max", "max", "max"]),
        (KIMI, ["none", "low", "low", "medium", "high", "max", "max"]),
        (QWEN3, ["none", None, None, None, None, None, None]),
        (GEMMA, [None] * 7),
        (BUDGET, ["none", None, None, None, None, None, None]),
    ],
)
def test_the_nearest_level_is_applied(source: str, nearest: list[Any], markup: Tokenizer) -> None:
    template = ChatTemplate(source, markup)
    for level, expected in zip(LEVELS, nearest, strict=True):
        asked = Conversation(USER, thinking=Thinking(level))
        found = template.applied(asked)
        assert found.effort == expected, level
        assert found.thinks == (expected != "none")
        template.render(asked)  # never refused


@pytest.mark.parametrize(
    ("source", "score", "expected"),
    [
        (NUMBERS, 80, 80), (NUMBERS, 1000, 100), (NUMBERS, 0, 1),
        (BOTH, 80, 80), (HARMONY, 80, "high"), (HARMONY, 30, "low"), (QWEN_CODER, 95, "xhigh"),
        (QWEN3, 80, None), (QWEN3, 0, "none"),
    ],
)  # fmt: skip
def test_scores(source: str, score: int, expected: Any, markup: Tokenizer) -> None:
    assert applied(source, markup, score).effort == expected
    assert applied(source, markup, None, {"reasoning_effort": score}).effort == expected


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("ultra", "max"), ("extra-high", "xhigh"), ("X-HIGH", "xhigh"), ("off", "none"),
        ("no_think", "none"), ("very high", "xhigh"), ("minimum", "minimal"), ("light", "low"),
        ("standard", "medium"), ("maximum", "max"), ("deep", "high"), ("banana", None), ("", None),
    ],
)  # fmt: skip
def test_words_that_nobody_defined(word: str, level: str | None, markup: Tokenizer) -> None:
    assert nearest_effort(word) == level
    found = applied(KIMI, markup, None, {"reasoning_effort": word})
    assert found == (applied(KIMI, markup, level) if level else Applied(None, True, {}))


@pytest.mark.parametrize("value", [None, "banana", 80.0, [1], {"a": 1}, True])
def test_values_without_a_meaning_are_not_passed_on(value: Any, markup: Tokenizer) -> None:
    kwargs = {"reasoning_effort": value, "other": 1}
    asked = Conversation(USER, template_kwargs=kwargs)
    template = ChatTemplate(QWEN_CODER, markup)
    assert template.applied(asked) == Applied(None, True, {"other": 1})
    assert template.render(asked) == template.render(Conversation(USER))


def test_a_word_of_the_templates_own(markup: Tokenizer) -> None:
    source = "{{ messages[0].content }}{{ 'A' if reasoning_effort == 'adaptive' else 'B' }}"
    found = applied(source, markup, None, {"reasoning_effort": "adaptive"})
    assert found == Applied(None, True, {"reasoning_effort": "adaptive"})


def test_a_budget_reaches_a_template_that_takes_one(markup: Tokenizer) -> None:
    assert applied(BUDGET, markup, budget=512).kwargs == {"thinking_budget": 512}
    assert applied(BUDGET, markup, "high", budget=512).kwargs == {"thinking_budget": 512}
    assert applied(BUDGET, markup, "none", budget=512).kwargs == {"thinking_budget": 0}
    own = {"thinking_budget": 7}
    assert applied(BUDGET, markup, None, own, budget=512).kwargs == own
    assert applied(QWEN3, markup, budget=512).kwargs == {}


def test_a_substitution_is_logged_once(markup: Tokenizer, caplog: pytest.LogCaptureFixture) -> None:
    template = ChatTemplate(HARMONY, markup)
    with caplog.at_level(logging.INFO, "heliograph.api"):
        for effort in ("xhigh", "high", "xhigh", "none", "xhigh"):
            template.applied(Conversation(USER, thinking=Thinking(effort)))
    assert caplog.messages == [
        "reasoning effort 'xhigh' is applied as high",
        "reasoning effort 'none' is applied as low",
    ]


# What is rendered


@pytest.mark.parametrize(
    ("source", "effort", "shown"),
    [
        (QWEN3, "none", "<think>\n\n</think>\n\n"),
        (QWEN_CODER, "high", "Effort: xhigh"),
        (HARMONY, "max", "Reasoning: high"),
        (GLM, "none", "q/nothink"),
        (NUMBERS, 80, "effort=80"),
    ],
)
def test_the_prompt_shows_it(source: str, effort: Any, shown: str, markup: Tokenizer) -> None:
    asked = Conversation(USER, thinking=Thinking(effort))
    prompt = ChatTemplate(source, markup).render(asked)
    assert shown in markup.decode(prompt.token_ids)
