"""The scripted backend: which reply a sequence gets, and what wins over it."""

from __future__ import annotations

import os

import numpy as np
import pytest

from engine.backend.backend import StepPlan
from engine.backend.scores import NO_CHANCE
from engine.backend.scripted import Reply, Script, Scripted
from engine.events import TokenScore
from tests.engine.plans import Draw, Rows, plan_of

END = 9
BANNED = float("-inf")


def backend(*replies: Reply, vocab_size: int = 10) -> Scripted:
    made = Scripted(Script(replies, vocab_size, END))
    made.allocate(4)
    made.warm_up()
    return made


def plan(*draws: Draw, rows: list[Rows] | None = None) -> StepPlan:
    """Sequence b of the plan has the key b."""
    return plan_of(rows or [Rows([0], 3, [1]) for _ in draws], list(draws))


def spoken(made: Scripted, text: str, length: int = 3) -> list[int]:
    """The first tokens of a sequence, opened with a text, that runs as the plan's number 0."""
    made.open_sequence(0, text)
    tokens = [int(made.run(plan(Draw(position=place))).tokens[0]) for place in range(length)]
    made.close_sequence(0)
    return tokens


def test_a_reply_is_followed_by_the_end_for_ever() -> None:
    assert spoken(backend(Reply((5, 6))), "any", 4) == [5, 6, END, END]


def test_a_script_without_replies_ends_at_once() -> None:
    assert spoken(backend(), "any", 1) == [END]


def test_unmatched_texts_take_the_list_in_order_and_start_over() -> None:
    made = backend(Reply((1,)), Reply((2,)), Reply((3,), match="three"))
    texts = ["a", "b", "three", "c"]
    assert [spoken(made, text, 1)[0] for text in texts] == [1, 2, 3, 1]


def test_the_first_pattern_that_is_found_wins() -> None:
    made = backend(Reply((1,), match="b+$"), Reply((2,), match="^a"), Reply((3,)))
    texts = ["aabb", "ab c", "c", "(?i)b"]
    assert [spoken(made, text, 1)[0] for text in texts] == [1, 2, 3, 1]


def test_only_patterns_and_none_that_matches_ends_at_once() -> None:
    assert spoken(backend(Reply((1,), match="x")), "y", 1) == [END]


def test_sequences_of_one_step_follow_their_own_replies_and_places() -> None:
    made = backend(Reply((1, 2)), Reply((3, 4)))
    made.open_sequence(0, "")
    made.open_sequence(1, "")
    assert made.run(plan(Draw(position=1), Draw(position=0))).tokens.tolist() == [2, 3]


def test_a_chunk_of_prefill_draws_nothing() -> None:
    made = backend(Reply((1,)), Reply((2,)))
    made.open_sequence(0, "")
    made.open_sequence(1, "")
    rows = [Rows([7, 7], 0, [1], sampled=False), Rows([7], 4, [2])]
    assert made.run(plan(Draw(), rows=rows)).tokens.tolist() == [2]


def test_bans_win_over_the_script_and_biases_do_not() -> None:
    made = backend(Reply((5, 5, 5)))
    made.open_sequence(0, "")
    cases: list[tuple[dict[int, float], int]] = [
        ({5: -100.0}, 5),
        ({5: BANNED}, 0),
        ({5: BANNED, 0: BANNED, 1: BANNED, 2: 3.0}, 2),
        ({4: BANNED}, 5),
    ]
    for bias, token in cases:
        assert made.run(plan(Draw(bias=bias))).tokens.tolist() == [token]


def test_a_banned_end_is_replaced_as_well() -> None:
    made = backend(Reply(()))
    made.open_sequence(0, "")
    assert made.run(plan(Draw(bias={END: BANNED}))).tokens.tolist() == [0]


def test_each_row_has_its_own_bans() -> None:
    made = backend(Reply((5,)), Reply((5,)))
    made.open_sequence(0, "")
    made.open_sequence(1, "")
    result = made.run(plan(Draw(bias={5: BANNED}), Draw(bias={0: BANNED})))
    assert result.tokens.tolist() == [0, 5]


@pytest.mark.parametrize(
    ("script", "mask", "bias", "token"),
    [
        ((5,), {5, 7}, {}, 5),
        ((5,), {3, 7}, {}, 3),
        ((5,), {3, 7}, {3: BANNED}, 7),
        ((5,), {3, 5}, {5: BANNED}, 3),
        ((), {3, END}, {}, END),
        ((), {3, 8}, {}, 3),
        ((39,), {39}, {}, 39),
        ((39,), {2}, {}, 2),
    ],
)
def test_masks_win_over_the_script(
    script: tuple[int, ...], mask: set[int], bias: dict[int, float], token: int
) -> None:
    made = backend(Reply(script), vocab_size=40)
    made.open_sequence(0, "")
    assert made.run(plan(Draw(mask=mask, bias=bias))).tokens.tolist() == [token]


