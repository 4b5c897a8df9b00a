"""The file of `--scripted`: JSON replies become the token ids of a `Script`.

`{"replies": [{"text": "..."} | {"token_ids": [...]}, ...]}`, each reply with optional `match` (a
regular expression searched in the last message or tool result), `delay_ms` before each token,
`prefill_delay_ms` before the first, `fail_after` and `crash_after` (output tokens). Control tokens
that a `text` spells are control tokens: the file is the operator's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from engine.backend.scripted import Reply, Script
from engine.errors import StartupError
from engine.text.tokenizer import Tokenizer

_KEYS = {
    "text",
    "token_ids",
    "match",
    "delay_ms",
    "prefill_delay_ms",
    "fail_after",
    "crash_after",
}


def load_script(path: Path, tokenizer: Tokenizer) -> Script:
    """Read a script file. Raises StartupError naming the reply that is wrong."""
    try:
        replies = json.loads(path.read_text())["replies"]
        made = tuple(_reply(entry, tokenizer) for entry in replies)
    except OSError as error:
        raise StartupError(f"cannot read the script {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, re.error) as error:
        raise StartupError(f"the script {path} is wrong: {error}") from None
    return Script(made, tokenizer.vocab_size, tokenizer.eos_ids[0])


def _reply(entry: dict[str, Any], tokenizer: Tokenizer) -> Reply:
    unknown = set(entry) - _KEYS
    if unknown or ("text" in entry) == ("token_ids" in entry):
        raise ValueError(f"{entry} needs text or token_ids, and of the rest only {sorted(_KEYS)}")
    if "match" in entry:
        re.compile(entry["match"])
    if "text" in entry:
        token_ids = tokenizer.encode_rendered(entry["text"])
        if tokenizer.add_bos:  # it begins a prompt, not what follows one
            token_ids = token_ids[1:]
    else:
        token_ids = [int(token) for token in entry["token_ids"]]
    if any(not 0 <= token < tokenizer.vocab_size for token in token_ids):
        raise ValueError(f"{entry} has a token id outside the vocabulary")
    return Reply(
        token_ids=tuple(token_ids),
        match=entry.get("match"),
        delay=float(entry.get("delay_ms", 0)) / 1000,
        prefill_delay=float(entry.get("prefill_delay_ms", 0)) / 1000,
        fail_after=_count(entry, "fail_after"),
        crash_after=_count(entry, "crash_after"),
    )


def _count(entry: dict[str, Any], key: str) -> int | None:
    return None if entry.get(key) is None else int(entry[key])
