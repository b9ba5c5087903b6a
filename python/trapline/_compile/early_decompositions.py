"""Operations that are taken apart before the trace can ask the table of decompositions about them.

Those are the operations that torch has a decomposition for at the autograd keys (`multi_margin_loss`), and
the composite ones (`one_hot`), of which no backend has a kernel. While Inductor traces, torch looks for
Python kernels first: the checks are in front of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import torch
from torch._C import DispatchKey

from trapline._compile import table
from trapline._guard.plan import Plan

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


_originals: dict[tuple[Any, DispatchKey], Any] = {}  # None: there was no Python kernel


@contextmanager
def tracing() -> Iterator[None]:
    """Inside, this thread traces for Inductor, and the kernels of this file check."""
    table.state.tracing += 1
    try:
        yield
    finally:
        table.state.tracing -= 1


def install() -> None:
    """Put a check in front of the Python kernels of the contracts table's operations."""
    for plan in table.plans():
        kernels = plan.call.py_kernels
        keys = [key for key in _KEYS if key in kernels]
        if plan.composite and not keys:
            keys = [DispatchKey.CompositeImplicitAutograd]
        for key in keys:
            original = kernels.get(key)
            _originals[plan.call, key] = original
            kernels[key] = _checking(plan, key, original)
            plan.call._dispatch_cache.clear()


def uninstall() -> None:
    """Put the kernels back."""
    for (call, key), original in _originals.items():
        if original is None:
            call.py_kernels.pop(key, None)
        else:
            call.py_kernels[key] = original
        call._dispatch_cache.clear()
    _originals.clear()


def _checking(plan: Plan, key: DispatchKey, original: Callable[..., Any] | None) -> Callable[..., Any]:
    def below(*args: Any, **kwargs: Any) -> Any:
        return plan.call._op_dk(key, *args, **kwargs) if original is None else original(*args, **kwargs)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if not table.state.tracing or table.state.within:
            return below(*args, **kwargs)
        table.state.within += 1
        try:
            args, kwargs = table.with_checks(plan, args, kwargs, torch.ops.trapline.check_copy.default)
            return below(*args, **kwargs)
        finally:
            table.state.within -= 1

    return kernel
