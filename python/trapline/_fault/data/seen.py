"""The widest range known for the offending argument: over the whole data set where that is cheap to read."""

from __future__ import annotations

import math
from typing import Any, Optional

from trapline._fault.data import batches, columns, data_sets, entries, recorded
from trapline._fault.data.samples import Located, row_of
from trapline._fault.data.values import MAX_ELEMENTS, number
from trapline._fault.program import holders, owners, places, scope
from trapline._fault.program.names import length

_EXACT = 1 << 53
_MAX_KINDS = 1 << 16  # numbers among which a gap is looked for
Seen = dict[str, Any]


def seen_facts(
    violation: dict[str, Any], located: Optional[Located], sample: Optional[dict[str, Any]] = None
) -> Optional[Seen]:
    """Range over the data set, else over this and the remembered calls of the same argument. `sample`: where
    the program itself holds the data, it says which they are."""
    also = violation["scan"].get("also")
    if located is not None:
        from_set = _over_data_set(located, violation["scan"])
        if from_set is not None:
            return from_set
    return _over_column(violation) or _over_held(violation, sample or {}) or _over_calls(violation, also)


def _over_held(violation: dict[str, Any], sample: dict[str, Any]) -> Optional[Seen]:
    """Of numbers that the program holds for all records: `data.targets`."""
    tensor, data = violation["tensor"], sample.get("dataset") or {}
    if (
        "by" in sample
        or sample.get("likely")
        or tensor.dtype.is_floating_point
        or not scope.is_at_hand(tensor)
    ):
        return None
    for frame in holders.user_frames():
        for name, value in holders.held_by(frame):
            if name != data.get("name"):
                continue
            whole = holders.as_tensor(value, MAX_ELEMENTS)
            if whole is None or whole.dim() != 1 or len(whole) != data.get("length"):
                return None
            return None if whole.dtype.is_floating_point else _counted(whole, 0, violation["scan"])
    return None


def _over_data_set(located: Located, scan: dict[str, Any]) -> Optional[Seen]:
    data_set, indices = located.batch.loader.data_set(), located.batch.indices
    if data_set is None or not isinstance(indices, (list, tuple)) or located.found.view is None:
        return None
    if located.tensor.dim() < 1 or located.tensor.shape[0] != len(indices):
        return None
    rows = [int(index) for index in indices]
    for name, column in columns.columns(data_set):
        values = column.values
        if values.dim() != located.tensor.dim() or values.shape[1:] != located.tensor.shape[1:]:
            continue
        if not -len(values) <= min(rows) <= max(rows) < len(values):
            continue
        if not bool((values[rows].to(located.tensor.dtype) == located.tensor.cpu()).all()):
            continue
        whole = _same_part(located, values)
        if whole is None:
            return None
        seen = _counted(whole, located.found.constant, scan)
        if seen is None:
            return None
        others = _other_sets(data_set)
        if others:
            seen["several"] = True
        if _is_choice(data_set):
            seen["choice"] = True
        rest = _of_one_part(located, data_set, column, whole, rows, scan) or _of_one_set(
            located, data_set, others, name, whole, scan
        )
        if rest is not None:
            seen["part"] = rest
        return seen
    return None


def _counted(whole: Any, constant: int, scan: dict[str, Any]) -> Optional[Seen]:
    """Of all numbers of a data set, to which the program adds a constant."""
    also = scan.get("also")
    seen = _range(whole + constant, also, "dataset")
    if seen is None:
        return None
    if not whole.dtype.is_floating_point:
        kinds = (whole[whole != also] if "also" in scan else whole).unique()
        seen["kinds"] = int(kinds.numel())
        seen |= _gap(kinds + constant)
    if type(scan.get("hi")) is int:
        above = whole + constant
        above = above[above >= scan["hi"]]
        seen["beyond"] = int((above != also).sum()) if also is not None else len(above)
    return seen


def _over_column(violation: dict[str, Any]) -> Optional[Seen]:
    """Of the member of the data set that the program's text takes the numbers of."""
    import torch

    tensor, scan = violation["tensor"], violation["scan"]
    if tensor.dtype.is_floating_point or tensor.numel() > MAX_ELEMENTS or not scope.is_at_hand(tensor):
        return None
    column = entries.column_of(violation.get("given", tensor))
    if column is None or not bool(torch.isin(tensor.reshape(-1), column.values.to(tensor.dtype)).all()):
        return None  # they are not just handed on
    seen = _counted(column.values.to(tensor.dtype), 0, scan)
    if seen is not None and len(column.values) != length(column.data_set):
        seen["choice"] = True
    return seen


