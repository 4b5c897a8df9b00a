"""What the machine grants this process."""

from __future__ import annotations

import os
from pathlib import Path

BF16_FLAGS = {"avx512_bf16", "amx_bf16"}


def usable_cores() -> int:
    """Count the cores that affinity and the control group (v2, then v1) grant this process."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = read_words("/sys/fs/cgroup/cpu.max") or (
        read_words("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
        + read_words("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
    )
    if len(quota) == 2 and all(word.isdigit() for word in quota) and int(quota[1]):
        cores = min(cores, max(1, int(quota[0]) // int(quota[1])))
    return cores


def multiplies_bf16() -> bool:
    """Tell whether the CPU has bf16 products; without them bf16 is far slower than fp32."""
    return not BF16_FLAGS.isdisjoint(read_words("/proc/cpuinfo"))


def read_words(path: str) -> list[str]:
    """The words of a text file; none where it cannot be read."""
    try:
        return Path(path).read_text("utf-8").split()
    except OSError:
        return []


def free_memory() -> int:
    """Bytes that are free or can be freed."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
