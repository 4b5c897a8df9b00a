"""Seeded examples: the same ones for the same strategies, whatever else the code around them is.

Hypothesis mixes constants of the project's loaded modules into what it draws. In the process of the
tests every change of the server would change the examples, so they are drawn in one of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import hypothesis
from hypothesis import strategies as st

from conformance.bars import schemas

STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "documents": schemas.documents(),
    "tools": schemas.tools(),
    "format and tools": st.tuples(schemas.objects(schemas.leaves), schemas.tools()),
}


def examples(strategy: str, count: int) -> list[Any]:
    """The first `count` examples of one of `STRATEGIES`, as JSON reads them."""
    command = [sys.executable, "-m", "conformance.bars.examples", strategy, str(count)]
    drawn = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    made: list[Any] = json.loads(drawn.stdout)
    assert len(made) >= count, f"only {len(made)} different examples"
    return made[:count]


def _draw(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    made: list[Any] = []

    @hypothesis.seed(20261129)
    @hypothesis.settings(
        max_examples=count,
        phases=[hypothesis.Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(example: Any) -> None:
        made.append(example)

    collect()
    return made


if __name__ == "__main__":
    json.dump(_draw(STRATEGIES[sys.argv[1]], int(sys.argv[2])), sys.stdout)
