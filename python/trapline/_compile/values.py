"""What the text of a site says: how the arguments of the checked operation are made of what a check is given.

:class:`Site` reads the text, :class:`Values` makes the arguments for one call, and :func:`read` says the same
to the adapter (``src/guard/compiled_site.hpp``), which judges without Python.
"""

from __future__ import annotations

import ctypes
import functools
import json
from typing import Any

import torch

from trapline._library import capi, paths, tensors


class Site:
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
        self.numbers: list[int | None] | None = said.get("numbers")
        self.row = _rows()[self.contract]
        self.judge = paths.library().trapline_check
        also = self.arguments.get(self.row.contents.also_arg.decode(), ["none"])
        self.reads_others = also[0] == "tensor" and also[3] is not None
        self.starts: dict[int, int] = {}  # where the numbers of each entry begin
        start = 0
        for entry in _entries(self.arguments.values()):
            self.starts[id(entry)] = start
            start += length(entry)

    def all_numbers(self, numbers: Any) -> list[int]:
        """The numbers of a call: those that the text holds, and between them those that the call brings."""
        if self.numbers is None:
            return list(numbers)
        given = iter(numbers)
        return [next(given) if number is None else number for number in self.numbers]


@functools.cache
def site_of(text: str) -> Site:
    """What the text says."""
    return Site(text)


@functools.lru_cache(maxsize=1)
def _rows() -> dict[str, Any]:
    count = ctypes.c_size_t()
    table = paths.library().trapline_contracts(ctypes.byref(count))
    return {table[i].id.decode(): ctypes.pointer(table[i]) for i in range(count.value)}


class Values:
    """The operation's arguments, made of what the check was given."""

    def __init__(self, site: Site, argument: torch.Tensor, others: Any, numbers: Any) -> None:
        self._site = site
        self._argument = argument
        self._others = others
        self.numbers = site.all_numbers(numbers)

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
        return self.numbers[start : start + length(entry)]

    def _value(self, entry: Any) -> Any:
        kind = entry[0]
        if kind == "checked":
            return self._argument
        if kind == "tensor":
            if entry[3] is not None and self._others[entry[3]] is not None:
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
            arg = capi.Arg()
            arg.kind, arg.tensor = capi.ARG_TENSOR, _shape(self._sizes(entry), entry[1])
            return arg
        if kind != "list":
            return tensors.arg_of(self._value(entry))
        return self._list(entry[1])

    def _list(self, entries: list[Any]) -> Any:
        """An index list in which this check reads one tensor only; the others tell which dimension it is."""
        items = (capi.Tensor * len(entries))()
        for at, entry in enumerate(entries):
            if entry[0] == "checked":
                described = tensors.tensor_of(self._argument)
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
        arg = capi.Arg()
        arg.kind, arg.list, arg.list_size = capi.ARG_LIST, items, len(entries)
        return arg


def _shape(sizes: list[int], dtype: str) -> capi.Tensor:
    """A tensor of which nothing but its sizes is read."""
    array = ctypes.c_int64 * len(sizes)
    out = capi.Tensor()
    out.sizes = array(*sizes)
    out.strides = array(*([0] * len(sizes)))
    out.dim = len(sizes)
    out.dtype = tensors.DTYPES.get(getattr(torch, dtype), capi.OTHER_DTYPE)
    out.data = None
    return out


def length(entry: Any) -> int:
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


def read(text: str) -> tuple[Any, ...]:
    """(contract, operation, overload, list position, numbers, the four arguments of trapline_check)."""
    site = site_of(text)
    row = site.row.contents
    names = (site.argument, row.bound_arg.decode(), row.dim_arg.decode(), row.also_arg.decode())
    parts = tuple(_entry(site, site.arguments[name]) if name else None for name in names)
    count = sum(map(length, _entries(site.arguments.values())))
    numbers = tuple(site.numbers) if site.numbers is not None else (None,) * count
    position = -1 if site.list_position is None else site.list_position
    return (site.contract, site.op, site.overload, position, numbers, parts)


def _entry(site: Site, entry: Any, in_list: bool = False) -> tuple[Any, ...]:
    """(kind, dtype, which of the others, where its numbers begin, how many they are, elements)."""
    kind, dtype, other, start, items = capi.SITE_NONE, capi.OTHER_DTYPE, -1, 0, ()
    if entry[0] == "list":
        kind, items = capi.SITE_LIST, tuple(_entry(site, item, in_list=True) for item in entry[1])
        return (kind, dtype, other, start, len(items), items)
    start = site.starts[id(entry)]
    if entry[0] == "checked":
        kind = capi.SITE_CHECKED
    elif entry[0] == "tensor":
        dtype = tensors.DTYPES.get(getattr(torch, entry[1]), capi.OTHER_DTYPE)
        kind, other = (capi.SITE_SHAPE, -1) if in_list or entry[3] is None else (capi.SITE_TENSOR, entry[3])
    elif entry[0] == "bool":
        kind, start = capi.SITE_FLAG, int(entry[1])
    elif entry[0] in ("int", "ints"):
        kind = capi.SITE_INT if entry[0] == "int" else capi.SITE_INTS
    return (kind, dtype, other, start, length(entry), items)
