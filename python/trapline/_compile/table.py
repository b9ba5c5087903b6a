"""Decompositions that check: the operations of the contracts table, as Inductor's trace meets them.

While it traces, AOTAutograd asks the table of decompositions about every operation of the program, forward
and backward, with the operation's own arguments. That is the moment at which a loss still is a loss: what
`cross_entropy` is taken apart into afterwards (a comparison, a `where`, a `gather`) need not be recognized.
"""

from __future__ import annotations

import ctypes
import json
import threading
from typing import Any, Callable

import torch

from trapline._guard.plan import Plan, RowPlan, make_plans, new_plan, resolve
from trapline._library import capi, paths

# What the trace has in place of an operation of the contracts table: (operation, overload, what the table
# calls it, the argument that goes by another name). There are no in-place operations left in a trace.
STANDS_FOR = (
    ("_to_copy", "", "aten::copy_", "self"),  # x.long(), x.to(torch.int64)
    ("copy", "", "aten::copy_", None),
    (
        "bernoulli",
        "",
        "aten::bernoulli_",
        "self",
    ),  # bernoulli(x) is an in-place bernoulli_(p=x) without a compiler
)
CAST = "copy_.src"


class Guarded(dict):
    """A table of decompositions that holds checks."""


class _State(threading.local):
    operation: Any = None  # the operation that is being traced as itself, its check being in front already
    tracing = 0  # this thread traces for Inductor
    within = 0  # inside an operation of early_decompositions.py whose check is in front


state = _State()
_plans: list[Plan] = []


def guarded(decompositions: dict[Any, Callable[..., Any]]) -> Guarded:
    """The same table, with a check in front of every operation that a contract speaks of."""
    result = Guarded(decompositions)
    for plan in plans():
        result[plan.call] = _checking(plan, decompositions.get(plan.call))
    return result


def plans() -> list[Plan]:
    """What to check at which overload of the running torch."""
    if not _plans:
        library = paths.library()
        found = [plan for plan in make_plans(library) if not plan.call._schema.is_mutable]
        for stand_in in STANDS_FOR:
            found += _stand_in(library, *stand_in)
        _plans.extend(found)
    return _plans


def _stand_in(
    library: ctypes.CDLL, name: str, overload: str, row_op: str, argument: str | None
) -> list[Plan]:
    """The rows of ``row_op`` for the operation ``name``; nothing where this torch does not have it."""
    call = getattr(getattr(torch.ops.aten, name, None), overload or "default", None)
    if call is None:
        return []
    plan = new_plan(call)
    count = ctypes.c_size_t()
    table = library.trapline_contracts(ctypes.byref(count))
    for row in (ctypes.pointer(table[i]) for i in range(count.value)):
        if row.contents.op.decode() != row_op:
            continue
        if argument is not None:
            at = plan.names.index(argument)
            plan.rows.append(
                RowPlan(row, row.contents.id.decode(), at, -1, -1, -1, bool(row.contents.remember))
            )
            continue
        resolved = resolve(row, call._schema)
        if resolved is not None:
            plan.rows.append(resolved)
    return [plan] if plan.rows else []


def contract(identifier: str) -> dict[str, Any]:
    """One row of the contracts table."""
    from trapline._library import diagnose

    return diagnose.contract(identifier)


def _checking(plan: Plan, original: Callable[..., Any] | None) -> Callable[..., Any]:
    def decomposition(*args: Any, **kwargs: Any) -> Any:
        if state.operation is plan.call:
            state.operation = None
            return NotImplemented
        if _nested():
            # A part of another operation, on indices that this one computed.
            return NotImplemented if original is None else original(*args, **kwargs)
        args, kwargs = with_checks(plan, args, kwargs, torch.ops.trapline.check.default)
        if original is not None:
            result = original(*args, **kwargs)
            if result is not NotImplemented:
                return result
        state.operation = plan.call
        try:
            return plan.call(*args, **kwargs)
        finally:
            state.operation = None

    return decomposition


