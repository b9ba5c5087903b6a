"""A sample by its row alone: the bag that an id is in, the row of a batch that the program's own function
made, the record of a list that was cut by hand, what a loop is at. Nothing but the place says so: likely.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, Optional

from trapline._fault.data import asked, contents, hand, order, records, samples, values
from trapline._fault.data.batches import Batch
from trapline._fault.program import computed, holders, loops, names, owners, scope
from trapline._library import capi

_MAX_RECORDS = 1 << 20
_MAX_ENTRIES = 1 << 16  # that are compared
_MAX_LOOPS = 8
_MIN_RECORDS = 5  # fewer may be what a data set is split into
_USUAL = 3  # below it a number is in many records
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
    if row < 0:
        return None
    sample = of_row(batch, row)
    bad = values.bad_mask(violation["tensor"].detach().reshape(-1).cpu(), violation["scan"], None)
    end = int(begins[row + 1]) if row + 1 < len(begins) else len(bad if bad is not None else ())
    if bad is None or int(bad[first:end].sum()) < int(bad.sum()):  # others have such ids, too
        del sample["by"]
    return sample


def of_row(batch: Batch, row: int) -> Sample:
    """The sample of a row, where nothing but its place says so."""
    sample: Sample = {"batch": batch.number, "row": row, "by": "row", "likely": True}
    if samples.is_int(batch.indices[row]):
        sample["dataset_index"] = int(batch.indices[row])
    return samples.described(batch, sample)


def of_records(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """The one bad row, where the batch in hand is a list of records and no tensors, a row for each."""
    batch = hand.in_hand()
    if batch is None or not batch.raw() or not isinstance(batch.indices, (list, tuple)):
        return None
    if tensor.dim() < 2 or tensor.shape[0] != len(batch.indices) or not order.is_kept(batch):
        return None
    row = only_bad_row(tensor, scan, predicate)
    return None if row is None else of_row(batch, row)


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


def by_partner(tensor: Any, others: Any = ()) -> Optional[list[int]]:
    """The row of the batch in hand that each element of a flat list belongs to, as another list beside it
    says: one of the `others` of the same index (`out[image, anchor, y, x]`), in any order; or a variable
    of the program's that counts all rows up (`batch` of a graph's nodes, rows of `nonzero()`)."""
    batch = hand.in_hand()
    count = len(batch.indices) if batch is not None and isinstance(batch.indices, (list, tuple)) else 0
    if count < 2 or tensor.dim() != 1 or not count < len(tensor) <= values.MAX_ELEMENTS:
        return None
    for other in others:
        rows = _rows(other, tensor)
        if rows is not None and int(rows.min()) == 0 and int(rows.max()) == count - 1:
            return [int(row) for row in rows]
    for frame in holders.user_frames():
        held = [
            value for _, value in holders.held_by(frame) if holders.is_array(value) and value is not tensor
        ]
        known = (holders.as_tensor(value, values.MAX_ELEMENTS) for value in held)
        rows = of_graphs([one for one in known if one is not None and one.numel()], len(tensor), count)
        if rows is not None:
            return [int(row) for row in rows]
    return None


def of_graphs(parts: list[Any], size: int, count: int) -> Any:
    """The sample of each of `size` nodes or edges, one after the other in a batch of graphs: a part of the
    batch counts up from 0 to its last sample, for each node; edges are pairs of nodes."""
    whole = [part.detach().cpu() for part in parts if not part.is_floating_point() and not part.is_complex()]
    for owner in whole:
        steps = owner.diff() if owner.dim() == 1 and len(owner) > count else None
        if steps is None or owner.dtype.itemsize < 2 or int(owner[0]) != 0 or int(owner[-1]) != count - 1:
            continue
        if int(steps.min()) < 0 or int(steps.max()) > 1:
            continue
        if len(owner) == size:
            return owner
        for ends in (part[0] if tuple(part.shape) == (2, size) else part for part in whole):
            if tuple(ends.shape) == (size,) and int(ends.min()) >= 0 and int(ends.max()) < len(owner):
                of_edges = owner[ends.long()]
                if int(of_edges.diff().min()) >= 0:  # the edges, too, are one graph's after the other's
                    return of_edges
    return None


def _rows(held: Any, tensor: Any) -> Any:
    listed = holders.is_array(held) and held is not tensor
    rows = holders.as_tensor(held, values.MAX_ELEMENTS) if listed else None
    if rows is None or rows.dim() != 1 or len(rows) != len(tensor) or rows.dtype.is_floating_point:
        return None
    return None if str(rows.dtype) == "torch.bool" else rows


def of_flat(violation: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """The one sample whose elements are bad, of a list of those of all samples, one after the other: where a
    list beside it says which row each is of, or the batch holds as many for each row."""
    tensor, scan, batch = violation["tensor"], violation["scan"], hand.in_hand()
    tensor = tensor.squeeze(1) if tensor.dim() == 2 and tensor.shape[1] == 1 else tensor
    flat = tensor.detach().reshape(-1).cpu() if tensor.dim() == 1 else None
    bad = None if flat is None or batch is None else values.bad_mask(flat, scan, predicate)
    if bad is None or not bool(bad.any()) or not (order.is_kept(batch) or order.may_be_kept(batch)):
        return None
    indices = (violation.get("args") or {}).get("indices")
    beside = [one for one in indices if scope.is_tensor(one)] if type(indices) in (list, tuple) else []
    at = scan.get("list_position")
    first = beside[:1] if at not in (None, 0, -1) else []  # dimension 0 is that of the samples
    count = len(batch.indices) if isinstance(batch.indices, (list, tuple)) else 0
    rows = _rows_written(violation, first, tensor, count) or by_partner(tensor, first)
    if rows is None and count > 1:
        alike = any(
            part.dim() > 1 and part.shape[0] == count and part.numel() == len(flat)
            for part in batch.tensors()
        )
        each = len(flat) // count
        rows = [at // each for at in range(len(flat))] if alike and each > 1 else None
    hit = {rows[at] for at in bad.nonzero().reshape(-1).tolist()} if rows is not None else set()
    return of_row(batch, hit.pop()) if len(hit) == 1 else None


def _rows_written(
    violation: dict[str, Any], first: list[Any], tensor: Any, count: int
) -> Optional[list[int]]:
    """What x[rows, places] says itself, where x has a row for each sample."""
    whole = (violation.get("args") or {}).get("self")
    rows = _rows(first[0], tensor) if first else None
    if rows is None or not scope.is_tensor(whole) or not whole.dim() or not 1 < count == whole.shape[0]:
        return None
    inside = [int(row) + (count if row < 0 else 0) for row in rows]
    return inside if all(0 <= row < count for row in inside) else None


def odd_one(mask: Any) -> Optional[Sample]:
    """Of a mask that takes more than there is: the one row of the batch with another number of them."""
    batch = hand.in_hand()
    if batch is None or not isinstance(batch.indices, (list, tuple)) or not order.is_kept(batch):
        return None
    if mask.dim() < 2 or not 2 < len(batch.indices) == mask.shape[0] or mask.numel() > values.MAX_ELEMENTS:
        return None
    taken = mask.detach().reshape(len(mask), -1).sum(1).tolist()
    usual = max(set(taken), key=taken.count)
    others = [row for row, count in enumerate(taken) if count != usual]
    return of_row(batch, others[0]) if len(others) == 1 else None


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


def at_in_loop(scan: Optional[dict[str, Any]] = None, tensor: Any = None) -> Optional[Sample]:
    """What the innermost loop of the program is at, where a list or dictionary of its own has it. With `scan`
    not a record of numbers that does not hold the bad one: the program has made it, and of that record only
    where the statement that computes `tensor` takes it."""
    for frame in holders.user_frames():
        for count, drawn in enumerate(loops.drawn(frame)):
            if count == _MAX_LOOPS:
                break
            for value in drawn:
                may = _is_data(value) and _may_hold(value, scan, tensor)
                found = entry_of(value) if may or _object_has(value, scan) else None
                if found is not None:
                    return {**found, "by": "loop"}
        by_number = asked.in_loop(frame)
        if by_number is not None:
            return by_number
    return None


def _object_has(value: Any, scan: Optional[dict[str, Any]]) -> bool:
    """A member of a record that is an object, `request.tokens`, holds the bad number."""
    bad = (scan or {}).get("value")
    if type(bad) is not int or 0 <= bad < _USUAL or callable(value):
        return False
    kept = scope.members(value).values()
    return any((type(one) is list or holders.is_array(one)) and contents.holds(one, [bad]) for one in kept)


def _may_hold(value: Any, scan: Optional[dict[str, Any]], tensor: Any) -> bool:
    bad = (scan or {}).get("value")
    numbers = type(value) in (list, tuple) and all(type(one) is int for one in value)
    array = holders.is_array(value)
    if type(bad) is not int or not (numbers or array) or contents.holds(value, [bad]):
        return True
    return tensor is not None and computed.takes(value, tensor)


def _is_data(value: Any) -> bool:
    """Numbers or a text, or a record that holds some; no setting and no name."""
    if type(value) is dict:
        return any(type(part) is not dict and _is_data(part) for part in list(value.values()))
    if type(value) is str:
        return " " in value
    return type(value) in (list, tuple) or holders.is_array(value)


def _is_record(value: Any) -> bool:
    is_word = type(value) is str and " " not in value  # as a vocabulary has, and a text
    return not isinstance(value, (int, float)) and not callable(value) and not is_word


def entry_of(value: Any) -> Optional[Sample]:
    """A value that is a record of the program's, or else a part of one."""
    found = _entry_by(value, lambda entry: entry is value)
    return found or (
        _entry_by(value, lambda entry: _is_in(value, entry)) if holders.is_array(value) else None
    )


