"""Speculation over a real decoder: in fp32 the output is the same to the last bit of its scores."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.backend.backend import StepPlan, StepResult
from engine.backend.reference import TorchReference
from engine.core.draft import Drafter, NgramDrafter
from engine.core.draft_model import ModelDrafter
from engine.core.speculation import Speculation
from engine.messages import TokenRequest
from engine.types import LogprobOptions
from tests.engine.core.drafters import seen_of, totals
from tests.engine.core.sequences import VOCAB, Harness, PageReader, regex, request
from tests.engine.models import save_folder, tiny_llama

PAGES = 128
OPTIONS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 0.0, "logprobs": LogprobOptions(2)},
    {"temperature": 0.3},
    {"temperature": 0.8, "top_k": 5},
    {"temperature": 0.5, "top_p": 0.9, "min_p": 0.02, "logprobs": LogprobOptions(1)},
    {"temperature": 0.0, "presence_penalty": 0.4, "frequency_penalty": 0.2},
    {"temperature": 0.0, "repetition_penalty": 1.1},
    {"temperature": 0.0, "dry_multiplier": 0.2},
    {"temperature": 0.2, "lz_penalty": 0.1},
    {"temperature": 0.0, "grammar": regex("((ab|ba)(hello|world)){9}")},
    {"temperature": 1.0, "grammar": regex("[ab]*"), "min_tokens": 30},
]


class Decoder(PageReader):
    """A tiny random model behind the checks of pages."""

    def __init__(self, model: TorchReference) -> None:
        super().__init__()
        self.model = model

    def allocate(self, num_pages: int) -> None:
        super().allocate(num_pages)
        self.model.allocate(num_pages)

    def run(self, plan: StepPlan) -> StepResult:
        super().run(plan)
        return self.model.run(plan)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[TorchReference]:
    """The same model twice: a harness and a drafter each need pages of their own."""
    model = tiny_llama(vocab_size=VOCAB, num_hidden_layers=1)
    folder = save_folder(model, tmp_path_factory.mktemp("tiny"))
    return [TorchReference.load(folder, "fp32", lambda _: None) for _ in range(2)]


def asked_of(seed: int, options: dict[str, Any]) -> list[TokenRequest]:
    """Prompts that repeat themselves, as a drafter likes them."""
    draw = random.Random(seed)
    asked = []
    for place in range(5):
        words = [[draw.randrange(2, 900) for _ in range(5)] for _ in range(3)]
        prompt = [token for _ in range(5) for token in draw.choice(words)]
        asked.append(request(prompt, 48, seed=seed + place, **options))
    return asked


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_n_gram_drafts_change_nothing(
    models: list[TorchReference], options: dict[str, Any]
) -> None:
    compare(models[0], asked_of(7, options), NgramDrafter())


@pytest.mark.parametrize("options", OPTIONS[:4], ids=str)
def test_drafts_of_a_model_change_nothing(
    models: list[TorchReference], options: dict[str, Any]
) -> None:
    """The served model drafts for itself: what is greedy comes true."""
    drafts = Decoder(models[1])
    drafts.allocate(PAGES)
    drafted = compare(models[0], asked_of(9, options), ModelDrafter(drafts, PAGES, VOCAB, 64))
    stats = drafted.loop.stats()
    assert stats.accepted_drafts > 0
    if options["temperature"] == 0.0:
        assert stats.accepted_drafts == stats.verification_drafts


def compare(model: TorchReference, asked: list[TokenRequest], drafter: Drafter) -> Harness:
    """Without drafts, with them, and with them among preemptions; returns the second."""
    plain = Harness(num_pages=PAGES, backend=Decoder(model))
    plain.run(asked)
    drafted = Harness(
        num_pages=PAGES, backend=Decoder(model), speculation=Speculation([drafter], 8, 24)
    )
    drafted.run(asked)
    assert seen_of(drafted, asked) == seen_of(plain, asked)
    assert totals(drafted) == totals(plain)
    assert drafted.loop.stats().verification_drafts > 0
    tight = Harness(
        num_pages=9, backend=Decoder(model), speculation=Speculation([NgramDrafter()], 8, 24)
    )
    tight.run(asked)
    assert seen_of(tight, asked) == seen_of(plain, asked)
    assert tight.loop.scheduler.preemptions > 0
    return drafted
