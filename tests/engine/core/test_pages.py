"""The page pool: owners, eviction order, and a check that finds what is wrong."""

from __future__ import annotations

import pytest

from engine.core.pages import PagePool
from engine.core.prefix import PrefixIndex


def pool(num_pages: int = 6) -> PagePool:
    return PagePool(num_pages, PrefixIndex())


def taken(pages: PagePool, count: int) -> list[int]:
    found = [pages.allocate() for _ in range(count)]
    assert None not in found
    return [page for page in found if page is not None]


def test_every_page_but_the_padding_can_be_owned_once() -> None:
    pages = pool()
    assert sorted(taken(pages, 5)) == [1, 2, 3, 4, 5]
    assert pages.allocate() is None
    assert (pages.num_usable, pages.num_free) == (5, 0)


def test_a_page_is_free_when_its_last_owner_leaves() -> None:
    pages = pool()
    [page] = taken(pages, 1)
    pages.retain([page])
    pages.release([page])
    assert not pages.is_free(page)
    pages.release([page])
    assert pages.is_free(page) and pages.num_free == 5


def test_pages_without_contents_go_first_then_the_longest_unused_deepest_first() -> None:
    pages = pool()
    old, new = taken(pages, 2), taken(pages, 2)
    for place, page in enumerate([*old, *new]):
        pages.index.publish(page, bytes([place]))
    pages.release(old)
    pages.release(new)
    assert taken(pages, 5) == [5, old[1], old[0], new[1], new[0]]
    assert pages.num_cached == 0  # their contents are forgotten


def test_a_matched_free_page_is_kept_from_eviction() -> None:
    pages = pool()
    [page] = taken(pages, 1)
    pages.index.publish(page, b"a")
    pages.release([page])
    pages.retain(pages.index.match([b"a"]))
    assert page not in taken(pages, 4)
    assert pages.allocate() is None and pages.num_cached == 1


@pytest.mark.parametrize("owned", [[[1, 2]], [[1], [1]], [[1, 1]], [[2]], []], ids=str)
def test_the_check_finds_owners_that_do_not_match(owned: list[list[int]]) -> None:
    pages = pool()
    assert taken(pages, 1) == [1]
    pages.check([[1]])
    with pytest.raises(RuntimeError):
        pages.check(owned)


def test_the_check_finds_a_lost_page() -> None:
    pages = pool()
    del pages._free[3]
    with pytest.raises(RuntimeError, match="4 free of 5"):
        pages.check([])


def test_a_pool_needs_a_page() -> None:
    with pytest.raises(ValueError, match="at least one page"):
        pool(1)
