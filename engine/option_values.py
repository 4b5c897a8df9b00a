"""Values of options: text as people write it, and as logs may show it.

A function that reads raises ValueError, whose message says what the value must be.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, cast, get_args

from engine.conversation import Effort
from engine.types import RepetitionDetection


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("must be at least 1")
    return value


def seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError("must be a number of seconds, at least 0")
    return value


_RANGED = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)


def ranges(text: str) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for item in filter(None, text.split(",")):
        name, _, bounds = item.partition("=")
        low, colon, high = bounds.partition(":")
        if name.strip() not in _RANGED or not colon or not float(low) <= float(high):
            raise ValueError(f"must be NAME=LOW:HIGH with a name of {', '.join(_RANGED)}")
        found[name.strip()] = (float(low), float(high))
    return found


def repetition(text: str) -> RepetitionDetection:
    sizes = [int(part) for part in text.split(":")]
    if len(sizes) != 3 or not 1 <= sizes[1] <= sizes[0] <= 4096 or sizes[2] < 2:
        raise ValueError("must be MAX_PATTERN:MIN_PATTERN:MIN_COUNT, as in 64:1:20")
    return RepetitionDetection(sizes[0], sizes[1], sizes[2])


def effort(text: str) -> Effort | int:
    levels = get_args(Effort)
    if text in levels:
        return cast(Effort, text)
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 100:
        raise ValueError(f"must be one of {', '.join(levels)}, or a number from 1 to 100")
    return value


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name that other machines may resolve
        return False


def days(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("must be a number of days, at least 0")
    return value


def store(text: str) -> str:
    known = text in ("sqlite", "off") or re.match(r"postgres(ql)?(\+psycopg)?://", text)
    if not known:
        raise ValueError("must be sqlite, off, or a URL that begins with postgresql://")
    return text


def port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise ValueError("must be between 0 and 65535")
    return value


def without_password(value: object) -> str:
    """A value as logs may show it; a URL may have a password before its host or in its query."""
    hidden = re.sub(r"(?<=://)([^/:]*):.*@", r"\1:***@", str(value))
    return re.sub(r"(?<=password=)[^&]*", "***", hidden)


def switch(raw: Any) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    value = known.get(str(raw).lower())
    if value is None:
        raise ValueError("must be true or false")
    return value
