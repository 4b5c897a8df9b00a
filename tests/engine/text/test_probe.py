from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from engine.text.abilities import Abilities
from engine.text.probe import probe
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.engine.text.styles import STYLES

XML = {"tools": True, "calls": True}
TEXT = {"arguments": "text", "copies_arguments": True, **XML}
# What each style cannot do, or does in a way of its own.
EXPECTED: dict[str, dict[str, Any]] = {
    "qwen3": TEXT,
    "qwen_coder": {"inline_system": False, **XML},
    "llama": {"parallel_calls": False, "text_with_calls": "apart", **XML},
    "mistral": {
        "system_stays": False, "inline_system": False, "repeated_roles": False,
        "user_after_results": False, "ids": "short", "text_with_calls": "never", **XML,
    },
    "gemma": {
        "system": False, "system_stays": False, "inline_system": False, "repeated_roles": False,
    },
    "deepseek": {
        **TEXT, "inline_system": False, "tools": False, "no_content": None,
        "text_with_calls": "apart",
    },
    "glm": XML,
    "kimi": {"ids": "named", **TEXT},
    "harmony": {
        "inline_system": False, "orphaned_results": False, "parallel_calls": False,
        "thought_with_text": False, "reasoning": "thinking", **XML,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", STYLES)
def test_abilities_of_the_styles(name: str, markup: Tokenizer) -> None:
    assert ChatTemplate(STYLES[name].source, markup).abilities == Abilities(**EXPECTED[name])


def test_every_ability_is_tested() -> None:
    changed = {field for expected in EXPECTED.values() for field in expected}
    changed |= {"parts", "simple_schemas"}  # below, and no ability of a template
    assert changed == {field.name for field in fields(Abilities)}


@pytest.mark.parametrize(
    ("render", "expected"),
    [
        (lambda messages: " ".join(m["content"] or "" for m in messages), {}),
        (
            lambda messages: None,
            {
                "system": False, "system_stays": False, "inline_system": False,
                "repeated_roles": False,
            },
        ),
        (
            lambda messages: " ".join(
                m["content"] or "" for m in messages if m["role"] != "system"
            ),
            {"system": False, "system_stays": False, "inline_system": False},
        ),
        (  # moves all system text to the front
            lambda messages: " ".join(
                m["content"] or "" for m in sorted(messages, key=lambda m: m["role"] != "system")
            ),
            {"inline_system": False},
        ),
        (
            lambda messages: " ".join(
                part["text"] for m in messages for part in m["content"] or []
            )
            if isinstance(messages[0]["content"], list) else "",
            {"parts": True},
        ),
    ],
)  # fmt: skip
def test_roles_and_contents(render: Callable[[Any], str | None], expected: dict[str, Any]) -> None:
    found = probe(lambda messages, tools=None, options=None: render(messages))
    assert found == Abilities(**expected)


@pytest.mark.parametrize(
    ("shown", "arguments", "copies"),
    [
        ("call.arguments", "text", True),  # a mapping would be shown as Python
        ("call.arguments | tojson", "mapping", False),  # text would be JSON in JSON
        ("call.arguments if call.arguments is string else call.arguments | tojson", "text", True),
        ("call.arguments if call.arguments is string else call.arguments.items() | list | tojson",
         "mapping", True),
        ("call.arguments.probe_key ~ call.arguments.keys() | list", "mapping", False),
    ],
)  # fmt: skip
def test_forms_of_arguments(shown: str, arguments: str, copies: bool, markup: Tokenizer) -> None:
    source = (
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{% set call = c.function %}{{ call.name }}{{ SHOWN }}{% endfor %}{% endfor %}"
    ).replace("SHOWN", shown)
    found = ChatTemplate(source, markup).abilities
    assert (found.calls, found.arguments, found.copies_arguments) == (True, arguments, copies)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize("gate", ["true", "enable_thinking", "thinking"])
def test_names_of_thoughts(key: str, gate: str, markup: Tokenizer) -> None:
    source = (
        ("{% for m in messages %}{{ m.content }}{% if GATE %}{{ m.KEY }}{% endif %}{% endfor %}")
        .replace("KEY", key)
        .replace("GATE", gate)
    )
    assert ChatTemplate(source, markup).abilities.reasoning == key


def test_calls_without_results_are_not_enough(markup: Tokenizer) -> None:
    source = (
        "{% for m in messages %}{% if m.role != 'tool' %}{{ m.content }}{{ m.tool_calls }}"
        "{% endif %}{% endfor %}"
    )
    assert not ChatTemplate(source, markup).abilities.calls
