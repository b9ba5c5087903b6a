"""The widest range known for the offending argument: over the whole data set where that is cheap to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from . import adapter, batches, owners, places, scope
from .samples import Located
from .values import MAX_ELEMENTS, number

_NAMED_COLUMNS = ("tensors", "targets", "labels", "label", "y", "ids", "input_ids", "tokens", "data")
_EXACT = 1 << 53
Seen = dict[str, Any]


def seen_facts(violation: dict[str, Any], located: Optional[Located]) -> Optional[Seen]:
    """Range over the data set, else over this and the remembered calls of the same argument."""
    also = violation["scan"].get("also")
    if located is not None:
        from_set = _over_data_set(located, also)
        if from_set is not None:
            return from_set
    return _over_calls(violation, also)


def _over_data_set(located: Located, also: Any) -> Optional[Seen]:
    data_set, indices = located.batch.loader.data_set(), located.batch.indices
    if data_set is None or not isinstance(indices, (list, tuple)) or located.found.view is None:
        return None
    if located.tensor.dim() < 1 or located.tensor.shape[0] != len(indices):
        return None
    for column in _columns(data_set):
        if column.dim() != located.tensor.dim() or column.shape[1:] != located.tensor.shape[1:]:
            continue
        part = column[list(indices)]
        if not bool((part.to(located.tensor.dtype) == located.tensor.cpu()).all()):
            continue
        whole = _same_part(located, column)
        if whole is None:
            return None
        seen = _range(whole + located.found.constant, also, "dataset")
        if seen is not None and _several(data_set):
            seen["several"] = True
        return seen
    return None


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


def _columns(data_set: Any) -> Iterator[Any]:
    """Columns of a data set with one entry per sample, as tensors; attributes only, no user method runs."""
    import torch

    chosen: Optional[list[int]] = None
    for _ in range(8):  # Subset of Subset of ...
        if isinstance(data_set, torch.utils.data.Subset):
            own = [int(i) for i in data_set.indices]
            chosen = own if chosen is None else [own[i] for i in chosen]
            data_set = data_set.dataset
    try:
        length = len(data_set)
    except TypeError:
        return
    attributes = getattr(data_set, "__dict__", {})
    names = [name for name in _NAMED_COLUMNS if name in attributes]
    names += [name for name in attributes if name not in names]
    held: list[Any] = []
    for name in names:
        value = attributes[name]
        held += list(value) if name == "tensors" and isinstance(value, (tuple, list)) else [value]
    for value in held:
        column = _as_tensor(value, length)
        if column is not None:
            yield column if chosen is None else column[chosen]


def _as_tensor(value: Any, length: int) -> Any:
    import torch

    try:
        if scope.is_tensor(value):
            column = value.detach()
        elif type(value).__module__ == "numpy" and hasattr(value, "dtype"):
            column = torch.from_numpy(value)
        elif (
            isinstance(value, (list, tuple))
            and len(value) == length
            and length
            and type(value[0]) in (int, float)
        ):
            column = torch.tensor(value)
        else:
            return None
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None
    fits = column.dim() and column.shape[0] == length and column.device.type == "cpu"
    return column if fits and column.numel() <= MAX_ELEMENTS else None


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
    tensor = violation["tensor"]
    if tensor.numel() > MAX_ELEMENTS or not tensor.numel():
        return None
    if tensor.dtype.is_floating_point or str(tensor.dtype) == "torch.bool":
        return None
    seen = _range(tensor, also, "calls")
    if seen is None or isinstance(seen["min"], str) or isinstance(seen["max"], str):
        return seen
    rows = (violation.get("args") or {}).get("weight")
    if _op(violation).startswith(("embedding", "_embedding_bag")) and not _only_table(rows):
        return seen
    place = _place(violation.get("frames") or [])
    calls = adapter.history()
    if calls and _op(calls[-1]) == _op(violation):
        calls = calls[:-1]  # this very call: the adapters note a call before they judge it
    for call in calls:
        there = _place(call.get("frames") or [])
        same = there and _op(call) == _op(violation) and there == place[: len(there)]
        if same and _same_table(call, rows):
            _widen(seen, call, _argument_name(violation), also)
    return seen


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


def _several(data_set: Any) -> bool:
    """True when the program has loaders of other data sets as well."""
    from torch.utils.data import DataLoader

    sets = [batch.loader.data_set() for batch in batches.newest_first()]
    for frame in scope.live_frames():
        if places.is_user(frame.f_code):
            held = [value for _, value in scope.variables(frame)]
            sets += [value.dataset for value in held if isinstance(value, DataLoader)]
    return any(other is not None and other is not data_set for other in sets)


def _widen(seen: Seen, call: dict[str, Any], argument: str, also: Any) -> None:
    for other in call.get("args") or []:
        low, high = other.get("min"), other.get("max")
        if other.get("name") != argument or low is None or high is None or also in (low, high):
            continue
        if not -_EXACT <= low <= high <= _EXACT:
            continue
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
