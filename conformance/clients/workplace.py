"""Where a client works: a repository and a home that are thrown away."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Workplace:
    """A repository in which hello.py has a mistake and its test finds it, and its user's home.

    `mark`, the name of the repository, is in all that a client's tools can see of it.
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
