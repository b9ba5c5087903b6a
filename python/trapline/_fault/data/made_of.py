"""The record at the same place of what the program's own text made a tensor of: `row, col = grid.cells(df)`
with as many rows as `df`, or `make_batch(rows[at : at + size])` with as many as the slice. Nothing of the
numbers is compared, so it is said as likely, and where few rows are bad.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import columns, only, picked, records, values
from trapline._fault.program import computed, holders, names, scope

_LEAST = 8  # rows: as many of two things by chance
_DEPTH = 3  # statements
_MOST_BAD = 0.25  # of the rows: else it is no record's own fault
Sample = dict[str, Any]


def sample_facts(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """`dataset_index`, `row` and `dataset`, as the program calls it."""
    first = scan.get("first", -1)
    if first < 0 or not tensor.dim() or not 0 < tensor.numel() <= values.MAX_ELEMENTS:
        return None
    count, row = int(tensor.shape[0]), values.unravel(first, tensor.shape)[0]
    flat = tensor.detach().reshape(-1).cpu()
    bad = values.bad_mask(flat, scan, predicate)
    if count < _LEAST or bad is None or bool(bad.reshape(count, -1).any(1).double().mean() > _MOST_BAD):
        return None
    tables = {id(held): held for held in _tables(tensor, count)}
    if len(tables) == 1:
        return _of(*tables.values(), row, row)
    if tables:
        return None
    picks = picked.by_text()
    held, index = picks if picks is not None else ([], [])
    if len(index) == count and len(held) == 1 and _is_table(held[0]):
        return _of(held[0], index[row], row)
    return None


def _of(held: Any, at: int, row: int) -> Optional[Sample]:
    name = names.Names().of(lambda value: value is held)
    if not name:
        return None
    path = f"{name}.iloc" if type(held).__name__ in only.FRAMES else name
    return {**records.sample(path, held, len(held), at, row, likely=True), "by": "made"}


def _tables(tensor: Any, count: int) -> Iterator[Any]:
    """What stands in the statements that a variable got the tensor from, and has as many records."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            if value is tensor:
                yield from _of_variable(frame, name, scope.line_of(frame), count, _DEPTH)


def _of_variable(frame: FrameType, name: str, line: int, count: int, depth: int) -> Iterator[Any]:
    found = computed.binding(frame, name, line, one_of=True)
    if found is None:
        return
    node, at = found
    for part in ast.walk(node):
        if not isinstance(part, ast.Name) or part.id not in frame.f_locals:
            continue
        held = frame.f_locals[part.id]
        if _is_table(held) and len(held) == count:
            yield held
        elif depth and part.id != name:
            yield from _of_variable(frame, part.id, at, count, depth - 1)


def _is_table(held: Any) -> bool:
    """Of records: no list or array of numbers, which is no more than what the tensor is."""
    if not columns.is_data(held) or not len(held) or scope.is_tensor(held):
        return False
    if type(held) in (list, tuple):
        return not isinstance(held[0], records.ATOMS)
    return type(held).__name__ in only.FRAMES or held.ndim > 1
