"""The folder for what outlives the server."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder(given: Path | None) -> Path:
    """The folder of the option `--state-dir`; without it, where programs of this user keep state
    (XDG Base Directory Specification, version 0.8).

    "~" is not expanded yet, which may fail.
    """
    if given is not None:
        return given
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the specification: ignore it
        base = Path("~/.local/state")
    return base / "heliograph"
