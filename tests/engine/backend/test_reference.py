"""The reference backend against transformers, and against itself bit by bit."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from engine.backend.backend import PAGE_TOKENS, StepResult
from engine.backend.reference import SLAB_ROWS, TorchReference
from engine.backend.scores import log_softmax, score
from engine.events import TokenScore
from engine.model.checkpoint import locate
from engine.text.gguf_meta import read_metadata
from tests.engine.models import embedded_in_transformers, save_folder, tiny_llama
from tests.engine.plans import Draw, Rows, plan_of

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


@pytest.fixture(scope="module")
def oracle() -> LlamaForCausalLM:
    return embedded_in_transformers(locate(None, silent))


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
        for tokens, token in zip(out, backend.run(plan_of(steps)).tokens, strict=True):
            tokens.append(int(token))
        steps = [
            Rows(tokens[-1:], len(ids) + len(tokens) - 1, own)
            for ids, tokens, own in zip(prompts, out, pages, strict=True)
        ]
    return out


def test_embedded_model_is_transformers_model(
    embedded: TorchReference, oracle: LlamaForCausalLM
) -> None:
    prompts = [prompt_ids(prompt) for prompt in PROMPTS]
    for ids, out in zip(prompts, greedy(embedded, prompts, 48), strict=True):
        with torch.no_grad():
            wanted = oracle(torch.tensor([ids + out])).logits[0]
        assert out == wanted[len(ids) - 1 : -1].argmax(-1).tolist()
        assert (every_logit(embedded, ids + out) - wanted).abs().max() < 2e-3


def test_embedded_prompt_scores_are_transformers_log_softmax(
    embedded: TorchReference, oracle: LlamaForCausalLM
) -> None:
    ids = np.random.default_rng(0).integers(0, 49_152, 200).tolist()
    ids[:20] = [id for prompt in PROMPTS for id in prompt_ids(prompt)][:20]
    made = embedded.run(plan_of([Rows(ids, 0, range(1, 20), scored=20)])).prompt_scores
    with torch.no_grad():
        wanted = torch.log_softmax(oracle(torch.tensor([ids])).logits[0], -1)
    assert [one.token for one in made] == ids[1:]
    for row, one in zip(wanted, made, strict=False):
        assert abs(one.logprob - float(row[one.token])) < 1e-3
        assert (row > one.logprob + 1e-3).sum() < one.rank <= (row > one.logprob - 1e-3).sum() + 1
        values = torch.tensor([value for _, value in one.top])
        assert (values - row[[id for id, _ in one.top]]).abs().max() < 1e-3
        assert (values - row.topk(20).values).abs().max() < 1e-3


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
    result = backend.run(plan_of([Rows([1, 2, 3], 0, [1], sampled=False)]))
    assert result.tokens.shape == (0,)
    assert not (result.scores or result.prompt_scores or result.failed)


def forced(token: int, top: int = 5) -> Draw:
    """Draws this token whatever the model thinks, and scores it."""
    return Draw(logprob_top=top, bias={token: 1e4}, temperature=0.7, mask={token})


def one_by_one(backend: TorchReference, ids: list[int], top: int) -> list[TokenScore]:
    """The scores of tokens that are generated, not read."""
    scores = []
    for position, (id, following) in enumerate(pairwise(ids)):
        plan = plan_of([Rows([id], position, range(1, 40))], [forced(following, top)])
        result = backend.run(plan)
        assert result.tokens.tolist() == [following]
        scores.append(result.scores[0])
    return scores


def scored_in_chunks(backend: TorchReference, ids: list[int], sizes: list[int]) -> StepResult:
    """The prompt scores of chunks that share their steps with another sequence's."""
    scores: list[TokenScore] = []
    start = 0
    for size in sizes:
        chunk = ids[start : start + size]
        following = ids[start + size] if start + size < len(ids) else None
        rows = [
            Rows([5] * 3, start, range(50, 90), scored=1, next_id=7),
            Rows(chunk, start, range(1, 40), scored=5, next_id=following, sampled=False),
        ]
        scores += backend.run(plan_of(rows, [forced(3)])).prompt_scores[3:]
        start += size
    return StepResult(np.zeros(0, np.int64), prompt_scores=scores)


@pytest.mark.parametrize("shape", [{}, {"vocab_size": 4099}])
def test_prompt_scores_are_those_of_generated_tokens_bit_for_bit(
    tmp_path: Path, shape: dict[str, int]
) -> None:
    backend = loaded(save_folder(tiny_llama(**shape), tmp_path), pages=100)
    ids = np.random.default_rng(4).integers(0, 96, 3 * SLAB_ROWS - 5).tolist()
    wanted = one_by_one(backend, ids, top=5)
    for sizes in ([len(ids)], [1, 70, SLAB_ROWS, len(ids) - 71 - SLAB_ROWS]):
        assert scored_in_chunks(backend, ids, sizes).prompt_scores == wanted


def test_scores_are_raw_and_the_same_in_any_batch(tmp_path: Path) -> None:
    backend = loaded(save_folder(tiny_llama(), tmp_path), pages=100)
    draws = [
        Draw(logprob_top=4),
        Draw(logprob_top=4, temperature=2.0, top_k=3, top_n_sigma=1.0, seed=5),
        Draw(logprob_top=4, mask={11, 90}, bias={11: -5.0}),
        Draw(logprob_top=4, repetition_penalty=3.0, seen=dict.fromkeys(range(96), 2)),
        Draw(logprob_top=0, logprob_ids=(95, 0, 3)),
        Draw(),
    ]
    rows = [Rows([id], 0, [1 + id]) for id in range(6)]
    together = backend.run(plan_of(rows, draws))
    assert set(together.scores) == {0, 1, 2, 3, 4}
    logits = backend.logits(plan_of(rows)).numpy()
    for row, made in together.scores.items():
        ids = np.array(draws[row].logprob_ids, np.int64)
        token = int(together.tokens[row])
        assert made == score(log_softmax(logits[row]), token, draws[row].logprob_top, ids)
        assert backend.run(plan_of(rows[row : row + 1], draws[row : row + 1])).scores[0] == made
    assert together.scores[2].token in (11, 90)


def test_a_failed_row_leaves_the_others_their_tokens_and_scores(tmp_path: Path) -> None:
    backend = loaded(save_folder(tiny_llama(), tmp_path))
    rows = [Rows([1], 0, [1]), Rows([2], 0, [2])]
    banned = Draw(mask={4}, bias={4: -np.inf}, logprob_top=0)
    result = backend.run(plan_of(rows, [banned, Draw(logprob_top=0)]))
    assert result.failed == {0: "every token is banned"}
    assert set(result.scores) == {1} and result.scores[1].token == result.tokens[1]


def test_warm_up_leaves_the_padding_page_zero(tmp_path: Path) -> None:
    backend = loaded(save_folder(tiny_llama(), tmp_path))
    backend.warm_up()
    assert not any(pool[:, 0].any() for pool in backend._pool.keys + backend._pool.values)


def test_facts_for_the_scheduler(embedded: TorchReference) -> None:
    assert embedded.shape.vocab_size == 49152
    assert embedded.shape.max_context == 8192
    assert embedded.shape.kv_bytes_per_token == 30 * 2 * 3 * 64 * 4
