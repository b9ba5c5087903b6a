"""The guard without an adapter: the same hooks as ``src/guard``, for any torch that takes Python kernels.

Kernels are registered on the dispatch key BackendSelect (and on AutogradCPU and AutogradCUDA for operations
that decompose above the backends). A kernel describes the arguments, lets ``trapline_check`` judge them, and
goes on below. What every call costs is in C (:mod:`trapline._guard.kernel`) where that extension module can
be loaded: some microseconds. Without it all is here, over libtrapline by ctypes: tens of microseconds per
guarded call. Operations without a hook pay nothing.
"""

from __future__ import annotations

import atexit
import inspect
import sys
from typing import TYPE_CHECKING, Any, Callable

import torch

from trapline._guard import device, device_calls, kernel, on_host, state
from trapline._guard.device import (  # noqa: F401  what the compiled adapter has, too
    device_backward,
    device_batch,
    device_export,
    device_poll,
    device_pool,
    device_remaining,
    device_step,
)
from trapline._guard.plan import Plan, make_plans, new_plan
from trapline._library import capi, forks, paths

if TYPE_CHECKING:
    from types import ModuleType

# The dtype of the tensor that torch makes of a Python number.
_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}

_libraries: list[Any] = []
_hooked: list[str] = []
_process_watched = False


def install(handler: Callable[[dict[str, Any]], Any], in_c: ModuleType | None = None) -> int:
    """Hook torch; ``handler(violation)`` returns the exception to raise, or the bad tensor healed.

    Args:
        in_c: what :func:`trapline._library.kernel.load` gives; without it the kernels are in Python.

    Returns:
        The number of overloads hooked.

    Raises:
        RuntimeError: this torch cannot take Python kernels with a key set.
    """
    global _process_watched
    if not callable(handler):
        raise TypeError("trapline: guard: install() takes a callable")
    if "with_keyset" not in inspect.signature(torch.library.Library.impl).parameters:
        raise RuntimeError(
            f"trapline: guard: torch {torch.__version__} needs the compiled guard, and there is none: "
            "install a C++ compiler (g++) or a torch of version 2.5 or newer"
        )
    on_host.set_handler(handler)
    if not _libraries:
        state.use_kernel(in_c)
        device.install()
        _hook_all(make_plans(paths.library()))
    if not _process_watched:
        forks.in_child(_forget_history)
        atexit.register(set_enabled, False)  # threads that run operations while Python shuts down
        _process_watched = True
    set_enabled(True)
    return len(_hooked)


def uninstall() -> None:
    """Remove all hooks, while no other thread runs operations."""
    set_enabled(False)
    device.uninstall()
    for library in _libraries:
        library._destroy()
    _libraries.clear()
    _hooked.clear()
    on_host.set_handler(None)


def set_enabled(on: bool) -> None:
    """Switch checking on or off, at any time."""
    state.set_enabled(bool(on) and bool(_libraries))


def history() -> list[dict[str, Any]]:
    """The last guarded calls, oldest first."""
    in_c = state.kernel_in_use()
    return on_host.calls() if in_c is None else in_c.history()


def remembered() -> list[dict[str, Any]]:
    """Possible origins of a later fault (casts of NaN to an integer), newest first."""
    return on_host.casts()


def _forget_history() -> None:
    on_host.forget_calls()
    in_c = state.kernel_in_use()
    if in_c is not None:
        in_c.forget()


def info() -> dict[str, Any]:
    """What this adapter hooks."""
    return {
        "torch": str(torch.__version__),
        "python": sys.version.split()[0],
        "library": paths.library().trapline_version().decode(),
        "capi": capi.CAPI_VERSION,
        "history": on_host.HISTORY,
        "remembered": on_host.REMEMBERED,
        "frames": "sys._getframe",
        "kernels": "Python" if state.kernel_in_use() is None else "C",
        "enabled": state.is_enabled(),
        "overloads": list(_hooked),
        "device": device_calls.info(),
    }


# Hooks --------------------------------------------------------------------------------------------


def _hook_all(plans: list[Plan]) -> None:
    keys = torch._C.DispatchKey
    libraries: dict[str, Any] = {}
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    for plan in plans:
        full, space = plan.full_name, plan.op.partition("::")[0]
        if has_kernel(full, "BackendSelect"):
            continue  # another extension's kernel sits there: overriding it would warn and break it
        library = libraries.setdefault(space, torch.library.Library(space, "IMPL"))
        name = full.partition("::")[2]
        hook = _hook_in_c if state.kernel_in_use() is not None and kernel.fits(plan) else _hook
        library.impl(name, hook(plan, keys.BackendSelect, None), "BackendSelect", with_keyset=True)
        for above, backend in _backends() if plan.composite else ():
            if not has_kernel(full, above):
                key = getattr(keys, above)
                library.impl(name, hook(plan, key, getattr(keys, backend)), above, with_keyset=True)
        _hooked.append(full)
    if device_calls.is_there():
        _hook_reads(libraries.setdefault("aten", torch.library.Library("aten", "IMPL")))
    _libraries.extend(libraries.values())


def _backends() -> list[tuple[str, str]]:
    return [("AutogradCPU", "CPU"), *([("AutogradCUDA", "CUDA")] if device_calls.is_there() else [])]


