"""The servers that tests share, by name. Each starts when a test first asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from conformance.models import UNCONSTRAINED, model_of
from conformance.server import Server

ALIASES = ("acme/solar-1", "solar")
KEYS = {"ops": "key-of-operations", "lab": "key-of-the-laboratory"}
CONTEXT = 8192
SMALL_BODY = 65_536

ANSWER = "Hello there, friend. The sun is up."
"""What the scripted servers say to any prompt that no case claims."""


MODEL = ("--deterministic",)
"""What a server with the real model runs: a row's bits hang on nothing else."""
CLAMPED = 1.25
"""The highest temperature of the profile tight, which also has few pages."""
REAL = {
    "embedded": (*MODEL, "--max-context", "4096", "--kv-tokens", "32768"),
    "exact": ("--dtype", "fp32", "--max-context", "4096", "--kv-tokens", "32768"),
    "tight": (*MODEL, "--max-context", "512", "--kv-tokens", "512",
              "--sampling-ranges", f"temperature=0:{CLAMPED}"),
}  # fmt: skip
"""The profiles with the real model, and their options. `exact` has all bits of its weights, and of
what it multiplies with them, for comparisons with transformers."""


def write_script(path: Path, replies: Iterable[dict[str, Any]]) -> Path:
    """A script of these replies, then `ANSWER` for everything else."""
    path.write_text(json.dumps({"replies": [*replies, {"text": ANSWER}]}))
    return path


def options(profile: str, folder: Path, replies: Iterable[dict[str, Any]]) -> list[str]:
    """The options of a named server. `folder` is scratch space of its own."""
    if profile in REAL:
        return [*REAL[profile]]
    script = ["--scripted", str(write_script(folder / "script.json", replies))]
    names = [part for alias in ALIASES for part in ("--alias", alias)]
    context = ["--max-context", str(CONTEXT)]
    if (model := model_of(profile)) is not None:
        written = str(model.write(folder / "byte-model"))
        free = ["--constrain-tools", "off"] if profile.endswith(UNCONSTRAINED) else []
        return [*script, *context, "--model", written, *model.options, *free]
    match profile:
        case "scripted":
            return [*script, *names, *context]
        case "guarded":
            bounds = ["--max-body-bytes", str(SMALL_BODY), "--model-names", "known"]
            return [*script, *names, *context, *bounds, *_keys(folder)]
        case "narrow":
            places = ["--max-concurrency", "1", "--max-queue", "1"]
            return [*script, *context, *places, "--heartbeat-seconds", "0.2"]
        case "fuzzed":
            small = ["--max-context", "256", "--default-max-tokens", "8"]
            return [*script, *names, *small, *_keys(folder)]
    raise ValueError(f"no profile is named {profile}")


def _keys(folder: Path) -> list[str]:
    keys = folder / "keys"
    keys.write_text("".join(f"{name} = {key}\n" for name, key in KEYS.items()))
    return ["--api-key-file", str(keys)]


class Pool:
    """Starts the servers of a test session when they are needed, stops all of them at its end."""

    def __init__(self, folder: Path, replies: dict[str, list[dict[str, Any]]]) -> None:
        self._folder = folder
        self._replies = replies
        self._running: dict[str, Server] = {}

    def get(self, profile: str) -> Server:
        """The server of a profile, started at its first use; skips what only torch computes."""
        if profile == "exact" and find_spec("torch") is None:
            pytest.skip("the profile exact computes with torch, which is not installed")
        if profile not in self._running:
            folder = self._folder / profile
            folder.mkdir()
            server = Server(*options(profile, folder, self._replies.get(profile, [])))
            self._running[profile] = server.__enter__()
        return self._running[profile]

    def close(self) -> None:
        """Stop all servers. Fails when one does not end well."""
        errors: list[AssertionError] = []
        for server in self._running.values():
            try:
                server.__exit__(None, None, None)
            except AssertionError as error:
                errors.append(error)
        if errors:
            raise errors[0]