def _entry_by(value: Any, is_it: Callable[[Any], bool]) -> Optional[Sample]:
    """In the longest that has it: the others are cut from that."""
    found: list[tuple[int, str, Any, Any]] = []
    for name, held in names.variables():
        if held is value:
            continue
        if type(held) in (list, tuple) and 1 < len(held) <= _MAX_RECORDS:
            at = [position for position, entry in enumerate(held) if is_it(entry)]
        elif type(held) is dict and 1 < len(held) <= _MAX_RECORDS:
            at = [key for key, entry in list(held.items()) if is_it(entry) and type(key) is int]
        else:
            continue
        if len(at) == 1:
            batch = _batch_of(held) if type(held) is not dict else None
            if batch is not None:
                return of_row(batch, at[0])
            found.append((len(held), name, held, at[0]))
    if not found:
        return None
    length, name, held, place = max(found, key=lambda one: one[0])
    return records.sample(name, held, length, place, None, likely=True)


def _is_in(value: Any, entry: Any) -> bool:
    """`for (points, faces), label in meshes`."""
    inside = entry if type(entry) in (list, tuple) else ()
    return any(part is value or _is_in(value, part) for part in inside)


def record_given(given: list[Any]) -> Optional[Sample]:
    """The one record of a list of the program's that has some of these tensors, perhaps in another shape: a
    model that takes one at a time."""
    own = {key for key in map(_memory, given) if key[0]}
    found: list[tuple[int, str, Any, int]] = []
    for name, held in names.variables():
        if type(held) in (list, tuple) and _MIN_RECORDS <= len(held) <= _MAX_RECORDS and own:
            members = [_members(entry) for entry in held]
            at = [position for position, inside in enumerate(members) if own & inside]
            if len(at) == 1 and len({(type(one), len(inside)) for one, inside in zip(held, members)}) == 1:
                found.append((len(held), name, held, at[0]))
    if not found:
        return None
    length, name, held, place = max(found, key=lambda one: one[0])
    return {**records.sample(name, held, length, place, None, likely=True), "by": "loop"}


