"""Whether the rows of a batch are its samples in their order, and what is in them of no sample's own."""

from __future__ import annotations

import time
from typing import Any, Optional

from trapline._fault.data import contents, hand, values
from trapline._fault.data.batches import Batch
from trapline._fault.data.fetched import RandomState, fetch
from trapline._fault.program import holders, scope

_MAX_OTHERS = 6  # rows that tell whether a batch is in order
_MAX_ASKED = 64  # each may be a picture to decode
_SECONDS = 1.0  # for more than two times
_NESTED = 2
_TIMES = 4  # that a sample is asked for: chance makes the same number each time in few of them
_known: tuple[Any, bool] = (None, False)


def is_kept(batch: Batch) -> bool:
    """PyTorch's own collate functions keep the order; of another one the data tell: each row of one of the
    batch's tensors has the numbers of its own sample, and not those of the next."""
    global _known
    if batch.in_order:
        return True
    key = (batch.serial, id(batch.parts))
    if _known[0] != key:
        _known = (key, _is_kept(batch))
    return _known[1]


def _is_kept(batch: Batch) -> bool:
    indices, data_set = batch.indices, batch.loader.data_set()
    if data_set is None or not isinstance(indices, (list, tuple)) or not 1 < len(indices) <= _MAX_ASKED:
        return False
    raw = batch.raw()
    if len(raw) == len(indices):
        with RandomState(data_set):
            return all(contents.same(fetch(data_set, index), item) for index, item in zip(indices, raw))
    parts = [part for part in batch.tensors() if part.dim() > 1 and part.shape[0] == len(indices)]
    parts = [part for part in parts if part.numel() <= values.MAX_ELEMENTS]
    if not parts:
        return False
    with RandomState(data_set):
        made = [fetch(data_set, index) for index in indices]
        if any(_has_rows(part.detach().cpu(), made) for part in parts):
            return True
        alone = _collated(batch.loader.collate(), made)
    return any(_has_collated(part.detach().cpu(), alone) for part in parts)


def _collated(collate: Any, made: list[Any]) -> list[list[Any]]:
    """The tensors that the program's collate function makes of each sample alone; [] where it makes none."""
    out: list[list[Any]] = []
    ends = time.monotonic() + _SECONDS
    try:
        for sample in made if callable(collate) else ():
            whole = [one for one in hand.items_of(collate([sample]), _NESTED) if scope.is_tensor(one)]
            out.append([one.detach().cpu() for one in whole if one.dim() and len(one) == 1])
            if time.monotonic() > ends:
                return []
    except Exception:  # what is made of several
        return []
    return out


def _has_collated(part: Any, alone: list[list[Any]]) -> bool:
    """Each row is what was made of its sample, filled up or not, and not of the one before."""
    rows = [[one[0] for one in tensors if _is_like(one, part)] for tensors in alone]
    return bool(rows) and all(
        any(_is_row(row, one) for one in rows[at]) and not any(_is_row(row, one) for one in rows[at - 1])
        for at, row in enumerate(part)
    )


def _is_like(one: Any, part: Any) -> bool:
    return bool(one.dim() == part.dim() and (one.dtype == part.dtype or not one.numel()))


def _is_row(row: Any, alone: Any) -> bool:
    if row.shape == alone.shape:
        return bool((row == alone).all())
    count = len(alone)
    if row.dim() != 1 or count >= len(row):
        return False
    ends = len(row) - count
    return any(
        bool((own == alone).all()) and bool((rest == rest[0]).all())
        for own, rest in ((row[:count], row[count:]), (row[ends:], row[:ends]))
    )


def is_list_kept(batch: Batch, listed: list[Any]) -> bool:
    """The same of a batch's tensors that stand in a list, one for each sample."""
    data_set = batch.loader.data_set()
    if data_set is None or not 1 < len(listed) <= _MAX_ASKED:
        return False
    if sum(one.numel() for one in listed) > values.MAX_ELEMENTS or any(not one.dim() for one in listed):
        return False
    with RandomState(data_set):
        made = [fetch(data_set, index) for index in batch.indices]
    return _has_rows([one.detach().reshape(-1).cpu() for one in listed], made)


def _has_rows(part: Any, made: list[Any]) -> bool:
    """`part`: a tensor, or a list of its rows."""
    kind = 0.0 if part[0].dtype.is_floating_point else 0
    for at, sample in enumerate(made):
        if not contents.sample_produced_row(sample, part[at], kind):
            return False
        if contents.sample_produced_row(made[at - 1], part[at], kind):
            return False
    return True


