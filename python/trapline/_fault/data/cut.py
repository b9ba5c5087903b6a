"""The batch of a step in a program without a DataLoader: rows of an array or a table of the program's.

Each row of what a module was given has to be equal to one row of the same array, and to no other; or all of
them to the rows that an index of the program's picks, `x[idx]`; or the text of the program picks rows so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Optional

from trapline._fault.data import batches, columns, only, picked, rows_of
from trapline._fault.data.batches import Batch
from trapline._fault.program import holders, loops, names, scope

_MAX_GIVEN = 1 << 20  # elements of the step's input
_BUDGET = 1 << 24  # elements of the program's arrays that are compared
_MOST = 8  # tensors of the input
_SEED = 20


class Source:
    """Stands where a batch has its loader: nothing but the data, and that each row is a sample."""

    batched = keeps_order = own_collate = True
    iterable = False
    batch_size = None

    def __init__(self, data: Any) -> None:
        self._data = data

    def data_set(self) -> Any:
        return self._data

    def collate(self) -> None:
        return None

    def user_loader(self) -> None:
        return None


@contextmanager
def standing_in(given: Iterable[Any]) -> Iterator[None]:
    """Inside it, the batch that the tensors `given` were cut from counts as the newest, where no loader has
    given out one."""
    batches.stand_in = None if batches.given_out() else of(list(given))
    try:
        yield
    finally:
        batches.stand_in = None


def of(given: list[Any]) -> Optional[Batch]:
    """The batch; None where no array of the program's holds these rows, or none by which each can be told.

    Of several inputs the first that has an array; the part that was worked on is the shortest of these, and
    one as long as the batch may be the batch.
    """
    inputs = [one.detach() for one in given if one.dim() and len(one) > 1 and one.is_cpu][:_MOST]
    inputs = [one for one in inputs if 0 < one.numel() <= _MAX_GIVEN and not one.is_complex()]
    inputs.sort(key=_is_finite)  # the numbers that are asked about are known by their own array
    data = [both for both in _data() if not _is_of_a_record(both[0])] if inputs else []
    indexed = _picked({len(one) for one in inputs})
    for one in inputs:
        longer = [(held, rows) for held, rows in data if rows.shape[1] == one.numel() // len(one)]
        for held, rows in sorted(longer, key=lambda both: (len(both[1]) <= len(one), len(both[1]))):
            lines = one.reshape(len(one), -1)
            indices = _indices(lines, rows) if len(rows) >= len(one) else None
            if indices is None:
                indices = next((index for index in indexed if _picks(index, rows, lines)), None)
            if indices is not None:
                beside = [
                    other for other in inputs if len(other) == len(one) and _is_of(other, indices, data)
                ]
                return Batch(Source(held), None, indices, beside)  # type: ignore[arg-type]
    return _by_text()


def _is_of_a_record(held: Any) -> bool:
    """What a loop has drawn out of a list of records: the list is the data."""
    drawn = (value for frame in scope.live_frames() for values in loops.drawn(frame) for value in values)
    return any(value is held for value in drawn) and rows_of.record_given([held]) is not None


def _by_text() -> Optional[Batch]:
    """What was computed of the rows before has no equals among them: the program's own `x[idx]` tells."""
    arrays, index = picked.by_text() or ([], [])
    parts = [(held, rows[index]) for held in arrays if (rows := _rows(held)) is not None]
    if not parts:
        # Records that are no rows of numbers.
        return Batch(Source(arrays[0]), None, index, []) if arrays else None  # type: ignore[arg-type]
    held = next((held for held, rows in parts if not _is_finite(rows)), parts[0][0])
    return Batch(Source(held), None, index, [rows for _, rows in parts])  # type: ignore[arg-type]


def holder_of(batch: Batch, bad: Any) -> Optional[tuple[str, Any]]:
    """Of a batch that was cut so, the program's array, and its name, that has a row for each of the same
    records and is not finite where `bad` says, a row for each of the batch."""
    wanted = bad.reshape(len(bad), -1).any(1).cpu()
    for name, held in only.in_reach():
        rows = _rows(held)
        if rows is None or len(rows) != len(batch.loader.data_set()) or not rows.dtype.is_floating_point:
            continue
        if bool(((~rows[batch.indices].isfinite()).any(1) == wanted).all()):
            return name, held
    return None


def _is_of(given: Any, indices: list[int], data: list[tuple[Any, Any]]) -> bool:
    """The same rows of an array; what the program has computed of them is no data where it is not finite."""
    if _is_finite(given):
        return True
    lines = given.reshape(len(given), -1)
    return any(rows.shape[1] == lines.shape[1] and _picks(indices, rows, lines) for _, rows in data)


def _is_finite(given: Any) -> bool:
    return not given.dtype.is_floating_point or bool(given.isfinite().all())


def _picked(lengths: set[int]) -> list[list[int]]:
    """What the program's variables hold that may pick as many rows, none twice."""
    found = []
    for _, value in names.variables():
        is_index = holders.is_array(value) and value.ndim == 1 and len(value) in lengths
        index = value.tolist() if is_index else value
        if type(index) is not list or len(index) not in lengths or any(type(one) is not int for one in index):
            continue
        if min(index) >= 0 and len(set(index)) == len(index):
            found.append(index)
    return found[:_MOST]


def _picks(index: list[int], rows: Any, given: Any) -> bool:
    """The rows of that index are what was given."""
    if len(index) != len(given) or max(index) >= len(rows):
        return False
    there = rows[index].to(given.dtype)
    return bool(((there == given) | (there.isnan() & given.isnan())).all())


def _data() -> Iterator[tuple[Any, Any]]:
    """What the program holds, and its lines of numbers."""
    budget = _BUDGET
    for _, held in only.in_reach():
        rows = None if getattr(held, "requires_grad", False) else _rows(held)  # a model's own
        if rows is not None and rows.numel() <= budget:
            budget -= rows.numel()
            yield held, rows


def _rows(held: Any) -> Any:
    """One line of numbers for each record; None for anything else."""
    if type(held).__name__ == "DataFrame":
        held = held.to_numpy()
    values = columns.as_tensor(held, len(held))
    if values is None or values.is_complex() or not values.numel():
        return None
    return values.reshape(len(values), -1).cpu()


def _indices(given: Any, rows: Any) -> Optional[list[int]]:
    """Of each row its only equal; None where one has none, or several."""
    import torch

    if given.dtype.is_floating_point != rows.dtype.is_floating_point:
        return None
    rows = rows.to(given.dtype)
    # By one number for each row: equal rows have equal ones.
    generator = torch.Generator().manual_seed(_SEED)
    weights = torch.rand(rows.shape[1], generator=generator, dtype=torch.float64) + 0.5
    marks, wanted = (_marks(one, weights) for one in (rows, given))
    order = marks.argsort(stable=True)
    sorted_marks = marks[order]
    left = torch.searchsorted(sorted_marks, wanted)
    right = torch.searchsorted(sorted_marks, wanted, right=True)
    if not bool((right - left == 1).all()):
        return None
    indices = order[left]
    same = (rows[indices] == given) | (rows[indices].isnan() & given.isnan())
    found: list[int] = indices.tolist()
    return found if bool(same.all()) and len(set(found)) == len(found) else None


def _marks(rows: Any, weights: Any) -> Any:
    import torch

    return (torch.nan_to_num(rows.double(), 0.5, 1e9, -1e9) * weights).sum(1)
