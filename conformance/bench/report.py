"""What a run found, as a table for people and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.bench.contest import Entry
from conformance.bench.machine import Machine
from conformance.bench.rows import Sizes


@dataclass(frozen=True)
class Report:
    """A whole run. `starts` are the seconds from spawn to ready of our servers, first to last."""

    machine: Machine
    model: str
    options: tuple[str, ...]
    rounds: int
    sizes: Sizes
    seed: int
    starts: tuple[float, ...]
    entries: tuple[Entry, ...]

    def as_json(self) -> dict[str, Any]:
        """Everything, every sample included; the units are those of the classes."""
        rows = [
            {
                "row": entry.row.name,
                "title": entry.row.title,
                "server": entry.server,
                "weights_bytes": entry.weights_bytes,
                "bandwidth_share": bandwidth_share(entry, self.machine.bandwidth),
                "figures": dataclasses.asdict(entry.figures),
                "ratio": entry.ratio and dataclasses.asdict(entry.ratio),
                "samples": [dataclasses.asdict(sample) for sample in entry.samples],
            }
            for entry in self.entries
        ]
        whole = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("machine", "sizes", "entries")
        }
        parts = {name: dataclasses.asdict(getattr(self, name)) for name in ("machine", "sizes")}
        return {**whole, **parts, "rows": rows}

    def text(self) -> str:
        """The table in aligned columns, with the facts above and the faults below."""
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(_aligned, row, widths, range(len(row)))) for row in cells]
        table = [line.rstrip() for line in lines]
        return "\n".join([*self.facts(), "", *table, *_apart(self.notes())])

    def markdown(self) -> str:
        """The same for a document."""
        head, *rows = self.cells()
        rule = ["---", "---", *["---:"] * (len(head) - 2)]
        lines = [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
        facts = [f"- {fact}" for fact in self.facts()]
        notes = [f"- {note}" for note in self.notes()]
        return "\n".join([*facts, "", *lines, *_apart(notes)])

    def facts(self) -> list[str]:
        """The machine, what was measured and how long the starts took."""
        machine = self.machine
        versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
        given = f", options {' '.join(self.options)}" if self.options else ""
        load = "" if machine.load is None else f", load {machine.load:.1f} before the run"
        rounds = f"{self.rounds} round{'s' if self.rounds > 1 else ''}"
        facts = [
            f"{machine.date}, {machine.system}: {machine.cpu}, {machine.cores} cores"
            f" ({' '.join(machine.flags)}), {machine.memory_bytes / 2**30:.0f} GiB, reads"
            f" {machine.bandwidth / 1e9:.1f} GB/s{load}",
            versions,
            f"model {self.model}{given}; {rounds}",
        ]
        names = ("first start", "second start")
        starts = [f"{name} {s:.1f} s" for name, s in zip(names, self.starts, strict=False)]
        return [*facts, f"from spawn to ready: {', '.join(starts)}"] if starts else facts

    def cells(self) -> list[list[str]]:
        """The head and the rows; columns of which nothing is known are left out."""
        columns = [("row", _title), ("server", lambda entry: entry.server), *_COLUMNS]
        columns.append(("bandwidth", self._share))
        columns.append(("ours ÷ theirs: median (least)", _ratio))
        found = [(head, [cell(entry) for entry in self.entries]) for head, cell in columns]
        known = [[head, *cells] for head, cells in found if any(cells)]
        table = [list(row) for row in zip(*known, strict=True)]
        return [table[0], *([cell or "–" for cell in row] for row in table[1:])]

    def notes(self) -> list[str]:
        """What is wrong with figures, or makes them mean less."""
        notes = []
        for entry in self.entries:
            where, figures = f"{entry.row.name}, {entry.server}", entry.figures
            notes += [f"{where}: {fault}" for fault in figures.faults]
            if figures.copied is not None and figures.copied < 1:
                notes.append(f"{where}: only {figures.copied:.0%} of the text was copied")
        return notes

    def _share(self, entry: Entry) -> str:
        share = bandwidth_share(entry, self.machine.bandwidth)
        return "" if share is None else f"{share:.0%}"


def bandwidth_share(entry: Entry, bandwidth: float) -> float | None:
    """Bytes of weights read a second by what the machine can read.

    None where tokens do not take one pass over the weights each, or where their bytes are unknown.
    """
    figures = entry.figures
    if not entry.row.reads_weights or figures.accepted or not entry.weights_bytes:
        return None
    return figures.rate * entry.weights_bytes / bandwidth if figures.rate else None


def _apart(lines: list[str]) -> list[str]:
    return ["", *lines] if lines else []


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _milliseconds(seconds: float | None) -> str:
    return _number(seconds and seconds * 1000)


def _title(entry: Entry) -> str:
    return entry.row.title


def _memory(entry: Entry) -> str:
    peak = entry.figures.peak_bytes
    return _number(peak and peak / 2**20, 0)


def _drafted(entry: Entry) -> str:
    return f"{entry.figures.accepted:.0%}" if entry.figures.accepted else ""


def _overhead(entry: Entry) -> str:
    return "" if entry.figures.overhead is None else f"{entry.figures.overhead:.1%}"


def _ratio(entry: Entry) -> str:
    return f"{entry.ratio.median:.2f} ({entry.ratio.least:.2f})" if entry.ratio else ""


_COLUMNS: list[tuple[str, Callable[[Entry], str]]] = [
    ("tok/s", lambda entry: _number(entry.figures.rate)),
    ("TTFT ms", lambda entry: _milliseconds(entry.figures.ttft)),
    ("gap p50 ms", lambda entry: _milliseconds(entry.figures.gap_p50)),
    ("gap p95 ms", lambda entry: _milliseconds(entry.figures.gap_p95)),
    ("CPU cores", lambda entry: _number(entry.figures.cores, 2)),
    ("peak MiB", _memory),
    ("drafted", _drafted),
    ("overhead", _overhead),
]


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)


def faulty(entries: Sequence[Entry], server: str) -> bool:
    """Whether any row of a server has a fault."""
    return any(entry.figures.faults for entry in entries if entry.server == server)
