"""How much fits: windows and pages from what the model has and the memory holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.backend.backend import Backend, ModelShape
from engine.backend.scripted import Script, Scripted
from engine.core import runner
from engine.core.draft import NgramDrafter
from engine.core.draft_model import ModelDrafter
from engine.core.runner import (
    EngineSettings,
    load_backend,
    load_draft_backend,
    plan_capacity,
    plan_speculation,
)
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
    monkeypatch.setattr(runner, "free_memory", lambda: int(memory / runner._KV_SHARE) + 1)
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


def test_pages_of_a_draft_model_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "free_memory", lambda: int(12_000 / runner._KV_SHARE) + 1)
    base = replace(settings(max_concurrency=2), max_context=None, kv_tokens=None, script=None)
    backend, drafts = Scripted(Script((), 100, 1)), Scripted(Script((), 100, 1))
    backend.shape = ModelShape(100, 8192, kv_bytes_per_token=3)
    drafts.shape = ModelShape(100, 8192, kv_bytes_per_token=1)
    assert plan_capacity(base, backend).max_context == 4000
    facts = plan_capacity(base, backend, drafts)
    assert (facts.max_context, facts.learned_drafter) == (3000, True)


def test_drafters_are_those_that_are_asked_for() -> None:
    drafts = Scripted(Script((), 100, 1))
    modelled = replace(settings(), script=None)
    facts = plan_capacity(settings(), drafts)

    def kinds(asked: EngineSettings, backend: Backend | None = None) -> list[type]:
        return [type(one) for one in plan_speculation(asked, facts, backend)._drafters.values()]

    assert kinds(modelled) == [NgramDrafter]
    assert kinds(modelled, drafts) == [NgramDrafter, ModelDrafter]
    assert kinds(replace(modelled, speculation="off")) == []
    assert kinds(settings()) == []  # a script's delays are those of its tokens
    assert load_draft_backend(modelled, lambda _: None) is None
    assert load_draft_backend(replace(settings(), draft_model=Path("x")), lambda _: None) is None
