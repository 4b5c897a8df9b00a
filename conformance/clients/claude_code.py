"""Claude Code as a user runs it: the program, in a home and a repository that are thrown away."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from conformance.clients.recorder import Exchange, Recorder

INSTALLED = Path(__file__).parents[2] / ".nox" / "clients" / "node_modules" / ".bin" / "claude"
VARIABLE = "HELIOGRAPH_CLAUDE"
_ENVIRONMENT = {
    "TERM": "xterm",
    "LANG": "C.UTF-8",
    "ANTHROPIC_API_KEY": "any",
    "IS_SANDBOX": "1",  # else root may not skip permissions
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
_HELLO = '''"""Says hello: {mark}."""


def greeting():
    return "hallo"
'''
_TEST = '''import unittest

from hello import greeting


class Greeting(unittest.TestCase):
    def test_english(self):
        """Greets in English: {mark}."""
        self.assertEqual(greeting(), "hello")
'''


def find() -> Path | None:
    """The program: the one that the variable names, else that of `nox -s clients`, if it is there.

    One that is named and not there fails.
    """
    if named := os.environ.get(VARIABLE):
        assert Path(named).exists(), f"{VARIABLE} names {named}, which is not there"
        return Path(named)
    return INSTALLED if INSTALLED.exists() else None


@dataclass(frozen=True)
class Workplace:
    """A repository in which hello.py has a mistake and its test finds it, and its user's home.

    `mark`, the name of the repository, is in all that Claude Code's tools can see of it.
    """

    folder: Path

    @property
    def mark(self) -> str:
        return self.folder.name

    @property
    def hello(self) -> Path:
        return self.folder / "hello.py"

    @property
    def home(self) -> Path:
        return self.folder.parent / f"{self.mark}.home"

    def make(self) -> None:
        self.home.mkdir()
        self.folder.mkdir()
        self.hello.write_text(_HELLO.format(mark=self.mark))
        (self.folder / "test_hello.py").write_text(_TEST.format(mark=self.mark))
        author = ("-c", "user.name=A User", "-c", "user.email=user@example.com")
        for command in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "Hello")):
            subprocess.run(["git", *command], cwd=self.folder, env=self.environment(), check=True)

    def environment(self) -> dict[str, str]:
        """Of the environment of the tests, only the path."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home)}


@dataclass(frozen=True)
class Run:
    """What Claude Code said at its end, and all that went over the wire."""

    work: Workplace
    status: int
    result: dict[str, Any]
    errors: str
    exchanges: list[Exchange]
    seconds: float


def run(
    program: Path,
    server_url: str,
    work: Workplace,
    prompt: str,
    *options: str,
    variables: dict[str, str] | None = None,
    seconds: float = 120,
) -> Run:
    """Run `claude -p` to its end; one that takes longer than `seconds` is killed and fails."""
    command = [str(program), "-p", "--dangerously-skip-permissions", "--output-format", "json"]
    command += ["--model", "any", *options, "--", prompt]
    with Recorder(server_url) as recorder:
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=work.folder,
            env=work.environment()
            | _ENVIRONMENT
            | {"ANTHROPIC_BASE_URL": recorder.url}
            | (variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise AssertionError(f"it still runs after {seconds} s: {_said(recorder)}") from None
        assert output.strip(), f"no result: {errors}\n{_said(recorder)}"
        taken = time.monotonic() - started
        return Run(
            work, process.returncode, json.loads(output), errors, recorder.exchanges(), taken
        )


def _kill(process: subprocess.Popen[str]) -> None:
    """End it and what it started, which would hold its pipes open."""
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    process.kill()
    process.communicate()


def _said(recorder: Recorder) -> list[tuple[str, str, int]]:
    return [(one.method, one.target, one.status) for one in recorder.exchanges()]
