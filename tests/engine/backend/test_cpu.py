"""The native backend against the reference, and against itself bit by bit."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf.constants import GGMLQuantizationType as QuantType

from engine.backend import cpu
from engine.backend.cpu import MOST_SELECTED, CpuNative
from engine.backend.native.compiler import find_compilers
from engine.backend.prefill import Copies
from engine.backend.reference import TorchReference
from engine.backend.sampling import sample
from engine.backend.scores import log_softmax, score
from engine.config import Quantization
from engine.errors import StartupError
from engine.model.checkpoint import locate
from engine.model.numbers import Floats
from engine.text.tokenizer import Tokenizer
from tests.engine.backend.test_reference import SMOLLM_LIKE, VARIANTS, silent
from tests.engine.models import llama_cpp_tensors, save_folder, tiny_llama, write_gguf
from tests.engine.plans import Draw, Rows, plan_of

QUANTIZATIONS: tuple[Quantization, ...] = ("none", "int8", "int4")
PAGES = 40
ROOT = Path(__file__).parents[3]
LICENSE = ROOT / "LICENSE"
POSITIONS, MOST_DIVERGENCE = 1000, 0.01


def native(folder: Path, quantization: Quantization = "auto", threads: int = 2) -> CpuNative:
    backend = CpuNative.load(folder, quantization, threads, silent, exact=True)
    if backend is None:
        assert not find_compilers(os.environ)[0], "the operations cannot be built: see the log"
        pytest.skip("there is no C compiler")
    backend.allocate(PAGES)
    return backend


def reference(folder: Path) -> TorchReference:
    backend = TorchReference.load(folder, "fp32", silent)
    backend.allocate(PAGES)
    return backend


def all_logits(backend: CpuNative | TorchReference, rows: list[Rows]) -> Floats:
    """Logits of every row of a step, a copy."""
    every = [dataclasses.replace(part, every_row=True) for part in rows]
    return np.array(np.asarray(backend.logits(plan_of(every))))


def chances(logits: Floats) -> torch.Tensor:
    return torch.log_softmax(torch.from_numpy(np.array(logits)).double(), -1)


def divergence(wanted: Floats, found: Floats) -> float:
    """Mean KL divergence in nats of a distribution [rows, vocab] from what it should be."""
    p, q = chances(wanted), chances(found)
    return float((p.exp() * (p - q)).sum(-1).mean())


def ids_of(count: int, vocab: int = 96, seed: int = 0) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(0, vocab, count)]


# What it computes


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_logits_are_the_references_within_quantisation(
    tmp_path: Path, changes: dict[str, object], quantization: Quantization
) -> None:
    """Of weights that are random: no checkpoint's quantise so badly."""
    folder = save_folder(tiny_llama(**changes), tmp_path)
    rows = [Rows(ids_of(50), 0, [5, 9, 2, 7])]
    wanted = all_logits(reference(folder), rows)
    found = all_logits(native(folder, quantization), rows)
    assert found.shape == wanted.shape and found.dtype == np.float32
    assert divergence(wanted, found) < {"none": 1e-4, "int8": 1e-3, "int4": 6e-2}[quantization]


