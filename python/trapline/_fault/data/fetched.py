"""Samples that the data set is asked for again."""

from __future__ import annotations

import random
import sys
from typing import Any, Callable, Optional

from trapline._fault.program import scope

_DEPTH = 4
MAX_FETCHED = 256


def fetch(data_set: Any, index: Any) -> Any:
    try:
        return data_set[index]
    except Exception:
        return None


class RandomState:
    """Puts the random generators back: asking the data set must not change what the program draws next, by
    the generators of all, or by those that a data set and what lies below it hold."""

    def __init__(self, data_set: Any = None) -> None:
        self._own = [(one, *kind) for one in _members(data_set) if (kind := _kept_by(one)) is not None]

    def __enter__(self) -> RandomState:
        import torch

        self._python = random.getstate()
        self._torch = torch.get_rng_state()
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy is not None else None
        self._states = [get(one) for one, get, _ in self._own]
        return self

    def seed(self, seed: int) -> None:
        import torch

        random.seed(seed)
        torch.random.default_generator.manual_seed(seed)
        if self._numpy is not None:
            sys.modules["numpy"].random.seed(seed)

    def __exit__(self, *_: object) -> None:
        import torch

        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        for (one, _, put), state in zip(self._own, self._states):
            put(one, state)


def _members(data_set: Any) -> list[Any]:
    found: list[Any] = []
    for _ in range(_DEPTH):
        held = scope.members(data_set)
        found += list(held.values())
        data_set = held.get("dataset")  # of a Subset, and of the program's own views
    return found


def _kept_by(value: Any) -> Optional[tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]]:
    """How the state of a generator is read, and put back; None for anything else."""
    kind = f"{type(value).__module__}.{type(value).__name__}"
    if kind == "random.Random":
        return random.Random.getstate, random.Random.setstate
    if kind == "torch._C.Generator":
        return lambda one: one.get_state(), lambda one, state: one.set_state(state)
    if kind == "numpy.random._generator.Generator":
        return lambda one: one.bit_generator.state, lambda one, state: setattr(
            one.bit_generator, "state", state
        )
    if kind == "numpy.random.mtrand.RandomState":
        return lambda one: one.get_state(), lambda one, state: one.set_state(state)
    return None
