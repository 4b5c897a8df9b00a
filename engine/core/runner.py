"""Which backend runs, and how much it can hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from engine.backend.backend import PAGE_TOKENS, Backend
from engine.backend.cores import free_memory, usable_cores
from engine.backend.scripted import Script, Scripted
from engine.config import Dtype, Quantization, SpeculationKind
from engine.core.draft import Drafter, NgramDrafter
from engine.core.draft_model import ModelDrafter
from engine.core.speculation import Speculation
from engine.errors import StartupError
from engine.types import EngineFacts

_KV_SHARE = 0.4  # of the free memory, where the size of the KV cache is not given
_MIN_CONTEXT = 2048


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the engine process needs of the configuration; crosses the process border.

    `max_context` and `kv_tokens` None mean: as much as the model has and the memory holds;
    `threads` None: the usable cores.
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
    quantization: Quantization = "auto"
    speculation: SpeculationKind = "ngram"
    draft_tokens: int = 8
    draft_rows: int = 16
    draft_model: Path | None = None
    threads: int | None = None
    deterministic: bool = False


def load_backend(settings: EngineSettings, progress: Callable[[str], None]) -> Backend:
    """Load the model, or the script that stands in for one. Raises StartupError."""
    if settings.script is not None:
        return Scripted(settings.script)
    threads = settings.threads or usable_cores()
    if settings.dtype != "fp32":
        from engine.backend.cpu import CpuNative

        native = CpuNative.load(
            settings.path,
            settings.quantization,
            threads,
            progress,
            exact=settings.deterministic,
        )
        if native is not None:
            return native
    if find_spec("torch") is None:
        raise StartupError("only torch can compute this here, and it is not installed")
    from engine.backend.reference import TorchReference  # torch loads here only

    dtype = "fp32" if settings.deterministic else settings.dtype
    return TorchReference.load(settings.path, dtype, progress, threads)


def load_draft_backend(settings: EngineSettings, progress: Callable[[str], None]) -> Backend | None:
    """Load the draft model, if there is one. Raises StartupError.

    A script has none: no step of it takes longer for checking drafts than for making a token.
    """
    if settings.script is not None or settings.draft_model is None:
        return None
    progress(f"loading the draft model {settings.draft_model}")
    return load_backend(replace(settings, path=settings.draft_model), progress)


def plan_speculation(
    settings: EngineSettings, facts: EngineFacts, draft_backend: Backend | None
) -> Speculation:
    """What drafts are made from: n-grams first, as they cost nothing, then the draft model.

    A script is followed token by token: its delays are those of tokens.
    """
    if settings.script is not None or settings.speculation == "off":
        return Speculation()
    drafters: list[Drafter] = [NgramDrafter()]
    if draft_backend is not None:
        num_pages = facts.total_pages + 1
        rows = settings.max_batch_tokens
        drafters.append(ModelDrafter(draft_backend, num_pages, facts.vocab_size, rows))
    return Speculation(drafters, settings.draft_tokens, settings.draft_rows)


def plan_capacity(
    settings: EngineSettings, backend: Backend, draft_backend: Backend | None = None
) -> EngineFacts:
    """Fit the context window and the KV pages to the model and the memory.

    Every request within the window must fit the pool alone; a draft model has pages for as many
    tokens. Raises StartupError when the memory cannot hold a window that was asked for.
    """
    shape = backend.shape
    context = settings.max_context or shape.max_context
    if settings.script is None and context > shape.max_context:
        raise StartupError(
            f"--max-context {context} is more than the model's {shape.max_context} tokens"
        )
    wanted = settings.kv_tokens or 2 * context + 1024 * settings.max_concurrency
    if shape.kv_bytes_per_token and settings.kv_tokens is None:
        drafts = draft_backend.shape.kv_bytes_per_token if draft_backend is not None else 0
        held = int(free_memory() * _KV_SHARE) // (shape.kv_bytes_per_token + drafts)
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
        learned_drafter=draft_backend is not None,
        decode_weight_bytes=shape.weight_bytes,
    )
