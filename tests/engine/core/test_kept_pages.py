"""Prefixes that a client wants to be kept: what evicts them, and what they may not crowd out."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from engine.core.pages import PagePool
from engine.core.prefix import PrefixIndex
from tests.engine.core.sequences import Harness, expected, request
from tests.engine.core.test_pages import taken

NUM_PAGES = 21  # 20 that sequences can own, of which 10 can be protected


def pool(num_pages: int = NUM_PAGES) -> PagePool:
    return PagePool(num_pages, PrefixIndex())


def published(pages: PagePool, count: int, name: bytes = b"") -> list[int]:
    """Owned pages that a match can find; their hashes are `name` and their places."""
    found = taken(pages, count)
    for place, page in enumerate(found):
        pages.index.publish(page, hash_of(name, place))
    return found


def hash_of(name: bytes, place: int) -> bytes:
    return name + bytes([place])


def matched(pages: PagePool, count: int, name: bytes) -> list[int]:
    found = pages.index.match([hash_of(name, place) for place in range(count)])
    pages.retain(found)
    return found


# The pool


def test_kept_pages_go_behind_all_others_the_longest_unused_first() -> None:
    pages = pool()
    old, new = published(pages, 3, b"old"), published(pages, 3, b"new")
    plain = published(pages, 3, b"plain")
    pages.release(old, kept=3)
    pages.release(new, kept=2)
    pages.release(plain)
    pages.check([])
    empty = pages.num_usable - 9
    assert not set(taken(pages, empty)) & {*old, *new, *plain}
    assert taken(pages, 9) == [new[2], *reversed(plain), *reversed(old), new[1], new[0]]
    assert pages.allocate() is None


def test_a_match_makes_a_kept_prefix_the_last_to_go() -> None:
    pages = pool()
    old, new = published(pages, 2, b"old"), published(pages, 2, b"new")
    pages.release(old, kept=2)
    pages.release(new, kept=2)
    again = matched(pages, 2, b"old")
    assert again == old
    pages.check([again])
    pages.release(again)  # what one client wants to be kept stays so, whoever reads it
    taken(pages, pages.num_usable - 4)
    assert taken(pages, 4) == [new[1], new[0], old[1], old[0]]


def test_pages_are_kept_although_another_sequence_still_reads_them() -> None:
    pages = pool()
    shared = published(pages, 2, b"shared")
    other = matched(pages, 2, b"shared")
    pages.release(shared, kept=2)
    pages.check([other])
    pages.release(other)
    plain = published(pages, 2, b"plain")
    pages.release(plain)
    taken(pages, pages.num_usable - 4)
    assert taken(pages, 4) == [*reversed(plain), *reversed(shared)]


def test_a_page_that_no_match_can_find_is_not_kept() -> None:
    pages = pool()
    unfilled = taken(pages, 2)
    pages.release(unfilled, kept=2)
    pages.check([])
    assert taken(pages, 2) == unfilled


def test_an_evicted_page_is_like_any_other() -> None:
    pages = pool(5)
    pages.release(published(pages, 2, b"a"), kept=2)
    everything = published(pages, 4, b"b")
    pages.check([everything])
    pages.release(everything)
    pages.check([])
    kept = matched(pages, 1, b"b")
    pages.release(kept, kept=1)
    assert taken(pages, 4)[-1] == kept[0]


def test_half_of_the_pool_can_be_protected_and_the_longest_unused_gives_way() -> None:
    pages = pool()
    old, new = published(pages, 6, b"old"), published(pages, 6, b"new")
    plain = published(pages, 6, b"plain")
    pages.release(old, kept=6)
    pages.release(plain)
    pages.release(new, kept=6)
    pages.check([])
    assert len(taken(pages, 2)) == 2  # the empty ones
    given_up = [old[5], old[4]]
    assert taken(pages, 8) == [*reversed(plain), *given_up]
    assert taken(pages, 10) == [*reversed(old[:4]), *reversed(new)]


def test_of_a_prefix_that_is_too_long_the_beginning_is_protected() -> None:
    pages = pool()
    long, plain = published(pages, 14, b"long"), published(pages, 6, b"plain")
    pages.release(long, kept=14)
    pages.release(plain)
    pages.check([])
    assert set(taken(pages, 10)) == {*long[10:], *plain}
    assert pages.index.match([hash_of(b"long", place) for place in range(14)]) == long[:10]


@pytest.mark.parametrize("harm", range(4))
def test_the_check_finds_kept_pages_that_are_wrong(harm: int) -> None:
    pages = pool()
    [kept, plain, owned] = published(pages, 3)
    pages.release([kept], kept=1)
    pages.release([plain])
    pages.check([[owned]])
    if harm == 0:
        pages._kept.add(plain)
    elif harm == 1:
        pages._kept.discard(kept)
    elif harm == 2:
        pages.index.forget(kept)
    else:
        pages._most_kept_free = 0
    with pytest.raises(RuntimeError, match=r"kept|wrong list"):
        pages.check([[owned]])


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_no_kept_page_goes_while_there_is_another(seed: int) -> None:
    draw = random.Random(seed)
    pages = pool()
    owned: list[list[int]] = []
    kept_went = 0
    for _ in range(600):
        if draw.random() < 0.5:
            count = draw.randrange(1, 7)
            chain = matched(pages, count, bytes([draw.randrange(12)]))
            if chain:
                owned.append(chain)
        else:
            free = {page for page in range(1, NUM_PAGES) if pages.is_free(page)}
            others = free - pages._kept
            count = draw.randrange(1, 7)
            if len(free) < count:
                pages.release(owned.pop(0), draw.randrange(7))
                continue
            chain = published(pages, count, bytes([draw.randrange(12)]))
            assert set(chain) <= others or others <= set(chain)
            kept_went += not set(chain) <= others
            owned.append(chain)
        if len(owned) > 3:
            pages.release(owned.pop(draw.randrange(len(owned))), draw.choice([0, 0, 2, 6]))
        pages.check(owned)
        protected = sum(pages.is_free(page) for page in pages._kept)
        assert protected <= pages.num_usable // 2
    assert kept_went
    for chain in owned:
        pages.release(chain, 6)
    pages.check([])
    assert pages.num_free == pages.num_usable


# Whole requests


def prompt_of(seed: int, length: int) -> list[int]:
    draw = random.Random(seed)
    return [draw.randrange(2, 900) for _ in range(length)]


PREFIX = prompt_of(-1, 96)  # six pages


def cached_after(
    harness: Harness, first: Sequence[int], keep_tokens: int, flood: int, *, flood_keeps: int = 0
) -> int:
    """How much of `first` is in the cache after a flood of prompts that are seen once."""
    hinted = request([*first, 5], 2, keep_tokens=keep_tokens)
    again = request([*first, 6], 2)
    harness.run([hinted])
    for seed in range(flood):
        harness.run([request(prompt_of(seed, 70), 4, keep_tokens=flood_keeps)])
    harness.run([again])
    for done in (hinted, again):
        assert harness.tokens[done.key] == expected(done)
    return harness.cached[again.key]


@pytest.mark.parametrize(("keep_tokens", "found"), [(0, 0), (96, 96), (90, 80), (15, 0)])
def test_only_a_prefix_with_a_hint_survives_a_flood(keep_tokens: int, found: int) -> None:
    harness = Harness(num_pages=NUM_PAGES)
    assert cached_after(harness, PREFIX, keep_tokens, flood=30) == found


def test_without_a_flood_the_hint_makes_no_difference() -> None:
    for keep_tokens in (0, 96):
        assert cached_after(Harness(num_pages=NUM_PAGES), PREFIX, keep_tokens, flood=0) == 96


def test_a_flood_of_kept_prompts_ends_a_kept_prefix() -> None:
    harness = Harness(num_pages=NUM_PAGES)
    assert cached_after(harness, PREFIX, 96, flood=30, flood_keeps=70) == 0


def test_kept_prefixes_leave_the_other_half_to_everybody() -> None:
    harness = Harness(num_pages=NUM_PAGES)
    for seed in range(10):
        harness.run([request(prompt_of(seed, 90), 2, keep_tokens=90)])
    plain = prompt_of(99, 100)
    harness.run([request(plain, 2)])
    again = request(plain, 2)
    harness.run([again])
    assert harness.cached[again.key] == 96


def test_a_prompt_that_needs_every_page_gets_them() -> None:
    harness = Harness(num_pages=NUM_PAGES)
    harness.run([request(PREFIX, 2, keep_tokens=96)])
    whole = request(prompt_of(1, 300), 10)
    harness.run([whole])
    assert harness.tokens[whole.key] == expected(whole)


@pytest.mark.parametrize("seed", range(4))
def test_hints_change_no_token_and_everything_is_given_back(seed: int) -> None:
    harness = Harness(num_pages=NUM_PAGES)
    draw = random.Random(seed)
    asked = []
    for place in range(40):
        prompt = PREFIX[: draw.choice([0, 16, 40, 96])] + prompt_of(place, draw.randrange(1, 80))
        keep_tokens = draw.choice([0, 0, 32, len(prompt)])
        asked.append(request(prompt, 30, keep_tokens=min(keep_tokens, len(prompt))))

    def cancel_one() -> None:
        if draw.random() < 0.3:
            harness.loop.handle(draw.choice(asked).key)

    harness.run(asked, cancel_one)
    for done in asked:
        tokens = harness.tokens.get(done.key, [])
        assert tokens == expected(done)[: len(tokens)]
    assert harness.loop.scheduler.preemptions > 0
    assert harness.loop.pool._kept
