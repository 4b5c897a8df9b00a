"""What became of requests, and how long their first text took."""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import dataclass, field

WINDOW_SECONDS = 60.0
CAPACITY = 4096


class FirstResponse:
    """Times from admission to the first text, over the last minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=CAPACITY)

    def record(self, seconds: float) -> None:
        self._samples.append((time.monotonic(), seconds))

    def recent(self) -> list[float]:
        """The seconds of the samples inside the window."""
        oldest = time.monotonic() - WINDOW_SECONDS
        while self._samples and self._samples[0][0] < oldest:
            self._samples.popleft()
        return [seconds for _, seconds in self._samples]

    def median(self) -> float | None:
        samples = self.recent()
        return statistics.median(samples) if samples else None


@dataclass(slots=True)
class Counters:
    """Choices that were admitted; each ends as exactly one of completed, failed, cancelled.

    `malformed_calls` began like calls and were returned as text. `dropped_reasoning` are sealed
    thoughts that clients sent back, and that were left out because they did not open.
    """

    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    refused: int = 0
    malformed_calls: int = 0
    dropped_reasoning: int = 0
    first_response: FirstResponse = field(default_factory=FirstResponse)
