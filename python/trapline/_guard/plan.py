"""What to do at one overload of one operation: its rows of the contracts table, by position.

The pure-Python twin of ``src/guard/plan.cpp``.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import torch

_TENSORS = ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]")
_INTEGERS = ("int", "Optional[int]", "SymInt", "Optional[SymInt]")
_SIZES = ("List[int]", "Optional[List[int]]", "List[SymInt]", "Optional[List[SymInt]]")
_MAX_RECORDED = 4


@dataclass
class RowPlan:
    """A row, and where its arguments are in the overload's schema; -1: the row names none."""

    row: Any  # pointer to trapline_contract
    id: str
    argument: int
    bound: int
    dim: int
    also: int
    remember: bool


@dataclass
class Plan:
    """One overload of the running torch that at least one row applies to."""

    call: Any  # torch.ops.aten.<op>.<overload>, or of another library
    op: str  # "aten::embedding"
    overload: str  # "" or "out"
    names: list[str]
    defaults: list[Any]
    tensors: list[int]  # positions of single tensors
    rows: list[RowPlan] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)  # positions of the tensors that the history keeps
    written: list[int] = field(default_factory=list)  # positions of what the operation writes to
    generator: int = -1  # position of the generator that it draws from
    on_cpu: bool = True  # there is a kernel for the CPU

    @property
    def full_name(self) -> str:
        """What torch.library.Library.impl wants: "aten::embedding", "aten::index_select.out"."""
        return f"{self.op}.{self.overload}" if self.overload else self.op

    @property
    def composite(self) -> bool:
        return any(row.row.contents.composite for row in self.rows)

    @property
    def remember(self) -> bool:
        """All rows only remember: calls are not worth a place in the history."""
        return all(row.remember for row in self.rows)

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The values of all schema arguments, in order; torch leaves out those that have their default."""
        values = list(args)
        for at in range(len(args), len(self.names)):
            values.append(kwargs.get(self.names[at], self.defaults[at]))
        return values


def make_plans(library: ctypes.CDLL) -> list[Plan]:
    """One plan for every overload of the running torch that a row of the contracts table applies to."""
    count = ctypes.c_size_t()
    table = library.trapline_contracts(ctypes.byref(count))
    plans: dict[tuple[str, str], Plan] = {}
    for i in range(count.value):
        row = ctypes.pointer(table[i])
        space, _, full = row.contents.op.decode().partition("::")
        name, _, only = full.partition(".")
        packet = getattr(getattr(torch.ops, space), name, None)
        for overload in packet.overloads() if packet is not None else ():
            if only and overload != only:
                continue
            call = getattr(packet, overload)
            if not _in_dispatcher(call._schema):
                continue
            resolved = resolve(row, call._schema)
            if resolved is not None:
                key = (call._schema.name, call._schema.overload_name)
                plan = plans.get(key) or plans.setdefault(key, new_plan(call))
                plan.rows.append(resolved)
    for plan in plans.values():
        _choose_recorded(plan)
    return list(plans.values())


def _in_dispatcher(schema: Any) -> bool:
    """False for overloads that only TorchScript's interpreter has."""
    try:
        torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
    except RuntimeError:
        return False
    return True


def _has_cpu_kernel(schema: Any) -> bool:
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    return torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "CPU")


def resolve(row: Any, schema: Any) -> RowPlan | None:
    contract = row.contents
    argument = _position(schema, contract.argument.decode(), _TENSORS)
    bound = _position(schema, contract.bound_arg.decode(), _TENSORS + _INTEGERS + _SIZES)
    dim = _position(schema, contract.dim_arg.decode(), _TENSORS + _INTEGERS + _SIZES)
    also = _position(schema, contract.also_arg.decode(), (*_INTEGERS, *_TENSORS, *_SIZES, "bool"))
    if argument is None or argument < 0 or bound is None or dim is None or also is None:
        return None
    return RowPlan(row, contract.id.decode(), argument, bound, dim, also, bool(contract.remember))


def _position(schema: Any, name: str, types: tuple[str, ...]) -> int | None:
    """-1: the row names no such argument. None: it does, and this overload has none of that name and type."""
    if not name:
        return -1
    for at, argument in enumerate(schema.arguments):
        if argument.name == name:
            return at if str(argument.type) in types else None
    return None


def new_plan(call: Any) -> Plan:
    schema = call._schema
    return Plan(
        call=call,
        op=schema.name,
        overload=schema.overload_name,
        names=[argument.name for argument in schema.arguments],
        defaults=[argument.default_value for argument in schema.arguments],
        tensors=[
            at for at, a in enumerate(schema.arguments) if str(a.type) in ("Tensor", "Optional[Tensor]")
        ],
        written=[
            at for at, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write
        ],
        generator=next(
            (at for at, a in enumerate(schema.arguments) if "Generator" in str(a.type)),
            -1,
        ),
        on_cpu=_has_cpu_kernel(schema),
    )


def _choose_recorded(plan: Plan) -> None:
    """The history has room for few tensors: those that a row checks come first."""
    chosen = list(dict.fromkeys(row.argument for row in plan.rows))
    for at, argument in enumerate(plan.call._schema.arguments):
        is_out = getattr(argument, "is_out", False)
        if at not in chosen and str(argument.type) in _TENSORS and not is_out:
            chosen.append(at)
    plan.recorded = sorted(chosen[:_MAX_RECORDED])
