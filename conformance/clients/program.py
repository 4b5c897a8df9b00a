"""A client as a user runs it: the program that npm installs, until it ends."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from conformance.clients.recorder import Recorder

_INSTALLED = Path(__file__).parents[2] / ".nox" / "clients" / "node_modules" / ".bin"


def find(name: str, variable: str) -> Path | None:
    """The program: the one that the variable names, else that of `nox -s clients`, if it is there.

    One that is named and not there fails.
    """
    if named := os.environ.get(variable):
        assert Path(named).exists(), f"{variable} names {named}, which is not there"
        return Path(named)
    program = _INSTALLED / name
    return program if program.exists() else None


@dataclass(frozen=True)
class Ended:
    """How a program ended, and what it wrote."""

    status: int
    output: str
    errors: str
    seconds: float


def run_to_end(
    command: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    recorder: Recorder,
    seconds: float,
) -> Ended:
    """Run it without input; one that takes longer than `seconds` is killed and fails the test."""
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise AssertionError(f"it still runs after {seconds} s: {recorder.summary()}") from None
    assert output.strip(), f"no result: {errors}\n{recorder.summary()}"
    return Ended(process.returncode, output, errors, time.monotonic() - started)


def _kill(process: subprocess.Popen[str]) -> None:
    """End it and what it started, which would hold its pipes open."""
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    process.kill()
    process.communicate()
