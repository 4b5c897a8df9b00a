"""What a server's processes use, seen from outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from urllib.parse import urlsplit

import psutil

_LOCAL = ("127.0.0.1", "localhost", "::1")
_EVERY_SECONDS = 0.05
_REST_SECONDS, _REST_SHARE = 0.25, 0.1
"""At rest is who uses less than this share of a core for so long."""


class ProcessTree:
    """A server's process and all that it started."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)

    def cpu_seconds(self) -> float:
        """Processor time of all of them since their starts, and of those that have ended."""
        total = 0.0
        for process in self._alive():
            try:
                total += sum(process.cpu_times()[:4])
            except psutil.Error:  # it ended just now
                continue
        return total

    def resident_bytes(self) -> int:
        """Resident memory of all of them; pages that they share count for each."""
        total = 0
        for process in self._alive():
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        return total

    def _alive(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return []


def wait_for_rest(trees: Sequence[ProcessTree], most_seconds: float = 5.0) -> None:
    """Wait until processes leave the processor alone.

    Some servers spin for a second after their last request, at the cost of whoever is asked next.
    """
    end = time.monotonic() + most_seconds
    used = sum(tree.cpu_seconds() for tree in trees)
    while time.monotonic() < end:
        time.sleep(_REST_SECONDS)
        before, used = used, sum(tree.cpu_seconds() for tree in trees)
        if used - before < _REST_SHARE * _REST_SECONDS:
            return


class Watch:
    """What a tree uses while the context is open; nothing is known of an absent tree.

    `wall_seconds` is the time it was open, `cpu_seconds` the processor time used in it,
    `peak_bytes` the most resident memory, sampled every 50 ms.
    """

    def __init__(self, tree: ProcessTree | None) -> None:
        self._tree = tree
        self._done = threading.Event()
        self.wall_seconds = 0.0
        self.cpu_seconds: float | None = None
        self.peak_bytes: int | None = None

    def __enter__(self) -> Watch:
        if self._tree:
            self._cpu_before = self._tree.cpu_seconds()
            self.peak_bytes = self._tree.resident_bytes()
            self._sampler = threading.Thread(target=self._sample, args=(self._tree,), daemon=True)
            self._sampler.start()
        self._begun = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wall_seconds = time.monotonic() - self._begun
        if self._tree:
            self.cpu_seconds = self._tree.cpu_seconds() - self._cpu_before
            self._done.set()
            self._sampler.join()

    def _sample(self, tree: ProcessTree) -> None:
        while not self._done.wait(_EVERY_SECONDS):
            self.peak_bytes = max(self.peak_bytes or 0, tree.resident_bytes())


def tree_at(url: str) -> ProcessTree | None:
    """The processes of the server at a URL; None where it is remote or another user's."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.hostname not in _LOCAL:
        return None
    try:
        for connection in psutil.net_connections("tcp"):
            place = connection.laddr
            if connection.status != psutil.CONN_LISTEN or not place or not connection.pid:
                continue
            if place.port == port:
                return ProcessTree(connection.pid)
    except psutil.Error:  # some systems let only the superuser look
        return None
    return None
