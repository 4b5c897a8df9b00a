"""The prefix index: which page holds which 16 tokens after which prefix."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

PAGE_TOKENS = 16


def root_hash(salt: str) -> bytes:
    """The parent of a first page; the salt (a tenant) keeps caches of different owners apart."""
    return hashlib.blake2b(salt.encode(), digest_size=16).digest()


def page_hash(parent: bytes, token_ids: Sequence[int]) -> bytes:
    """Identify a full page by its 16 ids and everything before them."""
    return hashlib.blake2b(parent + array("q", token_ids).tobytes(), digest_size=16).digest()


class PrefixIndex:
    """A two-way map of chained page hashes and pages; these pages are never written again."""

    def __init__(self) -> None:
        self._pages: dict[bytes, int] = {}
        self._hashes: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, page: int) -> bool:
        return page in self._hashes

    def match(self, hashes: Sequence[bytes]) -> list[int]:
        """The pages of the longest known run of `hashes` from the first on."""
        found: list[int] = []
        for key in hashes:
            page = self._pages.get(key)
            if page is None:
                break
            found.append(page)
        return found

    def publish(self, page: int, key: bytes) -> None:
        """Make a page whose 16 tokens are computed findable; the first page of a key stays."""
        if key not in self._pages and page not in self._hashes:
            self._pages[key] = page
            self._hashes[page] = key

    def forget(self, page: int) -> None:
        """Drop a page whose contents are about to be overwritten."""
        key = self._hashes.pop(page, None)
        if key is not None:
            del self._pages[key]

    def check(self, num_pages: int) -> None:
        """Raise RuntimeError unless the two maps mirror each other."""
        if {page: key for key, page in self._pages.items()} != self._hashes:
            raise RuntimeError("the prefix index is not one to one")
        if any(not 0 < page < num_pages for page in self._hashes):
            raise RuntimeError("the prefix index names a page outside the pool")
