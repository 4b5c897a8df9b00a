"""Processes that are killed: what `save` has promised is there, whole."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adapters import store_database
from tests.adapters.store_process import check
from tests.adapters.stores import Place

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def writing(place: Place, first: int, writers: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that saves responses from the number `first` on until it is killed."""
    command = [sys.executable, "-m", "tests.adapters.store_process", "write", place.where,
               str(place.folder), str(first), "100000", str(writers)]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        patience = threading.Timer(60, process.kill)  # should it hang
        patience.start()
        try:
            yield process
        finally:
            process.kill()
            patience.cancel()


def test_what_was_acknowledged_survives_kill_9(lasting: Place) -> None:
    """Some fifty responses, of processes that end at random moments."""
    draw = random.Random(9)
    told: list[int] = []
    for part in range(3):
        with writing(lasting, part * 100_000, 10) as process:
            assert process.stdout is not None
            told += [int(process.stdout.readline()) for _ in range(draw.randrange(10, 20))]
            time.sleep(draw.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
            # What it told until then counts as well, but for half a line.
            whole, _, _ = process.stdout.read().rpartition(b"\n")
            told += map(int, whole.split())
            assert process.wait() == -signal.SIGKILL
    assert len(told) >= 30
    found = asyncio.run(check(lasting))
    assert set(told) <= set(found)


def test_a_killed_process_leaves_nothing_of_a_private_store(private_place: Place) -> None:
    with writing(private_place, 0, 4) as process:
        assert process.stdout is not None
        for _ in range(200):
            assert process.stdout.readline()
        links = Path(f"/proc/{process.pid}/fd").iterdir()
        names = [os.readlink(link) for link in links]
    files = [name for name in names if name.startswith("/") and not name.startswith("/dev/")]
    assert files and all(name.endswith("(deleted)") for name in files), files


def test_each_commit_is_synced(file_place: Place) -> None:
    """What no killed process can show: that of the machine would lose it otherwise."""
    engine = store_database.open_file(file_place.folder)
    with engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    full = 2
    assert settings == {
        "journal_mode": "wal", "synchronous": full, "foreign_keys": 1, "busy_timeout": 30_000,
    }  # fmt: skip
