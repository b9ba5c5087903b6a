"""The guard without a compiler: the same hooks as ``src/guard``, in Python over libtrapline by ctypes.

Kernels are registered on the dispatch key BackendSelect (and on AutogradCPU for operations that decompose
above the backends). A kernel describes the arguments, lets ``trapline_check`` judge them, and goes on below.
That costs tens of microseconds per guarded call (an embedding took 34 instead of 3, measured once on a busy
machine); operations without a hook pay nothing.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
import threading
from collections import deque
from typing import Any, Callable

import torch

from trapline._guard import trial
from trapline._guard.plan import Plan, RowPlan, make_plans
from trapline._library import capi, diagnose, paths, scans, tensors
from trapline._library.say import debug

_HISTORY = 20
_REMEMBERED = 16
_MAX_FRAMES = 512
_HISTORY_FRAMES = 24

# The dtype of the tensor that torch makes of a Python number.
_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


class _ThreadState(threading.local):
    busy = False  # describing, checking, or in the handler: nothing is checked or recorded
    applied = False  # whether a row applied to the call that was checked last
    depth = 0  # inside a guarded operation that was checked: what it calls is not checked again


_state = _ThreadState()
_enabled = False
_handler: Callable[[dict[str, Any]], Any] | None = None
_libraries: list[Any] = []
_hooked: list[str] = []
_calls: deque[tuple[str, list[dict[str, Any]], list[tuple[Any, int]]]] = deque(maxlen=_HISTORY)
_casts: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
_forks_watched = False


def install(handler: Callable[[dict[str, Any]], Any]) -> int:
    """Hook torch; ``handler(violation)`` returns the exception to raise, or the bad tensor healed.

    Returns:
        The number of overloads hooked.

    Raises:
        RuntimeError: this torch cannot take Python kernels with a key set.
    """
    global _handler, _enabled, _forks_watched
    if "with_keyset" not in inspect.signature(torch.library.Library.impl).parameters:
        raise RuntimeError(
            f"trapline: guard: torch {torch.__version__} needs the compiled guard, and there is none: "
            "install a C++ compiler (g++) or a torch of version 2.5 or newer"
        )
    _handler = handler
    if not _libraries:
        _hook_all(make_plans(paths.library()))
    if not _forks_watched and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_calls.clear)
        _forks_watched = True
    _enabled = True
    return len(_hooked)


def uninstall() -> None:
    """Remove all hooks, while no other thread runs operations."""
    global _enabled, _handler
    _enabled = False
    for library in _libraries:
        library._destroy()
    _libraries.clear()
    _hooked.clear()
    _handler = None


def set_enabled(on: bool) -> None:
    """Switch checking on or off, at any time."""
    global _enabled
    _enabled = bool(on) and bool(_libraries)


def history() -> list[dict[str, Any]]:
    """The last guarded calls, oldest first."""
    return [{"op": op, "args": args, "frames": frames} for op, args, frames in list(_calls)]


def remembered() -> list[dict[str, Any]]:
    """Possible origins of a later fault (casts of NaN to an integer), newest first."""
    return list(_casts)


def info() -> dict[str, Any]:
    """What this adapter hooks."""
    return {
        "torch": str(torch.__version__),
        "python": sys.version.split()[0],
        "library": paths.library().trapline_version().decode(),
        "capi": capi.CAPI_VERSION,
        "history": _HISTORY,
        "remembered": _REMEMBERED,
        "frames": "sys._getframe",
        "enabled": _enabled,
        "overloads": list(_hooked),
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
        library.impl(name, _hook(plan, keys.BackendSelect), "BackendSelect", with_keyset=True)
        if plan.composite and not has_kernel(full, "AutogradCPU"):
            library.impl(name, _hook(plan, keys.AutogradCPU), "AutogradCPU", with_keyset=True)
        _hooked.append(full)
    _libraries.extend(libraries.values())


def _hook(plan: Plan, key: Any) -> Callable[..., Any]:
    keys = torch._C.DispatchKey
    after = torch._C._dispatch_keyset_full_after(key)
    redispatch = plan.call.redispatch
    cpu = keys.CPU
    # What may still lie between this kernel and the backend's without being a kernel of its own.
    passing = (keys.PythonDispatcher, keys.ADInplaceOrView, keys.BackendSelect)
    # A decomposition is what the dispatcher has at CPU too; it starts from the top for what it calls.
    decomposition = torch._C.DispatchKeySet(cpu) if key == keys.AutogradCPU else None

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        for at in plan.tensors:
            if at < len(args) and type(args[at]) in _NUMBERS:
                args = _with_tensors(plan, args)
                break
        below = keyset & after
        down = below if decomposition is None else decomposition
        state = _state
        if not _enabled or state.busy or state.depth:
            return redispatch(down, *args, **kwargs)
        final = below
        for other in passing:
            final = final.remove(other)
        if final.highestPriorityTypeId() != cpu:
            return redispatch(down, *args, **kwargs)
        answer = _check(plan, args, kwargs, lambda *a, **k: redispatch(down, *a, **k))
        while answer is not None:
            if isinstance(answer, BaseException):
                raise answer
            args, kwargs = answer  # with one tensor healed; another may be bad too
            answer = _check(plan, args, kwargs, lambda *a, **k: redispatch(down, *a, **k))
        inside = 1 if state.applied else 0  # what it calls is checked where no row of its own applied
        state.depth += inside
        try:
            return redispatch(down, *args, **kwargs)
        finally:
            state.depth -= inside

    return kernel


def _with_tensors(plan: Plan, args: tuple) -> tuple:
    """torch hands a kernel a Python number for a tensor that was made of one: make the tensor again."""
    values = list(args)
    for at in plan.tensors:
        if at < len(values) and type(values[at]) in _NUMBERS:
            values[at] = torch.scalar_tensor(values[at], dtype=_NUMBERS[type(values[at])])
    return tuple(values)


def _check(plan: Plan, args: tuple, kwargs: dict[str, Any], operation: Callable[..., Any]) -> Any:
    """The exception to raise for this call, or the arguments to make it with (``--on-fault skip``).

    None when the call is fine, when the operation takes it as it is, or when the guard itself fails.
    """
    state = _state
    state.busy = True
    state.applied = False
    try:
        values = plan.bind(args, kwargs)

        def run(values: list[Any]) -> Any:
            named = dict(zip(plan.names, values))
            return operation(*values[: len(args)], **{name: named[name] for name in kwargs})

        answer = _check_rows(plan, values, run)
        if answer is None or isinstance(answer, BaseException):
            return answer
        row, scan, healed = answer
        if scan.list_position >= 0 and isinstance(values[row.argument], (list, tuple)):
            items = list(values[row.argument])
            items[scan.list_position] = healed
            healed = items
        if row.argument < len(args):
            return (*args[: row.argument], healed, *args[row.argument + 1 :]), kwargs
        return args, {**kwargs, plan.names[row.argument]: healed}
    except Exception as error:
        debug(f"guard: {plan.op} is not checked: {error!r}")
        return None
    finally:
        state.busy = False


def _check_rows(plan: Plan, values: list[Any], run: Callable[[list[Any]], Any]) -> Any:
    """None, the exception to raise, or (row, scan, healed tensor)."""
    record = None
    if not plan.remember:
        record = _describe_call(plan, values)
        _calls.append((plan.op, record, running_frames(_HISTORY_FRAMES)))
    for row in plan.rows:
        scan = capi.Scan()
        verdict = _apply_row(row, values, scan)
        if verdict == capi.NOT_APPLICABLE:
            continue
        _state.applied = True
        if record is not None:
            _note_range(record, plan, row, scan)
        if verdict == capi.VIOLATED:
            if not row.remember:
                answer = _answer(plan, row, values, scan, run)
                return (row, scan, answer) if isinstance(answer, torch.Tensor) else answer
            _remember(row, values, scan)
    return None


def _apply_row(row: RowPlan, values: list[Any], scan: capi.Scan) -> int:
    argument = tensors.arg_of(values[row.argument])
    if argument is None:
        return capi.NOT_APPLICABLE
    return paths.library().trapline_check(
        row.row,
        ctypes.byref(argument),
        _optional(values, row.bound),
        _optional(values, row.dim),
        _optional(values, row.also),
        ctypes.byref(scan),
    )


def _violated(values: list[Any], row: RowPlan) -> dict[str, Any] | None:
    scan = capi.Scan()
    return scans.as_dict(scan) if _apply_row(row, values, scan) == capi.VIOLATED else None


def _answer(
    plan: Plan, row: RowPlan, values: list[Any], scan: capi.Scan, run: Callable[[list[Any]], Any]
) -> Any:
    """The operation's own exception, what the handler says, or None where the operation takes the call."""
    try:
        is_fault, says = trial.ask(plan, values, _violated, run)
    except Exception as error:
        return error
    return _violation(plan, row, values, scan, says) if is_fault else None


