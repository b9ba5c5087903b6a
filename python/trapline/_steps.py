"""``trapline run --steps N``: ends the program cleanly after N optimizer steps.

A hook after every ``step`` of every ``torch.optim.Optimizer`` counts; with the N-th it raises
``SystemExit(0)`` out of ``step()``. The program therefore ends as by ``sys.exit(0)``: ``finally`` and
``with`` blocks run, DataLoader workers are stopped, buffers are flushed, ``atexit`` functions are
called. A program that catches ``SystemExit`` (or uses a bare ``except:``) goes on; every further step
raises again. Where ``step()`` is called in another thread, ``SystemExit`` would end only that thread:
there the main thread is interrupted and ends the program, as soon as it executes Python code again. Each
process counts its own steps.
"""

from __future__ import annotations

import threading
from typing import Any

from trapline._library import forks
from trapline._library.say import say

_lock = threading.Lock()
_handle: Any = None
_left = 0
_limit = 0


def install(steps: int) -> None:
    """Ends this process after `steps` optimizer steps."""
    global _handle, _left, _limit
    if steps < 1:
        return
    _left = _limit = steps
    if _handle is None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        _handle = register_optimizer_step_post_hook(_after_step)
        forks.in_child(_start_over)


def uninstall() -> None:
    """Stops counting."""
    global _handle
    if _handle is not None:
        _handle.remove()
        _handle = None


def _start_over() -> None:
    """A forked child counts its own steps."""
    global _lock, _left
    _lock = threading.Lock()
    _left = _limit


def _after_step(*_: Any) -> None:
    global _left
    with _lock:
        _left -= 1
        reached, again = _left == 0, _left < 0
    if not (reached or again):
        return
    if reached:
        plural = "" if _limit == 1 else "s"
        say(f"stopped after {_limit} optimizer step{plural} (--steps)")
    if threading.current_thread() is threading.main_thread():
        raise SystemExit(0)
    _interrupt_main_thread()
    raise SystemExit(0)


def _interrupt_main_thread() -> None:
    """Raises SystemExit in the main thread at its next bytecode."""
    import ctypes

    main = threading.main_thread()
    if main.is_alive() and main.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main.ident), ctypes.py_object(_Stop))


class _Stop(SystemExit):
    """SystemExit(0) as an asynchronous exception, which is raised without arguments."""

    def __init__(self, *args: Any) -> None:
        super().__init__(0)
