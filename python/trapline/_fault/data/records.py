"""The sample of a batch that was made by hand, without a DataLoader.

A slice of the program's data, rows drawn by an index, or records of a list or a replay buffer: said where the
same memory, equal rows or the very same record lead there. Only containers of Python's own are walked; what
is in a record is read as contents.py reads the samples of a data set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.data import contents, values, variables
from trapline._fault.program import holders, names

_MAX = 1 << 20  # elements of the argument
_MAX_HELD = 1 << 22  # elements of a candidate
_BUDGET = 1 << 24  # elements of all candidates
_MAX_RECORDS = 1 << 20
_MAX_READ = 1 << 14  # records that are read where none of a batch is held
_TELLING = 4
_MIN_ROWS = 32  # a shorter tensor is a sequence that a loop steps through, no data set
_CHOICES = 8  # records that may be it, at most
OF_DATA = (
    "nll_loss",
    "multi_margin",
    "multilabel",
    "one_hot",
    "_ctc_loss",
    "ctc_loss",
    "embedding",
    "_embedding",
    "binary_cross_entropy",
)
ATOMS = (int, float, bool, str, bytes, complex, type(None))

_Held = tuple[str, Any]
Sample = dict[str, Any]


def sample_facts(violation: dict[str, Any]) -> Optional[Sample]:
    """`dataset_index` and `row` of the first bad element, in data that the program itself holds."""
    tensor, scan = violation["tensor"], violation["scan"]
    first = scan.get("first", -1)
    if violation.get("late") or first < 0 or not tensor.dim() or not 0 < tensor.numel() <= _MAX:
        return None
    # An index is cut from other indices (edge_index[0], a permutation): labels and ids are cut from data.
    data = str(violation.get("contract")).startswith(OF_DATA)
    found = (_slice(tensor, first) or _drawn(tensor, first)) if data else None
    # Places that are written to are the program's own.
    writes = str(violation.get("contract")).startswith(
        ("index_copy", "index_put", "scatter", "index_add", "index_fill")
    )
    return found or _record(tensor, first, writes)


# Rows of one array --------------------------------------------------------------------------------


def _held() -> Iterator[_Held]:
    """What the user's frames hold, innermost first."""
    for frame in holders.user_frames():
        yield from holders.held_by(frame)


def _slice(tensor: Any, first: int) -> Optional[Sample]:
    """The argument is a view of something that has more rows."""
    place = values.unravel(first, tensor.shape)
    for name, value in _held():
        if not values.is_tensor(value) or value is tensor or value.layout is not tensor.layout:
            continue
        if value.dim() == 0 or value.numel() <= tensor.numel() or value.shape[0] <= tensor.shape[0]:
            continue
        if len(value) < _MIN_ROWS:
            continue
        tie = variables.same_memory(tensor, value, first)
        if tie is not None:
            return sample(name, value, len(value), tie[1][0], place[0] if len(place) == value.dim() else None)
    return None