def _violation(plan: Plan, row: RowPlan, values: list[Any], scan: capi.Scan, says: str) -> Any:
    """What the handler says: an exception, or the argument healed."""
    tensor = values[row.argument]
    if scan.list_position >= 0 and isinstance(tensor, (list, tuple)):
        tensor = tensor[scan.list_position]
    violation = {
        "contract": row.id,
        "op": plan.op,
        "overload": plan.overload,
        "scan": scans.as_dict(scan),
        "tensor": tensor,
        "args": dict(zip(plan.names, values)),
        "frames": running_frames(_MAX_FRAMES),
        "thread": threading.get_native_id(),
    }
    if says:
        violation["torch_says"] = says
    try:
        error = _handler(violation) if _handler is not None else None
        if isinstance(error, (BaseException, torch.Tensor)):
            return error
    except Exception:
        pass
    return IndexError(diagnose.bare_sentence(row.id, violation["scan"]))


def _remember(row: RowPlan, values: list[Any], scan: capi.Scan) -> None:
    result = values[row.bound if row.bound >= 0 else row.argument]
    is_tensor = isinstance(result, torch.Tensor)
    _casts.appendleft(
        {
            "contract": row.id,
            "scan": scans.as_dict(scan),
            "frames": running_frames(_MAX_FRAMES),
            "storage": result.untyped_storage().data_ptr() if is_tensor else 0,
            "shape": list(result.shape) if is_tensor else [],
        }
    )


