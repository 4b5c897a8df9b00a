"""Stop strings in text that arrives in pieces (Aho and Corasick, 1975)."""

from __future__ import annotations

import re
from collections import deque


class StopMatcher:
    """Passes text on until a stop string is complete; holds back what may still become one.

    The stop that completes first ends the text; of those that complete at the same character, the
    one that starts first. Neither how the text is cut into pieces nor the order of the stops
    matters. Time is linear in the text and in the stops. An empty stop string never matches.
    """

    def __init__(self, strings: tuple[str, ...]) -> None:
        # Node 0 is the root; a node is a prefix of a stop: owner[node][:depth[node]].
        self._edges: list[dict[str, int]] = [{}]
        self._owner = [""]
        self._depth = [0]
        self._match: list[str | None] = [None]
        for string in filter(None, strings):
            self._insert(string)
        self._fail = self._link()
        first = "".join(map(re.escape, self._edges[0]))
        self._first = re.compile(f"[{first}]" if first else r"(?!)")
        self._node = 0
        self._found: str | None = None

    def _insert(self, string: str) -> None:
        node = 0
        for depth, char in enumerate(string, start=1):
            if char not in self._edges[node]:
                self._edges[node][char] = len(self._edges)
                self._edges.append({})
                self._owner.append(string)
                self._depth.append(depth)
                self._match.append(None)
            node = self._edges[node][char]
        self._match[node] = string

    def _link(self) -> list[int]:
        """For each node, the longest proper suffix of it that is a node; breadth first."""
        self._fail = [0] * len(self._edges)
        queue = deque(self._edges[0].values())
        while queue:
            node = queue.popleft()
            for char, child in self._edges[node].items():
                self._fail[child] = self._step(self._fail[node], char)
                self._match[child] = self._match[child] or self._match[self._fail[child]]
                queue.append(child)
        return self._fail

    def _step(self, node: int, char: str) -> int:
        while node and char not in self._edges[node]:
            node = self._fail[node]
        return self._edges[node].get(char, 0)

    def feed(self, text: str) -> tuple[str, str | None]:
        """Text that is safe to show, and the stop that ended it. Nothing follows a stop."""
        if self._found is not None:
            return "", self._found
        node = self._node
        at = 0
        while at < len(text):
            if not node:
                candidate = self._first.search(text, at)
                if candidate is None:
                    break
                at = candidate.start()
            node = self._step(node, text[at])
            at += 1
            self._found = self._match[node]
            if self._found is not None:
                return self._release(text, at, len(self._found), 0), self._found
        return self._release(text, len(text), self._depth[node], node), None

    def _release(self, text: str, end: int, held: int, node: int) -> str:
        """What was held back and text[:end], without the last `held` characters; go to `node`."""
        before = self._owner[self._node][: self._depth[self._node]]
        self._node = node
        free = len(before) + end - held
        return before[:free] + text[: max(0, free - len(before))]

    def flush(self) -> str:
        """What is still held back, when the text ends here."""
        return self._release("", 0, 0, 0)
