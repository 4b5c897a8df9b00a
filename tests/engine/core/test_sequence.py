"""One sequence: its counts, its bans, its seen tokens."""

from __future__ import annotations

import numpy as np
import pytest

from engine.core.prefix import page_hash, root_hash
from engine.core.sequence import SeenTokens, Sequence
from tests.engine.core.sequences import END, request


def test_counts_follow_prompt_and_output() -> None:
    one = Sequence(request([5, 6, 7]))
    assert (one.remaining, one.output_len, one.in_prefill) == (3, 0, True)
    one.computed = 2
    assert one.in_prefill  # the last prompt token gives the first output token
    one.computed = 3
    one.append(8)
    assert (one.remaining, one.output_len, one.in_prefill) == (1, 1, False)
    one.restart()
    assert (one.remaining, one.output_len, one.in_prefill) == (4, 1, True)


def test_hashes_are_chained_from_the_scope() -> None:
    ids = list(range(40))
    one = Sequence(request(ids, tenant="t"))
    first = page_hash(root_hash("t"), ids[:16])
    assert one.hashes(2) == [first, page_hash(first, ids[16:32])]
    assert one.hashes(1) == [first]
    assert one.will_publish(0, first) and not one.will_publish(1, first)
    assert not one.will_publish(2, b"")  # the third page is not full


@pytest.mark.parametrize(
    ("ignore_eos", "banned", "ends"), [(False, {END, 77}, {END}), (True, {77}, set())]
)
def test_ends_are_banned_while_the_output_is_short(
    ignore_eos: bool, banned: set[int], ends: set[int]
) -> None:
    one = Sequence(
        request([4], stop_ids=(77,), min_tokens=1, ignore_eos=ignore_eos, logit_bias={77: 5.0})
    )
    assert one.ends == ends
    ids, values = one.bias()
    assert set(ids[np.isneginf(values)].tolist()) == banned
    one.append(9)
    assert dict(zip(*(column.tolist() for column in one.bias()), strict=True)) == {77: 5.0}


@pytest.mark.parametrize("name", ["repetition_penalty", "presence_penalty", "frequency_penalty"])
def test_tokens_are_only_counted_for_a_penalty(name: str) -> None:
    assert Sequence(request([4])).seen is None
    assert Sequence(request([4], **{name: 0.5})).seen is not None  # type: ignore[arg-type]


def test_seen_tokens_grow_beyond_their_first_room() -> None:
    seen = SeenTokens((5, 3, 5))
    for token in range(200):
        seen.add(token)
        seen.add(token)
    ids, counts = seen.columns()
    assert sorted(ids.tolist()) == list(range(200))
    assert set(counts.tolist()) == {2}
    assert ids.tolist()[:2] == [3, 5]