# Descriptions -------------------------------------------------------------------------------------


def _optional(values: list[Any], at: int) -> Any:
    if at < 0:
        return None
    arg = tensors.arg_of(values[at])
    return None if arg is None else ctypes.byref(arg)


def _describe_call(plan: Plan, values: list[Any]) -> list[dict[str, Any]]:
    described = []
    for at in plan.recorded:
        value = values[at]
        items = [(plan.names[at], value)]
        if isinstance(value, (list, tuple)):
            items = [(f"{plan.names[at]}[{i}]", item) for i, item in enumerate(value)]
        for name, item in items:
            if isinstance(item, torch.Tensor):
                dtype = str(item.dtype)[len("torch.") :]
                entry = {"name": name, "shape": list(item.shape), "dtype": dtype, "min": None, "max": None}
                described.append(entry)
    return described


def _note_range(record: list[dict[str, Any]], plan: Plan, row: RowPlan, scan: capi.Scan) -> None:
    if scan.total <= 0:
        return
    name = plan.names[row.argument]
    if scan.list_position >= 0:
        name += f"[{scan.list_position}]"
    for entry in record:
        if entry["name"] == name:
            entry["min"] = scan.fmin if scan.is_float else scan.imin
            entry["max"] = scan.fmax if scan.is_float else scan.imax


def running_frames(most: int) -> list[tuple[Any, int]]:
    """This thread's Python frames, innermost first, without those of this file."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    frames = []
    while frame is not None and len(frames) < most:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return frames
