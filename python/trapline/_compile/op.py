"""``trapline::check``: what a lowered graph calls in front of an operation of the contracts table.

``check(argument, others, numbers, site)`` returns ``argument``. It judges it by the contract that ``site``
names; ``site`` also says how the operation's other arguments are made of ``others`` and ``numbers``
(:func:`trapline._compile.table.describe`). The result is declared as a view, so that nothing is copied and
the compiler keeps the memory alive; whoever uses the argument afterwards uses the result, so that no pass of
the compiler can move the check behind its use or drop it.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
import threading
from collections import deque
from typing import Any

import torch

from trapline import _adapter, _capi, _paths, _pure
from trapline._compile import sites

_REMEMBERED = 16
_MOST_FRAMES = 512
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
    library.impl("check", _check, "CompositeExplicitAutograd")
    torch.library.register_fake("trapline::check", _fake, lib=library)
    # The same without an alias, for a trace that takes aliases apart; the pass over the graph replaces it.
    library.define("check_copy(Tensor argument, Tensor[] others, SymInt[] numbers, str site) -> Tensor")
    library.impl("check_copy", _check_copy, "CompositeExplicitAutograd")
    torch.library.register_fake("trapline::check_copy", _fake_copy, lib=library)
    _library = library


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
    if argument.device.type != "cpu" or not _adapter.is_enabled():
        return argument
    answer = None
    try:
        answer = _judge(argument, others, numbers, site)
    except Exception as problem:
        if os.environ.get("TRAPLINE_DEBUG") == "1":
            print(f"trapline: guard: a compiled operation is not checked: {problem!r}", file=sys.stderr)
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
        site = _read(text)
        call = _Call(site, _Values(site, argument, others, numbers), argument)
        if not site.reads_others:
            _thread.calls[text] = call
    if call.checked is None:
        return None
    call.checked.data = argument.data_ptr() or None
    if call.site.judge(*call.arguments) != _capi.VIOLATED:
        return None
    site, scan = call.site, call.scan
    if site.list_position is not None:
        scan.list_position = site.list_position
    stack = sites.choose(site.program, site.node)
    if site.row.contents.remember:
        cast = {"contract": site.contract, "scan": _pure._scan(scan), "frames": _pure._frames(_MOST_FRAMES)}
        _casts.appendleft({**cast, "storage": 0, "shape": list(argument.shape), "graph_stack": stack})
        return None
    values = _Values(site, argument, others, numbers)
    return _answer(
        {
            "contract": site.contract,
            "op": site.op,
            "overload": site.overload,
            "scan": _pure._scan(scan),
            "tensor": argument,
            "args": values.arguments(),
            "owners": values.owners(),
            "frames": _pure._frames(_MOST_FRAMES),
            "graph_stack": stack,
            "thread": threading.get_native_id(),
        }
    )


def _answer(violation: dict[str, Any]) -> Any:
    """What the handler says. The operations that it runs itself are not guarded, nor remembered as casts."""
    adapter = _adapter.adapter
    assert adapter is not None
    adapter.set_enabled(False)
    try:
        return _adapter.on_violation(violation)
    finally:
        adapter.set_enabled(True)


class _Call:
    """One check as the C interface takes it, kept for the next one of the same sizes and strides."""

    def __init__(self, site: _Site, values: _Values, argument: torch.Tensor) -> None:
        row = site.row.contents
        names = (site.argument, row.bound_arg.decode(), row.dim_arg.decode(), row.also_arg.decode())
        described = [values.described(name) if name else None for name in names]
        self.site = site
        self.numbers = list(values.numbers)
        self.strides = argument.stride()
        self.scan = _capi.Scan()
        self.checked = None  # the structure that takes the argument's address
        if described[0] is not None:
            first = described[0]
            items = first.list if first.kind == _capi.ARG_LIST else None
            self.checked = first.tensor if items is None else items[site.list_position]
        pointers = [None if value is None else ctypes.byref(value) for value in described]
        self.arguments = (site.row, *pointers, ctypes.byref(self.scan))


class _Thread(threading.local):
    def __init__(self) -> None:
        self.calls: dict[str, _Call] = {}


_thread = _Thread()


class _Site:
    """What the text of a site says."""

    def __init__(self, text: str) -> None:
        said = json.loads(text)
        self.contract: str = said["contract"]
        self.op: str = said["op"]
        self.overload: str = said["overload"]
        self.arguments: dict[str, Any] = dict(said["args"])
        self.argument = self.contract.rpartition(".")[2]
        self.list_position: int | None = said.get("list_position")
        self.program: str = said.get("program", "")
        self.node: int = said.get("node", -1)
        self.owners: list[int] = said.get("owners", [])
        self.row = _rows()[self.contract]
        self.judge = _paths.library().trapline_check
        also = self.arguments.get(self.row.contents.also_arg.decode(), ["none"])
        self.reads_others = also[0] == "tensor" and also[3] is not None
        self.starts: dict[int, int] = {}  # where the numbers of each entry begin
        start = 0
        for entry in _entries(self.arguments.values()):
            self.starts[id(entry)] = start
            start += _length(entry)


@functools.cache
def _read(text: str) -> _Site:
    return _Site(text)


@functools.lru_cache(maxsize=1)
def _rows() -> dict[str, Any]:
    count = ctypes.c_size_t()
    table = _paths.library().trapline_contracts(ctypes.byref(count))
    return {table[i].id.decode(): ctypes.pointer(table[i]) for i in range(count.value)}


class _Values:
    """The operation's arguments, made of what the check was given."""

    def __init__(self, site: _Site, argument: torch.Tensor, others: Any, numbers: Any) -> None:
        self._site = site
        self._argument = argument
        self._others = others
        self.numbers = numbers

    def described(self, name: str) -> Any:
        """The argument as the C interface takes it; None when it cannot be judged."""
        return self._arg(self._site.arguments[name])

    def arguments(self) -> dict[str, Any]:
        """By name, for a report: tensors that the check was not given are told by a meta tensor."""
        return {name: self._value(entry) for name, entry in self._site.arguments.items()}

    def owners(self) -> list[torch.Tensor]:
        """Parameters of layers that may have produced the scores of a loss."""
        return [self._others[at] for at in self._site.owners]

    def _sizes(self, entry: Any) -> list[int]:
        start = self._site.starts[id(entry)]
        return self.numbers[start : start + _length(entry)]

    def _value(self, entry: Any) -> Any:
        kind = entry[0]
        if kind == "checked":
            return self._argument
        if kind == "tensor":
            if entry[3] is not None:
                return self._others[entry[3]]
            return torch.empty(self._sizes(entry), dtype=getattr(torch, entry[1]), device="meta")
        if kind == "int":
            return self.numbers[self._site.starts[id(entry)]]
        if kind == "ints":
            return self._sizes(entry)
        if kind == "bool":
            return entry[1]
        if kind == "list":
            return [self._value(item) for item in entry[1]]
        return None

    def _arg(self, entry: Any) -> Any:
        kind = entry[0]
        if kind == "tensor" and entry[3] is None:
            arg = _capi.Arg()
            arg.kind, arg.tensor = _capi.ARG_TENSOR, _shape(self._sizes(entry), entry[1])
            return arg
        if kind != "list":
            return _pure._arg(self._value(entry))
        return self._list(entry[1])

    def _list(self, entries: list[Any]) -> Any:
        """An index list in which this check reads one tensor only; the others tell which dimension it is."""
        items = (_capi.Tensor * len(entries))()
        for at, entry in enumerate(entries):
            if entry[0] == "checked":
                described = _pure._tensor(self._argument)
                if described is None:
                    return None
                items[at] = described
            elif entry[0] == "none":
                items[at].dim = -1
            elif entry[1] in ("bool", "uint8"):
                items[at] = _shape(self._sizes(entry), entry[1])
            elif 0 in self._sizes(entry):
                return None  # an empty index: the others are broadcast away, and nothing is read
            else:
                items[at].dim = -1  # takes one dimension, as None does, and has a check of its own
        arg = _capi.Arg()
        arg.kind, arg.list, arg.list_size = _capi.ARG_LIST, items, len(entries)
        return arg


def _shape(sizes: list[int], dtype: str) -> _capi.Tensor:
    """A tensor of which nothing but its sizes is read."""
    array = ctypes.c_int64 * len(sizes)
    out = _capi.Tensor()
    out.sizes = array(*sizes)
    out.strides = array(*([0] * len(sizes)))
    out.dim = len(sizes)
    out.dtype = _pure._DTYPES.get(getattr(torch, dtype), _capi.OTHER_DTYPE)
    out.data = None
    return out


def _length(entry: Any) -> int:
    """How many numbers an entry takes: the sizes of a tensor, one for an integer."""
    if entry[0] in ("checked", "tensor"):
        return entry[2]
    return entry[1] if entry[0] == "ints" else int(entry[0] == "int")


def _entries(values: Any) -> Any:
    for entry in values:
        if entry[0] == "list":
            yield from _entries(entry[1])
        else:
            yield entry
