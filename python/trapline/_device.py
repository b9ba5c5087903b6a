"""When the host learns of what the checks on the device found.

The adapter itself looks at every guarded call and at every operation that brings values to the host. What
torch does without an operation is followed here: waiting for a device, a stream or an event, the step of an
optimizer, and the end of the process.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Callable

# Names of a device's module, and of its classes, whose return means that the device has come so far.
_WAITS = ("synchronize",)
_CLASS_WAITS = {
    "Stream": ("synchronize", "query", "wait_event", "wait_stream"),
    "Event": ("synchronize", "query", "wait", "elapsed_time"),
    "ExternalStream": ("synchronize", "query", "wait_event", "wait_stream"),
}

_adapter: ModuleType | None = None
_undo: list[Callable[[], None]] = []
_pid = 0


def install(adapter: ModuleType) -> None:
    """Follow the waits of torch for ``adapter``, where it guards a device. Calling it again changes nothing.

    ``adapter`` is the compiled one, installed; the pure-Python one guards host memory only.
    """
    global _adapter, _pid
    if _undo or not hasattr(adapter, "device_poll") or adapter.info().get("device") is None:
        return
    _adapter, _pid = adapter, os.getpid()
    for module in _device_modules():
        for name in _WAITS:
            _poll_after(module, name)
        for class_name, names in _CLASS_WAITS.items():
            owner = module.__dict__.get(class_name)
            for name in names if isinstance(owner, type) else ():
                _poll_after(owner, name)
    _watch_optimizers()
    atexit.register(_at_exit)
    _undo.append(lambda: atexit.unregister(_at_exit))


def uninstall() -> None:
    """Undo :func:`install`."""
    global _adapter
    _adapter = None
    while _undo:
        _undo.pop()()


def _device_modules() -> Iterator[ModuleType]:
    import torch

    yield torch.cuda
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        yield accelerator


def _poll_after(owner: Any, name: str) -> None:
    """Replace ``owner.name`` by a function that calls it and then raises what the device has reported."""
    original = getattr(owner, name, None)
    if original is None or hasattr(original, "__trapline__"):
        return
    inherited = name not in vars(owner)

    @functools.wraps(original)
    def wait(*args: Any, **kwargs: Any) -> Any:
        try:
            result = original(*args, **kwargs)
        except RuntimeError:
            _poll()  # a device-side assert: its cause may be known
            raise
        _poll()
        return result

    wait.__trapline__ = True  # type: ignore[attr-defined]

    def restore() -> None:
        if vars(owner).get(name) is wait:
            delattr(owner, name) if inherited else setattr(owner, name, original)

    try:
        setattr(owner, name, wait)
    except (AttributeError, TypeError):  # a class written in C
        return
    _undo.append(restore)


def _poll() -> None:
    if _adapter is not None:
        _adapter.device_poll(False)


def _watch_optimizers() -> None:
    """A step with gradients made of healed values must not happen."""
    from torch.optim import optimizer

    register = getattr(optimizer, "register_optimizer_step_pre_hook", None)
    if register is not None:  # torch >= 2.0
        _undo.append(register(before_step).remove)


def before_step(*_: Any) -> None:
    """Learn of every fault that was launched so far; raises it, or spoils the step (``--on-fault skip``)."""
    if _adapter is not None:
        _adapter.device_step()


def _at_exit() -> None:
    """What nobody has been told goes into the report folder, and onto stderr: there is no caller any more."""
    if _adapter is None or _pid != os.getpid():
        return
    for error in _adapter.device_remaining():
        line = str(error).split("\n", 1)[0]
        print(f"trapline: found when the process ended: {line}", file=sys.stderr, flush=True)