def _drawn(tensor: Any, first: int) -> Optional[Sample]:
    """data[index], row by row, for an index and data that are both in reach; or a run of the data, copied."""
    flat = tensor.detach().reshape(-1).cpu()
    if len(flat) < _TELLING or bool((flat == flat[0]).all()):
        return None
    tensors: list[tuple[str, Any, Any]] = []
    budget = _BUDGET
    for name, value in _held():
        held = holders.as_tensor(value, min(budget, _MAX_HELD))
        if held is not None and held.dim():
            budget -= int(held.numel())
            tensors.append((name, value, held))
    for name, value, held in tensors:
        for _, _, index in tensors:
            if index is held or index.dim() != 1 or index.dtype.is_floating_point or len(index) < 2:
                continue
            if len(flat) % len(index) or len(held) <= len(index):
                continue
            if int(index.min()) < 0 or int(index.max()) >= len(held) or str(index.dtype) == "torch.bool":
                continue
            if held.numel() // len(held) != len(flat) // len(index):
                continue
            if len(index) == len(flat) and _equal(index, flat):  # the argument itself
                continue
            if _equal(held[index.long()].reshape(-1), flat):
                row = first // (len(flat) // len(index))
                return sample(name, value, len(held), int(index[row]), row)
    for name, value, held in tensors:
        width = held.numel() // len(held)
        if held.numel() <= len(flat) or len(flat) % width or len(flat) // width < 2:
            continue
        begins = _run(flat, first, held.reshape(-1).to(flat.dtype))
        if begins is not None and begins % width == 0 and _equal_kind(held, flat):
            return sample(name, value, len(held), (begins + first) // width, first // width)
    return None


def _equal_kind(held: Any, flat: Any) -> bool:
    return bool(held.dtype.is_floating_point) == bool(flat.dtype.is_floating_point)


def _equal(one: Any, other: Any) -> bool:
    same = one.to(other.dtype) == other
    if other.dtype.is_floating_point:
        same |= one.isnan() & other.isnan()
    return bool(same.all())


def _run(flat: Any, first: int, data: Any) -> Optional[int]:
    """Where the one run of `data` begins that equals `flat`; None where there is none, or a second one."""
    wanted, found = flat[first], []
    alike = data.isnan() if bool(wanted.isnan()) else data == wanted
    for at in alike.nonzero().reshape(-1)[:64].tolist():
        begin = at - first
        if begin >= 0 and begin + len(flat) <= len(data) and _equal(data[begin : begin + len(flat)], flat):
            found.append(begin)
    return found[0] if len(found) == 1 else None


# Records ------------------------------------------------------------------------------------------


def _record(tensor: Any, first: int, writes: bool) -> Optional[Sample]:
    """One record for each row, in a list that is in reach; the row's record is met in a larger one."""
    place = values.unravel(first, tensor.shape)
    value = tensor[tuple(place)].item()
    lists = [(name, kept) for name, kept in _lists() if not isinstance(kept[0], ATOMS)]
    for _, batch in lists:
        count = len(batch)
        if tensor.numel() % count:
            continue
        row = place[0] if tensor.shape[0] == count else first // (tensor.numel() // count)
        record = batch[row]
        if not _holds(record, value):
            continue
        for name, whole in lists:
            if len(whole) <= count:
                continue
            at = [position for position, other in enumerate(whole) if other is record]
            if len(at) == 1:
                others = any(_holds(other, value) for i, other in enumerate(batch) if i != row and i < 256)
                if others and tensor.shape[0] != count:  # any list has a record there, and many the number
                    break
                return sample(name, whole, len(whole), at[0], row, likely=others)
    return None if writes else _by_value(lists, tensor.shape[0], value)


def _by_value(lists: list[_Held], rows: int, value: Any) -> Optional[Sample]:
    """The records of a buffer that hold the value, where the batch itself is out of reach."""
    found: Optional[Sample] = None
    for name, whole in lists:
        if not rows < len(whole) <= _MAX_READ or type(whole) is not deque:
            continue
        having = [at for at, record in enumerate(whole) if _holds(record, value)]
        if not having or len(having) > _CHOICES:
            continue
        if found is not None:
            return None
        found = sample(name, whole, len(whole), having[0], None, likely=True)
        if len(having) > 1:
            found = {"one_of": having, "of": len(having), "dataset": found["dataset"]}
        else:
            found["by"] = "record"
    return found


def _lists() -> list[_Held]:
    """Lists, tuples and deques of the program, with the names that lead there, two steps at most."""
    found: list[_Held] = []
    seen: set[int] = set()

    def add(name: str, value: Any) -> None:
        if type(value) in (list, tuple, deque) and 1 < len(value) <= _MAX_RECORDS and id(value) not in seen:
            seen.add(id(value))
            found.append((name, value))

    for name, value in names.variables():
        add(name, value)
        if issubclass(type(value), ATOMS) or type(value) in (list, tuple, deque):
            continue
        for step, part in names.parts(value):
            add(name + step, part)
            if not issubclass(type(part), ATOMS) and type(part) not in (list, tuple, dict, deque):
                for further, inner in names.parts(part):
                    add(name + step + further, inner)
    return found


def _holds(record: Any, value: Any) -> bool:
    if contents.holds(record, [value]):
        return True
    own = holders.attributes(record)  # a dataclass
    return bool(own) and contents.holds(list(own.values()), [value])


def sample(name: str, data: Any, length: int, index: int, row: Optional[int], likely: bool = False) -> Sample:
    """An entry of what the program calls `name`."""
    facts: Sample = {
        "dataset_index": index,
        "dataset": {"name": name, "type": type(data).__name__, "length": length},
    }
    if row is not None:
        facts["row"] = row
    if likely:
        facts["likely"] = True
    return facts
