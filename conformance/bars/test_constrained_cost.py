"""Issue 3: eight constrained streams are at most 5% slower than eight free ones."""

from __future__ import annotations

import statistics

import pytest

from conformance.bench.measure import aggregate, table, together
from conformance.server import Server

ROUNDS = 7
TOKENS = 64
PROMPTS = [f"A list of things about {name}:" for name in ["iron", "bread", "rivers", "chess"]] * 2
SCHEMA = {
    "type": "object",
    "properties": {
        "things": {
            "type": "array",
            "minItems": 100,  # more than the tokens allow: no stream ends early
            "items": {"type": "string", "minLength": 12, "maxLength": 60},
        }
    },
    "required": ["things"],
    "additionalProperties": False,
}
CONSTRAINED = {
    "structured_outputs": {"json": SCHEMA},
    "ignore_eos": False,
    "min_tokens": 0,
}


def rate(server: Server, fields: dict[str, object]) -> float:
    """Decoded tokens a second over eight streams, from the last one's first token on."""
    return aggregate(together(server.http, PROMPTS, TOKENS, **fields))


@pytest.mark.bars
def test_constrained_cost(embedded: Server) -> None:
    """Free and constrained rounds alternate in one run; their medians are compared."""
    rate(embedded, CONSTRAINED)  # the grammar is compiled, the kernels exist
    free, constrained = [], []
    for _ in range(ROUNDS):
        free.append(rate(embedded, {}))
        constrained.append(rate(embedded, CONSTRAINED))
    ratio = statistics.median(constrained) / statistics.median(free)
    rows = [
        ("eight free streams", f"{statistics.median(free):.1f} tok/s"),
        ("eight constrained streams", f"{statistics.median(constrained):.1f} tok/s"),
        ("ratio (bar: 0.95)", f"{ratio:.3f}"),
    ]
    print("\nthe cost of a constraint\n" + table(rows))
    assert ratio >= 0.95
