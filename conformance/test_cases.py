"""Runs every case of cases/."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance import cases, profiles, scenarios, translate
from conformance.server import Server

CASES = cases.load()


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.scenario is None] + translate.control_cases(),
    ids=lambda case: case.id,
)
def test_case(case: cases.Case, pool: profiles.Pool) -> None:
    """The case's steps, in order, on the server that it names."""
    cases.run(case, pool.get(case.server).http)


@pytest.mark.parametrize("case", [c for c in CASES if c.scenario is not None], ids=lambda c: c.id)
def test_scenario(case: cases.Case, pool: profiles.Pool, start: Callable[..., Server]) -> None:
    """The case's function; it starts servers where the shared ones do not do."""
    assert case.scenario is not None
    scenarios.FUNCTIONS[case.scenario](pool, start)


def test_every_case_is_run() -> None:
    """A case has steps or a scenario, and every scenario has a case."""
    assert all(bool(case.steps) != bool(case.scenario) for case in CASES)
    assert {c.scenario for c in CASES if c.scenario} == set(scenarios.FUNCTIONS)
