"""A server process under test: start, wait until it is ready, stop, look inside from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2
import psutil

ROOT = Path(__file__).parent.parent
COUNTERS = (
    "prefill_tokens",
    "reused_tokens",
    "generated_tokens",
    "started",
    "completed",
    "failed",
    "cancelled",
    "refused",
)
_READY = re.compile(r"^ready: .* at (http://\S+) ")


class Server:
    """`python -m adapters` on a free port, as a context manager.

    Leaving the context sends SIGTERM and expects exit status 0; a test that ends the process itself
    calls `stop` or `wait` and looks at the status. What a server keeps is in a folder that goes
    with it; the option `--state-dir` gives it one that stays.
    """

    def __init__(self, *options: str, start_seconds: float = 120) -> None:
        self.options = options
        self.url = ""
        self._start_seconds = start_seconds
        self._lines: list[str] = []
        self._ready = threading.Event()

    def __enter__(self) -> Server:
        command = [sys.executable, "-m", "adapters", "--port", "0", *self.options]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HELIOGRAPH_")}
        self._state = tempfile.TemporaryDirectory(prefix="heliograph-state-")
        environment["HELIOGRAPH_STATE_DIR"] = self._state.name
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        started = False
        try:
            started = self._ready.wait(self._start_seconds) and bool(self.url)
        finally:  # also where the wait is broken off
            if not started:
                self._process.kill()
                self._process.wait()
                self._state.cleanup()
        assert started, f"the server did not start:\n{self.log}"
        self.http = httpx2.Client(base_url=self.url, timeout=60, trust_env=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()
        with self._state:
            if self._process.poll() is None:
                status = self.stop()
                assert kind is not None or status == 0, f"exit status {status}:\n{self.log}"

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.append(line)
            if not self.url and (found := _READY.match(line)):
                self.url = found[1]
                self._ready.set()
        self._ready.set()  # the process has ended

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """What the server has written to stderr so far."""
        return "".join(self._lines)

    def terminate(self) -> None:
        """Send SIGTERM, by pid."""
        os.kill(self.pid, signal.SIGTERM)

    def wait(self, seconds: float = 60) -> int:
        """The exit status. Kills the process and fails the test when it does not end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the server did not stop in {seconds} s:\n{self.log}") from None

    def stop(self, seconds: float = 60) -> int:
        """Send SIGTERM and return the exit status."""
        self.terminate()
        return self.wait(seconds)

    def metrics(self) -> dict[str, Any]:
        """The counters and gauges of this moment."""
        snapshot: dict[str, Any] = self.http.get("/metrics", params={"format": "json"}).json()
        return snapshot

    def until(
        self, holds: Callable[[dict[str, Any]], bool], what: str, seconds: float = 20
    ) -> dict[str, Any]:
        """Watch the metrics until they satisfy a condition; the test fails if they never do."""
        deadline = time.monotonic() + seconds
        while not holds(numbers := self.metrics()):
            assert time.monotonic() < deadline, f"never true: {what}; {numbers}"
            time.sleep(0.02)
        return numbers

    def until_idle(self, seconds: float = 20) -> dict[str, Any]:
        """Wait until nothing runs, waits or holds a place, and every page is free again."""
        return self.until(is_idle, "nothing runs, and every page is free", seconds)

    def until_idle_since(self, before: dict[str, Any], seconds: float = 20) -> dict[str, int]:
        """Wait until nothing runs; how far the counters have moved since `before`."""
        after = self.until_idle(seconds)
        return {name: after[name] - before[name] for name in COUNTERS}

    def resident(self) -> dict[str, int]:
        """Resident bytes of the API process and of its engine process."""
        api = psutil.Process(self.pid)
        sizes = {"api": api.memory_info().rss, "engine": 0}
        for child in api.children(recursive=True):
            sizes["engine"] = max(sizes["engine"], child.memory_info().rss)
        return sizes


def is_idle(numbers: dict[str, Any]) -> bool:
    """Whether metrics show a server without work that has lost nothing."""
    busy = numbers["active"] or numbers["pending"] or numbers["held"]
    ended = numbers["completed"] + numbers["failed"] + numbers["cancelled"]
    whole: bool = numbers["free_pages"] == numbers["total_pages"]
    return not busy and whole and numbers["started"] == ended
