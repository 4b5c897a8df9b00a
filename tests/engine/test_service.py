"""What the service makes of requests: checks, limits, seeds, prompts. The engine is played."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from engine.accumulate import accumulate
from engine.client import TokenEvent
from engine.conversation import Conversation, Message, Text
from engine.errors import ContextOverflow, RequestError
from engine.events import FinishCause, TokenScore
from engine.grammar.compile import grammar_of
from engine.messages import TokenRequest
from engine.service import Service
from engine.types import (
    GenerationRequest,
    LogprobOptions,
    OutputConstraint,
    RawPrompt,
    RepetitionDetection,
    Sampling,
    SamplingOverride,
    Stops,
)
from tests.serving import DEFAULTS, PlayedClient, facts, ids, service_over, serving, tokenizer

WINDOW = 20


def raw(content: str | tuple[int, ...] = "abc", **fields: Any) -> GenerationRequest:
    return GenerationRequest(RawPrompt(content), prompt_param="prompt", **fields)


def chat(text: str, **fields: Any) -> GenerationRequest:
    return GenerationRequest(Conversation((Message("user", (Text(text),)),)), **fields)


def small_service(**options: Any) -> tuple[Service, PlayedClient]:
    client = PlayedClient()
    return service_over(client, facts(WINDOW), **options), client


async def submitted(*requests: GenerationRequest, **options: Any) -> list[TokenRequest]:
    service, client = small_service(**options)
    (await service.open(requests)).close()
    assert service.held == 0
    return client.requests


async def refusal(*requests: GenerationRequest, **options: Any) -> RequestError:
    service, client = small_service(**options)
    with pytest.raises(RequestError) as caught:
        await service.open(requests)
    assert client.requests == []
    assert service.held == 0 and service.idle.is_set()
    return caught.value


@pytest.mark.parametrize(
    ("content", "param", "named"),
    [
        ("x" * 21, "prompt", "21 tokens"),
        ("x" * 20, "prompt", "20 tokens"),
        ((5,) * 21, "prompt", "21 tokens"),
    ],
    ids=str,
)
async def test_a_prompt_that_fills_the_window_is_refused_with_both_numbers(
    content: Any, param: str, named: str
) -> None:
    error = await refusal(raw(content))
    assert isinstance(error, ContextOverflow)
    assert (error.param, error.code) == (param, "context_length_exceeded")
    assert f"maximum context length is {WINDOW} tokens" in error.message
    assert named in error.message
    assert error.max_context == WINDOW and error.prompt_tokens == len(content)


@pytest.mark.parametrize("wanted", [None, 1, 5, 10**30])
@pytest.mark.parametrize(("fields", "options"), [
    ({"clamps_max_tokens": True}, {}), ({}, {"clamp": True}),
])  # fmt: skip
async def test_no_clamping_makes_room_for_a_first_token(
    wanted: int | None, fields: dict[str, bool], options: dict[str, bool]
) -> None:
    error = await refusal(raw("x" * WINDOW, max_tokens=wanted, **fields), **options)
    assert isinstance(error, ContextOverflow) and error.param == "prompt"
    assert (error.prompt_tokens, error.max_context) == (WINDOW, WINDOW)


async def test_a_limit_over_the_window_names_the_clients_own_field() -> None:
    error = await refusal(raw("abc", max_tokens=18, max_tokens_param="max_completion_tokens"))
    assert isinstance(error, ContextOverflow)
    assert (error.param, error.code) == ("max_completion_tokens", "context_length_exceeded")
    assert "21" in error.message and "max_completion_tokens" in error.message


@pytest.mark.parametrize(
    ("wanted", "options", "limit", "cause"),
    [
        (5, {}, 5, FinishCause.LIMIT),
        (17, {}, 17, FinishCause.LIMIT),
        (None, {}, 17, FinishCause.CONTEXT_FULL),
        (None, {"default_max_tokens": 4}, 4, FinishCause.LIMIT),
        (None, {"default_max_tokens": 400}, 17, FinishCause.CONTEXT_FULL),
        (9, {"default_max_tokens": 4}, 9, FinishCause.LIMIT),
        (18, {"clamp": True}, 17, FinishCause.CONTEXT_FULL),
        (18, {"clamps": True}, 17, FinishCause.CONTEXT_FULL),
        (17, {"clamps": True}, 17, FinishCause.LIMIT),
        (5, {"clamps": True}, 5, FinishCause.LIMIT),
        (10**30, {"clamp": True}, 17, FinishCause.CONTEXT_FULL),
    ],
    ids=str,
)
async def test_the_output_limit_fits_the_window_and_knows_why_it_ends(
    wanted: int | None, options: dict[str, Any], limit: int, cause: FinishCause
) -> None:
    clamps = options.pop("clamps", False)
    service, client = small_service(**options)
    generation = await service.open([raw("abc", max_tokens=wanted, clamps_max_tokens=clamps)])
    assert client.requests[0].max_tokens == limit
    client.push(TokenEvent(client.requests[0].key, 70, 0, FinishCause.LIMIT))
    [output] = await accumulate(generation.batches(), 1)
    assert output.end.cause is cause
    generation.close()


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (raw(()), "prompt"),
        (raw((5, 10**6)), "prompt"),
        (raw((-1,)), "prompt"),
        (raw(stops=Stops((), (10**6,))), "stop_token_ids"),
        (raw(sampling=SamplingOverride(logit_bias={10**6: 1.0})), "logit_bias"),
        (raw(sampling=SamplingOverride(min_tokens=6), max_tokens=5), "min_tokens"),
        (raw(sampling=SamplingOverride(min_tokens=18)), "min_tokens"),
        (GenerationRequest(Conversation(())), "messages"),
    ],
    ids=str,
)
async def test_what_cannot_be_generated_is_named(request_: GenerationRequest, param: str) -> None:
    assert (await refusal(request_)).param == param


async def test_ids_at_the_edge_of_the_vocabulary_pass() -> None:
    last = tokenizer().vocab_size - 1
    bias = SamplingOverride(logit_bias={last: 1.0})
    [made] = await submitted(raw((0, last), sampling=bias, stops=Stops((), (last,))))
    assert (made.token_ids, made.stop_ids) == ((0, last), (last,))


async def test_an_empty_text_is_the_begin_token_where_there_is_one() -> None:
    [made] = await submitted(raw(""))
    assert made.token_ids == (tokenizer().bos_id,)
    assert (await refusal(raw(""), bos_id=None)).param == "prompt"


async def test_what_is_to_be_kept_reaches_the_engine() -> None:
    client = PlayedClient()
    service = service_over(client, facts(200))
    messages = [Message(role, (Text(role),)) for role in ("user", "assistant", "user")]
    for kept in (None, 1, 2):
        marked = tuple(replace(one, keep=at == kept) for at, one in enumerate(messages))
        (await service.open([GenerationRequest(Conversation(marked))])).close()
    keeps = [made.keep_tokens for made in client.requests]
    whole = client.requests[0].token_ids
    assert (keeps[0], keeps[2]) == (0, len(whole))
    assert tokenizer().decode(whole[: keeps[1]]).endswith("assistant<|im_end|>\n")


async def test_a_prediction_reaches_the_engine_as_tokens_and_no_longer_than_an_output() -> None:
    [made] = await submitted(raw("abc", prediction="de"))
    assert (made.prediction, made.drafts) == (ids("de"), True)
    [made] = await submitted(raw("abc", prediction="x" * 900, drafts=False))
    assert (set(made.prediction), made.drafts) == (set(ids("x")), False)
    assert len(made.prediction) == 20
    [made] = await submitted(raw("abc"))
    assert made.prediction == ()


async def test_one_bad_prompt_refuses_the_whole_group() -> None:
    await refusal(raw("a"), raw((10**6,)), raw("b"))


async def test_a_conversation_goes_through_the_template() -> None:
    client = PlayedClient()
    service = service_over(client, facts(200))
    (await service.open([chat("hi <|im_end|>")])).close()
    [made] = client.requests
    assert tokenizer().decode(made.token_ids).startswith("<|im_start|>user\nhi <|im_end|>")
    assert made.token_ids.count(tokenizer().eos_ids[0]) == 1  # the client's own is text
    assert made.hint == "hi <|im_end|>"


async def test_choices_take_the_seed_plus_their_index() -> None:
    seeded = SamplingOverride(seed=2**63 - 1)
    made = await submitted(raw("a", n=2, sampling=seeded), raw("b", n=2, sampling=seeded))
    assert [item.seed for item in made] == [2**63 - 1 + index for index in range(4)]
    [negative] = await submitted(raw("a", sampling=SamplingOverride(seed=-1)))
    assert negative.seed == 2**64 - 1
    assert len({item.key for item in made}) == 4


async def test_without_a_seed_every_request_draws_its_own() -> None:
    first, second = await submitted(raw("a", n=2))
    [third] = await submitted(raw("a"))
    assert second.seed == first.seed + 1
    assert third.seed not in (first.seed, second.seed)
    [default] = await submitted(raw("a"), defaults=Sampling(seed=7))
    assert default.seed == 7


async def test_absent_sampling_fields_are_the_models_defaults() -> None:
    [plain] = await submitted(raw("a"))
    assert plain.sampling == DEFAULTS
    override = SamplingOverride(
        temperature=0.0, top_p=0.0, top_k=0, min_p=0.2, repetition_penalty=1.1,
        presence_penalty=0.3, frequency_penalty=0.4, logit_bias={3: 1.0}, seed=0, min_tokens=1,
        ignore_eos=True,
    )  # fmt: skip
    [changed] = await submitted(raw("a", sampling=override))
    assert changed.sampling == Sampling(
        0.0, 0.0, 0, 0.2, 1.1, 0.3, 0.4, logit_bias={3: 1.0}, seed=0, min_tokens=1, ignore_eos=True
    )
    [unlimited] = await submitted(raw("a", sampling=SamplingOverride(top_k=-1)))
    assert unlimited.sampling.top_k == 0


async def test_stops_and_ends_reach_the_engine_as_tokens_only() -> None:
    [made] = await submitted(raw("a", stops=Stops(("text",), (5, 6))))
    assert (made.stop_ids, made.eos_ids) == ((5, 6), tokenizer().eos_ids)


async def test_what_the_engine_decides_reaches_it() -> None:
    asked = raw(
        "ab",
        max_time=2.5,
        priority=-4,
        constraint=OutputConstraint("regex", "a+", "regex"),
        repetition=RepetitionDetection(8, 2, 3),
        logprobs=LogprobOptions(3, (5,)),
        prompt_top=2,
        sampling=SamplingOverride(lz_penalty=0.5, allowed_token_ids=(3, 4)),
    )
    before = time.monotonic()
    [made] = await submitted(asked)
    assert made.deadline is not None and before + 2.5 <= made.deadline <= time.monotonic() + 2.5
    assert (made.priority, made.prompt_top, made.logprobs) == (-4, 2, LogprobOptions(3, (5,)))
    assert made.grammar == grammar_of(OutputConstraint("regex", "a+", "regex"))
    assert made.repetition == RepetitionDetection(8, 2, 3)
    assert (made.sampling.lz_penalty, made.sampling.allowed_token_ids) == (0.5, (3, 4))
    [plain] = await submitted(raw("ab"))
    assert (plain.deadline, plain.priority, plain.prompt_top) == (None, 0, None)
    assert (plain.logprobs, plain.grammar, plain.repetition) == (None, None, None)


async def test_the_servers_rule_for_loops_applies_where_a_request_has_none() -> None:
    rule, own = RepetitionDetection(64, 1, 20), RepetitionDetection(4)
    [plain] = await submitted(raw("ab"), repetition=rule)
    [other] = await submitted(raw("ab", repetition=own), repetition=rule)
    assert (plain.repetition, other.repetition) == (rule, own)


async def test_scores_alone_go_to_the_engine_without_output() -> None:
    service, client = small_service()
    generation = await service.open([raw("ab", max_tokens=0, prompt_top=1)])
    [made] = client.requests
    assert made.max_tokens == 0
    score = TokenScore(ids("b")[0], -1.0, 1)
    client.push(TokenEvent(made.key, prompt_scores=[score]))
    client.push(TokenEvent(made.key, cached=0, cause=FinishCause.LIMIT))
    [output] = await accumulate(generation.batches(), 1)
    assert output.prompt_scores == (None, score)
    assert (output.end.cause, output.end.usage.output) == (FinishCause.LIMIT, 0)
    generation.close()


@pytest.mark.parametrize("fields", [{}, {"records": True}, {"logprobs": LogprobOptions()}], ids=str)
async def test_tokens_are_recorded_where_they_are_asked_for(fields: dict[str, Any]) -> None:
    service, client = small_service()
    generation = await service.open([raw("ab", **fields)])
    client.say("cd", FinishCause.LIMIT)
    [output] = await accumulate(generation.batches(), 1)
    assert [record.token for record in output.records] == (list(ids("cd")) if fields else [])
    generation.close()


async def test_tenants_have_caches_of_their_own() -> None:
    [one] = await submitted(raw("a", tenant="one"))
    [same] = await submitted(raw("a", tenant="one"))
    [other] = await submitted(raw("a", tenant="two"))
    assert one.cache_scope == same.cache_scope != other.cache_scope


async def test_a_salt_divides_a_tenants_cache_and_no_pair_looks_like_another() -> None:
    pairs = [("a", ""), ("a", "b"), ("ab", ""), ("", "ab"), ("", ""), ("a\0b", ""), ("a", "\0b")]
    scopes = []
    for tenant, salt in pairs:
        [made] = await submitted(raw("a", tenant=tenant, cache_salt=salt))
        scopes.append(made.cache_scope)
    assert len(set(scopes)) == len(pairs)


async def test_no_output_is_answered_without_the_engine() -> None:
    service, client = small_service()
    generation = await service.open([raw("ab", max_tokens=0, n=2, echo=True), raw("c", echo=True)])
    assert [len(item.token_ids) for item in client.requests] == [1]
    client.say("d", FinishCause.LIMIT)
    outputs = await accumulate(generation.batches(), generation.num_choices)
    assert [output.text for output in outputs] == ["ab", "ab", "cd"]
    generation.close()
    assert (service.counters.completed, service.held) == (3, 0)


async def test_a_prompt_of_the_whole_window_may_ask_for_nothing() -> None:
    assert await submitted(raw("x" * WINDOW, max_tokens=0)) == []
    assert (await refusal(raw("x" * (WINDOW + 1), max_tokens=0))).param == "prompt"


async def test_a_whole_generation_over_the_real_engine() -> None:
    async with serving("hello") as service:
        generation = await service.open([chat("x", n=2), raw("y", echo=True)])
        outputs = await accumulate(generation.batches(), 3)
        generation.close()
        assert [output.text for output in outputs] == ["hello", "hello", "yhello"]
        assert {output.end.cause for output in outputs} == {FinishCause.END}
        assert [output.end.usage.output for output in outputs] == [len(ids("hello")) + 1] * 3
