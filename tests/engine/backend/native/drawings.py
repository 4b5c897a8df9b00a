"""What tests of native draws share: logits, and seeds whose uniform number is known."""

from __future__ import annotations

import numpy as np

from engine.backend.backend import Float32, StepPlan
from engine.backend.native.drawing import Drawing

GAMMA = 0x9E3779B97F4A7C15
WORD = 2**64
LAST = 1 - 2**-53  # the last point


def normal(rows: int, vocab: int, seed: int = 0, spread: float = 2.5) -> Float32:
    return np.random.default_rng(seed).normal(0, spread, (rows, vocab)).astype(np.float32)


def chosen(drawing: Drawing, logits: Float32, plan: StepPlan) -> list[int]:
    """The tokens of rows that must not fail."""
    tokens, failed = drawing.draw(logits, plan)
    assert not failed
    drawn: list[int] = tokens.tolist()
    return drawn


def seed_of(point: float, position: int = 0) -> int:
    """The seed whose uniform number at a position is a point: splitmix64 backwards."""
    stream = _unmixed(int(point * 2**53) << 11) - (position + 1) * GAMMA
    return (_unmixed(stream % WORD) - GAMMA) % WORD


def _unmixed(state: int) -> int:
    state ^= state >> 31 ^ state >> 62
    state = state * pow(0x94D049BB133111EB, -1, WORD) % WORD
    state ^= state >> 27 ^ state >> 54
    state = state * pow(0xBF58476D1CE4E5B9, -1, WORD) % WORD
    return state ^ state >> 30 ^ state >> 60
