"""The guard's kernels in C (``src/kernel``): one extension module for any torch and any Python.

A kernel is made of a plan, as a dictionary, and calls back for everything that is rare, which is
:mod:`trapline._guard.pure`'s part.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from trapline._library import kernel

if TYPE_CHECKING:
    from typing import Callable

    from trapline._guard.plan import Plan

_LIMITS = {"names": 32, "rows": 8}  # of src/kernel/plan.hpp

# Where a key set leads: Leads in src/kernel/call.hpp.
ELSEWHERE = 0
HOST = 1
DEVICE = 2


def fits(plan: Plan) -> bool:
    """Whether the plan is one that the extension module has room for."""
    return len(plan.names) <= _LIMITS["names"] and len(plan.rows) <= _LIMITS["rows"]


def make(
    plan: Plan,
    classify: Callable[[Any], tuple[Any, int]],
    with_tensors: Callable[[tuple], tuple],
    answer: Callable[[tuple, dict[str, Any] | None], Any],
    remembered: Callable[[int, tuple, dict[str, Any] | None], None],
    on_device: Callable[[tuple, dict[str, Any] | None], Any],
) -> Any:
    """A kernel for ``torch.library``. The callbacks' ``args`` begin with the key set below.

    Args:
        classify: the key set below a key set, and where it leads.
        with_tensors: the arguments with tensors for the numbers that torch handed over.
        answer: what follows a violation: the arguments to go on with, or the exception to raise.
        remembered: a row that only remembers has found something.
        on_device: makes a call whose tensors are in device memory, checked.
    """
    handle = getattr(plan.call, "_handle", None)
    return kernel.load().make(
        {
            "op": plan.op,
            "names": list(plan.names),
            "defaults": list(plan.defaults),
            "tensors": list(plan.tensors),
            "recorded": list(plan.recorded),
            "rows": [
                (ctypes.addressof(row.row.contents), row.argument, row.bound, row.dim, row.also, row.remember)
                for row in plan.rows
            ],
            "redispatch": getattr(handle, "redispatch_boxed", plan.call.redispatch),
            "classify": classify,
            "with_tensors": with_tensors,
            "answer": answer,
            "remembered": remembered,
            "on_device": on_device,
        }
    )
