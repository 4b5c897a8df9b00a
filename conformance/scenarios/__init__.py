"""Cases that are more than a request and its reply, by the name that the case files use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.scenarios import (
    admission,
    bounds,
    encodings,
    engine,
    kept,
    lifecycle,
    messages,
    responses,
    responses_kept,
    sampling,
    speculation,
    streams,
    tools,
    wire,
)

_MODULES = (
    admission, bounds, encodings, engine, kept, lifecycle, messages, responses, responses_kept,
    sampling, speculation, streams, tools, wire,
)  # fmt: skip
FUNCTIONS: dict[str, Callable[[Any, Any], None]] = {
    function.__name__: function for module in _MODULES for function in module.SCENARIOS
}
