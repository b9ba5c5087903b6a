"""Looks at gradients cost no more than their share of the time."""

from __future__ import annotations

import time

_SHARE = 0.0025  # of the time since the first one


class Budget:
    def __init__(self) -> None:
        self.first = self.next = 0.0  # as time.perf_counter() says it
        self._spent = 0.0
        self.until = 0  # steps are looked at whatever that costs

    def begins(self, now: float) -> None:
        self.first = self.first or now

    def spends(self, began: float) -> None:
        """Since `began`: puts the next look off."""
        ended = time.perf_counter()
        self._spent += ended - began
        self.next = max(ended, self.first + self._spent / _SHARE)

    def is_due(self) -> bool:
        return time.perf_counter() >= self.next
