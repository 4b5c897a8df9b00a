"""The 200 items of `items.jsonl`: made from word lists and small sums, the same on every run.

`python -m conformance.bars.harness.items` writes the file; a test holds it against this code.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FILE = FOLDER / "items.jsonl"
COUNT = 200
CHOICES = 4
_SEED = 20261129

_KINDS = {
    "color": ["red", "green", "blue", "yellow", "purple", "brown"],
    "animal": ["horse", "goat", "whale", "sparrow", "frog", "tiger"],
    "fruit": ["apple", "pear", "plum", "cherry", "grape", "lemon"],
    "metal": ["iron", "copper", "silver", "zinc", "lead", "gold"],
    "tool": ["hammer", "chisel", "saw", "drill", "wrench", "pliers"],
    "month": ["March", "June", "August", "October", "April", "July"],
    "instrument": ["violin", "flute", "drum", "harp", "trumpet", "cello"],
    "drink": ["tea", "coffee", "milk", "water", "cider", "cocoa"],
}
_ROWS = (
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    ["January", "February", "March", "April", "May", "June", "July", "August"],
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"],
)
_OPPOSITES = {
    "hot": "cold", "up": "down", "open": "closed", "early": "late", "wet": "dry", "full": "empty",
    "loud": "quiet", "rough": "smooth", "old": "new", "near": "far", "rich": "poor",
    "long": "short",
}  # fmt: skip


def items() -> list[dict[str, Any]]:
    """All items: a query, four choices of which one is right, and the number of the right one."""
    draw = random.Random(_SEED)
    makers = (_kind, _sum, _next, _opposite)
    made: dict[str, dict[str, Any]] = {}
    while len(made) < COUNT:
        query, right, wrong = makers[len(made) % len(makers)](draw)
        choices = [right, *wrong]
        draw.shuffle(choices)
        entry = {"query": query, "choices": choices, "gold": choices.index(right)}
        made.setdefault(query + "|".join(sorted(choices)), entry)
    return list(made.values())


def _kind(draw: random.Random) -> tuple[str, str, list[str]]:
    kind, *others = draw.sample(sorted(_KINDS), CHOICES)
    wrong = [draw.choice(_KINDS[other]) for other in others]
    article = "an" if kind[0] in "aeiou" else "a"
    return (
        f"Question: Which of these is {article} {kind}?\nAnswer:",
        draw.choice(_KINDS[kind]),
        wrong,
    )


def _sum(draw: random.Random) -> tuple[str, str, list[str]]:
    left, right = draw.randint(2, 60), draw.randint(2, 39)
    total = left + right
    wrong = draw.sample([total + step for step in (-10, -3, -1, 1, 2, 9, 10)], CHOICES - 1)
    return f"{left} + {right} =", str(total), [str(number) for number in wrong]


def _next(draw: random.Random) -> tuple[str, str, list[str]]:
    row = draw.choice(_ROWS)
    start = draw.randint(0, len(row) - 4)
    shown, right = row[start : start + 3], row[start + 3]
    others = [word for word in row if word != right]
    return ", ".join(shown) + ",", right, draw.sample(others, CHOICES - 1)


def _opposite(draw: random.Random) -> tuple[str, str, list[str]]:
    word = draw.choice(sorted(_OPPOSITES))
    others = [other for other in sorted(_OPPOSITES.values()) if other != _OPPOSITES[word]]
    wrong = draw.sample(others, CHOICES - 1)
    return f"The opposite of {word} is", _OPPOSITES[word], wrong


def lines() -> Iterator[str]:
    """The lines of the file."""
    return (json.dumps(item) + "\n" for item in items())


if __name__ == "__main__":
    FILE.write_text("".join(lines()))
