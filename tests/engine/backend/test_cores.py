"""The cores that a process may use: affinity, and the quota of either control group."""

from __future__ import annotations

import os

import pytest

from engine.backend import cores

V1 = ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us")
V2 = "/sys/fs/cgroup/cpu.max"


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({}, 8),
        ({V2: "max 100000"}, 8),
        ({V2: "400000 100000"}, 4),
        ({V2: "150000 100000"}, 1),
        ({V2: "50000 100000"}, 1),
        ({V2: "3200000 100000"}, 8),
        ({V1[0]: "300000", V1[1]: "100000"}, 3),
        ({V1[0]: "-1", V1[1]: "100000"}, 8),
        ({V2: "100000 0"}, 8),
        ({V2: ""}, 8),
    ],
)
def test_cores_are_the_least_that_is_granted(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], count: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cores, "read_words", lambda path: files.get(path, "").split())
    assert cores.usable_cores() == count


def test_without_affinity_all_cores_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(cores, "read_words", lambda _: [])
    assert cores.usable_cores() == (os.cpu_count() or 1)


def test_a_file_that_is_not_there_has_no_words() -> None:
    assert cores.read_words("/nowhere/at/all") == []
