"""Before a call is given a finding: what PyTorch's own operation says of it.

The pure-Python twin of ``src/guard/trial.cpp``, which says why.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from trapline._guard.plan import Plan
from trapline._library import capi, heal

_MAX_COPIED = 64 << 20
_MAX_ROUNDS = 64

Run = Callable[[list[Any]], Any]
Judge = Callable[[list[Any], Any], Any]  # the scan of a row that is violated, as a dict; else None


def ask(plan: Plan, values: list[Any], judge: Judge, run: Run) -> tuple[bool, str]:
    """Whether the call is at fault, and what the operation throws because of its bad values.

    Raises:
        Exception: the operation's own, where it ends the call without the bad values, too.
    """
    if not plan.on_cpu:
        return True, ""
    healed, harmless, refuses = _heal_all(plan, values, judge)
    copies = _copies(plan, values)
    if copies is None:
        return True, ""
    state = _random_state(plan, values)
    first = None
    if harmless:
        first = _thrown(run, _views(values, copies), state)
        if first is None:
            return not refuses, ""
    text = "" if first is None else str(first).rstrip()
    if healed is None:
        return True, text
    second = _thrown(run, _views(healed, copies), state)
    if second is None:
        return True, text
    raise first or second


def _heal_all(plan: Plan, values: list[Any], judge: Judge) -> tuple[list[Any] | None, bool, bool]:
    """The values healed (None: they cannot be), whether the operation may be run with the bad ones, and
    whether it refuses every bad value that it reads.
    """
    healed: list[Any] | None = list(values)
    current = list(values)
    harmless = refuses = True
    for row in plan.rows:
        if row.remember:
            continue
        for _ in range(_MAX_ROUNDS):
            scan = judge(current, row)
            if scan is None:
                break
            on_cpu = row.row.contents.on_cpu
            harmless &= _is_harmless(on_cpu, scan)
            refuses &= on_cpu == capi.ON_CPU_REFUSES
            if not _heal_one(current, row, scan):
                healed = None
                break
    return (None if healed is None else current), harmless, refuses


def _is_harmless(on_cpu: int, scan: dict[str, Any]) -> bool:
    if on_cpu != capi.ON_CPU_AT_ENDS:
        return on_cpu != capi.ON_CPU_SILENT
    last = scan["first"] == scan["total"] - 1 and scan["value"] >= scan["hi"]
    return scan["first"] == 0 or last


def _heal_one(values: list[Any], row: Any, scan: dict[str, Any]) -> bool:
    argument, at = values[row.argument], scan["list_position"]
    in_list = at is not None and isinstance(argument, (list, tuple))
    tensor = argument[at] if in_list else argument
    if tensor.numel() * 8 > _MAX_COPIED:
        return False
    new = heal.heal(tensor, scan, row.row.contents.predicate)
    if new is None:
        return False
    values[row.argument] = [*argument[:at], new, *argument[at + 1 :]] if in_list else new
    return True


def _copies(plan: Plan, values: list[Any]) -> dict[int, Any] | None:
    """Copies of the storages that the call writes to, by address; None: too much to copy just to ask."""
    copies: dict[int, Any] = {}
    total = 0
    for at in plan.written:
        for tensor in values[at] if isinstance(values[at], (list, tuple)) else [values[at]]:
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            if storage._cdata in copies:
                continue
            total += storage.nbytes()
            if total > _MAX_COPIED:
                return None
            copies[storage._cdata] = storage.clone()
    return copies


def _views(values: list[Any], copies: dict[int, Any]) -> list[Any]:
    """The values with each tensor in a written storage replaced by the same view of the copy of it."""

    def view(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [view(item) for item in value]
        if not copies or not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return value
        storage = copies.get(value.untyped_storage()._cdata)
        if storage is None:
            return value
        out = torch.empty(0, dtype=value.dtype)
        return out.set_(storage, value.storage_offset(), value.size(), value.stride())

    return [view(value) for value in values]


def _random_state(plan: Plan, values: list[Any]) -> tuple[Any, Any] | None:
    if plan.generator < 0:
        return None
    generator = values[plan.generator]
    if generator is None:
        generator = torch.default_generator
    return generator, generator.get_state()


def _thrown(run: Run, values: list[Any], state: tuple[Any, Any] | None) -> Exception | None:
    try:
        with torch.no_grad():
            run(values)
    except Exception as error:
        return error
    finally:
        if state is not None:
            state[0].set_state(state[1])
    return None
