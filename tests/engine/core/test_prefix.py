"""Chained hashes and the index that finds pages by them."""

from __future__ import annotations

import pytest

from engine.core.prefix import PrefixIndex, page_hash, root_hash

IDS = tuple(range(16))


def test_a_hash_depends_on_every_id_its_place_and_everything_before() -> None:
    root = root_hash("")
    variants = [
        page_hash(root, IDS),
        page_hash(root, IDS[::-1]),
        page_hash(root, (*IDS[:15], 99)),
        page_hash(root_hash("tenant"), IDS),
        page_hash(page_hash(root, IDS), IDS),
    ]
    assert len(set(variants)) == len(variants)
    assert page_hash(root, list(IDS)) == page_hash(root, IDS)


def test_a_match_is_the_longest_run_from_the_start() -> None:
    index = PrefixIndex()
    for page, key in ((3, b"a"), (1, b"b"), (2, b"d")):
        index.publish(page, key)
    assert index.match([b"a", b"b", b"c", b"d"]) == [3, 1]
    assert index.match([b"b"]) == [1]
    assert index.match([b"x", b"a"]) == []


def test_the_first_page_of_a_key_stays_and_a_page_has_one_key() -> None:
    index = PrefixIndex()
    index.publish(1, b"a")
    index.publish(2, b"a")
    index.publish(1, b"b")
    assert (index.match([b"a"]), index.match([b"b"]), len(index)) == ([1], [], 1)
    assert 1 in index and 2 not in index


def test_a_forgotten_page_is_not_found() -> None:
    index = PrefixIndex()
    index.publish(1, b"a")
    index.forget(1)
    index.forget(1)
    assert index.match([b"a"]) == [] and len(index) == 0


def test_the_check_finds_a_broken_index() -> None:
    index = PrefixIndex()
    index.publish(1, b"a")
    index.check(2)
    with pytest.raises(RuntimeError, match="outside"):
        index.check(1)
    index._hashes[5] = b"z"
    with pytest.raises(RuntimeError, match="one to one"):
        index.check(9)
