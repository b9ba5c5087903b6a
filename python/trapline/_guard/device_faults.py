"""What the checks on a CUDA device have found, from their launch until the program is told, where no adapter
fits this torch: the records of :mod:`trapline._guard.device_calls`.

A smaller twin of ``src/guard/device_records.cpp`` and ``device_faults.cpp``.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from trapline._guard import on_host
from trapline._library import capi, forks, paths, scans

if TYPE_CHECKING:
    from trapline._guard.plan import Plan, RowPlan

_MAX_TOLD = 64
_KEPT_CALLS = 64
_KEPT_OF_ONE = 1 << 20  # bytes
_KEPT_OF_ALL = 32 << 20


class Call:
    """One guarded call: what is told of it later."""

    def __init__(self, plan: Plan, values: list[Any], frames: list[tuple[Any, int]]) -> None:
        self.plan = plan
        self.frames = frames
        self.thread, self.thread_name = threading.get_native_id(), threading.current_thread().name
        self.batch = _batch
        self.refused = False  # by a check of PyTorch's own on the host: no kernel read what is checked
        self.shapes = {
            name: list(value.shape)
            for name, value in zip(plan.names, values)
            if isinstance(value, torch.Tensor)
        }
        self.values = [_weak(value) for value in values]

    @property
    def of_autograd(self) -> bool:
        """A thread of autograd has no program of its own that could come by."""
        return not self.frames


class Launch(NamedTuple):
    """One check in flight, by its slot."""

    order: int
    call: Call
    row: RowPlan
    tensor: Any  # weak
    version: int
    shape: list[int]
    dtype: str
    device: str
    contained: bool  # the operation got a healed copy, or does no harm
    waited: bool  # the host waits for it before the operation runs
    result: tuple[int, list[int]]  # rows that only remember: where the values went, and as what


class Fault(NamedTuple):
    """What a check has found, not yet told."""

    launch: Launch
    scan: dict[str, Any]


class _Told(NamedTuple):
    """A bad tensor that is known: what came of it before the program could learn of it is no second fault."""

    tensor: Any
    version: int
    predicate: int
    lo: int
    hi: int
    order: int
    raised: list[int]  # the last launch before it was raised; empty: not yet


_lock = threading.RLock()  # what is freed under it may run operations
_launches: dict[int, Launch] = {}
_waiting: list[Fault] = []
_told: deque[_Told] = deque(maxlen=_MAX_TOLD)
_kept: deque[tuple[Call, list[Any], int]] = deque(maxlen=_KEPT_CALLS)
_collecting = False  # what is in no list yet
_order = 0
_batch = 0
_pool = threading.local()


def _fresh_lock() -> None:
    global _lock
    _lock = threading.RLock()


forks.in_child(_fresh_lock)


def _version(tensor: Any) -> int:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor has no counter
        return -1


def _weak(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return weakref.ref(value)
    if isinstance(value, (list, tuple)):
        return [_weak(item) for item in value]
    return value


def _strong(value: Any) -> Any:
    if isinstance(value, weakref.ref):
        return value()
    return [_strong(item) for item in value] if isinstance(value, list) else value


def keep(call: Call, values: list[Any]) -> None:
    """Small tensors stay for the report, whatever the program does with them. Not those of a graph's pool."""
    if getattr(_pool, "depth", 0):
        return
    small = []
    for value in values:
        for tensor in value if isinstance(value, (list, tuple)) else [value]:
            if _is_small(tensor):
                small.append(tensor)
    size = sum(tensor.untyped_storage().nbytes() for tensor in small)
    dropped = []
    with _lock:
        _kept.append((call, small, size))
        total = sum(entry[2] for entry in _kept)
        while total > _KEPT_OF_ALL and len(_kept) > 1:
            dropped.append(_kept.popleft())
            total -= dropped[-1][2]
    del dropped  # without the lock: memory is freed