def test_a_row_without_an_allowed_token_fails_alone() -> None:
    made = backend(Reply((5,)), Reply((5,)))
    made.open_sequence(0, "")
    made.open_sequence(1, "")
    result = made.run(plan(Draw(mask={3}, bias={3: BANNED}, logprob_top=2), Draw(logprob_top=2)))
    assert result.failed == {0: "every token is banned"}
    assert result.tokens[1] == 5 and set(result.scores) == {1}


def test_scores_are_of_the_script_before_bans_and_masks() -> None:
    made = backend(*[Reply((5,))] * 5)
    for key in range(5):
        made.open_sequence(key, "")
    named = Draw(logprob_top=0, logprob_ids=(8, 2), temperature=1.5)
    result = made.run(
        plan(
            Draw(logprob_top=3),
            Draw(logprob_top=3, mask={7, 9}),
            Draw(),
            named,
            Draw(logprob_top=0, bias={5: BANNED}),
        )
    )
    likeliest = ((5, -0.25), (0, -1.0), (1, -2.0))
    assert result.scores == {
        0: TokenScore(5, -0.25, 1, likeliest),
        1: TokenScore(7, -7.0, 8, likeliest),
        3: TokenScore(5, -0.25, 1, ((8, -8.0), (2, -3.0), (5, -0.25))),
        4: TokenScore(0, -1.0, 2),
    }


def test_far_tokens_have_no_chance_and_share_a_rank() -> None:
    made = backend(Reply((20_000,)), vocab_size=30_000)
    made.open_sequence(0, "")
    for token in (9_998, 9_999, 25_000):
        score = made.run(plan(Draw(logprob_top=1, mask={token}))).scores[0]
        assert score == TokenScore(token, NO_CHANCE, 10_000, ((20_000, -0.25),))


def test_prompt_rows_expect_the_next_token_of_the_prompt() -> None:
    made = backend(Reply((5,)), Reply(()))
    made.open_sequence(0, "")
    made.open_sequence(1, "")
    rows = [
        Rows([7, 2, 4], 0, [1], scored=2),
        Rows([3, 6], 0, [2], sampled=False, scored=0, next_id=8),
    ]
    result = made.run(plan(Draw(), rows=rows))
    assert result.prompt_scores == [
        TokenScore(2, -0.25, 1, ((2, -0.25), (0, -1.0))),
        TokenScore(4, -0.25, 1, ((4, -0.25), (0, -1.0))),
        TokenScore(6, -0.25, 1),
        TokenScore(8, -0.25, 1),
    ]
    assert not result.scores


def test_a_failing_row_leaves_the_others_their_tokens() -> None:
    made = backend(Reply((1, 2), fail_after=1), Reply((3, 4)))
    made.open_sequence(0, "")
    made.open_sequence(1, "")
    assert made.run(plan(Draw(), Draw())).tokens.tolist() == [1, 3]
    result = made.run(plan(Draw(position=1, logprob_top=0), Draw(position=1)))
    assert set(result.failed) == {0} and result.failed[0] and not result.scores
    assert result.tokens[1] == 4


def test_a_crash_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(Exception):
        pass

    def end(code: int) -> None:
        assert code != 0
        raise Ended

    monkeypatch.setattr(os, "_exit", end)
    made = backend(Reply((1, 2), crash_after=1))
    made.open_sequence(0, "")
    made.run(plan(Draw()))
    with pytest.raises(Ended):
        made.run(plan(Draw(position=1)))


def test_a_step_takes_as_long_as_its_slowest_row(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("engine.backend.scripted.time.sleep", slept.append)
    made = backend(Reply((1, 2), delay=0.2, prefill_delay=0.5), Reply((3, 4), delay=0.3), Reply(()))
    for key in range(3):
        made.open_sequence(key, "")
    made.run(plan(Draw(position=1), Draw(position=1), Draw()))
    made.run(plan(Draw(), Draw(position=1), Draw()))
    chunk = [Rows([7, 7], 0, [1], sampled=False), Rows([7], 4, [2]), Rows([7], 4, [3])]
    made.run(plan(Draw(), Draw(), rows=chunk))
    assert slept == [0.3, 0.5, 0.5]
    slept.clear()
    made.run(plan(Draw(), Draw(), Draw(), rows=[*[Rows([7], 1, [1])] * 3]))
    assert slept == [0.5]


def test_no_delay_does_not_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.backend.scripted.time.sleep", lambda _: pytest.fail("slept"))
    assert spoken(backend(Reply((1,))), "") == [1, END, END]


def test_tokens_are_ids_of_the_interface_type() -> None:
    made = backend(Reply((1,)))
    made.open_sequence(0, "")
    assert made.run(plan(Draw())).tokens.dtype == np.int64
    assert (made.shape.vocab_size, made.shape.kv_bytes_per_token) == (10, 0)
    assert made.shape.max_context == 131_072
