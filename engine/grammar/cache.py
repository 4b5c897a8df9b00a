"""What was made of a text before, bounded by size: clients choose how long their texts are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import Generic, TypeVar

_Value = TypeVar("_Value")
_ENTRY = 128  # what an entry takes beside its value


class Cache(Generic[_Value]):
    """Values by the digests of texts; the least recently used go first. Thread-safe.

    All values together have at most `most` of the size that `get` is told, and one at most a
    quarter of that: a larger one is not kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[bytes, tuple[_Value, int]] = OrderedDict()
        self._total = 0
        self._lock = Lock()

    @property
    def total(self) -> int:
        """The size of all that is kept."""
        return self._total

    def get(self, text: str, make: Callable[[], _Value], size: Callable[[_Value], int]) -> _Value:
        """What is known for a text, else made now."""
        key = sha256(text.encode(errors="surrogatepass")).digest()
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key][0]
        value = make()
        self._keep(key, value, size(value) + _ENTRY)
        return value

    def _keep(self, key: bytes, value: _Value, size: int) -> None:
        with self._lock:
            if size > self._most // 4 or key in self._known:
                return
            self._known[key] = value, size
            self._total += size
            while self._total > self._most:
                self._total -= self._known.popitem(last=False)[1][1]
