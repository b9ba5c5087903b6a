"""A sample by its row alone: the bag that an id is in, the row of a batch that the program's own function
made, the record of a list that was cut by hand, what a loop is at. Nothing but the place says so: likely.
"""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import hand, records, samples, values
from trapline._fault.data.batches import Batch
from trapline._fault.program import computed, holders, loops, names, scope
from trapline._library import capi

_MAX_RECORDS = 1 << 20
_MAX_LOOPS = 8
Sample = dict[str, Any]


def by_bag(violation: dict[str, Any]) -> Optional[Sample]:
    """The row of the batch in hand whose bag the element is in, where there is a bag for each sample."""
    offsets, batch = (violation.get("args") or {}).get("offsets"), hand.in_hand()
    first = violation["scan"].get("first", -1)
    if batch is None or first < 0 or not scope.is_tensor(offsets) or violation["tensor"].dim() != 1:
        return None
    count = len(batch.indices) if isinstance(batch.indices, (list, tuple)) else 0
    begins = offsets.detach().reshape(-1).cpu()
    if count < 2 or len(begins) not in (count, count + 1) or not bool((begins[1:] >= begins[:-1]).all()):
        return None
    row = int((begins[:count] <= first).sum()) - 1
    return of_row(batch, row) if row >= 0 else None


def of_row(batch: Batch, row: int) -> Sample:
    """The sample of a row, where nothing but its place says so."""
    sample: Sample = {"batch": batch.number, "row": row, "by": "row", "likely": True}
    if samples.is_int(batch.indices[row]):
        sample["dataset_index"] = int(batch.indices[row])
    return samples.described(batch, sample)


def cut_by_hand(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """The record of the one bad row, where the program holds a list with a record for each row, and those
    very records in a longer list."""
    row = only_bad_row(tensor, scan, predicate)
    if row is None:
        return None
    lists = [(name, held) for name, held in names.lists(_MAX_RECORDS) if _is_record(held[0])]
    for _, batch in lists:
        if len(batch) != tensor.shape[0]:
            continue
        for name, whole in lists:
            at = [position for position, record in enumerate(whole) if record is batch[row]]
            if len(whole) > len(batch) and len(at) == 1:
                return {**records.sample(name, whole, len(whole), at[0], row, likely=True), "by": "row"}
    return None


def selected(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """The record of the one bad row, where the program has taken as many of them by their numbers:
    `patches[rows]`."""
    row = only_bad_row(tensor, scan, predicate)
    found: list[tuple[str, Any, int]] = []
    for name, whole, by in computed.selections(before=True) if row is not None else ():
        if by.dim() != 1 or by.dtype.is_floating_point or str(by.dtype) == "torch.bool" or not whole.dim():
            continue
        if len(by) == tensor.shape[0] < len(whole) and 0 <= int(by[row]) < len(whole):
            found.append((name, whole, int(by[row])))
    if len({at for _, _, at in found}) != 1:
        return None
    name, whole, at = found[0]
    return {**records.sample(name, whole, len(whole), at, row, likely=True), "by": "row"}


def at_in_loop() -> Optional[Sample]:
    """What the innermost loop of the program is at, where a list or dictionary of its own has it."""
    for frame in holders.user_frames():
        for count, drawn in enumerate(loops.drawn(frame)):
            if count == _MAX_LOOPS:
                break
            for value in drawn:
                found = _entry(value) if _is_data(value) else None
                if found is not None:
                    return {**found, "by": "loop"}
    return None


def _is_data(value: Any) -> bool:
    """Numbers or a text, or a record that holds some; no setting and no name."""
    if type(value) is dict:
        return any(type(part) is not dict and _is_data(part) for part in list(value.values()))
    if type(value) is str:
        return " " in value
    return type(value) in (list, tuple) or holders.is_array(value)


def _is_record(value: Any) -> bool:
    return not isinstance(value, (int, float)) and not callable(value)


def _entry(value: Any) -> Optional[Sample]:
    for name, held in names.variables():
        if held is value:
            continue
        if type(held) in (list, tuple) and 1 < len(held) <= _MAX_RECORDS:
            at = [position for position, entry in enumerate(held) if entry is value]
        elif type(held) is dict and 1 < len(held) <= _MAX_RECORDS:
            at = [key for key, entry in list(held.items()) if entry is value and type(key) is int]
        else:
            continue
        if len(at) == 1:
            return records.sample(name, held, len(held), at[0], None, likely=True)
    return None


def only_bad_row(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[int]:
    """The one row of several that has a bad element."""
    if scan.get("first", -1) < 0 or not tensor.dim() or not 1 < tensor.shape[0] <= values.MAX_ELEMENTS:
        return None
    if tensor.numel() > values.MAX_ELEMENTS:
        return None
    flat = tensor.detach().reshape(-1).cpu()
    bad = ~flat.isfinite() if flat.dtype.is_floating_point else values.bad_mask(flat, scan, predicate)
    if bad is not None and not bool(bad.any()):  # finite: what is wrong is the value
        bad = values.bad_mask(flat, scan, predicate)
    rows = None if bad is None else bad.reshape(tensor.shape[0], -1).any(1)
    drawn = predicate == capi.PREDICATE_PROBABILITY_ROWS and tensor.dim() == 2
    if drawn and (rows is None or not bool(rows.any())):
        rows = tensor.detach().cpu().sum(1) == 0  # of weights of which none can be drawn
    return int(rows.nonzero()[0]) if rows is not None and int(rows.sum()) == 1 else None