def _is_small(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.requires_grad:
        return False
    return value.untyped_storage().nbytes() <= _KEPT_OF_ONE


def note_launch(
    slot: int, call: Call, row: RowPlan, tensor: Any, contained: bool, waited: bool, result: Any
) -> None:
    """A check is about to be launched under this slot."""
    global _order
    is_tensor = isinstance(result, torch.Tensor)
    with _lock:
        _order += 1
        _launches[slot] = Launch(
            order=_order,
            call=call,
            row=row,
            tensor=weakref.ref(tensor),
            version=_version(tensor),
            shape=list(tensor.shape),
            dtype=str(tensor.dtype).rpartition(".")[2],
            device=str(tensor.device),
            contained=contained,
            waited=waited,
            result=(result.untyped_storage().data_ptr(), list(result.shape)) if is_tensor else (0, []),
        )


# What the device has reported ---------------------------------------------------------------------


def pending() -> bool:
    """Whether there may be a fault to tell. Cheap."""
    # In this order: a report is announced before it is no longer pending (see _collect).
    return paths.library().trapline_device_pending() != 0 or _collecting or bool(_waiting)


def take(own: bool) -> Fault | None:
    """The fault that was launched first, if there is one; ``own``: only one that this thread caused."""
    thread = threading.get_native_id()
    with _lock:
        _collect()
        _waiting[:] = [fault for fault in _waiting if not fault.launch.call.refused]
        for fault in _waiting:
            call = fault.launch.call
            if own and call.thread != thread and not call.of_autograd:
                continue
            _waiting.remove(fault)
            for told in _told:
                if told.order == fault.launch.order:
                    told.raised.append(_order)
            return fault
    return None


def _collect() -> None:
    """The reports of the device become faults. Under the lock."""
    global _collecting
    _collecting = True  # before the reports leave the device's memory: a thread that reads must wait
    try:
        _collect_all()
    finally:
        _collecting = False


def _collect_all() -> None:
    library = paths.library()
    reports = (capi.DeviceReport * 16)()
    while library.trapline_device_pending() != 0:
        count = library.trapline_device_poll(reports, 16)
        if count <= 0:
            break
        for report in reports[:count]:
            launch = _launches.get(report.slot)
            if launch is None or launch.call.refused:
                continue
            scan = scans.as_dict(report.scan)
            if launch.row.remember:
                on_host.remember_late(launch, scan)
            elif not _is_told(launch, scan):
                _told.appendleft(
                    _Told(
                        launch.tensor,
                        launch.version,
                        _predicate(launch),
                        scan["lo"],
                        scan["hi"],
                        launch.order,
                        [],
                    )
                )
                _waiting.append(Fault(launch, scan))
    _waiting.sort(key=lambda fault: fault.launch.order)


def _predicate(launch: Launch) -> int:
    return launch.row.row.contents.predicate


def _is_told(launch: Launch, scan: dict[str, Any]) -> bool:
    tensor = launch.tensor()
    return not launch.waited and any(
        (told.tensor() is tensor if tensor is not None else told.tensor is launch.tensor)
        and (told.version, told.predicate) == (launch.version, _predicate(launch))
        and (told.lo, told.hi) == (scan["lo"], scan["hi"])
        and (not told.raised or launch.order <= told.raised[0] or launch.call.of_autograd)
        for told in _told
    )


def describe(fault: Fault) -> dict[str, Any]:
    """A violation as ``src/guard/python/fault.cpp`` describes it."""
    launch, call = fault.launch, fault.launch.call
    tensor = launch.tensor()
    if tensor is not None and _version(tensor) != launch.version:
        tensor = None  # written to since
    out = {
        "contract": launch.row.id,
        "op": call.plan.op,
        "overload": call.plan.overload,
        "scan": fault.scan,
        "tensor": tensor,
        "args": {name: _strong(value) for name, value in zip(call.plan.names, call.values)},
        "graphs": {},
        "shapes": call.shapes,
        "frames": call.frames,
        "thread": f"{call.thread_name}/{call.thread}",
        "late": True,
        "again": False,
        "replayed": False,
        "backward": call.of_autograd,
        "contained": launch.contained,
        "waited": launch.waited,
        "order": launch.order,
        "unsure": launch.version < 0,
        "device": launch.device,
        "shape": launch.shape,
        "dtype": launch.dtype,
    }
    if call.batch:
        out["batch"] = call.batch
    return out


def note_batch(serial: int) -> None:
    """A DataLoader gives out a batch; the calls that follow remember its number."""
    global _batch
    _batch = int(serial)


def note_pool(begins: bool) -> None:
    """This thread's allocations come from the pool of a CUDA graph, or no longer."""
    _pool.depth = getattr(_pool, "depth", 0) + (1 if begins else -1)


def order() -> int:
    """The number of the last launch."""
    return _order


def wait() -> None:
    """Until every check launched so far has run; not for what was enqueued after it."""
    paths.library().trapline_device_wait()


def forget() -> None:
    """Drops what was found and not told, and what was kept: the guard is going, or no check is on its way."""
    with _lock:
        _collect()
        _waiting.clear()
        _told.clear()
        dropped = list(_kept)
        _kept.clear()
    del dropped


def forget_contents() -> None:
    """No check is on its way that could want them."""
    with _lock:
        dropped = list(_kept)
        _kept.clear()
    del dropped
