"""Which backend runs, and how much it can hold."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.backend.backend import PAGE_TOKENS, Backend
from engine.backend.scripted import Script, Scripted
from engine.config import Dtype
from engine.errors import StartupError
from engine.types import EngineFacts

_KV_SHARE = 0.4  # of the free memory, where the size of the KV cache is not given
_MIN_CONTEXT = 2048


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the engine process needs of the configuration; crosses the process border.

    `max_context` and `kv_tokens` None mean: as much as the model has and the memory holds.
    """

    path: Path
    dtype: Dtype
    max_context: int | None
    max_concurrency: int
    prefill_chunk: int
    max_batch_tokens: int
    kv_tokens: int | None
    log_level: str
    script: Script | None = None


def load_backend(settings: EngineSettings, progress: Callable[[str], None]) -> Backend:
    """Load the model, or the script that stands in for one. Raises StartupError."""
    if settings.script is not None:
        return Scripted(settings.script)
    from engine.backend.reference import TorchReference  # torch loads here only

    return TorchReference.load(settings.path, settings.dtype, progress)


def plan_capacity(settings: EngineSettings, backend: Backend) -> EngineFacts:
    """Fit the context window and the KV pages to the model and the memory.

    Every request within the window must fit the pool alone. Raises StartupError when the memory
    cannot hold a window that was asked for.
    """
    shape = backend.shape
    context = settings.max_context or shape.max_context
    if settings.script is None and context > shape.max_context:
        raise StartupError(
            f"--max-context {context} is more than the model's {shape.max_context} tokens"
        )
    wanted = settings.kv_tokens or 2 * context + 1024 * settings.max_concurrency
    if shape.kv_bytes_per_token and settings.kv_tokens is None:
        held = int(_free_memory() * _KV_SHARE) // shape.kv_bytes_per_token
        if settings.max_context is None:
            context = min(context, max(held, _MIN_CONTEXT))
        wanted = min(wanted, held)
    if wanted < context:
        raise StartupError(
            f"the KV cache holds {wanted} tokens, fewer than the context of {context}: "
            "lower --max-context or raise --kv-tokens"
        )
    return EngineFacts(
        backend=backend.name,
        dtype=backend.dtype,
        vocab_size=shape.vocab_size,
        max_context=context,
        max_concurrency=settings.max_concurrency,
        prefill_chunk=settings.prefill_chunk,
        page_tokens=PAGE_TOKENS,
        total_pages=-(-wanted // PAGE_TOKENS),
    )


def _free_memory() -> int:
    """Bytes that are free or can be freed."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
