"""The native operations under the address and undefined-behaviour sanitizers.

Their tests run again in a process whose library is built with both; the first bad access ends it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.backend.native.build import SOURCES

ROOT = Path(__file__).parents[4]
PATIENCE = 1200  # seconds; the sanitizers slow C down, and the machine may be shared


def sanitizer() -> Path | None:
    """gcc's library of the address sanitizer, which must be in the process from its start."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    asked = [gcc, "-print-file-name=libasan.so"]
    found = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    return found if found.is_absolute() else None  # what gcc lacks it prints as it was asked for


def run_sanitized(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "CC": "gcc",
        "HELIOGRAPH_NATIVE_SANITIZE": "1",
        "LD_PRELOAD": str(sanitizer()),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python frees little at its end
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.skipif(sanitizer() is None, reason="gcc has no address sanitizer here")
def test_the_tests_of_the_operations_pass_sanitized() -> None:
    chosen = ("tests/engine/backend/native", "-k", "not build")
    done = run_sanitized("-m", "pytest", "-x", *chosen)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.skipif(sanitizer() is None, reason="gcc has no address sanitizer here")
def test_the_sanitizer_sees_the_library() -> None:
    """A program that reads behind an array of Python's ends the process."""
    done = run_sanitized("-m", "tests.engine.backend.native.overrun")
    assert done.returncode != 0 and "AddressSanitizer" in done.stderr, done.stderr[-2000:]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc has the thread sanitizer")
def test_threads_of_the_pool_do_not_race(tmp_path: Path) -> None:
    sources = (str(Path(__file__).with_name("pool_main.c")), str(SOURCES / "pool.c"))
    flags = ("-std=gnu11", "-O1", "-g", "-pthread", "-fsanitize=thread", f"-I{SOURCES}")
    program = tmp_path / "pool"
    built = subprocess.run(
        ["gcc", *flags, *sources, "-o", program], capture_output=True, text=True, check=False
    )
    if "cannot find" in built.stderr:
        pytest.skip("gcc has no thread sanitizer here")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, timeout=300, check=False)
    if "FATAL: ThreadSanitizer" in done.stderr:
        pytest.skip("the thread sanitizer does not know this kernel's addresses")
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
