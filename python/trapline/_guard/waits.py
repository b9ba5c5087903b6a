"""When the host learns of what the checks on the device found.

The adapter itself looks at every guarded call and at every operation that brings values to the host. What
torch does without an operation is followed here: waiting for a device, a stream or an event, the step of an
optimizer, and the end of the process.
"""

from __future__ import annotations

import atexit
import functools
import os
from typing import TYPE_CHECKING, Any

from trapline._library.say import say
from trapline._library.standin import known_to_script

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
_backward_at = 0  # the last launch before the newest backward pass that fills .grad
_running = 0  # backward passes under way, of all threads
_tainted = False  # by a fault that was raised inside one of them


def install(adapter: ModuleType) -> None:
    """Follow the waits of torch for ``adapter``, where it guards a device. Calling it again changes nothing.

    ``adapter`` is the compiled one, installed; the pure-Python one guards host memory only.
    """
    global _adapter, _pid, _backward_at
    if _undo or not hasattr(adapter, "device_poll") or adapter.info().get("device") is None:
        return
    _adapter, _pid, _backward_at = adapter, os.getpid(), 0
    for module in _device_modules():
        for name in _WAITS:
            _poll_after(module, name)
        for class_name, names in _CLASS_WAITS.items():
            owner = module.__dict__.get(class_name)
            for name in names if isinstance(owner, type) else ():
                _poll_after(owner, name)
    _watch_optimizers()
    _watch_backward()
    _watch_exports()
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


def _watch_backward() -> None:
    """What is known before a backward pass is raised before it. Gradients of healed values do not stay."""
    import torch

    backward, grad = torch.autograd.backward, torch.autograd.grad

    @functools.wraps(backward)
    def checked_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        global _backward_at, _running, _tainted
        if _adapter is not None:
            _backward_at = _adapter.device_backward(_roots(tensors)) or _backward_at
        _running += 1
        try:
            return backward(tensors, *args, **kwargs)
        finally:
            _running -= 1
            if _tainted and not _running:
                _tainted = False
                drop_gradients()

    @functools.wraps(grad)
    def checked_grad(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if _adapter is not None:
            _adapter.device_backward(_roots(outputs))
        return grad(outputs, *args, **kwargs)

    for name, original, checked in (("backward", backward, checked_backward), ("grad", grad, checked_grad)):
        setattr(torch.autograd, name, checked)
        _undo.append(known_to_script(checked, original))
        _undo.append(functools.partial(_restore, torch.autograd, name, checked, original))


def _watch_exports() -> None:
    """What gives memory of the device to another library, which reads it without an operation of torch: the
    checks of all that is in it have run before, and what they found was told."""
    import torch
    from torch.utils import dlpack

    def told(tensor: Any) -> None:
        if _adapter is not None and getattr(tensor, "is_cuda", False):
            _adapter.device_export(tensor)

    def checked(original: Any) -> Any:
        @functools.wraps(original)
        def export(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            told(tensor)
            return original(tensor, *args, **kwargs)

        return export

    interface = torch.Tensor.__dict__.get("__cuda_array_interface__")
    if isinstance(interface, property) and interface.fget is not None:
        own = property(checked(interface.fget))
        torch.Tensor.__cuda_array_interface__ = own  # type: ignore[assignment]
        _undo.append(functools.partial(_restore, torch.Tensor, "__cuda_array_interface__", own, interface))
    for owner, name in ((torch.Tensor, "__dlpack__"), (dlpack, "to_dlpack"), (torch, "to_dlpack")):
        original = getattr(owner, name, None)
        if original is not None:
            own = checked(original)
            setattr(owner, name, own)
            _undo.append(functools.partial(_restore, owner, name, own, original))


def _restore(owner: Any, name: str, ours: Any, original: Any) -> None:
    if getattr(owner, name, None) is ours:
        setattr(owner, name, original)


def _roots(tensors: Any) -> Any:
    import torch

    return (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)


def taints_gradients(violation: dict[str, Any]) -> bool:
    """Whether a backward pass has begun since the call of this fault: what it left in ``.grad`` is no result.

    Then the gradients of all optimizers are set to None, now or, inside a backward pass, at its end. A
    program that catches the exception and goes on has lost this step and nothing else; on the CPU, where the
    fault is raised before any result of it exists, it would have been the same.
    """
    global _tainted
    only_read = violation.get("again") and not violation.get("replayed")
    if not violation.get("late") or only_read or violation.get("order", 0) > _backward_at:
        return False
    if _running:
        _tainted = True
    else:
        drop_gradients()
    return True


def drop_gradients() -> None:
    """``.grad = None`` for the parameters of every optimizer of this process; what a GradScaler noted of the
    gradients goes, too, so that the next batch may be unscaled."""
    import gc

    from torch.amp.grad_scaler import GradScaler
    from torch.optim import Optimizer

    for held in gc.get_objects():
        if issubclass(type(held), Optimizer):
            for group in held.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None
        elif issubclass(type(held), GradScaler):
            noted = held.__dict__.get("_per_optimizer_states")
            if isinstance(noted, dict):
                noted.clear()


def _watch_optimizers() -> None:
    """A step with gradients made of healed values must not happen."""
    from torch.optim import optimizer

    register = getattr(optimizer, "register_optimizer_step_pre_hook", None)
    if register is not None:  # torch >= 2.0
        _undo.append(register(before_step).remove)


def before_step(*_: Any) -> None:
    """Learn of every fault that was launched so far; raises it, or taints the step (``--on-fault skip``)."""
    if _adapter is not None:
        _adapter.device_step()


def _at_exit() -> None:
    """What nobody has been told goes into the report folder, and onto stderr: there is no caller any more."""
    if _adapter is None or _pid != os.getpid():
        return
    for error in _adapter.device_remaining():
        line = str(error).split("\n", 1)[0]
        say(f"found when the process ended: {line}")
