"""Remembers the last batches that DataLoaders gave out: their tensors, batch number and sample indices.

This is the only code of this room that runs without a fault: once per batch, under a microsecond for a usual
batch. Small tensors are held (a few batches, a few of them), large ones and views only weakly.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, Callable, Optional

_HELD_ELEMENTS = 1 << 16
_MAX_ITEMS = 32
_MAX_BATCHES = 6


class Loader:
    """What a loader's iterator says about its batches; outlives the iterator, not the data set."""

    __slots__ = ("_data_set", "_iterator", "batched", "iterable", "keeps_order")

    def __init__(self, iterator: Any) -> None:
        from torch.utils.data import dataloader

        self.batched = bool(iterator._auto_collation)
        self.iterable = iterator._dataset_kind == dataloader._DatasetKind.Iterable
        # torch's own stacking of the samples keeps the sampler's order; a user's function may sort or drop
        self.keeps_order = iterator._collate_fn is dataloader.default_collate
        self._iterator = weakref.ref(iterator)
        try:
            self._data_set: Any = weakref.ref(iterator._dataset)
        except TypeError:  # a list as a data set
            self._data_set = None

    def data_set(self) -> Any:
        """The data set, while the program has it."""
        if self._data_set is not None:
            return self._data_set()
        return getattr(self._iterator(), "_dataset", None)


class Batch:
    """One batch as the loader gave it out. `indices` are the sampler's; None for iterable data sets."""

    __slots__ = ("indices", "loader", "number", "parts")

    def __init__(self, loader: Loader, number: int, indices: Any, parts: list[Any]) -> None:
        self.loader = loader
        self.number = number
        self.indices = indices
        self.parts = parts

    def tensors(self) -> list[Any]:
        """The batch's tensors that still exist."""
        import torch

        found: list[Any] = []
        for part in self.parts:
            value = part() if isinstance(part, weakref.ref) else part
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif value is not None:  # a user's batch class
                held = list(getattr(value, "__dict__", {}).values())[:_MAX_ITEMS]
                found += [item for item in held if isinstance(item, torch.Tensor)]
        return found


_noted: deque[tuple[Loader, int, Any, list[Any]]] = deque(maxlen=_MAX_BATCHES)
_originals: dict[str, Callable[..., Any]] = {}


def newest_first() -> list[Batch]:
    """The last batches of all loaders of this process."""
    noted = reversed(list(_noted))
    return [
        Batch(loader, n, None if loader.iterable else indices, parts) for loader, n, indices, parts in noted
    ]


def install() -> None:
    """Wraps the two methods that every DataLoader iterator has. A second call changes nothing."""
    if _originals:
        return
    import torch
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    tensor_type = torch.Tensor
    reference = weakref.ref
    original_next = _BaseDataLoaderIter.__next__
    original_index = _BaseDataLoaderIter._next_index

    def gather(data: Any, parts: list[Any], depth: int) -> None:
        kind = type(data)
        if kind is tensor_type:
            parts.append(data if data.numel() <= _HELD_ELEMENTS and not data._is_view() else reference(data))
        elif kind is list or kind is tuple:
            if depth:
                for item in data[:_MAX_ITEMS] if len(data) > _MAX_ITEMS else data:
                    gather(item, parts, depth - 1)
        elif kind is str or kind is int or kind is float or data is None:
            return
        elif isinstance(data, tensor_type):
            parts.append(reference(data))
        elif isinstance(data, tuple):
            gather(tuple(data), parts, depth)
        elif hasattr(data, "values") and hasattr(data, "keys"):
            if depth:
                gather(list(data.values()), parts, depth - 1)
        else:
            try:
                parts.append(reference(data))
            except TypeError:
                return

    def _next_index(self: Any) -> Any:
        index = original_index(self)
        try:
            if self._num_workers:  # drawn ahead: filed under the number of the task that it becomes
                self.__dict__.setdefault("_trapline_tasks", {})[self._send_idx] = index
            else:
                self._trapline_index = index
        except Exception:
            pass
        return index

    def __next__(self: Any) -> Any:
        data = original_next(self)
        try:
            parts: list[Any] = []
            gather(data, parts, 3)
            try:
                loader = self._trapline_loader
            except AttributeError:
                loader = self._trapline_loader = Loader(self)
            indices = _taken(self) if self._num_workers else self._trapline_index
            _noted.append((loader, self._num_yielded - 1, indices, parts))
        except Exception:
            pass
        return data

    _originals["__next__"] = original_next
    _originals["_next_index"] = original_index
    _BaseDataLoaderIter._next_index = _next_index
    _BaseDataLoaderIter.__next__ = __next__


def uninstall() -> None:
    """Puts the original methods back and forgets all batches."""
    if not _originals:
        return
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    for name, method in _originals.items():
        setattr(_BaseDataLoaderIter, name, method)
    _originals.clear()
    _noted.clear()


def _taken(iterator: Any) -> Optional[Any]:
    """The indices of the batch that the iterator has just returned."""
    drawn = iterator.__dict__.get("_trapline_tasks")
    if not drawn:
        return None
    if getattr(iterator, "_in_order", True):
        return drawn.pop(iterator._rcvd_idx - 1, None)
    # Out of order: the one task that was sent and is no longer waited for.
    done = [task for task in drawn if task < iterator._send_idx and task not in iterator._task_info]
    return drawn.pop(done[0]) if len(done) == 1 else None
