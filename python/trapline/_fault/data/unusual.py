"""Whether a sample is unlike the others of its batch.

A number of the model's own (a prediction that drifts below zero) has to go bad in some sample first, and that
one is not to blame: only what stands out in the data is named.
"""

from __future__ import annotations

from typing import Any

from trapline._fault.data.batches import Batch

_FAR = 4.0  # times what is largest among the others
_MAX_COLUMNS = 1 << 14
_LEAST = 2  # entries of a row
_MIN_OTHERS = 3  # that have a range


def stands_out(batch: Batch, row: int, unknown: bool = True) -> bool:
    """By its size, its spread, an entry far from all others', a zero or a negative id where they have none;
    `unknown` where the inputs are no numbers that can be compared (ids, texts)."""
    count = len(batch.indices) if isinstance(batch.indices, (list, tuple)) else 0
    every = [part for part in batch.tensors() if part.dim() and part.numel()]
    parts = [part for part in every if len(part) == count]
    has_others = len(parts) < len(every)  # nodes of graphs, tokens in one line
    parts = [part.detach().cpu() for part in parts if not part.is_complex()]
    ids = [part for part in parts if not part.is_floating_point()]
    has_inputs = any(part.dim() > 1 for part in parts) or len(ids) > 1
    if count < 2 or has_others or not has_inputs or not 0 <= row < count:
        return unknown
    return any(_differs(part.reshape(count, -1), row) for part in parts) or _are_one(ids, row)


def _differs(part: Any, row: int) -> bool:
    import torch

    if not part.is_floating_point():
        # Ids and labels are names; a mask that hides all, a length of 0, or -1 for "not known", is none.
        if bool((part[row] < 0).any()) and int((part < 0).any(1).sum()) == 1:
            return True
        if part.shape[1] < _LEAST:
            return False
        kinds = part.sort(1).values.diff(dim=1).ne(0).sum(1).double() + 1
        return _is_alone(part.ne(0).sum(1).double(), row) or _is_alone(kinds, row, 1.5)
    part = part.double()
    if not bool(part[row].isfinite().all()):
        return True
    others = torch.arange(len(part)) != row
    if not bool(part[others].isfinite().all()):
        return False
    sums = [part.abs().amax(1), part.ne(0).sum(1).double()]
    sums += [part.std(1)] if part.shape[1] > 1 else []
    return any(_is_alone(one, row) for one in sums) or _has_far_entry(part[others], part[row])


def _are_one(ids: list[Any], row: int) -> bool:
    """Two parts with ids that are the same in this row alone: a pair of one and the same."""
    flat = [part.reshape(len(part), -1) for part in ids]
    pairs = [_same(one, other) for at, one in enumerate(flat) for other in flat[at + 1 :]]
    return any(bool(same[row]) and int(same.sum()) == 1 for same in pairs)


def _same(one: Any, other: Any) -> Any:
    """Which rows are, but for the padding of the longer one."""
    width = min(one.shape[1], other.shape[1])
    rests = (one[:, width:] == 0).all(1) & (other[:, width:] == 0).all(1)
    return (one[:, :width] == other[:, :width]).all(1) & rests


def _is_alone(of_rows: Any, row: int, far: float = _FAR) -> bool:
    """So many times the largest of the others, or that part of the smallest."""
    import torch

    mine, others = of_rows[row], of_rows[torch.arange(len(of_rows)) != row]
    return bool(mine > far * others.max()) or bool(mine * far < others.min())


def _has_far_entry(others: Any, mine: Any) -> bool:
    if len(mine) > _MAX_COLUMNS or len(others) < _MIN_OTHERS:
        return False
    low, high = others.amin(0), others.amax(0)
    width = high - low
    far = (mine < low - _FAR / 2 * width) | (mine > high + _FAR / 2 * width)
    zero = (mine == 0) & (others != 0).all(0)
    alone = (width == 0) & (high != 0) & (mine != high)  # of a flag that few have, 0 is what the others have
    return bool(((far & (width > 0)) | zero | alone).any())