class Entry(NamedTuple):
    """The place of a record in the longest list of the program's that has it, and in the shortest."""

    sample: Sample
    count: int
    place: int


def entry_given(given: Iterable[Any]) -> Optional[Entry]:
    """The one record of a list of the program's that a function was given, as it is or copied, whole or an
    array of it."""
    lists = [
        (name, held)
        for name, held in names.variables()
        if type(held) in (list, tuple) and _MIN_RECORDS <= len(held) <= _MAX_ENTRIES and _is_record(held[0])
    ]
    for value in given:
        whole = type(value) in (list, tuple, dict, str) and len(value) > 0
        array = holders.as_tensor(value, values.MAX_ELEMENTS) if holders.is_array(value) else None
        if not whole and (array is None or array.numel() < 2):
            continue
        found = []
        for name, held in lists:
            at = [place for place, entry in enumerate(held) if _is_same(entry, value) or _holds(entry, value)]
            if len(at) == 1 and held is not value:
                found.append((len(held), name, held, at[0]))
        if found:
            length, name, held, place = max(found, key=lambda one: one[0])
            shortest = min(found, key=lambda one: one[0])
            sample = {**records.sample(name, held, length, place, None, likely=True), "by": "loop"}
            return Entry(sample, shortest[0], shortest[3])
    return None


def _holds(entry: Any, value: Any) -> bool:
    inside = entry.values() if type(entry) is dict else entry if type(entry) in (list, tuple) else ()
    return holders.is_array(value) and any(holders.is_array(one) and _is_same(one, value) for one in inside)


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if not (holders.is_array(one) and holders.is_array(other)):
        return type(one) in (list, tuple, dict, str) and contents.same(one, other)
    if tuple(one.shape) != tuple(other.shape):
        return False
    one, other = (holders.as_tensor(array, values.MAX_ELEMENTS) for array in (one, other))
    return one is not None and other is not None and bool((one == other).all())


def _members(entry: Any) -> set[tuple[int, int]]:
    """A record's tensors, by their memory."""
    return {_memory(part) for part in samples.parts_of(entry) if scope.is_tensor(part)}


def _memory(tensor: Any) -> tuple[int, int]:
    return owners.data_pointer(tensor), int(tensor.numel())


def _batch_of(held: Any) -> Optional[Batch]:
    """The batch in hand, where this list has the tensors of its samples, one for each."""
    batch = hand.in_hand()
    if batch is None or not isinstance(batch.indices, (list, tuple)) or len(held) != len(batch.indices):
        return None
    own = {id(part) for part in batch.tensors()}
    whole = all(id(one) in own for one in held) and order.is_list_kept(batch, list(held))
    return batch if whole else None


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


def bad_rows(tensor: Any, bad: Any) -> Any:
    """Which rows have a bad element; None when all of them have, and so none is special."""
    rows = bad.reshape(tensor.shape[0], -1).any(1)
    return None if bool(rows.all()) else rows
