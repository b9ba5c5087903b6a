"""One call judged on arguments in host memory, where no adapter fits this torch; what follows a violation.

The pure-Python twin of ``src/guard/check.cpp`` and ``raise.cpp``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import deque
from typing import Any, Callable

import torch

from trapline._guard import trial
from trapline._guard.plan import Plan, RowPlan
from trapline._library import capi, diagnose, paths, scans, tensors
from trapline._library.say import debug

HISTORY = 20
REMEMBERED = 16
_HERE = os.path.dirname(__file__)
_MAX_FRAMES = 512
_HISTORY_FRAMES = 24


class _Seen(threading.local):
    applied = False  # whether a row applied to the call that was checked last


_seen = _Seen()
_handler: Callable[[dict[str, Any]], Any] | None = None
_calls: deque[tuple[str, list[dict[str, Any]], list[tuple[Any, int]]]] = deque(maxlen=HISTORY)
_casts: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)


def set_handler(handler: Callable[[dict[str, Any]], Any] | None) -> None:
    """``handler(violation)`` returns the exception to raise, or the bad tensor healed."""
    global _handler
    _handler = handler


def has_applied() -> bool:
    """Whether a row applied to the call of this thread that was checked last."""
    return _seen.applied


def calls() -> list[dict[str, Any]]:
    """The last calls that were recorded here, oldest first."""
    return [{"op": op, "args": args, "frames": frames} for op, args, frames in list(_calls)]


def forget_calls() -> None:
    """Drops them."""
    _calls.clear()


def casts() -> list[dict[str, Any]]:
    """Possible origins of a later fault (casts of NaN to an integer), newest first."""
    return list(_casts)


def record(plan: Plan, values: list[Any]) -> None:
    """Record a call of which nothing is judged here."""
    if not plan.remember:
        _calls.append((plan.op, _describe_call(plan, values), running_frames(_HISTORY_FRAMES)))


def check(
    plan: Plan, args: tuple, kwargs: dict[str, Any], operation: Callable[..., Any], record: bool = True
) -> Any:
    """The exception to raise for this call, or the arguments to make it with (``--on-fault skip``).

    None when the call is fine, when the operation takes it as it is, or when the guard itself fails.
    ``record``: the history here has to have it.
    """
    _seen.applied = False
    try:
        values = plan.bind(args, kwargs)

        def run(values: list[Any]) -> Any:
            named = dict(zip(plan.names, values))
            return operation(*values[: len(args)], **{name: named[name] for name in kwargs})

        answer = _judge_rows(plan, values, run, record)
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


def _judge_rows(plan: Plan, values: list[Any], run: Callable[[list[Any]], Any], recorded: bool) -> Any:
    """None, the exception to raise, or (row, scan, healed tensor)."""
    record = None
    if recorded and not plan.remember:
        record = _describe_call(plan, values)
        _calls.append((plan.op, record, running_frames(_HISTORY_FRAMES)))
    for row in plan.rows:
        scan = capi.Scan()
        verdict = apply_row(row, values, scan)
        if verdict == capi.NOT_APPLICABLE:
            continue
        _seen.applied = True
        if record is not None:
            _note_range(record, plan, row, scan)
        if verdict == capi.VIOLATED:
            if not row.remember:
                answer = _answer(plan, row, values, scan, run)
                return (row, scan, answer) if isinstance(answer, torch.Tensor) else answer
            remember(row, values, scan)
    return None


def apply_row(row: RowPlan, values: list[Any], scan: capi.Scan) -> int:
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


def violated(values: list[Any], row: RowPlan) -> dict[str, Any] | None:
    scan = capi.Scan()
    return scans.as_dict(scan) if apply_row(row, values, scan) == capi.VIOLATED else None


def _answer(
    plan: Plan, row: RowPlan, values: list[Any], scan: capi.Scan, run: Callable[[list[Any]], Any]
) -> Any:
    """The operation's own exception, what the handler says, or None where the operation takes the call."""
    try:
        is_fault, says = trial.ask(plan, values, violated, run)
    except Exception as error:
        return error
    return violation(plan, row, values, scan, says) if is_fault else None


def violation(plan: Plan, row: RowPlan, values: list[Any], scan: capi.Scan, says: str) -> Any:
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
        why = "the handler returned no exception"
    except Exception:
        why = "the handler failed"
    return _fallback(violation, why)


def _fallback(violation: dict[str, Any], why: str) -> IndexError:
    sentence = diagnose.bare_sentence(violation["contract"], violation["scan"])
    return IndexError(f"{sentence} (trapline: {why})")


def remember(row: RowPlan, values: list[Any], scan: capi.Scan) -> None:
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
    """This thread's Python frames, innermost first, without those of this folder."""
    frame = sys._getframe(1)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    frames = []
    while frame is not None and len(frames) < most:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return frames


# For the device -----------------------------------------------------------------------------------


def ask(violation: dict[str, Any]) -> Any:
    """The exception to raise for a late fault; None when the handler has dealt with it."""
    try:
        answer = _handler(violation) if _handler is not None else None
        if isinstance(answer, BaseException):
            return answer
        if answer is True and violation["contained"] and not violation["waited"]:
            return None
        why = "the handler returned no exception"
    except Exception:
        why = "the handler failed"
    return _fallback(violation, why)


def remember_late(launch: Any, scan: dict[str, Any]) -> None:
    """The same, found by a check on the device."""
    storage, shape = launch.result
    cast = {"contract": launch.row.id, "scan": scan, "frames": launch.call.frames}
    _casts.appendleft({**cast, "storage": storage, "shape": shape})


def frames() -> list[tuple[Any, int]]:
    """This thread's Python frames for a report."""
    return running_frames(_MAX_FRAMES)
