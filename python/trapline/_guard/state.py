"""What a hook of the guard for any torch has to know before it does anything: is the guard on, and is this
thread inside it already. Where the kernels are in C the extension module keeps it.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


class _ThreadState(threading.local):
    busy = 0  # describing, checking, or in the handler: nothing is checked or recorded
    depth = 0  # inside a guarded operation that was checked: what it calls is not checked again


_thread = _ThreadState()
_enabled = False
_kernel: ModuleType | None = None


def use_kernel(module: ModuleType | None) -> None:
    """The extension module whose kernels are installed; None: they are in Python."""
    global _kernel
    _kernel = module


def kernel_in_use() -> ModuleType | None:
    """That module."""
    return _kernel


def set_enabled(on: bool) -> None:
    """Switch checking on or off, at any time."""
    global _enabled
    _enabled = on
    if _kernel is not None:
        _kernel.set_enabled(on)


def is_enabled() -> bool:
    """Whether checking is on."""
    return _enabled


def is_outermost() -> bool:
    """Whether a call of this thread is to be checked."""
    if _kernel is not None:
        return _kernel.is_outermost()
    return _enabled and not _thread.busy and not _thread.depth


@contextmanager
def busy() -> Iterator[None]:
    """This thread checks and records nothing."""
    set_busy(True)
    try:
        yield
    finally:
        set_busy(False)


@contextmanager
def inside(checked: bool) -> Iterator[None]:
    """Around an operation; ``checked``: a row applied, and what the operation calls is not checked again."""
    enter(int(checked))
    try:
        yield
    finally:
        enter(-int(checked))


def set_busy(on: bool) -> None:
    """As :func:`busy` by hand: True, and the same number of times False."""
    if _kernel is not None:
        _kernel.set_busy(on)
    else:
        _thread.busy += 1 if on else -1


def enter(by: int) -> None:
    """As :func:`inside` by hand: 1 and -1."""
    if _kernel is not None:
        _kernel.enter(by)
    else:
        _thread.depth += by
