"""The command line of the benchmark."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from conformance.bench import document, plot
from conformance.bench.rows import COPY_PLAIN, FULL, QUICK, ROWS, Row, Sizes, select

OURS = "Heliograph"
"""What the table calls our server."""
_ROUNDS, _QUICK_ROUNDS = 5, 1
_TEXT = """Measure the server, alone or against others that run already. Options after `--` are
those of the server that is started."""


@dataclass(frozen=True)
class Rival:
    """Another server: where it runs and what it calls its model."""

    url: str
    model: str
    name: str
    weights_bytes: int | None


@dataclass(frozen=True)
class Options:
    """What was asked for, checked. `server` are the options of the server that is started."""

    url: str | None
    rivals: tuple[Rival, ...]
    rows: tuple[Row, ...]
    rounds: int
    sizes: Sizes
    weights_bytes: int | None
    json: str | None
    plot: Path | None
    write: Path | None
    server: tuple[str, ...]


def parse(arguments: list[str] | None = None) -> Options:
    """Options from the command line; ends the process with a message where they are wrong."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.url and given.options:
        parser.error("options of the server after `--` are for one that is started, not for --url")
    try:
        rows = select(given.rows) if given.rows else ROWS
        if given.plot:
            _check_plot(given.plot)
        if given.write:
            document.check(given.write)
        rivals = _rivals(given)
    except ValueError as error:
        parser.error(str(error))
    if given.url:  # one server cannot be asked with and without drafts
        rows = tuple(row for row in rows if row.name != COPY_PLAIN)
    return Options(
        url=given.url,
        rivals=rivals,
        rows=rows,
        rounds=given.rounds or (_QUICK_ROUNDS if given.quick else _ROUNDS),
        sizes=QUICK if given.quick else FULL,
        weights_bytes=given.weights_bytes,
        json=given.json,
        plot=given.plot,
        write=given.write,
        server=tuple(given.options),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="conformance.bench", description=_TEXT)
    for name, help_text, details in _ARGUMENTS:
        parser.add_argument(name, help=help_text, **details)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def _check_plot(path: Path) -> None:
    if path.suffix not in plot.SUFFIXES:
        raise ValueError(f"--plot draws {' and '.join(plot.SUFFIXES)} files, not {path}")
    if find_spec("matplotlib") is None:
        raise ValueError(
            "--plot needs matplotlib, which the extra `bench` and `nox -s bench` bring"
        )


def _rivals(given: argparse.Namespace) -> tuple[Rival, ...]:
    count = len(given.against)
    if len(given.against_model) != count:
        raise ValueError("every --against needs its --against-model")
    if max(len(given.against_name), len(given.against_weights_bytes)) > count:
        raise ValueError("more names or sizes of other servers than --against")
    names = [
        given.against_name[i] if i < len(given.against_name) else urlsplit(url).netloc
        for i, url in enumerate(given.against)
    ]
    if len({OURS, *names}) != count + 1:
        raise ValueError("two servers have one name: give each its own --against-name")
    sizes = [*given.against_weights_bytes, *[0] * count]
    rivals = zip(given.against, given.against_model, names, sizes[:count], strict=True)
    return tuple(Rival(url, model, name, size or None) for url, model, name, size in rivals)


_EACH: dict[str, Any] = {"action": "append", "default": []}
_ARGUMENTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--url", "a running server of ours; without it two are started, one without drafts", {}),
    ("--against", "another running server, measured in turn with ours; repeatable",
     {"metavar": "URL", **_EACH}),
    ("--against-model", "the name of its model: one for each --against, in order",
     {"metavar": "NAME", **_EACH}),
    ("--against-name", "what the table calls it; its address unless given",
     {"metavar": "TEXT", **_EACH}),
    ("--against-weights-bytes", "as --weights-bytes; 0 where it is unknown",
     {"metavar": "N", "type": int, **_EACH}),
    ("--weights-bytes", "bytes of weights read for a token, for the share of the bandwidth",
     {"metavar": "N", "type": _positive}),
    ("--rows", "only these of " + ", ".join(row.name for row in ROWS), {"metavar": "NAME,..."}),
    ("--rounds", f"rounds of each row; {_ROUNDS}", {"metavar": "N", "type": _positive}),
    ("--quick", "short answers and one round: about a minute", {"action": "store_true"}),
    ("--json", "write everything as JSON; - prints it in place of the table", {"metavar": "FILE"}),
    ("--plot", "draw bars into an .svg or .png file", {"metavar": "FILE", "type": Path}),
    ("--write", "put the table between the marks of a document", {"metavar": "FILE", "type": Path}),
    ("options", "options of the server that is started", {"nargs": "*"}),
)  # fmt: skip
