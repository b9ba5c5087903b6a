"""Counts the steps of the training: those of the optimizer that steps most."""

from __future__ import annotations

import inspect
import weakref
from typing import Any, Callable

_MAX_TAKEN_OVER = 8  # as two that take turns would for ever
_NEAR = 6  # frames from a hook to the step that called it


class Tally:
    """Of one optimizer: its steps, and when it took the last one."""

    __slots__ = ("before", "count", "turn")

    def __init__(self, before: int = 0) -> None:
        self.count = self.before = before
        self.turn = 0


class Steps:
    def __init__(self) -> None:
        self.taken = 0
        self.turn = 0  # steps of all optimizers
        self.tallies: weakref.WeakKeyDictionary[Any, Tally] = weakref.WeakKeyDictionary()
        self.only: Callable[[], Any] = _nobody  # the optimizer, where there is one
        self._tally = Tally()  # its own
        self._taken_over = 0
        self.nest = False  # some optimizer's step may call that of its base class, which has hooks as well

    def is_new(self, optimizer: Any) -> bool:
        """Was not known until now."""
        if optimizer is self.only() or optimizer in self.tallies:
            return False
        self._takes_over(optimizer)
        # Where no other is left (a training that goes on from a checkpoint), it goes on counting.
        self._tally = self.tallies[optimizer] = Tally(0 if len(self.tallies) else self.taken)
        self.only = weakref.ref(optimizer) if len(self.tallies) == 1 else _nobody
        self.nest = any(map(_may_nest, list(self.tallies)))
        return True

    def _takes_over(self, optimizer: Any) -> None:
        """From another one of the same weights, which the program still has: a search for a rate before the
        training, a stage after another. One that steps again later takes over itself, so many times; one
        that steps inside of another (sharpness-aware minimization) does not."""
        mine = _weights_of(optimizer)
        for other, tally in list(self.tallies.items()) if self._taken_over < _MAX_TAKEN_OVER else ():
            if tally.count - tally.before > 1 and mine and mine == _weights_of(other):
                self._taken_over += 1
                del self.tallies[other]

    def counts(self, optimizer: Any) -> None:
        tally = self._tally if optimizer is self.only() else self.tallies[optimizer]
        self.turn += 1
        tally.turn = self.turn
        tally.count += 1
        self.taken = max(self.taken, tally.count)

    def next_of(self, optimizer: Any) -> int:
        """The number of the step that this one is about to take."""
        tally = self.tallies.get(optimizer)
        return max(self.taken, 1 if tally is None else tally.count + 1)

    def number_of(self, optimizer: Any, coming: int) -> int:
        """Of the step that it has just taken. A new optimizer's first may be the one that was coming, where a
        training goes on with it.
        """
        tally = self.tallies[optimizer]
        return max(self.taken, coming) if tally.count == tally.before + 1 else self.taken

    def adds(self, count: int) -> None:
        """Steps of the only optimizer."""
        self.turn += count
        self._tally.turn = self.turn
        self._tally.count += count
        self.taken = max(self.taken, self._tally.count)

    def at(self, backwards: int) -> dict[str, Any]:
        """The step that is being made; without an optimizer the number of the backward pass."""
        if self.tallies or self.taken:
            return {"step": self.coming(), "unit": "step", **self._several()}
        return {"step": backwards, "unit": "backward pass"}

    def _several(self) -> dict[str, Any]:
        """`optimizers`: how many have stepped; `uneven`: one of them more often than another."""
        counts = [tally.count for tally in self.tallies.values() if tally.count]
        if len(counts) < 2:
            return {}
        return {"optimizers": len(counts), **({"uneven": True} if max(counts) - min(counts) > 1 else {})}

    def coming(self) -> int:
        """The number of the step that is being made: by the optimizer that has not stepped for longest."""
        if not self.tallies:
            return self.taken + 1
        following = min(self.tallies.values(), key=lambda tally: tally.turn)
        return max(self.taken, following.count + 1)


def _weights_of(optimizer: Any) -> set[int]:
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}


def _may_nest(optimizer: Any) -> bool:
    """PyTorch puts hooks around `step` in the class of each optimizer that is made, also an inherited one."""
    steps = (vars(base).get("step") for base in type(optimizer).__mro__)
    return len({inspect.unwrap(step) for step in steps if hasattr(step, "hooked")}) > 1


def is_inner(optimizer: Any, frame: Any) -> bool:
    """The step around which this frame runs was called by another one of the optimizer."""
    for _ in range(_NEAR):
        frame = frame and frame.f_back
        if frame is not None and frame.f_code.co_name == "step" and frame.f_locals.get("self") is optimizer:
            return True
    return False


def _nobody() -> None:
    return None
