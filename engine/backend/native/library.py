"""The native operations as Python calls them.

HELIOGRAPH_NATIVE_VARIANT (`avx512`, `avx2` or `portable`) takes another instruction set than the
best that this processor has.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

from engine.backend.native import build
from engine.backend.native.compiler import BuildFailed
from engine.backend.native.operations import Op, Program
from engine.backend.native.structures import Limits, Step
from engine.errors import StartupError

ABI = 1  # of program.c
MAX_THREADS = 256
NO_MEMORY = -8
FAULTS = {
    -1: "the step has no rows, or more than the buffers hold",
    -2: "a token id is outside the vocabulary",
    -3: "a position is outside the context window",
    -4: "a slot is outside the pages",
    -5: "an index pointer does not rise to the length of what it cuts",
    -6: "a page index is outside the pages, or a sequence's pages do not hold its positions",
    -7: "a selected row is outside the step",
}
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {  # results and arguments
    "heliograph_abi": (c_int, ()),
    "heliograph_size": (c_size_t, (c_int,)),
    "heliograph_variant": (c_char_p, (c_int,)),
    "heliograph_open": (c_void_p, (c_int,)),
    "heliograph_close": (None, (c_void_p,)),
    "heliograph_run": (
        c_int,
        (c_void_p, c_int, POINTER(Op), c_int, POINTER(Step), POINTER(Limits)),
    ),
    "heliograph_draw": (c_int, (c_void_p, c_int, c_void_p)),
    "heliograph_score": (c_int, (c_void_p, c_int, c_void_p)),
}


class Library:
    """The loaded library and one of its variants, as an index into `variants`."""

    def __init__(self, functions: ctypes.CDLL, variant: str | None = None) -> None:
        """`variant` None is the best that this processor runs. Raises StartupError for one that
        it does not run, and BuildFailed for a library that is not ours.
        """
        self.functions = functions
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(functions, name, None)
            if function is None:
                raise BuildFailed(f"the built library lacks {name}")
            function.restype, function.argtypes = result, arguments
        if functions.heliograph_abi() != ABI:
            raise BuildFailed(f"the built library has interface {functions.heliograph_abi()}")
        self.variants = _variants(functions)
        if variant is not None and variant not in self.variants:
            raise StartupError(
                f"this machine has no {variant} operations, but {', '.join(self.variants)}"
            )
        self.index = 0 if variant is None else self.variants.index(variant)

    @classmethod
    def load(
        cls,
        progress: Callable[[str], None],
        variant: str | None = None,
        *,
        emulation: Path | None = None,
    ) -> Library | None:
        """Load the library, built where it has to be; None where that fails, which is logged.

        `variant` None takes HELIOGRAPH_NATIVE_VARIANT, or the best. `emulation`, for tests, has the
        instructions of AVX-512 (see build.Recipe). Raises StartupError for a variant that this
        machine does not run.
        """
        functions = build.load(progress, emulation=emulation)
        if functions is None:
            return None
        try:
            return cls(functions, variant or os.environ.get("HELIOGRAPH_NATIVE_VARIANT") or None)
        except BuildFailed as error:
            build.warn_off(error)
            return None

    @property
    def variant(self) -> str:
        """Name of the instruction set that runs."""
        return self.variants[self.index]


def _variants(functions: ctypes.CDLL) -> tuple[str, ...]:
    names: list[str] = []
    while (name := functions.heliograph_variant(len(names))) is not None:
        names.append(name.decode())
    return tuple(names)


class Pool:
    """Threads that run programs, this one among them; one program at a time.

    They do not survive a fork. Close it, or use it as a context.
    """

    def __init__(self, library: Library, threads: int) -> None:
        """Start `threads` - 1 threads; more than MAX_THREADS are as many. Raises StartupError."""
        self._library = library
        self.threads = min(threads, MAX_THREADS)
        self.busy_ns = 0  # time in calls of the library
        self.address: int | None = library.functions.heliograph_open(self.threads)
        if self.address is None:
            raise StartupError(f"cannot start {self.threads} threads: lower --threads")

    def run(self, program: Program, step: Step) -> None:
        """Compute a step. Raises ValueError for tables that are out of bounds, MemoryError without
        memory for scratch; then nothing was computed.
        """
        if self.address is None:
            raise ValueError("the pool is closed")
        limits = program.limits_for(step)
        begun = time.perf_counter_ns()
        code = self._library.functions.heliograph_run(
            self.address, self._library.index, program.array, len(program.ops), step, limits
        )
        self.busy_ns += time.perf_counter_ns() - begun
        if code == NO_MEMORY:
            raise MemoryError("no memory for the scratch of attention")
        if code != 0:
            raise ValueError(FAULTS.get(code, f"a step fails with code {code}"))

    def close(self) -> None:
        """End the threads; a second call does nothing."""
        if self.address is not None:
            self._library.functions.heliograph_close(self.address)
            self.address = None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
