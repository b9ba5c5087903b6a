"""Calls whose tensors are in the memory of a CUDA device, where no adapter fits this torch.

The checks are libtrapline's (``include/trapline/device.h``): enqueued on the operation's own stream before
it, read by the host later. The operation is given a copy in which bad elements are harmless, so that the
context lives. What ``src/guard/device_*.cpp`` does besides is left out here: a copy is not used again by the
next operation, nothing is checked in a CUDA graph, and a program that catches the exception and then reads a
result of the healed values is not told again.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from trapline._guard import device_faults, on_host
from trapline._library import capi, options, paths, tensors
from trapline._library.say import debug, say

if TYPE_CHECKING:
    from trapline._guard.plan import Plan, RowPlan

_MAX_CHECKS = 64
_HEAL_CAP_MB = 256

# Operations that bring values of the device to the host: as kReads of src/guard/hooks_reads.cpp, and those
# that torch 2.13 tags data_dependent_output or dynamic_output_shape.
READS = (
    "aten::_ctc_loss",
    "aten::allclose",
    "aten::linalg_lstsq",
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::masked_select",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
    "aten::equal",
    "aten::bincount",
    "aten::repeat_interleave",
    "aten::_linalg_check_errors",
)


_scratch: dict[tuple[int, int], Any] = {}
_ready: dict[int, bool] = {}
_counts = {"calls": 0, "launches": 0, "uncopied": 0}
_pid = os.getpid()
_said: set[str] = set()


def is_there() -> bool:
    """Whether this torch can have a CUDA device of its own. Asks for no context."""
    return bool(getattr(torch._C, "_has_cuda", False)) and not options.device_is_host()


def info() -> dict[str, Any] | None:
    """As the compiled adapter's; None where there is no device."""
    if not is_there():
        return None
    return {"key": "CUDA", "used": used(), "reused": 0, "heal_cap": _heal_cap(), **_counts}


def used() -> bool:
    """Whether the checks of a device are ready in this process: a context does not survive a fork."""
    return any(_ready.values()) and os.getpid() == _pid


def is_captured() -> bool:
    """Whether this thread's stream captures a graph: then nothing is checked, and nothing told."""
    try:
        return torch._C._cuda_isCurrentStreamCapturing()
    except RuntimeError:  # a context that is lost captures nothing: what it has reported is to be told
        return False


# One call -----------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """A call that may be made: its arguments, of which some may be copies."""

    values: list[Any]
    call: device_faults.Call | None
    applied: bool
    waited: bool
    violated: Any = None  # (row, scan): known at once


def prepare(plan: Plan, values: list[Any]) -> Prepared:
    """Enqueue the checks of a call; what is in host memory is checked at once."""
    device = next((v.device for v in values if isinstance(v, torch.Tensor) and v.is_cuda), None)
    if device is None or not _is_ready(device.index):
        return Prepared(values, None, False, False)
    if is_captured():
        _say_once(
            "what is captured in a CUDA graph is not checked: the compiled guard does that (docs/adapters.md)"
        )
        return Prepared(values, None, False, False)
    _counts["calls"] += 1
    making = _Making(plan, values, device)
    for row in plan.rows:
        making.apply(row)
        if making.violated is not None:
            break
    waited = making.wait and bool(
        paths.library().trapline_device_wait_stream(device.index, ctypes.c_void_p(making.stream))
    )
    return Prepared(making.values, making.call, making.applied, waited, making.violated)


