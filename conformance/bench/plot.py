"""Bars of what a run found; needs matplotlib, the extra `bench`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.bench.contest import Entry
from conformance.bench.figures import By

SUFFIXES = (".svg", ".png")
_PANELS: tuple[tuple[By, str], ...] = (
    ("rate", "tokens a second (more is better)"),
    ("ttft", "milliseconds to the first text (less is better)"),
)


def plot(entries: Sequence[Entry], path: Path) -> None:
    """Draw a panel for each kind of row, a bar for each server; SVG or PNG by the suffix."""
    from matplotlib.figure import Figure  # the rest of the benchmark does without

    panels = [(by, label) for by, label in _PANELS if any(e.row.by == by for e in entries)]
    counts = [len({e.row.name for e in entries if e.row.by == by}) for by, _ in panels]
    figure = Figure(figsize=(9, 1.2 + 0.6 * sum(counts)), layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=counts)[:, 0]
    servers = list(dict.fromkeys(entry.server for entry in entries))
    for axis, (by, label) in zip(axes, panels, strict=True):
        _bars(axis, [entry for entry in entries if entry.row.by == by], servers)
        axis.set_xlabel(label)
    if len(servers) > 1:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figure.savefig(path, dpi=150)


def _bars(axis: Any, entries: Sequence[Entry], servers: Sequence[str]) -> None:
    titles = list(dict.fromkeys(entry.row.title for entry in entries))
    height = 0.8 / len(servers)
    for place, server in enumerate(servers):
        own = [entry for entry in entries if entry.server == server]
        at = [titles.index(entry.row.title) + (place + 0.5) * height - 0.4 for entry in own]
        bars = axis.barh(at, [_value(entry) for entry in own], height, label=server)
        axis.bar_label(bars, fmt="{:,.1f}", padding=3)
    axis.set_yticks(range(len(titles)), titles)
    axis.invert_yaxis()
    axis.margins(x=0.12)


def _value(entry: Entry) -> float:
    figures = entry.figures
    return (figures.rate if entry.row.by == "rate" else 1000 * (figures.ttft or 0)) or 0.0
