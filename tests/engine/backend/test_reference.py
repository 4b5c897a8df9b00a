"""The reference backend against transformers, and against itself bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.backend.backend import PAGE_TOKENS
from engine.backend.reference import TorchReference
from engine.model.checkpoint import locate
from engine.text.gguf_meta import read_metadata
from tests.engine.models import embedded_in_transformers, save_folder, tiny_llama
from tests.engine.plans import Rows, plan_of

PROMPTS = ("The Ġcapital Ġof ĠFrance Ġis", "Once Ġupon Ġa Ġtime", "def Ġadd ( a , Ġb ):")
SMOLLM_LIKE = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "num_hidden_layers": 1,
    "max_position_embeddings": 1024,
}
VARIANTS: dict[str, dict[str, object]] = {
    "grouped queries": {},
    "one query a key": {"num_key_value_heads": 4},
    "one key for all": {"num_key_value_heads": 1},
    "untied": {"tie_word_embeddings": False},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "wide heads": {"head_dim": 32},
    "linear rope": {
        "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
    },
    "llama3 rope": {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        }
    },
}


def silent(_: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture(scope="module")
def embedded() -> TorchReference:
    backend = TorchReference.load(locate(None, silent), "fp32", silent)
    backend.allocate(64)
    return backend


def prompt_ids(text: str) -> list[int]:
    vocabulary = read_metadata(locate(None, silent))["tokenizer.ggml.tokens"]
    assert isinstance(vocabulary, list)
    return [vocabulary.index(token) for token in text.split()]


def loaded(folder: Path, dtype: str = "fp32", pages: int = 40) -> TorchReference:
    backend = TorchReference.load(folder, dtype, silent)  # type: ignore[arg-type]
    backend.allocate(pages)
    return backend


def every_logit(backend: TorchReference, ids: list[int]) -> Tensor:
    """Logits [len(ids), vocab] of one prefill."""
    pages = range(1, 2 + len(ids) // PAGE_TOKENS)
    return backend.logits(plan_of([Rows(ids, 0, pages, every_row=True)]))


def greedy(backend: TorchReference, prompts: list[list[int]], count: int) -> list[list[int]]:
    """Generate `count` tokens for prompts that share their steps."""
    pages = [range(1 + 10 * place, 11 + 10 * place) for place in range(len(prompts))]
    steps = [Rows(ids, 0, own) for ids, own in zip(prompts, pages, strict=True)]
    out: list[list[int]] = [[] for _ in prompts]
    for _ in range(count):
        for tokens, token in zip(out, backend.run(plan_of(steps)), strict=True):
            tokens.append(int(token))
        steps = [
            Rows(tokens[-1:], len(ids) + len(tokens) - 1, own)
            for ids, tokens, own in zip(prompts, out, pages, strict=True)
        ]
    return out


def test_embedded_model_is_transformers_model(embedded: TorchReference) -> None:
    oracle = embedded_in_transformers(locate(None, silent))
    prompts = [prompt_ids(prompt) for prompt in PROMPTS]
    for ids, out in zip(prompts, greedy(embedded, prompts, 48), strict=True):
        with torch.no_grad():
            wanted = oracle(torch.tensor([ids + out])).logits[0]
        assert out == wanted[len(ids) - 1 : -1].argmax(-1).tolist()
        assert (every_logit(embedded, ids + out) - wanted).abs().max() < 2e-3


@pytest.mark.parametrize("variant", VARIANTS)
def test_tiny_variants_are_transformers_models(tmp_path: Path, variant: str) -> None:
    model = tiny_llama(**VARIANTS[variant])
    ids = torch.randint(0, 96, (1, 150), generator=torch.Generator().manual_seed(1))
    backend = loaded(save_folder(model, tmp_path))
    with torch.no_grad():
        wanted = model(ids).logits[0]
    assert wanted.std() > 0.3
    assert (every_logit(backend, ids[0].tolist()) - wanted).abs().max() < 2e-4


def test_bf16_stays_near_fp32(tmp_path: Path) -> None:
    model = tiny_llama()
    folder = save_folder(model, tmp_path)
    ids = list(range(90))
    exact, rounded = (every_logit(loaded(folder, dtype), ids) for dtype in ("fp32", "bf16"))
    assert rounded.dtype == torch.float32
    assert 0 < (exact - rounded).abs().max() < 0.2
    assert torch.nn.functional.cosine_similarity(exact, rounded).min() > 0.999


class Walk:
    """One sequence that is computed in random chunks, on pages of its own in random order."""

    def __init__(self, ids: list[int], pages: list[int]) -> None:
        self.ids, self.pages, self.done = ids, pages, 0
        self.logits: list[Tensor] = []

    def step(self, count: int, spare_pages: int) -> Rows:
        start, self.done = self.done, min(len(self.ids), self.done + count)
        used = -(-self.done // PAGE_TOKENS) + spare_pages
        return Rows(self.ids[start : self.done], start, self.pages[:used], every_row=True)


@pytest.mark.parametrize("shape", [{}, {"head_dim": 32, "attention_bias": True}, SMOLLM_LIKE])
@pytest.mark.parametrize("seed", range(2))
def test_bits_do_not_depend_on_batch_chunks_or_pages(
    tmp_path: Path, shape: dict[str, object], seed: int
) -> None:
    backend = loaded(save_folder(tiny_llama(**shape), tmp_path), pages=200)
    random = np.random.default_rng(seed)
    lengths = random.choice([5, 17, 64, 65, 128, 140, 300], 7)
    free = (1 + random.permutation(190)).tolist()
    walks = []
    for length in lengths:
        pages = [free.pop() for _ in range(-(-int(length) // PAGE_TOKENS) + 2)]
        walks.append(Walk(random.integers(0, 96, length).tolist(), pages))
    while pending := [walk for walk in walks if walk.done < len(walk.ids)]:
        chosen = [walk for walk in pending if random.random() < 0.7] or pending
        rows = [
            walk.step(int(random.choice([1, 1, 2, 3, 7, 16, 150, 250])), int(random.integers(3)))
            for walk in chosen
        ]
        logits = backend.logits(plan_of(rows)).split([len(part.ids) for part in rows])
        for walk, part in zip(chosen, logits, strict=True):
            walk.logits.append(part)
    for walk in (walks[int(np.argmax(lengths))], walks[int(np.argmin(lengths))]):
        backend.allocate(40)
        for position, id in enumerate(walk.ids):
            alone = backend.logits(plan_of([Rows([id], position, range(1, 40))]))
            assert torch.equal(alone[0], torch.cat(walk.logits)[position]), position


def test_a_step_may_want_no_logits(tmp_path: Path) -> None:
    backend = loaded(save_folder(tiny_llama(), tmp_path))
    assert backend.run(plan_of([Rows([1, 2, 3], 0, [1], sampled=False)])).shape == (0,)


def test_warm_up_leaves_the_padding_page_zero(tmp_path: Path) -> None:
    backend = loaded(save_folder(tiny_llama(), tmp_path))
    backend.warm_up()
    assert not any(pool[:, 0].any() for pool in backend._pool.keys + backend._pool.values)


def test_facts_for_the_scheduler(embedded: TorchReference) -> None:
    assert embedded.shape.vocab_size == 49152
    assert embedded.shape.max_context == 8192
    assert embedded.shape.kv_bytes_per_token == 30 * 2 * 3 * 64 * 4