def _hook_reads(library: Any) -> None:
    """Operations that bring values of the device to the host, and that no row guards."""
    for full in device_calls.READS:
        packet = getattr(torch.ops.aten, full.partition("::")[2], None)
        for overload in packet.overloads() if packet is not None else ():
            plan = new_plan(getattr(packet, overload))
            name = plan.full_name
            if name in _hooked or torch._C._dispatch_has_kernel_for_dispatch_key(name, "BackendSelect"):
                continue
            library.impl(name.partition("::")[2], _hook_read(plan), "BackendSelect", with_keyset=True)


def _hook_read(plan: Plan) -> Callable[..., Any]:
    redispatch = plan.call.redispatch
    classify = _classifier(torch._C.DispatchKey.BackendSelect, None)

    def reads(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        args = _with_tensors(plan, args)
        down, leads = classify(keyset)
        if leads != kernel.DEVICE:
            return redispatch(down, *args, **kwargs)
        return device.read(redispatch, down, args, kwargs)

    return reads


def _classifier(key: Any, backend: Any) -> Callable[[Any], tuple[Any, int]]:
    """What is left to dispatch to below a kernel on ``key``, by the key set of the call; where that leads.

    ``backend``: the key of the backend whose decomposition a kernel above it goes on with; else None.
    """
    keys = torch._C.DispatchKey
    after = torch._C._dispatch_keyset_full_after(key)
    # What may still lie between this kernel and the backend's without being a kernel of its own.
    passing = (keys.PythonDispatcher, keys.ADInplaceOrView, keys.BackendSelect)
    # A decomposition is what the dispatcher has at the backend, too; what it calls starts from the top.
    decomposition = None if backend is None else torch._C.DispatchKeySet(backend)
    places = {keys.CPU: kernel.HOST}
    if device_calls.is_there():
        places[keys.CUDA] = kernel.DEVICE

    def classify(keyset: Any) -> tuple[Any, int]:
        below = keyset & after
        final = below
        for other in passing:
            final = final.remove(other)
        leads = places.get(final.highestPriorityTypeId(), kernel.ELSEWHERE)
        if decomposition is None:
            return below, leads
        # Under a tracer Python may hold another decomposition, and is asked for it.
        traced = keyset.has(keys.PythonDispatcher)
        return decomposition.add(keys.PythonDispatcher) if traced else decomposition, leads

    return classify


def _hook(plan: Plan, key: Any, backend: Any) -> Callable[..., Any]:
    redispatch = plan.call.redispatch
    classify = _classifier(key, backend)
    known: dict[int, tuple[Any, int]] = {}

    def in_python(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        args = _with_tensors(plan, args)
        raw = keyset.raw_repr()
        found = known.get(raw)
        if found is None:
            found = known[raw] = classify(keyset)
        down, leads = found
        if leads == kernel.ELSEWHERE or not state.is_outermost():
            return redispatch(down, *args, **kwargs)
        if leads == kernel.DEVICE:
            return device.call(plan, redispatch, down, args, kwargs)
        state.set_busy(True)
        try:
            answer, args, kwargs = _answer(plan, redispatch, down, args, kwargs, record=True)
        finally:
            state.set_busy(False)
        if answer is not None:
            raise answer
        inside = int(on_host.has_applied())  # what it calls is checked where no row of its own applied
        state.enter(inside)
        try:
            return redispatch(down, *args, **kwargs)
        finally:
            state.enter(-inside)

    return in_python


def _answer(
    plan: Plan, redispatch: Any, down: Any, args: tuple, kwargs: dict[str, Any], record: bool
) -> tuple[BaseException | None, tuple, dict[str, Any]]:
    """The exception to raise for this call, or None and the arguments to make it with."""
    while True:
        found = on_host.check(plan, args, kwargs, lambda *a, **k: redispatch(down, *a, **k), record)
        if isinstance(found, BaseException):
            return found, args, kwargs
        if found is None:
            return None, args, kwargs
        args, kwargs = found  # with one tensor healed; another may be bad too


def _hook_in_c(plan: Plan, key: Any, backend: Any) -> Any:
    redispatch = plan.call.redispatch

    def with_tensors(args: tuple) -> tuple:
        return (args[0], *_with_tensors(plan, args[1:]))

    def answer(args: tuple, kwargs: dict[str, Any] | None) -> Any:
        down = args[0]
        error, args, kwargs = _answer(plan, redispatch, down, args[1:], kwargs or {}, record=False)
        return ((down, *args), kwargs) if error is None else error

    def remembered(row: int, args: tuple, kwargs: dict[str, Any] | None) -> None:
        values, scan = plan.bind(args[1:], kwargs or {}), capi.Scan()
        if on_host.apply_row(plan.rows[row], values, scan) == capi.VIOLATED:
            on_host.remember(plan.rows[row], values, scan)

    def on_device(args: tuple, kwargs: dict[str, Any] | None) -> Any:
        return device.call(plan, redispatch, args[0], args[1:], kwargs or {})

    return kernel.make(plan, _classifier(key, backend), with_tensors, answer, remembered, on_device)


def _with_tensors(plan: Plan, args: tuple) -> tuple:
    """torch hands a kernel a Python number for a tensor that was made of one: make the tensor again."""
    if not any(at < len(args) and type(args[at]) in _NUMBERS for at in plan.tensors):
        return args
    values = list(args)
    for at in plan.tensors:
        if at < len(values) and type(values[at]) in _NUMBERS:
            values[at] = torch.scalar_tensor(values[at], dtype=_NUMBERS[type(values[at])])
    return tuple(values)
