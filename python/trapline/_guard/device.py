"""The device's part of the guard that fits any torch: the same functions as the compiled adapter's
(``src/guard/python/device.cpp``), which :mod:`trapline._guard.waits` calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from trapline._guard import device_calls, device_faults, on_host, state
from trapline._library import capi
from trapline._library.say import debug

if TYPE_CHECKING:
    from typing import Callable

    from trapline._guard.plan import Plan, RowPlan

_MAX_ROUNDS = 64

_installed = False


def install() -> None:
    """From now on calls on the device are checked, where there may be one."""
    global _installed
    _installed = device_calls.is_there()


def uninstall() -> None:
    """Drop what was found and not told."""
    global _installed
    if _installed and device_calls.used():
        device_faults.forget()
    _installed = False


def call(plan: Plan, redispatch: Callable[..., Any], down: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Make a guarded call whose tensors are on the device."""
    if not _installed:
        return redispatch(down, *args, **kwargs)
    values = plan.bind(args, kwargs)
    if plan.remember:
        return _copy(plan, redispatch, down, args, kwargs, values)
    _raise_late(own=True)
    prepared = None
    for _ in range(_MAX_ROUNDS):
        with state.busy():
            prepared = _prepare(plan, values)
            if prepared is None or prepared.violated is None:
                break
            row, scan = prepared.violated
            answer = _answer_at_once(plan, row, values, scan)
        if answer is None:
            break
        if isinstance(answer, BaseException):
            raise answer
        values = device_calls.replaced(values, row.argument, answer)
    if prepared is not None and prepared.call is not None:
        with state.busy():
            on_host.record(plan, values)
    if prepared is not None and prepared.waited:
        _raise_late(own=True)
    values = values if prepared is None else prepared.values
    args = tuple(values[: len(args)])
    kwargs = {name: value for name, value in zip(plan.names, values) if name in kwargs}
    result = _run(prepared, lambda: redispatch(down, *args, **kwargs))
    if plan.op in device_calls.READS or _has_mask(values):
        _raise_late(own=False)
    return result


def _prepare(plan: Plan, values: list[Any]) -> device_calls.Prepared | None:
    try:
        return device_calls.prepare(plan, values)
    except Exception as error:
        debug(f"guard: {plan.op} is not checked: {error!r}")
        return None


def _copy(
    plan: Plan, redispatch: Any, down: Any, args: tuple, kwargs: dict[str, Any], values: list[Any]
) -> Any:
    """A copy, which is no place to learn of a fault unless it brings values to the host."""
    prepared = None
    if device_calls.loses_nan(values):
        with state.busy():
            prepared = _prepare(plan, values)
    result = _run(prepared, lambda: redispatch(down, *args, **kwargs))
    to_host = not values[0].is_cuda and values[1].is_cuda
    if to_host and not values[plan.names.index("non_blocking")]:
        _raise_late(own=False)
    return result


def read(redispatch: Callable[..., Any], down: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An operation that brings values to the host: when it is done, the checks before it have run, too."""
    if not _installed or not state.is_outermost():
        return redispatch(down, *args, **kwargs)
    result = _run(None, lambda: redispatch(down, *args, **kwargs))
    _raise_late(own=False)
    return result


def _run(prepared: device_calls.Prepared | None, operation: Callable[[], Any]) -> Any:
    try:
        with state.inside(prepared is not None and prepared.applied):
            return operation()
    except Exception as error:
        text = str(error)
        if "CUDA error" in text or "device-side assert" in text:
            _raise_late(own=False)  # the device is lost: its cause may be known
        elif prepared is not None and prepared.call is not None:
            prepared.call.refused = True  # what its checks find is no cause of anything
        raise


def _answer_at_once(plan: Plan, row: RowPlan, values: list[Any], scan: capi.Scan | None) -> Any:
    """The exception, or the argument healed; None where the host sees nothing bad."""
    if scan is None:  # known from the sizes alone: the program ends here, and its values are worth a copy
        scan = capi.Scan()
        if on_host.apply_row(row, [_to_host(value) for value in values], scan) != capi.VIOLATED:
            return None
    answer = on_host.violation(plan, row, values, scan, "")
    given = values[row.argument]
    if isinstance(answer, torch.Tensor) and scan.list_position >= 0 and isinstance(given, (list, tuple)):
        return [*given[: scan.list_position], answer, *given[scan.list_position + 1 :]]
    return answer


def _to_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    return [_to_host(item) for item in value] if isinstance(value, (list, tuple)) else value


def _has_mask(values: list[Any]) -> bool:
    """Whether a list of indices holds a mask: how many elements it takes is asked of the device."""
    return any(
        isinstance(item, torch.Tensor) and item.dtype in (torch.bool, torch.uint8)
        for value in values
        if isinstance(value, (list, tuple))
        for item in value
    )


# What was found -----------------------------------------------------------------------------------


def _raise_late(own: bool) -> None:
    """Raise the fault that was launched first, if there is one."""
    if device_calls.used() and device_faults.pending():
        with state.busy():
            error = None if device_calls.is_captured() else _next(own)
        if error is not None:
            raise error


def _next(own: bool) -> BaseException | None:
    while True:
        fault = device_faults.take(own)
        if fault is None:
            return None
        error = on_host.ask(device_faults.describe(fault))
        if error is not None:
            return error


def _may_raise() -> bool:
    """Whether this is a place to learn of a fault: not in an operation, the handler or a capture."""
    return _installed and device_calls.used() and state.is_outermost() and not device_calls.is_captured()


def device_poll(own: bool) -> None:
    """Raise the oldest fault that the device has reported; ``own``: only one that this thread caused."""
    if _may_raise():
        _raise_late(own)


def device_step() -> None:
    """A training step ends: waits for the checks, not for the device, and raises as :func:`device_poll`."""
    if _may_raise():
        device_faults.wait()
        _raise_late(own=False)
        device_faults.forget_contents()


def device_backward(roots: Any) -> int | None:
    """Before a backward pass: as :func:`device_poll`; the number of the last launch."""
    if not _may_raise():
        return None
    _raise_late(own=True)
    return device_faults.order()


def device_export(tensor: Any) -> None:
    """Its memory is given to another library: waits for the checks, then as :func:`device_poll`."""
    if _may_raise():
        device_faults.wait()
        _raise_late(own=False)


def device_batch(serial: int) -> None:
    """A DataLoader gives out a batch; the calls that follow remember its number."""
    device_faults.note_batch(serial)


def device_pool(begins: bool) -> None:
    """This thread's allocations come from the pool of a CUDA graph, or no longer."""
    device_faults.note_pool(begins)


def device_remaining() -> list[BaseException]:
    """The exceptions of all faults that were not raised. Waits for the checks."""
    if not _installed or not device_calls.used() or not state.is_outermost():
        return []
    device_faults.wait()
    found: list[BaseException] = []
    with state.busy():
        while (error := _next(own=False)) is not None:
            found.append(error)
    return found
