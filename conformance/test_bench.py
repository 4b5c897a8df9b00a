"""The benchmark's own parts: statistics, ratios, tables, options. Nothing here is timed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.bench import document, prompts
from conformance.bench.contest import Entry
from conformance.bench.figures import Ratio, Sample, copied_share, figures_of, percentile, ratio_of
from conformance.bench.machine import Machine, read_bandwidth
from conformance.bench.options import parse
from conformance.bench.plot import plot
from conformance.bench.report import Report, bandwidth_share
from conformance.bench.rows import FULL, QUICK, ROWS, Row, select

MACHINE = Machine(
    "A processor", 2, ("avx2",), 8 << 30, 2e10, 0.1, "System x", "2026-01-02", {"V": "1"}
)
BY_NAME = {row.name: row for row in ROWS}


def entry(
    row: str, server: str, samples: Sequence[Sample], ratio: Ratio | None = None, weights: int = 0
) -> Entry:
    figures = figures_of(samples)
    return Entry(BY_NAME[row], server, tuple(samples), figures, ratio, weights or None)


def report(*entries: Entry) -> Report:
    return Report(MACHINE, "m", ("--dtype", "bf16"), 2, QUICK, 1, (3.0, 2.0), entries)


def two_servers() -> Report:
    ours = [Sample(rate=30, ttft=0.01, gaps=(0.03, 0.04), cpu_seconds=4, wall_seconds=2, tokens=8)]
    theirs = [Sample(rate=20, ttft=0.02, tokens=8), Sample(ttft=0.5, fault="made 3 of 8 tokens")]
    return report(
        entry("decode", "Heliograph", ours, weights=200_000_000),
        entry("decode", "other", theirs, Ratio(1.4, 1.5, 1)),
        entry("prefill-512", "Heliograph", [Sample(rate=600, ttft=0.8, tokens=8)]),
        entry("prefill-512", "other", [Sample(rate=500, ttft=1.0, tokens=8)], Ratio(1.25, 1.25, 1)),
    )


# Statistics


@pytest.mark.parametrize(
    ("values", "percent", "wanted"),
    [((), 50, None), ((3.0,), 95, 3.0), ((1.0, 2.0, 3.0), 50, 2.0), (range(101), 95, 95)],
)
def test_percentile(values: Sequence[float], percent: int, wanted: float | None) -> None:
    found = percentile(values, percent)
    assert found == wanted if wanted is None else found == pytest.approx(wanted)


def test_figures_leave_faulty_rounds_out() -> None:
    """But for the first token and the memory, which such a round shows too."""
    figures = figures_of(
        [
            Sample(
                rate=10, ttft=1, gaps=(1, 3), cpu_seconds=3, wall_seconds=2, tokens=10, overhead=0.1
            ),
            Sample(
                rate=30, ttft=2, gaps=(5,), cpu_seconds=1, wall_seconds=2, tokens=10, accepted=5
            ),
            Sample(
                rate=99, ttft=9, gaps=(99,), peak_bytes=7, tokens=99, fault="made 3 of 4 tokens"
            ),
        ]
    )
    assert (figures.rounds, figures.rate, figures.ttft, figures.gap_p50) == (2, 20, 2, 3)
    assert (figures.cores, figures.accepted, figures.peak_bytes) == (1.0, 0.25, 7)
    assert figures.overhead == 0.1
    assert figures.faults == ("made 3 of 4 tokens",)


def test_figures_of_nothing() -> None:
    figures = figures_of([Sample(fault="sends no usage")])
    assert (figures.rate, figures.ttft, figures.gap_p95, figures.cores) == (None,) * 4


def test_ratio_pairs_rounds() -> None:
    """More than 1 is better for us: a higher rate, or a shorter wait."""
    ours = [Sample(rate=30, ttft=1), Sample(rate=40, ttft=2), Sample(rate=50, ttft=3, fault="x")]
    theirs = [Sample(rate=10, ttft=4), Sample(rate=20, ttft=4), Sample(rate=1, ttft=4)]
    assert ratio_of(ours, theirs, "rate") == Ratio(2.0, 2.5, 2)
    assert ratio_of(ours, theirs, "ttft") == Ratio(2.0, 3.0, 2)
    assert ratio_of(ours, [Sample()] * 3, "rate") is None


@pytest.mark.parametrize(
    ("text", "source", "share"),
    [("abcd", "abcdef", 1.0), ("abxd", "abcd", 0.5), ("", "abc", 0.0), (" ab", "ab", 1.0)],
)
def test_copied_share(text: str, source: str, share: float) -> None:
    assert copied_share(text, source) == share


def test_bandwidth_share_needs_one_pass_for_each_token() -> None:
    plain = entry("decode", "a", [Sample(rate=10, tokens=8)], weights=10**9)
    drafted = entry("decode", "a", [Sample(rate=10, tokens=8, accepted=4)], weights=10**9)
    together = entry("streams-8", "a", [Sample(rate=10, tokens=8)], weights=10**9)
    unknown = entry("decode", "a", [Sample(rate=10, tokens=8)])
    assert bandwidth_share(plain, 2e10) == 0.5
    assert [bandwidth_share(e, 2e10) for e in (drafted, together, unknown)] == [None] * 3


def test_read_bandwidth() -> None:
    assert read_bandwidth(1 << 16, passes=1) > 0


# Rows and requests


def test_select_keeps_the_order_of_the_table() -> None:
    assert [row.name for row in select("copy, decode")] == ["decode", "copy"]
    with pytest.raises(ValueError, match="no row is called fast; there are decode, "):
        select("decode,fast")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_requests(row: Row) -> None:
    """Equal for equal seeds, streamed with usage, and of prompts that no other seed begins."""
    requests = row.requests(FULL, 100)
    assert requests == row.requests(FULL, 100)
    for request in requests:
        body = request.of("name")
        assert body["model"] == "name" and body["temperature"] == 0
        assert body["stream"] and body["stream_options"] == {"include_usage": True}
        assert body["max_tokens"] == request.tokens > 1
        json.dumps(body)
    bodies = [json.dumps(request.body) for request in (*requests, *row.requests(FULL, 200))]
    assert len(set(bodies)) == len(bodies)


def test_copied_text_holds_the_answer() -> None:
    """The answer before, which the model is to give again, is longer than what is measured."""
    request = prompts.copying(FULL.copied, 3)
    said = [message["content"] for message in request.body["messages"]]
    assert said[1] == said[3] == request.source
    assert len(set(prompts.copied_text(3).splitlines())) == 6
    assert len(request.source.split()) > 120


# Options


def test_options() -> None:
    others = ["--against", "http://a:1", "--against-model", "m", "--against-name", "B"]
    others += ["--against", "http://b:2", "--against-model", "n", "--against-weights-bytes", "5"]
    ours = ["--quick", "--rounds", "2", "--rows", "decode,copy"]
    given = parse([*ours, *others, "--", "--dtype", "fp32"])
    assert (given.rounds, given.sizes, given.server) == (2, QUICK, ("--dtype", "fp32"))
    assert [(r.name, r.model, r.weights_bytes) for r in given.rivals] == [
        ("B", "m", 5),
        ("b:2", "n", None),
    ]
    assert (parse([]).rounds, parse(["--quick"]).rounds) == (5, 1)


def test_a_running_server_has_no_row_without_drafts() -> None:
    assert "copy-plain" not in {row.name for row in parse(["--url", "http://a"]).rows}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "x"], "no row is called x"),
        (["--rounds", "0"], "0 is not a number from 1 on"),
        (["--against", "http://a"], "every --against needs its --against-model"),
        (["--against-name", "a"], "more names or sizes"),
        (["--against", "http://a", "--against-model", "m", "--against-name", "Heliograph"],
         "two servers have one name"),
        (["--plot", "a.gif"], "--plot draws .svg and .png files, not a.gif"),
        (["--write", "no/such.md"], "no/such.md is not a file"),
        (["--url", "http://a", "--", "--dtype", "fp32"], "not for --url"),
    ],
)  # fmt: skip
def test_wrong_options(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(arguments)
    assert message in capsys.readouterr().err


# What is shown


def test_text_table() -> None:
    text = two_servers().text()
    lines = text.splitlines()
    assert lines[0] == (
        "2026-01-02, System x: A processor, 2 cores (avx2), 8 GiB, reads 20.0 GB/s, load 0.1 before"
        " the run"
    )
    assert "model m, options --dtype bf16; 2 rounds" in lines
    assert "from spawn to ready: first start 3.0 s, second start 2.0 s" in lines
    shown = [line.split() for line in lines if line.startswith("decode")]
    assert shown[0][3:] == ["Heliograph", "30.0", "10.0", "35.0", "39.5", "2.00", "30%", "–"]
    assert shown[1][3:] == ["other", "20.0", "260.0", "–", "–", "–", "–", "1.50", "(1.40)"]
    assert "peak MiB" not in text and "drafted" not in text
    assert lines[-2:] == ["", "decode, other: made 3 of 8 tokens"]


def test_uncopied_text_is_told() -> None:
    shown = report(entry("copy", "a", [Sample(rate=1, tokens=8, copied=0.5)])).text()
    assert shown.endswith("copy, a: only 50% of the text was copied")


def test_json_has_every_sample() -> None:
    found: dict[str, Any] = json.loads(json.dumps(two_servers().as_json()))
    assert found["machine"]["bandwidth"] == 2e10 and found["starts"] == [3.0, 2.0]
    assert found["sizes"] == dataclasses.asdict(QUICK)
    assert [row["row"] for row in found["rows"]] == ["decode"] * 2 + ["prefill-512"] * 2
    assert found["rows"][1]["ratio"] == {"least": 1.4, "median": 1.5, "rounds": 1}
    assert [sample["fault"] for sample in found["rows"][1]["samples"]] == ["", "made 3 of 8 tokens"]


def test_document_keeps_what_is_around_the_table(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("Before.\n<!-- table -->\nold\n<!-- /table -->\nAfter.\n")
    document.write(path, two_servers().markdown())
    text = path.read_text()
    assert text.startswith("Before.\n<!-- table -->\n- 2026-01-02") and "old" not in text
    assert text.endswith("<!-- /table -->\nAfter.\n")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1 and len(rows) == 6
    document.write(path, "new")
    assert path.read_text() == "Before.\n<!-- table -->\nnew\n<!-- /table -->\nAfter.\n"


@pytest.mark.parametrize("text", ["", "<!-- table -->", "<!-- /table --> <!-- table -->"])
def test_a_document_without_marks_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.md"
    path.write_text(text)
    with pytest.raises(ValueError, match="must have <!-- table -->"):
        document.write(path, "new")
    assert path.read_text() == text


@pytest.mark.parametrize(("suffix", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG")])
def test_plot(tmp_path: Path, suffix: str, begins: bytes) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"bars{suffix}"
    plot(two_servers().entries, path)
    drawn = path.read_bytes()
    assert drawn.startswith(begins)
    if suffix == ".svg":
        assert b"decode, short prompt" in drawn and b"other" in drawn
