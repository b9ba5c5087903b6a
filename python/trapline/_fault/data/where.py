"""A sample in terms of the program: the names of its data set and loader, the base below it, its file."""

from __future__ import annotations

import sys
from typing import Any, Callable

from trapline._fault.data import data_sets
from trapline._fault.program import scope
from trapline._fault.program.names import Names, length

_WRAPPED = ("base_dataloader", "dataloader", "loader", "_loader", "_dataloader")  # accelerate and others


_DRAWING = ("dataset", "sampler", "batch_sampler")
_INDICES = ("dataset_index", "one_of", "of")


def described(sample: dict[str, Any], data_set: Any, loader: Any) -> dict[str, Any]:
    """The sample with `dataset`, `loader`, `base_index`, `base` and `file`, as far as they are known."""
    if data_set is None:
        return sample
    if isinstance(data_set, range):  # of loaders that draw numbers and cut the data themselves
        data_set, loader = _cut_by(loader, len(data_set)), None
        if data_set is None:
            return {key: value for key, value in sample.items() if key not in _INDICES}
    names = Names()
    found = names.of(_is_loader(loader, data_set)) if loader is not None else ""
    if found:
        sample["loader"] = found
    name = names.of(_is_data_set(data_set))
    again = found and name.endswith(".dataset")  # of the loader: says nothing new
    sample["dataset"] = _data_set(data_set, "" if again else name)
    index = sample.get("dataset_index")
    if type(index) is int and index >= sample["dataset"].get("length", index + 1):
        del sample["dataset"]["length"]  # it counts something else: Keras's the arrays of a dictionary
    if index is not None:
        _below(sample, data_set, index, names)
    return sample


def _cut_by(loader: Any, count: int) -> Any:
    """What such a loader holds with as many rows (torch_frame's tensor_frame); None: nothing, or several."""
    parts = [part for name, part in scope.members(loader).items() if name not in _DRAWING]
    found = [part for part in parts if scope.members(part) and length(part) == count]
    return found[0] if len(found) == 1 else None


def _below(sample: dict[str, Any], data_set: Any, index: int, names: Names) -> None:
    try:
        base, inner = data_sets.base_of(data_set, index)
    except (IndexError, KeyError, TypeError, ValueError):  # a Subset of the user's own kind
        return
    if base is not data_set:
        sample["base_index"] = inner
        sample["base"] = _data_set(base, names.of(_is_data_set(base)))
    else:
        _hub_below(sample, base, inner, names)
    file = data_sets.file_of(base, inner)
    if file is not None:
        sample["file"] = file


def _data_set(data_set: Any, name: str) -> dict[str, Any]:
    if name and type(data_set).__name__ in ("DataFrame", "Series"):
        name += ".iloc"  # what it is asked by a number alone is a column
    described = {"name": name, "type": type(data_set).__name__, "length": length(data_set)}
    return {key: value for key, value in described.items() if value not in ("", None)}


def _is_loader(loader: Any, data_set: Any) -> Callable[[Any], bool]:
    def wanted(value: Any) -> bool:
        if value is loader:
            return True
        held = scope.members(value)
        if not held or scope.is_tensor(value):
            return False
        # expressions end in .dataset: the wrapper has to hand it on
        return any(held.get(name) is loader for name in _WRAPPED) and (
            getattr(value, "dataset", None) is data_set
        )

    return wanted


def _is_data_set(data_set: Any) -> Callable[[Any], bool]:
    hub = _hub()
    if hub is None or type(data_set) is not hub:
        return lambda value: value is data_set
    count = length(data_set)
    return lambda value: (
        value is data_set
        or (type(value) is hub and length(value) == count and _same_rows(value, data_set, hub_rows=True))
    )


# Hugging Face's Dataset: remove_columns(), which its Trainer calls, and select() copy the object only.


def _hub() -> Any:
    return getattr(sys.modules.get("datasets.arrow_dataset"), "Dataset", None)


def _same_rows(one: Any, other: Any, hub_rows: bool) -> bool:
    """Both show the same memory: the same table and, with `hub_rows`, the same choice of rows from it."""
    try:
        if hub_rows and _choice(one) != _choice(other):
            return False
        shared = [name for name in other.column_names if name in one.column_names]
        return bool(shared) and _addresses(one, shared[0]) == _addresses(other, shared[0])
    except Exception:
        return False


def _choice(data_set: Any) -> Any:
    indices = data_set._indices
    return None if indices is None else _column_addresses(indices.table.column(0))


def _addresses(data_set: Any, column: str) -> Any:
    return _column_addresses(data_set._data.table.column(column))


def _column_addresses(column: Any) -> Any:
    return [
        (chunk.offset, len(chunk), [None if part is None else part.address for part in chunk.buffers()])
        for chunk in column.chunks
    ]


def _hub_below(sample: dict[str, Any], data_set: Any, index: int, names: Names) -> None:
    """select(), shuffle(), train_test_split(): the row in the whole, where the program has the whole."""
    hub = _hub()
    if hub is None or type(data_set) is not hub or data_set._indices is None:
        return

    def whole(value: Any) -> bool:
        return type(value) is hub and value._indices is None and _same_rows(value, data_set, hub_rows=False)

    name = names.of(whole)
    if name:
        kept: list[Any] = []
        names.of(lambda value: whole(value) and not kept and bool(kept.append(value) or True))
        sample["base_index"] = int(data_set._indices.column(0)[index].as_py())
        sample["base"] = _data_set(kept[0], name)
