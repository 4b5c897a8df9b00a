"""The C compiler that builds the native operations: found, named and run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

PATIENCE = 300.0  # seconds of one command, which takes 6 on an idle core and 60 on a busy machine
VERSION_PATIENCE = 20.0
INSTALL = "install gcc or clang, or `pip install ziglang`"


class BuildFailed(Exception):
    """There are no native operations; the message says why in one line, `remedy` what helps."""

    def __init__(self, message: str, remedy: str = INSTALL) -> None:
        super().__init__(message)
        self.remedy = remedy


class Refused(BuildFailed):
    """The compiler ran, and said no."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A command that compiles C. `version` is all that it says of itself."""

    command: tuple[str, ...]
    version: str

    @classmethod
    def identify(cls, command: Sequence[str]) -> Compiler:
        """Find the program and ask for its version. Raises BuildFailed, and OSError without a place
        for temporary files.
        """
        program = shutil.which(command[0])
        if program is None:
            raise BuildFailed(f"there is no compiler {command[0]!r}")
        whole = (program, *command[1:])
        with tempfile.TemporaryDirectory(prefix="heliograph-") as folder:
            command = [*whole, "--version"]
            return cls(whole, _run(command, Path(folder), VERSION_PATIENCE, _title(whole, "")))

    @property
    def is_zig(self) -> bool:
        return _is_zig(self.command)

    @property
    def title(self) -> str:
        """Name and version, as in `gcc 12.2.0`."""
        return _title(self.command, self.version)

    def run(self, arguments: Sequence[str], folder: Path) -> None:
        """Run in a folder, which also takes what the compiler writes for itself.

        Raises Refused where it fails, BuildFailed where it cannot be run or takes more than
        PATIENCE seconds.
        """
        _run([*self.command, *arguments], folder, PATIENCE, self.title)


def find_compilers(environment: Mapping[str, str]) -> tuple[list[Compiler], list[BuildFailed]]:
    """The compilers to try, best first, and what is wrong with those that cannot be run.

    $CC alone where it is set; else the first of cc, gcc and clang, and the ziglang wheel. Raises
    OSError without a place for temporary files.
    """
    compilers, failures = [], []
    for command in _commands(environment):
        try:
            compilers.append(Compiler.identify(command))
        except BuildFailed as error:
            failures.append(error)
    return compilers, failures


def _commands(environment: Mapping[str, str]) -> list[list[str]]:
    if chosen := environment.get("CC", "").strip():
        try:
            return [[chosen] if shutil.which(chosen) else shlex.split(chosen)]
        except ValueError:  # an open quote
            return [[chosen]]
    commands = [[name] for name in ("cc", "gcc", "clang") if shutil.which(name)][:1]
    if find_spec("ziglang") is not None:
        commands.append([sys.executable, "-m", "ziglang", "cc"])
    return commands


def _is_zig(command: Sequence[str]) -> bool:
    return len(command) > 1 and "cc" in command[1:] and (
        "ziglang" in command or Path(command[0]).stem == "zig"
    )  # fmt: skip


def _title(command: Sequence[str], version: str) -> str:
    number = re.search(r"\d+(\.\d+)+", version)
    if _is_zig(command):
        name = "zig cc"
    elif "Free Software Foundation" in version:
        name = "gcc"
    else:
        name = "clang" if "clang" in version else Path(command[0]).name
    return f"{name} {number[0]}" if number else name


def _run(command: Sequence[str], folder: Path, patience: float, title: str) -> str:
    """Run and return what was printed. Ends all that the command started when it is late."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise BuildFailed(f"{title} cannot be run ({error.strerror})") from None
    with process:
        try:
            output = process.communicate(timeout=patience)[0].decode("utf-8", "replace")
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise BuildFailed(f"{title} did not end within {patience:.0f} s") from None
            raise
    if process.returncode != 0:
        raise Refused(f"{title} failed ({summary(output) or f'exit {process.returncode}'})")
    return output


def _environment(folder: Path) -> dict[str, str]:
    """Ours, with its temporary files and zig's caches in the folder: they go when it goes."""
    kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    places = ("TMPDIR", "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
    return kept | {"LC_ALL": "C"} | dict.fromkeys(places, str(folder))


def summary(output: str) -> str:
    """The line of an output that says most, without what a log cannot show."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    chosen = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
    return "".join(letter for letter in chosen if letter.isprintable())[:200]
