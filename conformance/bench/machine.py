"""The machine that the figures belong to."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import psutil

_ROOT = Path(__file__).parent.parent.parent
_LIBRARIES = ("torch", "numpy", "llguidance", "tokenizers")
_FLAGS = (
    "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_int8", "amx_bf16", "asimddp", "asimdhp", "bf16", "i8mm", "sve",
)  # fmt: skip
"""Instruction sets that matrix products use, as /proc/cpuinfo spells them."""
_READ_BYTES = 1 << 30
_PASSES = 8


@dataclass(frozen=True)
class Machine:
    """`cores` are those that this process may use; `bandwidth` is in bytes a second.

    `load` is the average number of processes that ran in the minute before, None where the system
    does not say.
    """

    cpu: str
    cores: int
    flags: tuple[str, ...]
    memory_bytes: int
    bandwidth: float
    load: float | None
    system: str
    date: str
    versions: dict[str, str]


def describe() -> Machine:
    """This machine, now. Measures the bandwidth, which takes a second."""
    cpu, flags = _processor()
    return Machine(
        cpu=cpu,
        cores=usable_cores(),
        flags=tuple(flag for flag in _FLAGS if flag in flags),
        memory_bytes=psutil.virtual_memory().total,
        bandwidth=read_bandwidth(),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        system=f"{platform.system()} {platform.machine()}",
        date=datetime.date.today().isoformat(),
        versions=_versions(),
    )


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_bandwidth(size: int = _READ_BYTES, passes: int = _PASSES) -> float:
    """Bytes a second that all cores together read from memory: the best of some passes.

    Every core reduces its own part of `size` bytes, far more than any cache holds; numpy lets go of
    the interpreter lock meanwhile. Other work on the machine lowers the figure.
    """
    cores = usable_cores()
    parts = [np.ones(size // cores // 4, dtype=np.float32) for _ in range(cores)]
    least = float("inf")
    with ThreadPoolExecutor(cores) as threads:
        for _ in range(passes):
            begun = time.perf_counter()
            list(threads.map(np.max, parts))
            least = min(least, time.perf_counter() - begun)
    return sum(part.nbytes for part in parts) / least


def _processor() -> tuple[str, set[str]]:
    """The name of the processor and its instruction sets, where the system says them."""
    name, flags = platform.processor() or platform.machine(), set[str]()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return name, flags
    for line in lines:
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "model name":
            name = value
        elif key in ("flags", "Features"):
            flags = set(value.split())
    return name, flags


def _versions() -> dict[str, str]:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {"Heliograph": f"{project['version']}{_commit()}", "Python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """The commit of the working tree, in brackets; nothing where there is no git."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" ({done.stdout.strip()})"