def _is_choice(data_set: Any) -> bool:
    """A choice of the records of a longer one (random_split)."""
    base, own = columns.base(data_set), length(data_set)
    whole = None if base is data_set else length(base)
    return own is not None and whole is not None and own < whole


def _of_one_part(
    located: Located,
    data_set: Any,
    column: columns.Column,
    whole: Any,
    rows: list[int],
    scan: dict[str, Any],
) -> Optional[Seen]:
    """Of a ConcatDataset: the data set that the bad element is of, beside the others. Of several choices of
    the same records none is made in another way."""
    row = row_of(located)
    if column.part is None or row is None or row >= len(rows) or whole.shape[0] != len(column.part):
        return None
    number = int(column.part[rows[row]])
    parts = [data_sets.below(part) for part in getattr(columns.base(data_set), "datasets", ())]
    if number < len(parts) and sum(part is parts[number] for part in parts) > 1:
        return None
    there = column.part == number
    part = _apart(whole[there] + located.found.constant, [whole[~there] + located.found.constant], scan)
    return part and part | {"position": number}


def _of_one_set(
    located: Located, data_set: Any, others: list[Any], name: columns.Name, whole: Any, scan: dict[str, Any]
) -> Optional[Seen]:
    """Where the program has other data sets with the same column, and not of the same records."""
    base, kind = columns.base(data_set), type(columns.base(data_set))
    held = []
    for other in others:
        if columns.base(other) is base or type(columns.base(other)) is not kind:
            return None
        column = dict(columns.columns(other)).get(name)
        if column is None or column.values.shape[1:] != whole.shape[1:]:
            return None
        held.append(column.values + located.found.constant)
    return _apart(whole + located.found.constant, held, scan) if held else None


def _apart(own: Any, others: list[Any], scan: dict[str, Any]) -> Optional[Seen]:
    """Both ranges, when only the first has values that are not valid."""
    low, high, also = scan.get("lo"), scan.get("hi"), scan.get("also")
    ranges = [_range(values, also, "dataset") for values in (own, *others)]
    if low is None or high is None or any(found is None for found in ranges):
        return None
    first, rest = ranges[0], ranges[1:]
    if any(isinstance(found[end], str) for found in ranges for end in ("min", "max")):
        return None
    least, most = min(found["min"] for found in rest), max(found["max"] for found in rest)
    real = own.dtype.is_floating_point  # its end is a valid number
    bad = (own < low) | ((own > high) if real else (own >= high))
    if also is not None:
        bad &= own != also
    if not low <= least <= most or not (most <= high if real else most < high) or not bool(bad.any()):
        return None
    return {
        "min": first["min"],
        "max": first["max"],
        "bad": int(bad.sum()),
        "count": first["count"],
        "others_min": least,
        "others_max": most,
        "zero": bool((own == 0).any()),
    }


def _gap(kinds: Any) -> Seen:
    """`gap`: the first number from 0 on that is not among these, which are in order, and below the last."""
    from_zero = kinds[kinds >= 0].tolist()[:_MAX_KINDS]
    first = next((at for at, kind in enumerate(from_zero) if kind != at), None)
    return {} if first is None else {"gap": first}


def _same_part(located: Located, column: Any) -> Any:
    """The part of the whole column that the operation was given: ids[:, 1:] or one label column."""
    part = located.found.view(located.tensor) if located.found.view is not None else None
    if part is None or column.numel() > MAX_ELEMENTS:
        return None
    if part.numel() >= located.tensor.numel():  # all of it, or repeated
        return column
    if part.dim() and part.shape[0] == located.tensor.shape[0]:
        return located.found.view(column)
    return column  # some rows of the batch: the column is the whole of it


def _range(values: Any, also: Any, source: str) -> Optional[Seen]:
    """Smallest and largest value, the allowed extra value (ignore_index) left out."""
    values = values.detach().reshape(-1)
    if values.dtype.is_floating_point:
        values = values[~values.isnan()]
    elif also is not None:
        values = values[values != also]
    if not values.numel():
        return None
    low, high = values.min().item(), values.max().item()
    return {"min": number(low), "max": number(high), "count": int(values.numel()), "source": source}


