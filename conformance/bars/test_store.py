"""Issue 6: responses that were acknowledged survive the end of the process that saved them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conformance.bench.measure import table
from conformance.server import ROOT

RESPONSES = 2_000
WRITERS = 50
MOST_BETWEEN_KILLS = 150
PATIENCE = 120.0


@pytest.mark.bars
def test_kills(tmp_path: Path) -> None:
    """2,000 responses of 50 writers at once, whose process is killed again and again.

    HELIOGRAPH_STORE names another database than a file of SQLite.
    """
    where = os.environ.get("HELIOGRAPH_STORE", "sqlite")
    draw = random.Random(2_000)
    told: list[int] = []
    kills, writing = 0, 0.0
    while len(told) < RESPONSES:
        begun = time.monotonic()
        told += _write_and_kill(where, tmp_path, kills * 100_000, draw)
        writing += time.monotonic() - begun
        kills += 1
    begun = time.monotonic()
    checked = subprocess.run(
        _command("check", where, tmp_path), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    found = set(map(int, checked.stdout.split()))
    rows = [
        ("acknowledged", f"{len(told):,}"),
        ("kills", f"{kills}, after {writing:.0f} s of writing"),
        ("lost", f"{len(set(told) - found)}"),
        ("found and whole", f"{len(found):,}, in {time.monotonic() - begun:.1f} s"),
        ("saved, but killed before it was told", f"{len(found - set(told))}"),
    ]
    print("\nstored responses and kill -9\n" + table(rows))
    assert len(set(told)) == len(told)
    assert set(told) <= found


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.adapters.store_process", *map(str, arguments)]


def _write_and_kill(where: str, folder: Path, first: int, draw: random.Random) -> list[int]:
    """The numbers that a process of fifty writers told before it was killed."""
    command = _command("write", where, folder, first, 100_000, WRITERS)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        patience = threading.Timer(PATIENCE, process.kill)  # should it hang
        patience.start()
        try:
            count = draw.randrange(MOST_BETWEEN_KILLS)
            told = [int(process.stdout.readline()) for _ in range(count)]
            time.sleep(draw.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
            # What it told until then counts as well, but for half a line.
            whole, _, _ = process.stdout.read().rpartition(b"\n")
            return [*told, *map(int, whole.split())]
        finally:
            process.kill()
            patience.cancel()
