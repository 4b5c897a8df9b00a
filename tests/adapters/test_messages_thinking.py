"""What Messages says about thinking: modes, efforts and budgets, and what contradicts."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.messages import decode
from adapters.validation import validate
from engine.conversation import Conversation, Effort, Thinking
from engine.errors import RequestError
from generated.messages import CountTokensRequest
from tests.adapters.messaging import USER, call_of, conversation, refused

BUDGET = "thinking.budget_tokens"
ON = {"enable_thinking": True}


def enabled(budget: int, **more: Any) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": budget, **more}, "max_tokens": 2**40}


def adaptive(**more: Any) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive", **more}, "max_tokens": 2**40}


def effort(word: str | None) -> dict[str, Any]:
    return {"output_config": {"effort": word}}


def advised(effort: Effort | None, budget: int | None) -> Thinking:
    return Thinking(effort, budget, BUDGET, advisory=True)


MODES: list[tuple[dict[str, Any], Thinking, dict[str, Any]]] = [
    # absent: off, unless the template's own options speak of it
    ({}, Thinking("none"), {}),
    ({"thinking": None}, Thinking("none"), {}),
    (effort("high"), Thinking("none"), {}),
    ({"reasoning_effort": "high"}, Thinking("none"), {}),
    ({"thinking_token_budget": 9}, Thinking("none", 9), {}),
    ({"chat_template_kwargs": {"x": 1}}, Thinking("none"), {"x": 1}),
    ({"chat_template_kwargs": {"enable_thinking": None}}, Thinking("none"),
     {"enable_thinking": None}),
    ({"chat_template_kwargs": ON}, Thinking(), ON),
    ({"chat_template_kwargs": {"enable_thinking": False}}, Thinking(), {"enable_thinking": False}),
    ({"chat_template_kwargs": {"thinking": True}}, Thinking(), {"thinking": True}),
    ({"chat_template_kwargs": {"reasoning_effort": "odd"}}, Thinking(),
     {"reasoning_effort": "odd"}),
    ({"chat_template_kwargs": ON, "thinking_token_budget": 9}, Thinking(None, 9), ON),
    # disabled: off, whatever else is said
    ({"thinking": {"type": "disabled"}}, Thinking("none"), {}),
    ({"thinking": {"type": "disabled"}, **effort("max")}, Thinking("none"), {}),
    ({"thinking": {"type": "disabled"}, "thinking_token_budget": 9}, Thinking("none", 9), {}),
    # adaptive: on, by the effort
    (adaptive(), advised(None, None), ON),
    (adaptive(budget_tokens=None), advised(None, None), ON),
    ({**adaptive(), **effort("max")}, advised("max", None), ON),
    ({**adaptive(), **effort(None)}, advised(None, None), ON),
    ({**adaptive(), **effort("default")}, advised(None, None), ON),
    ({**adaptive(), **effort("ultra")}, advised("max", None), ON),
    ({**adaptive(), "reasoning_effort": "low"}, advised("low", None), ON),
    ({**adaptive(), "reasoning_effort": "low", **effort("high")}, advised("high", None), ON),
    ({**adaptive(), "reasoning_effort": "low", **effort("")}, advised("low", None), ON),
    (adaptive(budget_tokens=1), advised("low", 1), ON),
    ({**adaptive(budget_tokens=9000), **effort("low")}, advised("low", 9000), ON),
    ({**adaptive(), "thinking_token_budget": 9}, Thinking(None, 9), ON),
    ({**adaptive(), **effort("none")}, advised("none", None), {}),
    # between_tools: as adaptive
    ({"thinking": {"type": "between_tools"}}, advised(None, None), ON),
    ({"thinking": {"type": "between_tools"}, **effort("xhigh")}, advised("xhigh", None), ON),
    ({"thinking": {"type": "between_tools"}, "thinking_token_budget": 9}, Thinking(None, 9), ON),
    # enabled: on, and the budget tells the effort
    (enabled(1024), advised("low", 1024), ON),
    (enabled(5_000), advised("low", 5_000), ON),
    (enabled(5_001), advised("high", 5_001), ON),
    (enabled(20_000), advised("high", 20_000), ON),
    (enabled(20_001), advised("max", 20_001), ON),
    (enabled(2**31 - 1), advised("max", 2**31 - 1), ON),
    (enabled(2**31), advised("max", None), ON),
    (enabled(2**39), advised("max", None), ON),
    ({**enabled(2**39), **effort("low")}, advised("low", None), ON),
    ({**enabled(30_000), **effort("medium")}, advised("medium", 30_000), ON),
    ({**enabled(30_000), "reasoning_effort": "minimal"}, advised("minimal", 30_000), ON),
    ({**enabled(1024), "thinking_token_budget": 1024}, Thinking("low", 1024), ON),
    # thinking wins over a switch of the template's options
    ({**adaptive(), "chat_template_kwargs": {"enable_thinking": False, "x": 1}},
     advised(None, None), {**ON, "x": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "thinking", "kwargs"), MODES, ids=lambda v: str(v)[:90])
def test_modes_efforts_and_budgets(
    fields: dict[str, Any], thinking: Thinking, kwargs: dict[str, Any]
) -> None:
    made = conversation(**fields)
    assert (made.thinking, made.template_kwargs) == (thinking, kwargs)


def test_a_budget_of_the_clients_own_is_no_advice() -> None:
    """Where thoughts cannot be cut, one that the official API has is ignored, ours refused."""
    assert conversation(**enabled(1024)).thinking.advisory
    assert not conversation(**enabled(1024), thinking_token_budget=1024).thinking.advisory
    assert not conversation(**adaptive(), thinking_token_budget=1).thinking.advisory


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (enabled(1023), BUDGET),
        (enabled(0), BUDGET),
        ({"thinking": {"type": "enabled"}}, BUDGET),
        ({**enabled(1024), "max_tokens": 1024}, BUDGET),
        ({**enabled(2**31), "max_tokens": 2**31}, BUDGET),
        ({**adaptive(budget_tokens=64), "max_tokens": 64}, BUDGET),
        (adaptive(budget_tokens=0), BUDGET),
        ({**enabled(1024), "thinking_token_budget": 1025}, "thinking_token_budget"),
        ({**enabled(2**31), "thinking_token_budget": 2**31 - 1}, "thinking_token_budget"),
        ({**adaptive(budget_tokens=9), "thinking_token_budget": 8}, "thinking_token_budget"),
        ({"thinking_token_budget": 0}, "thinking_token_budget"),
        ({"thinking_token_budget": 2**31}, "thinking_token_budget"),
        ({"thinking": {"type": "perhaps"}}, "thinking.type"),
        ({"thinking": True}, "thinking"),
        (adaptive(display="full"), "thinking.display"),
        ({**adaptive(), **effort("80")}, "output_config.effort"),
        ({**adaptive(), "reasoning_effort": "80"}, "reasoning_effort"),
        ({"output_config": {"effort": 80}}, "output_config.effort"),
    ],
    ids=str,
)
def test_what_contradicts_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    error = refused(**fields)
    assert error.param == param
    assert param.rpartition(".")[2] in error.message


def test_the_limits_are_inclusive() -> None:
    assert conversation(**{**enabled(1024), "max_tokens": 1025}).thinking.budget == 1024
    made = conversation(**{**adaptive(budget_tokens=63), "max_tokens": 64})
    assert made.thinking.budget == 63


def test_a_count_knows_no_output_limit() -> None:
    """Where nothing is generated, a limit says nothing: clients copy bodies."""
    for limit in ({}, {"max_tokens": 5}, {"max_tokens": None}):
        fields = {"thinking": {"type": "enabled", "budget_tokens": 9000}, **limit}
        body = validate(CountTokensRequest, {"messages": [USER], **fields})
        made = decode(body, call_of()).request.prompt
        assert isinstance(made, Conversation) and made.thinking == advised("high", 9000)
    both = {**enabled(1024), "thinking_token_budget": 1025}
    body = validate(CountTokensRequest, {"messages": [USER], **both})
    with pytest.raises(RequestError) as caught:
        decode(body, call_of())
    assert caught.value.param == "thinking_token_budget"
