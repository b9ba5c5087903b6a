"""Losses and a gradient on a device: read when they have arrived, without waiting for it.

Each is copied into pinned host memory, behind the work that makes it. Until it arrives a slot holds a NaN
that no device makes. What is found so is some steps old: the weights it came from are gone, only its step is
told.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any, Optional

import torch

from trapline._watch.suspect import modes

_SLOTS = 64
_EMPTY = 0x7FC5A5A5  # a NaN's bits: devices make 0x7FC00000 or 0x7FFFFFFF
_EVERY = 32  # steps, from the first, that are looked at whatever it costs
_SHARE = 0.005  # of the time since then
_MAX_WAITS = 8  # looks at the weights, which wait for the device: only after a number that was not finite
_GRACE = 0.1  # seconds at the end of the program

_is_capturing = getattr(torch.cuda, "is_current_stream_capturing", lambda: False)


class Late:
    def __init__(self) -> None:
        self._host: Any = None
        self._slots: list[Any] = []
        self._bits: Any = None
        self._used = 0
        self._pending: deque[tuple[int, int, str]] = deque()  # slot, step, "loss" or "gradient"
        self._spent, self._began, self._next = 0.0, 0.0, 0.0
        self._fails = False
        self._waits = 0
        self.step = 0  # whose loss was looked at last

    def sees(self, value: Any, step: int, kind: str) -> None:
        """`value` of one element, on a device, of the step that is being made."""
        began = time.perf_counter()
        if began >= self._next:
            self._fetches(value, step, kind, began)

    def sees_gradient(self, gradient: Any, step: int) -> None:
        """In a step whose loss was looked at, one that everything spreads to: its largest magnitude, which
        a NaN is, too.
        """
        if self.step == step and type(gradient) is torch.Tensor and gradient.layout is torch.strided:
            began = time.perf_counter()
            with torch.no_grad():
                self._fetches(torch.linalg.vector_norm(gradient, math.inf), step, "gradient", began)

    def _fetches(self, value: Any, step: int, kind: str, began: float) -> None:
        if self._fails or len(self._pending) == _SLOTS:
            return
        if not value.is_cuda or value.is_complex() or _is_capturing() or modes():
            return
        if not self._slots and not self._prepares():
            return
        slot = self._used % _SLOTS
        self._bits[slot] = _EMPTY
        self._slots[slot].copy_(value.detach().reshape(()), non_blocking=True)
        self._used += 1
        self._pending.append((slot, step, kind))
        self.step = step
        self._spends(began)

    def next_look(self) -> Optional[float]:
        """None: something is on its way, or every step is looked at."""
        if self._fails:
            return math.inf
        return self._next if not self._pending and self._next > time.perf_counter() else None

    def arrived(self) -> list[tuple[int, str, float]]:
        """Step, kind and number of what has arrived since, in the order it was made."""
        out = []
        while self._pending:
            slot, step, kind = self._pending[0]
            if self._bits[slot].item() == _EMPTY:
                break
            self._pending.popleft()
            out.append((step, kind, self._slots[slot].item()))
        return out

    def last(self) -> list[tuple[int, str, float]]:
        """The same at the end of the program, which may come before the device's last work."""
        out = self.arrived()
        deadline = time.perf_counter() + _GRACE
        while self._pending and time.perf_counter() < deadline:
            time.sleep(0.001)
            out += self.arrived()
        return out

    def forgets(self) -> None:
        """What was on its way before a fork is the parent's."""
        self._pending.clear()
        self._fails = True

    def hold_nan(self, parameters: list[Any]) -> Optional[bool]:
        """Whether any of the weights is NaN: waits for the device. None: not to be known."""
        known = [p.detach() for p in parameters if p.is_cuda and p.layout is torch.strided and p.numel()]
        if not known or self._waits == _MAX_WAITS or _is_capturing() or modes():
            return None
        self._waits += 1
        with torch.no_grad():
            return any(bool(norm.isnan()) for norm in torch._foreach_norm(known))

    def _prepares(self) -> bool:
        try:
            self._host = torch.zeros(_SLOTS, dtype=torch.float32, pin_memory=True)
            self._bits = self._host.view(torch.int32)
            self._slots = list(self._host.unbind())
        except RuntimeError:  # no memory can be pinned
            self._fails = True
        return not self._fails

    def _spends(self, began: float) -> None:
        ended = time.perf_counter()
        self._began = self._began or began
        self._spent += ended - began
        if self.step >= _EVERY:
            self._next = max(ended, self._began + self._spent / _SHARE)