def may_be_kept(batch: Batch) -> bool:
    """Nothing speaks against it: no tensor of the batch is sorted by the length of its rows."""
    count = len(batch.indices)
    for part in batch.tensors():
        if part.dtype.is_floating_point or not part.dim() or part.shape[0] != count or part.dim() > 2:
            continue
        if part.numel() > values.MAX_ELEMENTS:
            continue
        lengths = part.tolist() if part.dim() == 1 else [_length(row) for row in part.tolist()]
        falls = all(a >= b for a, b in zip(lengths, lengths[1:]))
        rises = all(a <= b for a, b in zip(lengths, lengths[1:]))
        if (falls or rises) and len(set(lengths)) > 1 and (part.dim() == 2 or len(set(lengths)) == count):
            return False
    return True


def _length(row: list[Any]) -> int:
    """Without what it is filled with to its end."""
    length = len(row)
    while length > 1 and row[length - 2] == row[-1]:
        length -= 1
    return length


def _filled(row: Any) -> Optional[int]:
    """What a row is filled with to its end: the same number twice and more."""
    return int(row[-1]) if len(row) > 1 and int(row[-1]) == int(row[-2]) else None


def not_its_own(batch: Batch, tensor: Any, place: Any, sample: dict[str, Any]) -> str:
    """How an integer of the sample's row came there, where the sample itself does not have it: "padding",
    "collate" (the collate function put it there), "drawn" (the data set draws it anew each time)."""
    row, data_set = sample.get("row"), batch.loader.data_set()
    if row is None or data_set is None or tensor.dtype.is_floating_point or tensor.dim() > 2:
        return ""
    value = int(tensor[tuple(place)])
    made = _asked(data_set, sample["dataset_index"])
    having = [any(value in run for run in runs) for runs in made]
    if not all(made) or not made or all(having):  # all() of none: nothing of it can be read
        return ""
    if any(having) or (batch.loader.own_collate and any(runs != made[0] for runs in made)):
        return "" if _record_has(data_set, sample["dataset_index"], value) else "drawn"
    if batch.loader.own_collate:  # PyTorch's own puts nothing there
        return ""
    if tensor.dim() == 1:
        return "collate" if _has_own_of_others(batch, tensor, row) else ""
    across = place[0] == row
    numbers = tensor[row] if across else tensor[:, row]
    if _is_filler(tensor if across else tensor.T, numbers, place[1] if across else place[0]):
        return "padding"
    own = {number for run in made[0] for number in run}
    others = {int(one) for one in numbers} - {value}
    return "collate" if others and 2 * len(others & own) >= len(others) else ""


def _has_own_of_others(batch: Batch, tensor: Any, row: int) -> bool:
    """Other rows hold a number of their own sample: they are in the order of the batch."""
    data_set, indices = batch.loader.data_set(), batch.indices
    if len(indices) != len(tensor):
        return False
    others = [one for one in range(len(indices)) if one != row][:_MAX_OTHERS]
    own = sum(
        any(int(tensor[one]) in run for runs in _asked(data_set, indices[one]) for run in runs)
        for one in others
    )
    return bool(others) and 3 * own >= len(others)


def is_collated(batch: Batch, tensor: Any, place: Any) -> bool:
    """The same of a batch whose rows cannot be told: no sample has the number, and they have most others."""
    indices, data_set = batch.indices, batch.loader.data_set()
    few = tensor.dim() == 2 and len(indices) <= _MAX_ASKED
    if tensor.dtype.is_floating_point or data_set is None or batch.loader.own_collate or not few:
        return False
    with RandomState(data_set):
        runs = [contents.integers(fetch(data_set, index)) for index in indices]
    own = {number for of_one in runs for run in of_one for number in run}
    value = int(tensor[tuple(place)])
    others = {int(one) for one in tensor.reshape(-1)} - {value}
    return value not in own and bool(others) and 2 * len(others & own) >= len(others)


def _record_has(data_set: Any, index: Any, value: int) -> bool:
    """What the data set holds for this sample has the number: chance picks some of it, and makes none."""
    if type(index) is not int:
        return False
    for held in scope.members(data_set).values():
        if not (type(held) in (list, tuple) or holders.is_array(held)) or len(held) != len(data_set):
            continue
        runs = contents.integers(held[index])
        if any(len(run) > 1 and value in run for run in runs):
            return True
    return False


def _asked(data_set: Any, index: Any) -> list[list[list[int]]]:
    """The integers of the sample, as the data set makes it several times with other random numbers."""
    made: list[list[list[int]]] = []
    began = time.monotonic()
    with RandomState(data_set) as state:
        for seed in range(_TIMES):
            if len(made) > 1 and time.monotonic() - began > _SECONDS:
                break
            state.seed(seed)
            record = fetch(data_set, index)
            if record is None:
                return []
            made.append(contents.integers(record))
    return made


def _is_filler(rows: Any, numbers: Any, at: int) -> bool:
    """What stands at this place is the same to the end of its row, or from its beginning."""
    value = int(numbers[at])
    if not bool((numbers[at:] == value).all()) and not bool((numbers[: at + 1] == value).all()):
        return False
    # A last element that the other rows have before what they are filled with is none of that.
    fill = {rest for rest in map(_filled, rows) if rest is not None}
    return not fill or value in fill
