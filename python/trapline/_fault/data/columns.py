"""Columns of a data set with one entry per sample, as tensors: attributes only, no method of the user's runs.

A column may be a tensor, an array, a list of numbers, one place of a list of tuples or of dicts
(``[(path, label), ...]``), a column of a DataFrame or of a Hugging Face data set. Those of a ConcatDataset
are the columns of its data sets, one behind the other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.data.values import MAX_ELEMENTS
from trapline._fault.program import scope

_NAMED = ("tensors", "targets", "labels", "label", "y", "ids", "input_ids", "tokens", "data")
_MAX_DEPTH = 8
_MAX_PLACES = 64  # in a record
Name = tuple[Any, ...]  # the attribute, and the place in it


class Column:
    """`values`: one entry per sample. `part`: of a ConcatDataset, which of its data sets has the sample."""

    __slots__ = ("part", "values")

    def __init__(self, values: Any, part: Any = None) -> None:
        self.values = values
        self.part = part


def columns(data_set: Any, depth: int = _MAX_DEPTH) -> Iterator[tuple[Name, Column]]:
    """All of them, each with its name, the likely ones first."""
    import torch

    if depth == 0 or data_set is None:
        return
    if isinstance(data_set, torch.utils.data.Subset):
        rows = torch.tensor([int(i) for i in data_set.indices], dtype=torch.int64)
        for name, column in columns(data_set.dataset, depth - 1):
            length = len(column.values)
            if not len(rows) or -length <= int(rows.min()) <= int(rows.max()) < length:
                part = None if column.part is None else column.part[rows]
                yield name, Column(column.values[rows], part)
    elif isinstance(data_set, torch.utils.data.ConcatDataset):
        yield from _concatenated(data_set, depth)
    elif type(data_set).__module__.partition(".")[0] == "datasets":
        yield from _of_hugging_face(data_set)
    else:
        yield from _own(data_set)


def base(data_set: Any) -> Any:
    """The data set that a Subset is taken from."""
    import torch

    for _ in range(_MAX_DEPTH):
        if not isinstance(data_set, torch.utils.data.Subset):
            break
        data_set = data_set.dataset
    return data_set


def is_data(value: Any) -> bool:
    """A table, an array, a tensor or a list."""
    if type(value) in (list, tuple):
        return True
    if scope.is_tensor(value):
        import torch

        return value.layout is torch.strided and not value.is_nested and bool(value.dim())
    if type(value).__module__ == "numpy":
        return type(value).__name__ == "ndarray" and value.ndim > 0
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, (pandas.DataFrame, pandas.Series))


def is_of_numbers(data: Any) -> bool:
    """One number for each entry."""
    return bool(data.ndim == 1) if hasattr(data, "ndim") else isinstance(data[0], (int, float))


def of_value(data: Any) -> Iterator[tuple[Any, Any]]:
    """(numbers, row of each) of the columns of one that is_data()."""
    import torch

    for _, value in _places(data, len(data)):
        column = as_tensor(value, len(data))
        if column is not None and not column.is_complex():
            width = column.numel() // len(column)
            yield column.reshape(-1).cpu(), torch.arange(len(column)).repeat_interleave(width)


def ragged(data: Any, most: int) -> Iterator[tuple[Any, Any]]:
    """The same of a list whose records are lists of whole numbers, or hold such lists in the same place."""
    import torch

    if type(data) not in (list, tuple) or not 0 < len(data) <= most:
        return
    first = data[0]
    places: list[Any] = (
        list(first) if type(first) is dict else list(range(len(first))) if _pair(first) else []
    )
    for place in [None, *places[:_MAX_PLACES]]:
        entries = data if place is None else _gathered(data, type(first), place)
        lists = [_whole(entry) for entry in entries or ()]
        if not lists or any(entry is None for entry in lists):
            continue
        sizes = torch.tensor([len(entry) for entry in lists if entry is not None])
        if 0 < int(sizes.sum()) <= MAX_ELEMENTS:
            numbers = torch.tensor([number for entry in lists for number in entry or ()])
            yield numbers, torch.arange(len(lists)).repeat_interleave(sizes)


def _pair(record: Any) -> bool:
    """A tuple or list of parts, no sequence of numbers."""
    return type(record) in (list, tuple) and any(_whole(part) is not None for part in record[:_MAX_PLACES])


def _whole(entry: Any) -> Optional[list[int]]:
    """A list, array or tensor of whole numbers as a list."""
    if scope.is_tensor(entry) or type(entry).__module__ == "numpy":
        column = as_tensor(entry, entry.shape[0]) if getattr(entry, "shape", ()) else None
        if column is None or column.dtype.is_floating_point or column.is_complex():
            return None
        numbers: list[int] = column.reshape(-1).tolist()
        return numbers
    if type(entry) in (list, tuple) and all(type(number) is int for number in entry):
        return list(entry)
    return None


def _concatenated(data_set: Any, depth: int) -> Iterator[tuple[Name, Column]]:
    """What all of the data sets have under the same name, and in the same shape."""
    import torch

    parts = [dict(columns(part, depth - 1)) for part in data_set.datasets]
    for name in parts[0] if parts else ():
        held = [part[name].values if name in part else None for part in parts]
        if any(values is None for values in held):
            continue
        if len({(values.shape[1:], values.dtype) for values in held}) > 1:
            continue
        if sum(values.numel() for values in held) > MAX_ELEMENTS:
            continue
        origin = torch.repeat_interleave(torch.tensor([len(values) for values in held]))
        yield name, Column(torch.cat(held), origin)


def _own(data_set: Any) -> Iterator[tuple[Name, Column]]:
    try:
        length = len(data_set)
    except TypeError:
        return
    if length > MAX_ELEMENTS:
        return
    attributes = scope.members(data_set)
    names = [name for name in _NAMED if name in attributes]
    names += [name for name in attributes if name not in names]
    for name in names:
        for place, value in _places(attributes[name], length):
            column = as_tensor(value, length)
            if column is not None:
                yield (name, *place), Column(column)


def _places(value: Any, length: int) -> Iterator[tuple[Name, Any]]:
    """The value itself, and what it holds side by side."""
    yield (), value
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        for place in range(min(value.shape[1], _MAX_PLACES)):
            yield (str(value.columns[place]),), value.iloc[:, place].to_numpy()
    elif pandas is not None and isinstance(value, (pandas.Series, pandas.Index)):
        yield ("",), value.to_numpy()
    elif isinstance(value, (list, tuple)) and value:
        first = value[0]
        if scope.is_tensor(first):  # of a TensorDataset
            yield from (((place,), part) for place, part in enumerate(value[:_MAX_PLACES]))
        elif len(value) == length and isinstance(first, (tuple, list, dict)):
            keys = list(first) if isinstance(first, dict) else range(len(first))
            for key in list(keys)[:_MAX_PLACES]:
                if type(first[key]) in (int, float):
                    yield (key,), _gathered(value, type(first), key)


def _gathered(records: Any, kind: type, key: Any) -> Optional[list[Any]]:
    """The entry under `key` of each record; None when one has none."""
    try:
        return [record[key] if isinstance(record, kind) else None for record in records]
    except (KeyError, IndexError):
        return None


def as_tensor(value: Any, length: int) -> Any:
    import torch

    try:
        if scope.is_tensor(value):
            column = value.detach()
        elif type(value).__module__ == "numpy" and hasattr(value, "dtype"):
            # a copy where it is read-only, of which torch warns the program
            column = torch.from_numpy(value if value.flags.writeable else value.copy())
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
    fits = column.dim() and column.shape[0] == length and scope.is_at_hand(column)
    return column if fits and column.numel() <= MAX_ELEMENTS else None


def _of_hugging_face(data_set: Any) -> Iterator[tuple[Name, Column]]:
    """Its columns of one number each. Its own code reads them; a transform of the user's is left out."""
    features = dict(getattr(data_set, "features", None) or {})
    if not hasattr(data_set, "with_format") or len(data_set) > MAX_ELEMENTS:
        return
    plain = data_set.with_format("numpy")
    for name, feature in features.items():
        if not str(getattr(feature, "dtype", "")).startswith(("int", "uint", "float")):
            continue
        column = as_tensor(plain[name][:], len(data_set))
        if column is not None:
            yield (name,), Column(column)