class _Making:
    def __init__(self, plan: Plan, values: list[Any], device: Any) -> None:
        self.plan, self.given, self.values, self.device = plan, values, list(values), device
        self.stream = torch._C._cuda_getCurrentRawStream(device.index)
        self.call: device_faults.Call | None = None
        self.applied = self.wait = False
        self.violated: Any = None

    def apply(self, row: RowPlan) -> None:
        argument = self.given[row.argument]
        is_list = isinstance(argument, (list, tuple))
        items = list(argument) if is_list else [argument]
        here = [_stays(item, on_host=True) for item in items]
        there = [_stays(item, on_host=False) for item in items]
        if any(_is_index(item) for item in here):
            values = replaced(self.given, row.argument, here if is_list else here[0])
            scan = capi.Scan()
            verdict = on_host.apply_row(row, values, scan)
            self.applied |= verdict != capi.NOT_APPLICABLE
            if verdict == capi.VIOLATED and not row.remember:
                self.violated = (row, scan)
                return
        if any(_is_index(item) for item in there):
            self._apply_on_device(row, there if is_list else there[0])

    def _apply_on_device(self, row: RowPlan, argument: Any) -> None:
        library = paths.library()
        checks, count, scan = (capi.DeviceCheck * _MAX_CHECKS)(), ctypes.c_int(), capi.Scan()
        also = self._also(row)
        parts = [
            None if value is _NONE else tensors.arg_of(value, on_device=True)
            for value in (argument, self._value(row.bound), self._value(row.dim), also)
        ]
        if parts[0] is None:
            return
        pointers = [None if part is None else ctypes.byref(part) for part in parts]
        verdict = library.trapline_device_plan(
            row.row, *pointers, checks, _MAX_CHECKS, ctypes.byref(count), ctypes.byref(scan)
        )
        self.applied |= verdict != capi.PLAN_NOTHING
        if verdict == capi.PLAN_VIOLATED:
            self.violated = (row, None)  # an index into nothing: its value is worth a copy to the host
        if verdict != capi.PLAN_CHECK:
            return
        for check in checks[: count.value]:
            lengths = None
            if check.predicate == capi.PREDICATE_PADDED_INDEX and not check.lengths:
                lengths = torch.tensor(list(also), dtype=torch.int64).to(self.device)
                check.lengths, check.lengths_count = lengths.data_ptr(), lengths.numel()
            self._launch(row, check, argument[check.list_position] if check.list_position >= 0 else argument)

    def _value(self, at: int) -> Any:
        return self.given[at] if at >= 0 else _NONE

    def _also(self, row: RowPlan) -> Any:
        value = self._value(row.also)
        if not isinstance(value, torch.Tensor):
            return value
        if not value.is_cuda:
            return value.detach().to(torch.int64).tolist()
        return value.detach().to(torch.int64).contiguous()

    def _launch(self, row: RowPlan, check: capi.DeviceCheck, tensor: Any) -> None:
        library, index, stream = paths.library(), self.device.index, ctypes.c_void_p(self.stream)
        copy = self._copy_for(row, check, tensor)
        scratch = _scratch_for(
            self.device, self.stream, library.trapline_device_scratch(ctypes.byref(check), 0)
        )
        if self.call is None:
            self.call = device_faults.Call(self.plan, self.given, on_host.frames())
            device_faults.keep(self.call, self.given)
        slot = library.trapline_device_reserve(index, stream, 0)
        if slot < 0:
            return
        waited = check.heal == capi.HEAL_NONE
        contained = copy is not None or waited or check.heal == capi.HEAL_REPORT
        result = self._value(row.bound if row.bound >= 0 else row.argument) if row.remember else None
        device_faults.note_launch(slot, self.call, row, tensor, contained, waited, result)
        launched = library.trapline_device_launch(
            index, stream, slot, ctypes.byref(check), None if copy is None else copy.data_ptr(), scratch, 0
        )
        if launched != 1:
            return
        _counts["launches"] += 1
        self.wait |= waited
        if copy is not None:
            self._replace(row.argument, check.list_position, copy)

    def _copy_for(self, row: RowPlan, check: capi.DeviceCheck, tensor: Any) -> Any:
        if check.heal in (capi.HEAL_NONE, capi.HEAL_REPORT) or row.argument in self.plan.written:
            return None
        if tensor.numel() * tensor.element_size() > _heal_cap():
            _counts["uncopied"] += 1
            return None
        try:
            return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        except RuntimeError as error:  # out of memory
            debug(f"guard: a healed copy: {error!r}")
            return None

    def _replace(self, at: int, position: int, copy: Any) -> None:
        if position < 0:
            self.values[at] = copy
            return
        items = list(self.values[at])
        items[position] = copy
        self.values[at] = items


_NONE = object()


def loses_nan(values: list[Any]) -> bool:
    """Whether a copy is one of floating point numbers into integers; any other has nothing to remember."""
    to, source = values[0], values[1]
    return source.dtype.is_floating_point and not (to.dtype.is_floating_point or to.dtype.is_complex)


def replaced(values: list[Any], at: int, value: Any) -> list[Any]:
    """The values with another one at a position."""
    return [*values[:at], value, *values[at + 1 :]]


def _is_index(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.numel() > 0


def _stays(item: Any, on_host: bool) -> Any:
    """The item where it is in that memory; None where it is not."""
    return item if not isinstance(item, torch.Tensor) or item.is_cuda != on_host else None


def _is_ready(index: int) -> bool:
    known = _ready.get(index)
    if known is None:
        if os.getpid() != _pid and any(_ready.values()):
            return False
        library = paths.library()
        known = _ready[index] = library.trapline_device_ready(index) == 1
        if not known:
            why = library.trapline_device_why().decode(errors="replace")
            _say_once(f"arguments on the device are not checked: {why}")
    return known


def _say_once(what: str) -> None:
    """The user thinks that the guard is on."""
    if what not in _said:
        _said.add(what)
        say(f"guard: {what}")


def _scratch_for(device: Any, stream: int, size: int) -> int | None:
    """Zeroed memory that all launches of a stream share."""
    if size <= 0:
        return None
    found = _scratch.get((device.index, stream))
    if found is None or found.numel() < size:
        found = _scratch[device.index, stream] = torch.zeros(size, dtype=torch.uint8, device=device)
    return found.data_ptr()


def _heal_cap() -> int:
    return int(options.heal_cap_mb(_HEAL_CAP_MB)) << 20
