"""KV pages: who owns which, which are free, and which free ones still hold a known prefix."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from engine.core.prefix import PrefixIndex


class PagePool:
    """Pages 1..num_pages-1 with reference counts; page 0 pads and is never handed out.

    A page without owners is free. A free page may keep its contents under a hash of the prefix
    index: it is then reused either by a match or, in least-recently-used order, by eviction.

    A client may want a prefix to be kept: its pages are evicted behind all others. At most half of
    the pool is protected so while it is free. Past that, the page that was used longest ago is one
    like others again.
    """

    def __init__(self, num_pages: int, index: PrefixIndex) -> None:
        if num_pages < 2:
            raise ValueError("a pool needs at least one page besides the padding page")
        self.num_pages = num_pages
        self.index = index
        self._owners = [0] * num_pages
        self._free: OrderedDict[int, None] = OrderedDict(
            (page, None) for page in range(1, num_pages)
        )
        self._kept: set[int] = set()
        self._kept_free: OrderedDict[int, None] = OrderedDict()
        self._most_kept_free = self.num_usable // 2

    @property
    def num_usable(self) -> int:
        """Pages that sequences can ever own."""
        return self.num_pages - 1

    @property
    def num_free(self) -> int:
        """Pages without an owner, cached ones included."""
        return len(self._free) + len(self._kept_free)

    @property
    def num_cached(self) -> int:
        """Pages that a prefix match can find, owned or free."""
        return len(self.index)

    def is_free(self, page: int) -> bool:
        return self._owners[page] == 0

    def allocate(self) -> int | None:
        """Take the free page that was used longest ago, forgetting its contents; None when none.

        One that is to be kept is taken only where there is no other.
        """
        free = self._free or self._kept_free
        if not free:
            return None
        page, _ = free.popitem(last=False)
        self._kept.discard(page)
        self.index.forget(page)
        self._owners[page] = 1
        return page

    def retain(self, pages: Iterable[int]) -> None:
        """Add an owner to pages that a prefix match found."""
        for page in pages:
            if self._owners[page] == 0:
                del self._list_of(page)[page]
            self._owners[page] += 1

    def release(self, pages: Sequence[int], kept: int = 0) -> None:
        """Drop one owner of each page; the deepest pages of a prefix are evicted first.

        Those of the first `kept` pages that a match can find are to be kept, whoever owns them.
        """
        self._kept.update(page for page in pages[:kept] if page in self.index)
        for page in reversed(pages):
            self._owners[page] -= 1
            if self._owners[page] == 0:
                self._list_of(page)[page] = None
                if page not in self.index:
                    self._free.move_to_end(page, last=False)
        while len(self._kept_free) > self._most_kept_free:
            page, _ = self._kept_free.popitem(last=False)
            self._kept.remove(page)
            self._free[page] = None

    def _list_of(self, page: int) -> OrderedDict[int, None]:
        """Where a page is while it is free."""
        return self._kept_free if page in self._kept else self._free

    def check(self, owned: Iterable[Sequence[int]]) -> None:
        """Raise RuntimeError unless free + owned = pool and every count matches its owners."""
        counts = [0] * self.num_pages
        for pages in owned:
            for page in pages:
                counts[page] += 1
        if counts != self._owners:
            wrong = [page for page in range(self.num_pages) if counts[page] != self._owners[page]]
            raise RuntimeError(f"page owners do not match: pages {wrong[:8]}")
        in_use = sum(1 for count in counts[1:] if count)
        if in_use + self.num_free != self.num_usable:
            raise RuntimeError(f"{in_use} owned + {self.num_free} free of {self.num_usable} pages")
        if any(counts[page] for free in (self._free, self._kept_free) for page in free):
            raise RuntimeError("an owned page is on the free list")
        self._check_kept()
        self.index.check(self.num_pages)

    def _check_kept(self) -> None:
        if not self._kept.isdisjoint(self._free) or not self._kept.issuperset(self._kept_free):
            raise RuntimeError("a free page is on the wrong list")
        if any(page not in self.index for page in self._kept):
            raise RuntimeError("a page is kept that no match can find")
        if len(self._kept_free) > self._most_kept_free:
            raise RuntimeError(f"{len(self._kept_free)} free pages are kept")
