"""The sampling values that a checkpoint recommends; loads no torch."""

from __future__ import annotations

import json
from pathlib import Path

from engine.errors import StartupError
from engine.types import Sampling

_FIELDS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def sampling_defaults(path: Path) -> Sampling:
    """What generation_config.json recommends, as vLLM reads it; a GGUF file recommends nothing.

    Raises StartupError when the file is not readable JSON.
    """
    file = path / "generation_config.json"
    if not file.is_file():
        return Sampling()
    try:
        config = json.loads(file.read_text())
        given = {name: config[name] for name in _FIELDS if config.get(name) is not None}
        return Sampling(**{name: type(getattr(Sampling(), name))(v) for name, v in given.items()})
    except (ValueError, TypeError, AttributeError) as error:
        raise StartupError(f"{file} is wrong: {error}") from None
