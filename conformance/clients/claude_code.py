"""Claude Code as a user runs it: the program, a home and a repository that are thrown away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from conformance.clients.recorder import Exchange, Recorder

INSTALLED = Path(__file__).parents[2] / ".nox" / "clients" / "node_modules" / ".bin" / "claude"
VARIABLE = "HELIOGRAPH_CLAUDE"
MESSAGES = "/v1/messages"
_ENVIRONMENT = {
    "TERM": "xterm",
    "LANG": "C.UTF-8",
    "ANTHROPIC_API_KEY": "any",
    "IS_SANDBOX": "1",  # root may not skip permissions elsewhere
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
_GREETING = '''"""Says hello: {mark}."""


def greeting() -> str:
    return "hallo"
'''
_TEST = '''import unittest

from hello import greeting


class Greeting(unittest.TestCase):
    def test_english(self) -> None:
        """Greets in English: {mark}."""
        self.assertEqual(greeting(), "hello")
'''


def find() -> Path | None:
    """The program: the variable's, else the one that `nox -s clients` installs."""
    program = Path(os.environ.get(VARIABLE) or INSTALLED)
    return program if program.exists() else None


@dataclass(frozen=True)
class Workplace:
    """A repository with a bug in hello.py that its test finds, and the home of its user.

    `mark`, the repository's name, is in all that the tools of a client read there.
    """

    folder: Path

    @property
    def mark(self) -> str:
        return self.folder.name

    @property
    def home(self) -> Path:
        return self.folder.parent / f"{self.mark}.home"

    def make(self) -> None:
        self.home.mkdir(parents=True)
        self.folder.mkdir()
        (self.folder / "hello.py").write_text(_GREETING.format(mark=self.mark))
        (self.folder / "test_hello.py").write_text(_TEST.format(mark=self.mark))
        author = ("-c", "user.name=A User", "-c", "user.email=user@example.com")
        for command in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "Hello")):
            subprocess.run(
                ["git", *command], cwd=self.folder, env=self.environment(), check=True
            )

    def environment(self) -> dict[str, str]:
        """Nothing of the environment of the tests but the path."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home)}


@dataclass(frozen=True)
class Run:
    """What a run of Claude Code said at its end, and all that went over the wire."""

    status: int
    result: dict[str, Any]
    errors: str
    exchanges: list[Exchange]
    seconds: float

    @property
    def turns(self) -> list[Exchange]:
        """The requests for messages, in their order."""
        return [exchange for exchange in self.exchanges if exchange.path == MESSAGES]


def run(
    program: Path,
    server_url: str,
    work: Workplace,
    prompt: str,
    *options: str,
    variables: dict[str, str] | None = None,
    seconds: float = 90,
) -> Run:
    """Run `claude -p` to its end; one that takes longer than `seconds` is killed, and fails."""
    with Recorder(server_url) as recorder:
        command = [
            str(program), "-p", "--dangerously-skip-permissions", "--model", "any",
            "--output-format", "json", *options, "--", prompt,
        ]  # fmt: skip
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=work.folder,
            env={
                **work.environment(), **_ENVIRONMENT, "ANTHROPIC_BASE_URL": recorder.url,
                **(variables or {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise AssertionError(f"still runs after {seconds} s: {_told(recorder)}") from None
        taken = time.monotonic() - started
        assert output.strip(), f"no result: {errors}\n{_told(recorder)}"
        return Run(process.returncode, json.loads(output), errors, recorder.exchanges(), taken)


def _kill(process: subprocess.Popen[str]) -> None:
    """End it and the tools and servers that it started, which would hold its pipes open."""
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    process.kill()
    process.communicate()


def _told(recorder: Recorder) -> list[tuple[str, str, int]]:
    return [(one.method, one.target, one.status) for one in recorder.exchanges()]


PYTHON = sys.executable
