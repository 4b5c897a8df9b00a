"""What a vocabulary file says, whatever its format: the loaders' common result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from engine.errors import StartupError


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The library's tokenizer and the policy around it.

    `prefix_ids` and `suffix_ids` go around a text that is encoded with special tokens.
    `special_tokens` are the names that chat templates use (`bos_token`, ...).
    """

    core: tokenizers.Tokenizer
    prefix_ids: tuple[int, ...]
    suffix_ids: tuple[int, ...]
    bos_id: int | None
    eos_ids: tuple[int, ...]
    special_tokens: Mapping[str, str]


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or an empty one where the file does not exist. Raises StartupError."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StartupError(f"cannot read {path}: {error}") from None
    if not isinstance(value, dict):
        raise StartupError(f"{path} does not hold a JSON object")
    return value
