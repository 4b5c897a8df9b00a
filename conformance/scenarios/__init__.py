"""Cases that are more than a request and its reply, by the name that the case files use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.scenarios import (
    admission,
    encodings,
    engine,
    lifecycle,
    sampling,
    streams,
    tools,
    wire,
)

FUNCTIONS: dict[str, Callable[[Any, Any], None]] = {
    function.__name__: function
    for module in (admission, encodings, engine, lifecycle, sampling, streams, tools, wire)
    for function in module.SCENARIOS
}
