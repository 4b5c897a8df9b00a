"""From timed streams to the figures of a row, and ratios between servers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from conformance.bench.measure import aggregate
from conformance.bench.process import Watch
from conformance.bench.stream import Stream

By = Literal["rate", "ttft"]


@dataclass(frozen=True)
class Sample:
    """One row, one server, one round. None stands for what is not known.

    `rate` is in tokens a second: output tokens of all streams together, or prompt tokens where the
    row is about the first token and the cache had none of them. `ttft` and `gaps` are in seconds.
    `copied` is the share of the text that equals the source, in rows that copy, `overhead` the
    share of the steps' time that is not in operations of the device. With a `fault` the rest may
    not be compared.
    """

    rate: float | None = None
    ttft: float | None = None
    gaps: tuple[float, ...] = ()
    cpu_seconds: float | None = None
    wall_seconds: float = 0.0
    peak_bytes: int | None = None
    tokens: int = 0
    accepted: int = 0
    copied: float | None = None
    overhead: float | None = None
    fault: str = ""


@dataclass(frozen=True)
class Figures:
    """A row of one server over all rounds without a fault: medians, but the most memory.

    `gap_p50` and `gap_p95` are over the gaps of all rounds; `cores` is processor time by time,
    `accepted` the share of the tokens that came from drafts. `faults` are those of all rounds.
    """

    rounds: int
    rate: float | None
    ttft: float | None
    gap_p50: float | None
    gap_p95: float | None
    cores: float | None
    peak_bytes: int | None
    accepted: float
    copied: float | None
    overhead: float | None
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Ratio:
    """How many times better ours did, over the rounds that both completed."""

    least: float
    median: float
    rounds: int


def sample_of(streams: Sequence[Stream], by: By, watch: Watch, sources: Sequence[str]) -> Sample:
    """What the streams of one round say; `sources` are what each should copy, or empty."""
    faults = sorted({stream.fault for stream in streams if stream.fault})
    begun = [stream for stream in streams if stream.arrivals]
    ttft = statistics.median(s.ttft for s in begun) if begun else None
    rate = None
    if not faults and by == "rate":
        rate = streams[0].rate if len(streams) == 1 else aggregate(streams)
    elif not faults and ttft and not any(stream.cached for stream in streams):
        rate = statistics.median(stream.prompt_tokens for stream in streams) / ttft
    copied = [
        copied_share(stream.text, source)
        for stream, source in zip(streams, sources, strict=True)
        if source
    ]
    return Sample(
        rate=rate,
        ttft=ttft,
        gaps=tuple(gap for stream in streams for gap in stream.gaps),
        cpu_seconds=watch.cpu_seconds,
        wall_seconds=watch.wall_seconds,
        peak_bytes=watch.peak_bytes,
        tokens=sum(stream.tokens for stream in streams),
        accepted=sum(stream.accepted for stream in streams),
        copied=min(copied) if copied else None,
        fault="; ".join(faults),
    )


def copied_share(text: str, source: str) -> float:
    """The share of a text that comes before its first difference from the source."""
    text, source = text.lstrip(), source.lstrip()
    same = next(
        (place for place, (a, b) in enumerate(zip(text, source, strict=False)) if a != b),
        min(len(text), len(source)),
    )
    return same / len(text) if text else 0.0


def figures_of(samples: Sequence[Sample]) -> Figures:
    """The figures of a row. A first token counts even where a round has another fault."""
    good = [sample for sample in samples if not sample.fault]
    gaps = [gap for sample in good for gap in sample.gaps]
    tokens = sum(sample.tokens for sample in good)
    cores = [s.cpu_seconds / s.wall_seconds for s in good if s.cpu_seconds is not None]
    copied = [sample.copied for sample in good if sample.copied is not None]
    return Figures(
        rounds=len(good),
        rate=_median([sample.rate for sample in good]),
        ttft=_median([sample.ttft for sample in samples]),
        gap_p50=percentile(gaps, 50),
        gap_p95=percentile(gaps, 95),
        cores=_median(cores),
        peak_bytes=max((s.peak_bytes for s in samples if s.peak_bytes is not None), default=None),
        accepted=sum(sample.accepted for sample in good) / tokens if tokens else 0.0,
        copied=min(copied) if copied else None,
        overhead=_median([sample.overhead for sample in good]),
        faults=tuple(sorted({sample.fault for sample in samples if sample.fault})),
    )


def ratio_of(ours: Sequence[Sample], theirs: Sequence[Sample], by: By) -> Ratio | None:
    """Ours against theirs, round by round: their seconds by ours, or our rate by theirs.

    None where no round is without a fault on both sides.
    """
    found = []
    for our, their in zip(ours, theirs, strict=True):
        better, worse = (our.rate, their.rate) if by == "rate" else (their.ttft, our.ttft)
        if better and worse and not our.fault and not their.fault:
            found.append(better / worse)
    return Ratio(min(found), statistics.median(found), len(found)) if found else None


def percentile(values: Sequence[float], percent: int) -> float | None:
    """The value that so many percent of the values do not exceed, interpolated; None for none."""
    if len(values) < 2:
        return values[0] if values else None
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
