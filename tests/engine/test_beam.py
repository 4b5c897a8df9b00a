"""Beam search finds the beams that transformers finds on the same model."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from engine.beam import BeamSearch  # noqa: E402
from engine.client import TokenEvent, TokenStream  # noqa: E402
from engine.events import FinishCause, TokenScore  # noqa: E402
from engine.messages import EngineStats, TokenRequest  # noqa: E402
from engine.outputs import OutputPlan  # noqa: E402
from engine.prepare import Prepared  # noqa: E402
from engine.types import BeamOptions, GenerationRequest, Prompt, RawPrompt, Sampling  # noqa: E402
from tests.engine.models import tiny_llama  # noqa: E402

MODEL = tiny_llama()
PROMPT = (5, 17, 42, 8)


class ModelClient:
    """Answers one-token requests with the model's log probabilities."""

    stats = EngineStats()
    failure: str | None = None

    def __init__(self) -> None:
        self._keys = itertools.count(1)
        self.cancelled: list[int] = []
        self.steps = 0

    def next_key(self) -> int:
        return next(self._keys)

    def submit(self, requests: Sequence[TokenRequest]) -> TokenStream:
        self.steps += 1
        stream = TokenStream()
        for request in requests:
            assert request.max_tokens == 1 and request.logprobs is not None
            with torch.no_grad():
                logits = MODEL(torch.tensor([request.token_ids])).logits[0, -1]
            values, ids = torch.log_softmax(logits, -1).topk(request.logprobs.top)
            top = tuple(zip(ids.tolist(), values.tolist(), strict=True))
            score = TokenScore(top[0][0], top[0][1], 1, top)
            event = TokenEvent(request.key, top[0][0], 0, FinishCause.LIMIT, None, score)
            stream.push(event)
        return stream

    def cancel(self, key: int) -> None:
        self.cancelled.append(key)

    def abort(self, reason: str) -> None:
        raise AssertionError(reason)

    async def close(self) -> None:
        """Nothing runs."""


def search(
    options: BeamOptions, max_tokens: int, eos_ids: tuple[int, ...] = (), min_tokens: int = 0
) -> tuple[BeamSearch, ModelClient]:
    request = GenerationRequest(RawPrompt(PROMPT), beams=options, n=options.width)
    sampling = Sampling(min_tokens=min_tokens)
    item = Prepared(
        request, Prompt(PROMPT), sampling, max_tokens, FinishCause.LIMIT, OutputPlan(), ""
    )
    client = ModelClient()
    return BeamSearch(client, item, eos_ids), client


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_without_an_end_token_the_beams_are_those_of_transformers(
    width: int, penalty: float
) -> None:
    beams = asyncio.run(search(BeamOptions(width, penalty), 7)[0].run())
    expected = MODEL.generate(
        torch.tensor([PROMPT]),
        num_beams=width,
        num_return_sequences=width,
        max_new_tokens=7,
        do_sample=False,
        length_penalty=penalty,
        eos_token_id=None,
        pad_token_id=0,
    )
    assert [list(beam.token_ids) for beam in beams] == expected[:, len(PROMPT) :].tolist()
    assert {beam.cause for beam in beams} == {FinishCause.LIMIT}


def test_a_beam_ends_at_an_end_token_and_not_before_min_tokens() -> None:
    free = asyncio.run(search(BeamOptions(3), 6)[0].run())
    end = free[0].token_ids[2]
    beams = asyncio.run(search(BeamOptions(3), 6, (end,))[0].run())
    ended = [beam for beam in beams if beam.cause is FinishCause.END]
    assert ended and all(end not in beam.token_ids[:-1] for beam in beams)
    late = asyncio.run(search(BeamOptions(3), 6, (end,), min_tokens=5)[0].run())
    assert all(len(beam.token_ids) == 6 for beam in late if beam.cause is FinishCause.END)


def test_early_stopping_ends_when_as_many_beams_as_asked_have_ended() -> None:
    end = asyncio.run(search(BeamOptions(2), 3)[0].run())[0].token_ids[1]
    eager, client = search(BeamOptions(2, 1.0, early_stopping=True), 40, (end,))
    asyncio.run(eager.run())
    patient, other = search(BeamOptions(2, 1.0), 40, (end,))
    asyncio.run(patient.run())
    assert client.steps <= other.steps


def test_when_enough_beams_have_ended_the_others_are_no_answers() -> None:
    """A high length penalty would rank the unfinished, longer beams above them."""
    free = asyncio.run(search(BeamOptions(3), 3)[0].run())
    ends = tuple({beam.token_ids[2] for beam in free})
    eager = search(BeamOptions(3, 10.0, early_stopping=True), 40, ends)[0]
    beams = asyncio.run(eager.run())
    assert [beam.cause for beam in beams] == [FinishCause.END] * 3


def test_the_total_is_the_sum_of_the_tokens_log_probabilities() -> None:
    for beam in asyncio.run(search(BeamOptions(4), 5)[0].run()):
        assert beam.total == pytest.approx(sum(score.logprob for score in beam.scores))