def _nested() -> bool:
    """Inside the decomposition of another operation."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    return state.within > 0 or getattr(get_proxy_mode(), "decomp_layers", 1) > 1


def with_checks(plan: Plan, args: tuple, kwargs: dict[str, Any], check: Any) -> tuple[tuple, dict[str, Any]]:
    """The call's arguments, those that a row speaks of replaced by what their check returns."""
    values = plan.bind(args, kwargs)
    checked = list(values)
    for row in plan.rows:
        value = values[row.argument]
        if isinstance(value, torch.Tensor):
            checked[row.argument] = _check(plan, row, values, value, None, check)
        elif isinstance(value, (list, tuple)):
            checked[row.argument] = [
                _check(plan, row, values, item, at, check) if isinstance(item, torch.Tensor) else item
                for at, item in enumerate(value)
            ]
    given = {name: checked[plan.names.index(name)] for name in kwargs if name in plan.names}
    return tuple(checked[: len(args)]), {**kwargs, **given}


def _check(
    plan: Plan, row: RowPlan, values: list[Any], tensor: torch.Tensor, at: int | None, check: Any
) -> torch.Tensor:
    if not _can_be_wrong(plan, row, values, tensor):
        return tensor
    arguments, others, numbers = describe(plan, row, values, at)
    site = {"contract": row.id, "op": plan.op, "overload": plan.overload, "args": arguments}
    if at is not None:
        site["list_position"] = at
    return check(tensor, others, numbers, json.dumps(site))


def _can_be_wrong(plan: Plan, row: RowPlan, values: list[Any], tensor: torch.Tensor) -> bool:
    if row.id == CAST:
        target = _cast_dtype(plan, values)
        integer = target is not None and not target.is_floating_point and not target.is_complex
        return tensor.dtype.is_floating_point and integer and target is not torch.bool
    reads_masks = row.row.contents.predicate == capi.PREDICATE_MASK_COUNT
    return reads_masks == (tensor.dtype is torch.bool) and not tensor.dtype.is_complex


def _cast_dtype(plan: Plan, values: list[Any]) -> torch.dtype | None:
    if "dtype" in plan.names:
        return values[plan.names.index("dtype")]
    return values[0].dtype


def describe(plan: Plan, row: RowPlan, values: list[Any], at: int | None) -> tuple[list, list, list]:
    """The call as the check keeps it: a description, the call's other tensors, and its numbers.

    Sizes are among the numbers, so that a check needs no other tensor than the one that it reads: the pass
    over the graph takes those out that would have to be computed for it.
    """
    arguments: list[Any] = []
    others: list[torch.Tensor] = []
    numbers: list[Any] = []

    def entry(value: Any, checked: bool) -> Any:
        if isinstance(value, torch.Tensor):
            numbers.extend(value.shape)
            dtype = str(value.dtype).rpartition(".")[2]
            if checked:
                return ["checked", dtype, value.dim()]
            others.append(value)
            return ["tensor", dtype, value.dim(), len(others) - 1]
        if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
            numbers.append(value)
            return ["int"]
        if isinstance(value, bool):
            return ["bool", value]
        if isinstance(value, (list, tuple)) and value and _integers(value):
            numbers.extend(value)
            return ["ints", len(value)]
        return ["none"]

    if row.id.rpartition(".")[2] not in plan.names:  # a stand-in: said as the row's own operation has it
        source = values[row.argument]
        numbers.extend(source.shape)
        dtype = str(_cast_dtype(plan, values) if row.id == CAST else source.dtype).rpartition(".")[2]
        result = ["tensor", dtype, source.dim(), None]
        names = (row.row.contents.bound_arg.decode(), row.row.contents.argument.decode())
        return [[names[0], result], [names[1], entry(source, True)]], others, numbers
    for position, (name, value) in enumerate(zip(plan.names, values)):
        is_argument = position == row.argument
        if isinstance(value, (list, tuple)) and not _integers(value):
            items = [entry(item, is_argument and i == at) for i, item in enumerate(value)]
            arguments.append([name, ["list", items]])
        else:
            arguments.append([name, entry(value, is_argument)])
    return arguments, others, numbers


def _integers(values: Any) -> bool:
    return all(isinstance(item, (int, torch.SymInt)) and not isinstance(item, bool) for item in values)
