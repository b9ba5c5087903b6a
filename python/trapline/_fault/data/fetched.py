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
    the generators of all, or by those that a data set and what lies below it hold. So is what the data set
    binds to itself: a file that it opens at its first sample is to be opened in each worker, and not to come
    there by the next fork."""

    def __init__(self, data_set: Any = None) -> None:
        self._bound = [(held, dict(held)) for held in _held(data_set)]
        own = [value for _, members in self._bound for value in members.values()]
        self._own = [(one, *kind) for one in own if (kind := _kept_by(one)) is not None]

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
        for held, before in self._bound:
            for name in [name for name in held if name not in before]:
                del held[name]
            held.update(before)


def _held(data_set: Any) -> list[dict[str, Any]]:
    """What the data set has bound to itself, and those below it."""
    found: list[dict[str, Any]] = []
    for _ in range(_DEPTH):
        found.append(scope.members(data_set))
        data_set = found[-1].get("dataset")  # of a Subset, and of the program's own views
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
