"""KV pages: who owns which, which are free, and which free ones still hold a known prefix."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from engine.core.prefix import PrefixIndex


class PagePool:
    """Pages 1..num_pages-1 with reference counts; page 0 pads and is never handed out.

    A page without owners is free. A free page may keep its contents under a hash of the prefix
    index: it is then reused either by a match or, in least-recently-used order, by eviction.
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

    @property
    def num_usable(self) -> int:
        """Pages that sequences can ever own."""
        return self.num_pages - 1

    @property
    def num_free(self) -> int:
        """Pages without an owner, cached ones included."""
        return len(self._free)

    @property
    def num_cached(self) -> int:
        """Pages that a prefix match can find, owned or free."""
        return len(self.index)

    def is_free(self, page: int) -> bool:
        return self._owners[page] == 0

    def allocate(self) -> int | None:
        """Take the free page that was used longest ago, forgetting its contents; None when none."""
        if not self._free:
            return None
        page, _ = self._free.popitem(last=False)
        self.index.forget(page)
        self._owners[page] = 1
        return page

    def retain(self, pages: Iterable[int]) -> None:
        """Add an owner to pages that a prefix match found."""
        for page in pages:
            if self._owners[page] == 0:
                del self._free[page]
            self._owners[page] += 1

    def release(self, pages: Sequence[int]) -> None:
        """Drop one owner of each page; the deepest pages of a prefix are evicted first."""
        for page in reversed(pages):
            self._owners[page] -= 1
            if self._owners[page] == 0:
                self._free[page] = None
                if page not in self.index:
                    self._free.move_to_end(page, last=False)

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
        if in_use + len(self._free) != self.num_usable:
            raise RuntimeError(
                f"{in_use} owned + {len(self._free)} free of {self.num_usable} pages"
            )
        if any(counts[page] for page in self._free):
            raise RuntimeError("an owned page is on the free list")
        self.index.check(self.num_pages)
