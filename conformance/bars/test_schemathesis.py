"""Issue 2: Schemathesis, 200 examples of each operation, without a finding."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from conformance.server import ROOT


@pytest.mark.bars
def test_two_hundred_examples() -> None:
    """The fuzz folder, with more examples, in a process of its own."""
    begun = time.monotonic()
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "conformance/fuzz", "--tb=short"],
        cwd=ROOT,
        env={**os.environ, "HELIOGRAPH_EXAMPLES": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    print(f"\nfuzz, 200 examples of each operation: exit {finished.returncode}, {seconds:.0f} s")
    assert finished.returncode == 0, finished.stdout[-8000:]
