"""Which sequences run: budgets, order, admission, preemption. Steps are advanced by hand."""

from __future__ import annotations

from engine.core.pages import PagePool
from engine.core.prefix import PrefixIndex
from engine.core.scheduler import Scheduler, Slice
from engine.core.sequence import Sequence
from tests.engine.core.sequences import request


def scheduler(
    num_pages: int = 64, max_sequences: int = 4, budget: int = 64, chunk: int = 32
) -> Scheduler:
    return Scheduler(PagePool(num_pages, PrefixIndex()), max_sequences, budget, chunk)


def add(work: Scheduler, *lengths: int) -> list[Sequence]:
    """Sequences whose prompts share nothing."""
    made = [Sequence(request([1000 * place + n for n in range(length)], 100))
            for place, length in enumerate(lengths, start=1)]  # fmt: skip
    for sequence in made:
        work.add(sequence)
    return made


def step(work: Scheduler) -> list[Slice]:
    slices, exhausted = work.schedule()
    assert exhausted == []
    for piece in slices:
        work.advance(piece.sequence, piece.count)
        if piece.samples:
            piece.sequence.append(7)
    work.check()
    return slices


def counts(slices: list[Slice]) -> list[tuple[int, bool]]:
    return [(piece.count, piece.samples) for piece in slices]


def test_a_long_prompt_goes_in_chunks_and_samples_at_its_end() -> None:
    work = scheduler()
    add(work, 70)
    assert [counts(step(work)) for _ in range(4)] == [
        [(32, False)], [(32, False)], [(6, True)], [(1, True)],
    ]  # fmt: skip


def test_decodes_come_before_prefill_within_the_budget() -> None:
    work = scheduler(budget=10)
    first, second = add(work, 3, 30)
    assert counts(step(work)) == [(3, True), (7, False)]
    slices = step(work)
    assert [piece.sequence for piece in slices] == [first, second]
    assert counts(slices) == [(1, True), (9, False)]


def test_sequences_start_in_order_of_arrival_up_to_the_limit() -> None:
    work = scheduler(max_sequences=2)
    first, second, third = add(work, 2, 2, 2)
    assert [piece.sequence for piece in step(work)] == [first, second]
    work.finish(first)
    assert {piece.sequence for piece in step(work)} == {second, third}


def test_the_budget_always_covers_one_token_for_each_sequence() -> None:
    work = scheduler(max_sequences=4, budget=1)
    add(work, 1, 1, 1, 1)
    for _ in range(3):
        assert len(step(work)) == 4


def test_a_prompt_waits_until_all_of_it_finds_pages() -> None:
    work = scheduler(num_pages=5)  # 64 tokens
    first, second = add(work, 40, 30)
    assert [piece.sequence for piece in step(work)] == [first]
    work.finish(first)
    assert [piece.sequence for piece in step(work)] == [second]


def test_the_newest_gives_its_pages_back_and_waits_at_the_head() -> None:
    work = scheduler(num_pages=4)  # 48 tokens
    old, new, later = add(work, 15, 14, 14)
    step(work)
    assert list(work.running) == [old, new]  # a third would leave no page to grow
    while not work.preemptions:
        step(work)
    assert list(work.running) == [old]
    assert list(work.waiting) == [new, later]
    assert (new.pages, new.computed) == ([], 0)
    assert new.output_len > 0  # what was generated is kept


def test_a_sequence_that_can_never_fit_is_given_up() -> None:
    work = scheduler(num_pages=3)
    [big] = add(work, 40)
    slices, exhausted = work.schedule()
    assert (slices, exhausted, work.has_work) == ([], [big], False)
    work.check()


def test_finishing_twice_or_while_waiting_is_safe() -> None:
    work = scheduler(max_sequences=1)
    running, waiting = add(work, 20, 20)
    step(work)
    for sequence in (waiting, running, running, waiting):
        work.finish(sequence)
    work.check()
    assert not work.has_work and work.pool.num_free == work.pool.num_usable