def test_the_embedded_model_is_the_references_within_quantisation() -> None:
    """The bar: a mean divergence of 0.01 at most over 1,000 positions of English text."""
    path = locate(None, silent)
    text = LICENSE.read_text("utf-8")
    ids = Tokenizer.load(path).encode(text, add_special_tokens=False)[:POSITIONS]
    assert len(ids) == POSITIONS
    pages = [*range(1, 1 + -(-POSITIONS // 16))]
    parts = [Rows(ids[at : at + 250], at, pages) for at in range(0, POSITIONS, 250)]
    made: dict[str, Floats] = {}
    for name, backend in (("reference", reference(path)), ("native", native(path))):
        backend.allocate(len(pages) + 1)
        made[name] = np.concatenate([all_logits(backend, [part]) for part in parts])
    found = divergence(made["reference"], made["native"])
    print(f"mean KL divergence over {POSITIONS} positions: {found:.4f}")
    assert found <= MOST_DIVERGENCE


def test_a_step_of_several_sequences(tmp_path: Path) -> None:
    """Prefill, decode and a chunk behind a prefix in one step are as each alone."""
    backend = native(save_folder(tiny_llama(), tmp_path))
    first = Rows(ids_of(40, seed=1), 0, [3, 4, 5])
    backend.run(plan_of([first]))
    step = [
        Rows(ids_of(1, seed=2), 40, [3, 4, 5]),
        Rows(ids_of(33, seed=3), 0, [8, 6, 7]),
        Rows(ids_of(7, seed=4), 0, [10]),
    ]
    together = np.array(backend.logits(plan_of(step)))
    backend.allocate(PAGES)
    backend.run(plan_of([first]))
    alone = [np.array(backend.logits(plan_of([part]))) for part in step]
    assert np.array_equal(together, np.concatenate(alone))


# Bits


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_rows_have_the_same_bits_in_any_chunking_and_on_any_threads(
    tmp_path: Path, quantization: Quantization
) -> None:
    folder = save_folder(tiny_llama(**SMOLLM_LIKE, vocab_size=200), tmp_path)
    ids, pages = ids_of(600, 200), [*range(1, 39)]
    whole = all_logits(native(folder, quantization), [Rows(ids, 0, pages)])
    for threads, cuts in (
        (1, [0, 600]),
        (4, [0, 1, 2, 17, 256, 300, 599, 600]),
        (3, [0, 555, 600]),
    ):
        backend = native(folder, quantization, threads)
        parts = [
            all_logits(backend, [Rows(ids[start:end], start, pages)])
            for start, end in pairwise(cuts)
        ]
        assert np.array_equal(np.concatenate(parts), whole)


def test_more_rows_than_logits_are_held_at_once(tmp_path: Path) -> None:
    backend = native(save_folder(tiny_llama(), tmp_path))
    rows = [Rows(ids_of(3 * MOST_SELECTED + 5), 0, [*range(1, 14)])]
    whole = all_logits(backend, rows)
    last = np.array(backend.logits(plan_of(rows)))
    assert whole.shape == (3 * MOST_SELECTED + 5, 96)
    assert np.array_equal(whole[-1:], last)


def test_a_vocabulary_that_is_no_multiple_of_a_block(tmp_path: Path) -> None:
    folder = save_folder(tiny_llama(vocab_size=101, tie_word_embeddings=False), tmp_path)
    rows = [Rows(ids_of(20, 101), 0, [1, 2])]
    found = all_logits(native(folder, "none"), rows)
    assert found.shape == (20, 101)
    assert divergence(all_logits(reference(folder), rows), found) < 1e-4


# Drawing and scoring


def test_a_step_draws_and_scores_from_its_logits(tmp_path: Path) -> None:
    folder = save_folder(tiny_llama(), tmp_path)
    backend = native(folder)
    rows = [Rows(ids_of(30, seed=n), 0, [2 * n + 1, 2 * n + 2]) for n in range(4)]
    rows[1] = dataclasses.replace(rows[1], scored=3, next_id=7)
    draws = [
        Draw(logprob_top=2),
        Draw(temperature=1.0, seed=5, position=3),
        Draw(
            temperature=0.7,
            top_k=9,
            top_p=0.8,
            seed=6,
            bias={4: 3.0},
            logprob_top=0,
            logprob_ids=[1, 95],
        ),
        Draw(temperature=1.3, seed=7, mask=[1, 2, 3], repetition_penalty=1.2, seen={2: 1}),
    ]
    plan = plan_of(rows, draws)
    result = backend.run(plan)
    logits = torch.from_numpy(np.array(backend.logits(plan)))
    tokens, failed = sample(logits, plan)
    assert np.array_equal(result.tokens, tokens) and result.failed == failed == {}
    assert set(result.scores) == {0, 2}
    assert len(result.prompt_scores) == 30
    every = all_logits(backend, [rows[1]])
    for place, target in enumerate(rows[1].targets):
        wanted = score(log_softmax(every[place]), target, 3)
        found = result.prompt_scores[place]
        assert found.logprob == pytest.approx(wanted.logprob, abs=1e-5)


# Long prompts in torch


def on_bf16(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CpuNative, list[str]]:
    """What is loaded where the processor multiplies bf16, and what is said of it."""
    said: list[str] = []
    monkeypatch.setattr(cpu, "multiplies_bf16", lambda: True)
    backend = CpuNative.load(folder, "int8", 2, said.append)
    assert backend is not None
    backend.allocate(PAGES)
    return backend, said


def test_prompts_in_torch_agree_within_bf16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_folder(tiny_llama(**SMOLLM_LIKE, vocab_size=200), tmp_path)
    exact = native(folder, "int8")
    mixed, _ = on_bf16(folder, monkeypatch)
    ids, pages = ids_of(Copies.least_rows + 100, 200), [*range(1, 20)]
    wanted = all_logits(exact, [Rows(ids[:-1], 0, pages)])
    found = all_logits(mixed, [Rows(ids[:-1], 0, pages)])
    assert not np.array_equal(found, wanted)  # torch computed it
    assert divergence(wanted, found) < 1e-3
    after = [Rows(ids[-1:], len(ids) - 1, pages)]
    assert divergence(all_logits(exact, after), all_logits(mixed, after)) < 1e-3


@pytest.mark.parametrize("lacking", ["torch", "memory"])
def test_without_torch_or_memory_for_it_prompts_are_computed_as_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    folder = save_folder(tiny_llama(**SMOLLM_LIKE, vocab_size=200), tmp_path)
    if lacking == "torch":
        monkeypatch.setattr(cpu, "find_spec", lambda name: None)
    else:
        monkeypatch.setattr(cpu, "free_memory", lambda: 1000)
    backend, said = on_bf16(folder, monkeypatch)
    rows = [Rows(ids_of(Copies.least_rows + 100, 200), 0, [*range(1, 20)])]
    assert np.array_equal(all_logits(backend, rows), all_logits(native(folder, "int8"), rows))
    assert any(lacking in line and "slower" in line for line in said), said


# Without torch

ALONE = """
import sys
from pathlib import Path
sys.modules["torch"] = None  # an import fails
from engine.backend.cpu import CpuNative
from engine.backend.plans import warm_up_plan
for quantization in ("none", "int4"):
    backend = CpuNative.load(Path(sys.argv[1]), quantization, 2, print, exact=True)
    assert backend.run(warm_up_plan(16)).tokens.shape == (1,)
    assert backend.kernel_ns > 0
"""


@pytest.mark.parametrize("file", ["bf16", "gguf"])
def test_it_loads_and_computes_without_torch(tmp_path: Path, file: str) -> None:
    model = tiny_llama()
    if file == "gguf":
        tensors = {name: (rows, QuantType.F32) for name, rows in llama_cpp_tensors(model).items()}
        path = write_gguf(tmp_path / "model.gguf", model, tensors)
    else:
        path = save_folder(model.to(torch.bfloat16), tmp_path)
    subprocess.run([sys.executable, "-c", ALONE, str(path)], check=True, cwd=ROOT)


# What it cannot do


@pytest.mark.parametrize(
    "changes",
    [{"hidden_size": 48, "head_dim": 16}, {"intermediate_size": 72}, {"head_dim": 24}],
    ids=["hidden", "intermediate", "head"],
)
def test_a_model_of_odd_sizes_is_the_references(
    tmp_path: Path, changes: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    folder = save_folder(tiny_llama(**changes), tmp_path)
    assert CpuNative.load(folder, "auto", 1, silent) is None
    assert "torch computes" in caplog.text
    with pytest.raises(StartupError, match="--quantization int8"):
        CpuNative.load(folder, "int8", 1, silent)


def test_what_is_out_of_bounds_is_refused(tmp_path: Path) -> None:
    backend = native(save_folder(tiny_llama(), tmp_path))
    good = plan_of([Rows([1, 2], 0, [1])])
    wrong: list[tuple[str, Any]] = [
        ("ids", np.array([1, 96])),
        ("ids", np.array([-1, 2])),
        ("positions", np.array([0, 512])),
        ("slots", np.array([16, PAGES * 16])),
        ("kv_indices", np.array([PAGES], np.int32)),
        ("kv_indptr", np.array([0, 2], np.int32)),
        ("qo_indptr", np.array([0, 3], np.int32)),
        ("logit_rows", np.array([2])),
    ]
    for name, value in wrong:
        with pytest.raises(ValueError):
            backend.logits(dataclasses.replace(good, **{name: value}))
    backend.logits(good)
