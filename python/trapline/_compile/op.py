"""``trapline::check``: what a lowered graph calls in front of an operation of the contracts table.

``check(argument, others, numbers, site)`` returns ``argument``. It judges it by the contract that ``site``
names; ``site`` also says how the operation's other arguments are made of ``others`` and ``numbers``
(:func:`trapline._compile.table.describe`). The result is declared as a view, so that nothing is copied and
the compiler keeps the memory alive; whoever uses the argument afterwards uses the result, so that no pass of
the compiler can move the check behind its use or drop it.

With the compiled adapter the operation's kernel is ``src/guard/python/compiled.cpp`` and comes here only
with what is bad; with the pure-Python one it is :func:`_check`.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from typing import Any

import torch

from trapline._compile import sites
from trapline._compile.values import Site, Values, read, site_of
from trapline._guard import active, on_host
from trapline._library import capi, scans
from trapline._library.say import debug

_REMEMBERED = 16
_MAX_FRAMES = 512
DIRECT = "checked"  # torch.ops.trapline.checked(argument, others, numbers, site)
_library: Any = None
_casts: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)


def define() -> None:
    """Make the operation known to the dispatcher, for good: compiled code may call it as long as it lives."""
    global _library
    if _library is not None:
        return
    library = torch.library.Library("trapline", "DEF")
    tags = [
        tag for name in ("pt2_compliant_tag", "flexible_layout") if (tag := getattr(torch.Tag, name, None))
    ]
    library.define(
        "check(Tensor(a) argument, Tensor[] others, SymInt[] numbers, str site) -> Tensor(a)",
        tags=tuple(tags),
    )
    compiled = getattr(active.adapter, "compiled_check", None)
    if compiled is None:
        library.impl("check", _check, "CompositeExplicitAutograd")
    torch.library.register_fake("trapline::check", _fake, lib=library)
    # The same past the dispatcher, for the code that Inductor writes (lowering.py).
    setattr(torch.ops.trapline, DIRECT, _check if compiled is None else compiled(read, _check))
    # The same without an alias, for a trace that takes aliases apart; the pass over the graph replaces it.
    library.define("check_copy(Tensor argument, Tensor[] others, SymInt[] numbers, str site) -> Tensor")
    library.impl("check_copy", _check_copy, "CompositeExplicitAutograd")
    torch.library.register_fake("trapline::check_copy", _fake_copy, lib=library)
    _library = library
    active.follow_compiled(remembered, complete, complete_cast)


def remembered() -> list[dict[str, Any]]:
    """Casts of NaN in compiled graphs, newest first."""
    return list(_casts)


def _fake(argument: torch.Tensor, others: Any, numbers: Any, site: str) -> torch.Tensor:
    return torch.ops.aten.alias.default(argument)


def _fake_copy(argument: torch.Tensor, others: Any, numbers: Any, site: str) -> torch.Tensor:
    return torch.empty_like(argument)


def _check_copy(argument: torch.Tensor, others: Any, numbers: Any, site: str) -> torch.Tensor:
    return _check(argument, others, numbers, site).clone()


def _check(argument: torch.Tensor, others: Any, numbers: Any, site: str) -> torch.Tensor:
    if argument.device.type != "cpu" or not active.is_enabled():
        return argument
    answer = None
    try:
        answer = _judge(argument, others, numbers, site)
    except Exception as problem:
        debug(f"guard: a compiled operation is not checked: {problem!r}")
    if isinstance(answer, BaseException):
        raise answer
    return argument if answer is None else _like(argument, answer)


def _like(argument: torch.Tensor, healed: torch.Tensor) -> torch.Tensor:
    """A healed tensor with the strides that the compiled code reads it by."""
    if healed.stride() == argument.stride():
        return healed
    return torch.empty_strided(argument.shape, argument.stride(), dtype=argument.dtype).copy_(healed)


def _judge(argument: torch.Tensor, others: Any, numbers: Any, text: str) -> Any:
    """None, the exception to raise, or the argument healed (``--on-fault skip``)."""
    call = _thread.calls.get(text)
    if call is None or call.numbers != numbers or call.strides != argument.stride():
        site = site_of(text)
        call = _Call(site, Values(site, argument, others, numbers), argument, numbers)
        if not site.reads_others:
            _thread.calls[text] = call
    if call.checked is None:
        return None
    call.checked.data = argument.data_ptr() or None
    if call.site.judge(*call.arguments) != capi.VIOLATED:
        return None
    site, scan = call.site, call.scan
    if site.list_position is not None:
        scan.list_position = site.list_position
    stack = sites.choose(site.program, site.node)
    if site.row.contents.remember:
        _casts.appendleft(
            {
                "contract": site.contract,
                "scan": scans.as_dict(scan),
                "frames": on_host.running_frames(_MAX_FRAMES),
                "storage": 0,
                "shape": list(argument.shape),
                "graph_stack": stack,
            }
        )
        return None
    values = Values(site, argument, others, numbers)
    return _answer(
        {
            "contract": site.contract,
            "op": site.op,
            "overload": site.overload,
            "scan": scans.as_dict(scan),
            "tensor": argument,
            "args": values.arguments(),
            "owners": values.owners(),
            "frames": on_host.running_frames(_MAX_FRAMES),
            "graph_stack": stack,
            "thread": threading.get_native_id(),
        }
    )


def complete(violation: dict[str, Any]) -> None:
    """Turn the arguments of a check, which the adapter found to be bad on a device, into the operation's."""
    given = violation["args"]
    site = site_of(given["site"])
    values = Values(site, violation.get("tensor"), given["others"], given["numbers"])
    if site.list_position is not None:
        violation["scan"]["list_position"] = site.list_position
    codes = [code for code, _ in violation.get("frames") or ()]
    violation["graph_stack"] = sites.choose(site.program, site.node, codes)
    violation["owners"] = [owner for owner in values.owners() if owner is not None]
    violation["args"] = values.arguments()


def complete_cast(cast: dict[str, Any]) -> dict[str, Any]:
    """The same for a cast of NaN."""
    site = site_of(cast["site"])
    codes = [code for code, _ in cast["frames"]]
    return {**cast, "graph_stack": sites.choose(site.program, site.node, codes)}


def _answer(violation: dict[str, Any]) -> Any:
    """What the handler says. The operations that it runs itself are not guarded, nor remembered as casts."""
    adapter = active.adapter
    assert adapter is not None
    adapter.set_enabled(False)
    try:
        return active.on_violation(violation)
    finally:
        adapter.set_enabled(True)


class _Call:
    """One check as the C interface takes it, kept for the next one of the same sizes and strides."""

    def __init__(self, site: Site, values: Values, argument: torch.Tensor, numbers: Any) -> None:
        row = site.row.contents
        names = (site.argument, row.bound_arg.decode(), row.dim_arg.decode(), row.also_arg.decode())
        described = [values.described(name) if name else None for name in names]
        self.site = site
        self.numbers = list(numbers)
        self.strides = argument.stride()
        self.scan = capi.Scan()
        self.checked = None  # the structure that takes the argument's address
        if described[0] is not None:
            first = described[0]
            items = first.list if first.kind == capi.ARG_LIST else None
            self.checked = first.tensor if items is None else items[site.list_position]
        pointers = [None if value is None else ctypes.byref(value) for value in described]
        self.arguments = (site.row, *pointers, ctypes.byref(self.scan))


class _Thread(threading.local):
    def __init__(self) -> None:
        self.calls: dict[str, _Call] = {}


_thread = _Thread()
