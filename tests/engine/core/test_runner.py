"""How much fits: windows and pages from what the model has and the memory holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.backend.backend import ModelShape
from engine.backend.scripted import Script, Scripted
from engine.core import runner
from engine.core.runner import load_backend, plan_capacity
from engine.errors import StartupError
from engine.types import EngineFacts
from tests.serving import settings


def plan(
    monkeypatch: pytest.MonkeyPatch, memory: int, scripted: bool = False, **changes: Any
) -> EngineFacts:
    """Capacity for a model of 8,192 tokens whose tokens take a byte each."""
    backend = Scripted(Script((), 100, 1))
    if not scripted:
        backend.shape = ModelShape(100, 8192, kv_bytes_per_token=1)
        changes["script"] = None
    monkeypatch.setattr(runner, "_free_memory", lambda: int(memory / runner._KV_SHARE) + 1)
    base = replace(settings(max_concurrency=2), max_context=None, kv_tokens=None)
    return plan_capacity(replace(base, **changes), backend)


def test_with_room_the_window_is_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = plan(monkeypatch, 10**9)
    assert facts.max_context == 8192
    assert facts.total_pages * facts.page_tokens >= 2 * 8192


def test_little_memory_shortens_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = plan(monkeypatch, 4000)
    assert facts.max_context == 4000
    assert facts.total_pages * 16 >= facts.max_context


@pytest.mark.parametrize(
    ("memory", "changes", "named"),
    [
        (10**9, {"max_context": 8193}, "8192"),
        (1000, {"max_context": 2048}, "--max-context"),
        (1000, {}, "--kv-tokens"),
        (10**9, {"max_context": 2048, "kv_tokens": 2047}, "--kv-tokens"),
    ],
)
def test_what_cannot_fit_says_what_to_change(
    monkeypatch: pytest.MonkeyPatch, memory: int, changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(StartupError, match=named) as caught:
        plan(monkeypatch, memory, **changes)
    assert "\n" not in str(caught.value)


def test_asked_for_sizes_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = plan(monkeypatch, 10**9, max_context=100, kv_tokens=161)
    assert (facts.max_context, facts.total_pages) == (100, 11)


def test_a_script_may_have_any_window(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(monkeypatch, 0, scripted=True).max_context == 131_072
    assert plan(monkeypatch, 0, scripted=True, max_context=200_000).max_context == 200_000


def test_a_script_stands_in_for_the_model() -> None:
    assert isinstance(load_backend(settings(), lambda _: None), Scripted)
