"""Leaves out the checks that another one makes needless: of the same tensor, by the same bound, before it.

A loss and its gradient, an embedding and its gradient are two operations with two contracts, and both are
given the tensor that autograd has kept. The second use takes the result of the first check, as the first use
does: in ``--on-fault skip`` and on a device that is the healed copy.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from trapline._compile import table
from trapline._compile.values import length
from trapline._library import capi


def merge(checks: list[Any]) -> None:
    """Take out of the graph what is needless among its checks, which are in the order of their execution."""
    first: dict[Any, Any] = {}
    for node in checks:
        said = _range(node)
        if said is None:
            continue
        *key, also = said
        before = first.setdefault(tuple(key), (node, also))
        # A check that allows a value besides the range (ignore_index) is no substitute for one that does not.
        if before[0] is node or before[1] not in (None, also):
            continue
        node.replace_all_uses_with(before[0])
        node.graph.erase_node(node)


def _range(node: Any) -> tuple[Any, ...] | None:
    """(tensor, wrapped, bound, the value that is allowed besides); None where that is not simple to say."""
    argument, _, numbers, text = node.args
    value = argument.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dtype is not torch.int64:
        return None  # which integers are read is up to each row; all that are merged read these
    site = json.loads(text)
    row = table.contract(site["contract"])
    arguments = dict(site["args"])
    call = _Call(arguments, numbers)
    allows = row["also"] == capi.ALSO_ALLOWED
    also = call.integer(row["also_arg"]) if allows else None
    if allows and also is None:
        return None
    if row["predicate"] == capi.PREDICATE_INDEX_LIST:
        bound = call.size(row["bound_arg"], call.dimension(row["argument"], site["list_position"]))
    elif row["predicate"] not in (capi.PREDICATE_INDEX, capi.PREDICATE_WRAPPED_INDEX):
        return None
    elif row["bound"] == capi.BOUND_SIZE_OF_DIM:
        bound = call.size(row["bound_arg"], call.integer(row["dim_arg"]) if row["dim_arg"] else 0)
    elif row["bound"] == capi.BOUND_CLASSES:
        bound = call.size(row["bound_arg"], min(1, call.dims(row["bound_arg"]) - 1))
    elif row["bound"] == capi.BOUND_INTEGER:
        bound = call.integer(row["bound_arg"])
    else:
        return None
    return None if bound is None else (argument, row["predicate"] != capi.PREDICATE_INDEX, bound, also)


class _Call:
    """The arguments of the checked operation; a number is an int, or the node that computes it."""

    def __init__(self, arguments: dict[str, Any], numbers: Any) -> None:
        self._arguments = arguments
        self._numbers = numbers
        self._starts: dict[str, int] = {}
        start = 0
        for name, entry in arguments.items():
            self._starts[name] = start
            start += sum(map(length, entry[1] if entry[0] == "list" else [entry]))

    def integer(self, name: str) -> Any:
        return self._numbers[self._starts[name]] if self._arguments[name][0] == "int" else None

    def dims(self, name: str) -> int:
        entry = self._arguments[name]
        return entry[2] if entry[0] in ("checked", "tensor") else 0

    def size(self, name: str, dim: Any) -> Any:
        dims = self.dims(name)
        if not isinstance(dim, int) or not -dims <= dim < dims:
            return None
        return self._numbers[self._starts[name] + dim % dims]

    def dimension(self, name: str, position: int) -> int:
        """The dimension that the index at ``position`` of a list stands for."""
        before = self._arguments[name][1][:position]
        return sum(item[2] if item[0] == "tensor" and item[1] in ("bool", "uint8") else 1 for item in before)
