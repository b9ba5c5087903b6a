"""The one record of the program's own data that has the bad value, where no batch leads to it.

An environment that reads a table, a server's requests, a library that cuts its batches itself: what arrives
has no tie to the data any more, but the value has. Said as likely, and only where every column that has the
value has it in one record, among numbers that are valid themselves.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.data import columns, records
from trapline._fault.data.casts import storage_pointer
from trapline._fault.program import computed, holders, names, owners, scope

_LEAST = 8  # records
_MIN_ROWS = 32
_MOST = 1 << 20
_BUDGET = 1 << 24  # elements that are looked at, of all
_TWICE = 1 << 16  # numbers among which one has to stand twice
_READ = 1 << 10  # records that are read one by one
_MAX_HELD = 256
_MOST_BAD = 0.125  # of the elements: else it is no record's own fault
_VALID = 0.9  # of the other numbers of the column
FRAMES = ("DataFrame", "Series")
Sample = dict[str, Any]


def _is_as_long(held: Any, tensor: Any, index: bool) -> bool:
    """As long as what is bad: a tensor, or the list that an index was made of; of labels it has one for each
    record."""
    if scope.is_tensor(held):
        return bool(held.shape == tensor.shape)
    listed = index and type(held) in (list, tuple) and tensor.dim() == 1 and len(held) == tensor.numel()
    return listed and all(type(one) is int for one in held)


def sample_facts(tensor: Any, scan: dict[str, Any], index: bool = False) -> Optional[Sample]:
    """`dataset_index`, and `dataset` as the program calls it; likely. `index`: no labels and no ids."""
    value = scan.get("value")
    if scan.get("first", -1) < 0 or type(value) not in (int, float):
        return None
    if scan.get("bad", 1) > max(1, _MOST_BAD * scan.get("total", 1)):
        return None
    found: list[tuple[int, str, Any, int]] = []
    budget = [_BUDGET]
    for name, held in in_reach():
        if _is_as_long(held, tensor, index):
            continue  # numbers of this very step
        if _is_one_sequence(held, tensor) or (not math.isfinite(value) and _is_one_input(held)):
            continue
        try:
            rows = _rows(held, tensor, scan, value, budget)
        except (RuntimeError, TypeError, ValueError, IndexError, OverflowError):
            continue  # numbers of a kind that torch does not compare
        if rows is None:
            continue
        if len(rows) > 1:
            return None  # several records have it, here or there
        found += [(len(held), name, held, row) for row in rows]
    if not found:
        return None
    length, name, held, row = min(found, key=lambda one: one[0])  # the part that was worked on
    if _is_own(name, held):
        return None
    path = f"{name}.iloc" if type(held).__name__ in FRAMES else name
    return {**records.sample(path, held, length, row, None, likely=True), "by": "record"}


def _is_own(name: str, held: Any) -> bool:
    """A tensor of a running function's own, whose places are none of the data's: of a module's method, which
    works on a batch, or chosen from another one, `a = a[keep]`."""
    for frame in holders.user_frames() if scope.is_tensor(held) else ():
        if frame.f_locals.get(name) is held and frame.f_code.co_name != "<module>":
            bound = computed.binding(frame, name, scope.line_of(frame))
            node = None if bound is None else bound[0]
            chosen = isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant)
            return chosen or owners.is_module(frame.f_locals.get("self"))
    return False


def _rows(held: Any, tensor: Any, scan: dict[str, Any], value: Any, budget: list[int]) -> Optional[list[int]]:
    """The records that have the value, two at most; None where the data are of another kind."""
    rows: set[int] = set()
    for numbers, row_of in (*columns.of_value(held), *columns.ragged(held, _READ)):
        if _same_memory(numbers, tensor) or numbers.numel() > budget[0]:
            continue
        budget[0] -= numbers.numel()
        hit = _hit(numbers, scan, value)
        if hit is not None:
            rows |= set(row_of[hit].unique()[:2].tolist())
    return sorted(rows)[:2] or None


def _is_one_sequence(held: Any, tensor: Any) -> bool:
    """The tokens that the one row of the tensor was made of."""
    one_row = tensor.dim() > 1 and tensor.shape[0] == 1
    return one_row and len(held) == tensor.numel() and columns.is_of_numbers(held)


def _is_one_input(held: Any) -> bool:
    """A short list of numbers, what a model is given at once: features, and no records."""
    if len(held) >= _MIN_ROWS or type(held).__name__ in FRAMES:
        return False
    return columns.is_of_numbers(held)


def _hit(numbers: Any, scan: dict[str, Any], value: Any) -> Any:
    """Where a column has the value; None where it has not, or its other numbers are of another range."""
    wanted_nan = isinstance(value, float) and math.isnan(value)
    bad = wanted_nan or (isinstance(value, float) and math.isinf(value))
    if bad and not numbers.dtype.is_floating_point:
        return None
    hit = numbers.isnan() if wanted_nan else numbers == value
    others = numbers[~hit]
    if not bool(hit.any()) or others.numel() < _LEAST:
        return None
    lo, hi = scan.get("lo"), scan.get("hi")
    if bad:
        valid = others.isfinite()
    elif lo is None or hi is None:
        return None
    else:
        valid = (others >= lo) & (others < hi)
    some = others[:_TWICE]
    if float(valid.double().mean()) < _VALID or (not bad and len(some.unique()) == len(some)):
        return None  # a list of indices or of names: each number once
    return hit


def _same_memory(column: Any, tensor: Any) -> bool:
    pointer = storage_pointer(column)
    return bool(pointer) and pointer == storage_pointer(tensor)


def in_reach() -> Iterator[tuple[str, Any]]:
    """Tables, arrays and lists of the program, with the names that lead there, two steps at most."""
    seen: set[int] = set()
    count = 0
    for path, value in _reached():
        if id(value) in seen or not columns.is_data(value) or getattr(value, "grad_fn", None) is not None:
            continue  # what a model has made is no data
        seen.add(id(value))
        if _LEAST < len(value) <= _MOST:
            count += 1
            yield path, value
            if count == _MAX_HELD:
                return


def _reached() -> Iterator[tuple[str, Any]]:
    for name, value in names.variables():
        yield name, value
        if columns.is_data(value):
            continue
        for step, part in names.parts(value):
            yield name + step, part
            if not columns.is_data(part) and type(part) not in (dict, list, tuple):
                yield from ((name + step + further, inner) for further, inner in names.parts(part))