def _over_calls(violation: dict[str, Any], also: Any) -> Optional[Seen]:
    import torch

    tensor = violation["tensor"]
    if tensor.numel() > MAX_ELEMENTS or not tensor.numel():
        return None
    if tensor.dtype.is_floating_point or str(tensor.dtype) == "torch.bool":
        return None
    seen = _range(tensor, also, "calls")
    if seen is None or isinstance(seen["min"], str) or isinstance(seen["max"], str):
        return seen
    kinds = (tensor if also is None else tensor[tensor != also]).unique()
    seen["here"] = int(kinds.numel())
    seen |= _gap(kinds)
    rows = (violation.get("args") or {}).get("weight")
    if _op(violation).startswith(("embedding", "_embedding_bag")) and not _only_table(rows):
        return seen
    for call in _calls_before(violation):
        if _same_table(call, rows):
            _widen(seen, call, _argument_name(violation), also, violation["scan"].get("hi"))
    for size, stride in zip(tensor.shape, tensor.stride() if tensor.layout is torch.strided else ()):
        seen["count"] //= size if stride == 0 else 1  # expanded: the same elements again
    return seen


def trained(violation: dict[str, Any]) -> Optional[Seen]:
    """`max` and `count` of the labels of the last backward passes of such a loss, over as many classes, of
    which they have the last one; where this call keeps no gradient: the program trains with other data.
    """
    end, also = violation["scan"].get("hi"), violation["scan"].get("also")
    if not violation.get("no_grad") or type(end) is not int:
        return None
    highest, count = 0, 0
    for call in recorded.history():
        given = {argument.get("name"): argument for argument in call.get("args") or []}
        shape = (given.get("self") or {}).get("shape") or ()
        labels = given.get("target") or {}
        high = labels.get("max")
        if (
            "grad_output" in given
            and len(shape) > 1
            and shape[1] == end
            and high is not None
            and high != also
        ):
            highest, count = max(highest, int(high)), count + math.prod(labels.get("shape") or ())
    return {"max": highest, "count": count} if count >= end and highest == end - 1 else None


def passed(violation: dict[str, Any]) -> int:
    """How many of the last calls were of this operation at this place, and had nothing wrong."""
    return len(_calls_before(violation))


def _calls_before(violation: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the last calls that the same place of the program made of the same operation."""
    place = _place(violation.get("frames") or [])
    calls = recorded.history()
    if calls and _op(calls[-1]) == _op(violation):
        calls = calls[:-1]  # this very call: the adapters note a call before they judge it
    calls = [call for call in calls if _op(call) == _op(violation) and call.get("frames")]
    ways = [(call, _place(call["frames"])) for call in calls]
    return [call for call, there in ways if there == place[: len(there)]]


def _only_table(rows: Any) -> bool:
    """True when no other table in reach is as large: one line may read several in turn."""
    if not scope.is_tensor(rows):
        return False
    shape, pointers = tuple(rows.shape), set()
    for _, root in owners.roots():
        for parameter in root.parameters():
            if tuple(parameter.shape) == shape:
                pointers.add(owners.data_pointer(parameter))
    return len(pointers) <= 1


def _same_table(call: dict[str, Any], rows: Any) -> bool:
    if not scope.is_tensor(rows):
        return True
    shapes = [other.get("shape") for other in call.get("args") or [] if other.get("name") == "weight"]
    return not shapes or shapes[0] is None or list(map(int, shapes[0])) == list(rows.shape)


def _other_sets(data_set: Any) -> list[Any]:
    """The data sets of the program's other loaders."""
    from torch.utils.data import DataLoader

    sets = [batch.loader.data_set() for batch in batches.newest_first()]
    for frame in scope.live_frames():
        if places.is_user(frame.f_code):
            held = [value for _, value in scope.variables(frame)]
            sets += [value.dataset for value in held if isinstance(value, DataLoader)]
    others = {id(other): other for other in sets if other is not None and other is not data_set}
    return list(others.values())


def _widen(seen: Seen, call: dict[str, Any], argument: str, also: Any, end: Any) -> None:
    for other in call.get("args") or []:
        low, high = other.get("min"), other.get("max")
        if other.get("name") != argument or low is None or high is None or also in (low, high):
            continue
        if not -_EXACT <= low <= high <= _EXACT:
            continue
        if _op(call) == "one_hot" and type(end) is int and high >= end:
            continue  # it went well: of another column, which has more classes
        seen["min"], seen["max"] = min(seen["min"], int(low)), max(seen["max"], int(high))
        size = 1
        for extent in other.get("shape") or []:
            size *= int(extent)
        seen["count"] += size


def _op(call: dict[str, Any]) -> str:
    return str(call.get("op") or "").replace("aten::", "").split(".")[0]


def _argument_name(violation: dict[str, Any]) -> str:
    name = violation["contract"].rpartition(".")[2]
    position = violation["scan"].get("list_position")
    return name if position is None else f"{name}[{position}]"


def _place(frames: list[Any]) -> list[Any]:
    """The call's way through the program: equal for the calls of one line in a loop."""
    return [(code, lasti) for code, lasti in frames]
