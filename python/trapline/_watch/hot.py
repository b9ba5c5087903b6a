"""What `--watch light` does in each step, in C where that is to be had (``src/kernel/watch.cpp``).

In a step that is as the one before it (one optimizer, one loss, not looked at) the loss is read and the step
counted without Python. Whatever else happens ends that: what was counted is drained, and Python goes on.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from trapline._library import kernel
from trapline._library.say import debug
from trapline._watch.again import is_plain
from trapline._watch.suspect import are_finite, is_plain_class, modes, parameters_of, values

# Of any device: takes no argument, and costs a third of the question about one.
any_autocast = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)


def gate_type() -> Any:
    """A base class whose instances are called in C; None: it is not to be had."""
    try:
        return kernel.load().gate_type()
    except Exception as error:
        debug(f"watch: gates in Python: {error!r}")
        return None


NOWHERE = (-1, 0)
MAX_PROBE = 4096  # elements: kMaxProbe in src/kernel/view.cpp


class Hot:
    """`keep`, `passes`, `stepped`: False where Python has to see to it."""

    def __init__(self) -> None:
        self.armed = False
        self.place = NOWHERE  # of the weight that is looked at while it is armed
        self._c: Any = None
        try:
            self._c = kernel.load()
        except Exception as error:  # ImportError; a libtrapline of another version
            debug(f"watch: all in Python: {error!r}")
        self.keep = _never if self._c is None else self._c.keep
        self.passes = _never if self._c is None else self._c.passes
        # After `backward` of a loss that has passed.
        self.arrived = _always if self._c is None else self._c.arrived
        self.stepped = _never if self._c is None else self._c.stepped
        self.drain()

    def arm(self, optimizer: Any, following: float, on_device: bool = False) -> None:
        """Until `following`, as ``time.perf_counter`` says it, no step is looked at. On a device the losses
        of these steps are not read either.
        """
        if self._c is not None:
            of = weakref.ref(optimizer)
            self.place = NOWHERE if on_device else place_of_probe(optimizer)
            self._c.arm(
                of,
                self.place,
                torch.is_grad_enabled,
                any_autocast,
                following,
                on_device,
                classes_of(optimizer) if is_own(optimizer) else None,
            )
            self.armed = True

    def drain(self) -> Any:
        """The steps since, the losses of the last of them; of the step being made its loss, calls and
        backward passes.
        """
        self.armed = False
        return (0, [], None, [], 0) if self._c is None else self._c.drain()


def is_own(optimizer: Any) -> bool:
    """The program's or a library's, and none of PyTorch's: it may divide by what is 0 in one weight alone."""
    return not type(optimizer).__module__.startswith("torch.optim")


def classes_of(optimizer: Any) -> tuple[type, ...]:
    """Those of its parameters that hold their own numbers."""
    return tuple({type(one) for one in parameters_of(optimizer) if is_plain_class(type(one))})


def place_of_probe(optimizer: Any) -> tuple[int, int]:
    """The group, and the place in it, of a parameter that is small and stands early, which backward reaches
    late: what is not finite spreads to all that comes after it.
    """
    for number, group in enumerate(optimizer.param_groups):
        for at, parameter in enumerate(group["params"]):
            is_small = parameter.is_cpu and parameter.numel() <= MAX_PROBE
            if is_small and parameter.grad is not None and is_plain_class(type(parameter)):
                return number, at
    return NOWHERE


def probe_of(optimizer: Any) -> Any:
    """That parameter, where there is one."""
    number, at = place_of_probe(optimizer)
    return None if number < 0 else optimizer.param_groups[number]["params"][at]


def probe_is_finite(optimizer: Any, all_small: bool = False) -> bool:
    """That parameter itself; with `all_small` every one that is as small."""
    if all_small:
        every = (parameter for group in optimizer.param_groups for parameter in group["params"])
        return are_finite(
            [one for one in every if one.is_cpu and one.numel() <= MAX_PROBE and is_plain_class(type(one))]
        )
    probe = probe_of(optimizer)
    return probe is None or are_finite([probe])


def holds_finite(optimizer: Any) -> bool:
    """By one small gradient, in a step that is not looked at."""
    gradient = None if optimizer is None else getattr(probe_of(optimizer), "grad", None)
    if gradient is None or modes() or not is_plain(gradient):
        return True
    return are_finite([values(gradient).as_subclass(torch.Tensor)])


def _always() -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


def idle(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
    """The hook before a step that is counted in C."""
