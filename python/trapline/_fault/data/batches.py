"""Remembers the last batches that DataLoaders gave out: their tensors, batch number and sample indices.

This is the only code of this room that runs without a fault: once per batch, under a microsecond for a usual
batch. Small tensors are held (a few of them, of the newest batches), large ones and views only weakly.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional

from trapline._fault.program import scope
from trapline._library import progress

_HELD_ELEMENTS = 1 << 16
_MAX_ITEMS = 32
_MAX_OBJECTS = 64  # of a batch that is an object, and what it holds
_MAX_BATCHES = 64  # a trainer that accumulates gradients draws all batches of a step at once
_MIN_BATCHES = 6
_MAX_HELD = 1 << 20  # elements of all batches but the newest few
_DEPTH = 3  # (images, [{"boxes": ..., "labels": ...}, ...])
# Collate functions that put one sample into one row, in the sampler's order. A user's own may sort or drop.
_KEEP_ORDER = ("torch.utils.data._utils.collate", "transformers.data.data_collator")


class Loader:
    """What a loader's iterator says about its batches; outlives the iterator, not the data set."""

    __slots__ = (
        "_data_set",
        "_iterator",
        "_own",
        "_user",
        "batch_size",
        "batched",
        "iterable",
        "keeps_order",
        "own_collate",
        "skipped",
    )

    def __init__(self, iterator: Any) -> None:
        from torch.utils.data import dataloader

        self.batched = bool(iterator._auto_collation)
        self.iterable = iterator._dataset_kind == dataloader._DatasetKind.Iterable
        size = getattr(iterator._index_sampler, "batch_size", None)
        self.batch_size = size if type(size) is int else None
        # accelerate goes on in the middle of an epoch by a sampler that leaves the first batches out
        skipped = getattr(iterator._index_sampler, "skip_batches", 0)
        self.skipped = skipped if type(skipped) is int else 0
        collate = iterator._collate_fn
        self.own_collate = _module(collate) == _KEEP_ORDER[0]  # PyTorch's
        self.keeps_order = collate in (list, tuple) or _module(collate) in _KEEP_ORDER
        self._iterator = weakref.ref(iterator)
        self._user = getattr(iterator, "_trapline_loader_ref", None)
        # fastai hands torch's iterator a stand-in; its own loader, behind that, knows the indices
        own = getattr(iterator._dataset, "d", None) if self.iterable else None
        self._own = weakref.ref(own) if hasattr(own, _FASTAI_INDICES) else None
        if self._own is not None:
            self._user, self.iterable, self.batched = self._own, False, True
            self._data_set: Any = self._own
            return
        try:
            self._data_set = weakref.ref(iterator._dataset)
        except TypeError:  # a list as a data set
            self._data_set = None

    def data_set(self) -> Any:
        """The data set, while the program has it."""
        if self._own is not None:
            return getattr(self._own(), "dataset", None)
        if self._data_set is not None:
            return self._data_set()
        return getattr(self._iterator(), "_dataset", None)

    def collate(self) -> Any:
        """The collate function, while the iterator lives."""
        return getattr(self._iterator(), "_collate_fn", None)

    def user_loader(self) -> Any:
        """The DataLoader that the program iterates over, while it has it."""
        return None if self._user is None else self._user()

    def indices(self, number: int, noted: Any) -> Any:
        """The sampler's indices of a batch: those noted; fastai's loader draws a whole epoch at its start."""
        if self._own is None:
            return None if self.iterable else noted
        own = self._own()
        drawn, size = getattr(own, _FASTAI_INDICES, None), getattr(own, "bs", None)
        if self._iterator() is None or not isinstance(drawn, (list, tuple)) or not isinstance(size, int):
            return None
        return list(drawn[number * size : (number + 1) * size]) or None


_FASTAI_INDICES = "_DataLoader__idxs"


def _module(collate: Any) -> str:
    """Where a collate function, or the class of a collating object, is defined."""
    inner = getattr(collate, "data_collator", None)  # the Trainer of transformers puts its own around it
    if inner is not None and type(collate).__module__ == "transformers.trainer_utils":
        return _module(inner)
    return str(getattr(collate, "__module__", None) or type(collate).__module__)


def _is_nested(indices: Any) -> bool:
    """One list in a list: of a BatchSampler that is given as the sampler. The data set makes the batch."""
    return type(indices) is list and len(indices) == 1 and type(indices[0]) in (list, tuple)


def _listed(indices: Any) -> Any:
    """Batches of a sampler may be tensors or arrays (`torch.randperm(n).split(8)`)."""
    return indices.tolist() if getattr(indices, "ndim", 0) == 1 and hasattr(indices, "tolist") else indices


def _tensors_in(value: Any) -> list[Any]:
    """Of an object of the user's own, or of a library's, with others inside (a data set of each part)."""
    import torch

    found: list[Any] = []
    waiting, seen = deque([(value, _DEPTH)]), {id(value)}
    while waiting:
        part, depth = waiting.popleft()
        for item in list((part if type(part) is dict else scope.members(part)).values())[:_MAX_ITEMS]:
            if isinstance(item, torch.Tensor):
                found.append(item)
            elif depth and id(item) not in seen and len(seen) < _MAX_OBJECTS:
                seen.add(id(item))
                waiting.append((item, depth - 1))
    return found[:_MAX_ITEMS]


class Raw:
    """A batch without tensors: records or texts in a list, which are read when the program has gone on with
    them. Held of the newest two alone."""

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        self.items: Any = items
        _raw.append(self)
        if len(_raw) > _RAW:
            _raw.popleft().items = ()

    def has(self, value: Any) -> bool:
        if type(value) in _SHARED or (type(value) is str and " " not in value):
            return False  # the same object stands in many places
        return value is self.items or any(value is item for item in self.items[:_MAX_ITEMS])


_RAW = 2
_SHARED = (int, bool, float, type(None))
_raw: deque[Raw] = deque()


class Batch:
    """One batch as the loader gave it out. `indices` are the sampler's; None for iterable data sets.

    `number` counts within the epoch, `serial` all batches of the process.
    """

    __slots__ = ("in_order", "indices", "loader", "number", "parts", "serial")

    def __init__(self, loader: Loader, number: int, indices: Any, parts: list[Any], serial: int = 0) -> None:
        self.loader = loader
        self.number = number
        nested = _is_nested(indices)
        self.indices = _listed(indices[0] if nested else indices)
        self.in_order = nested or loader.keeps_order  # the rows are those of the samples
        self.parts = parts
        self.serial = serial

    def tensors(self) -> list[Any]:
        """The batch's tensors that still exist."""
        import torch

        found: list[Any] = []
        for part in self.parts:
            value = part() if isinstance(part, weakref.ref) else part
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif value is not None and type(value) is not tuple:  # a user's batch class
                found += _tensors_in(value)
        return found

    def has(self, item: Any) -> bool:
        """Whether it is a part of the batch: an object of the user's own class, a record without tensors."""
        return any(
            part.has(item) if type(part) is Raw else isinstance(part, weakref.ref) and part() is item
            for part in self.parts
        )

    def raw(self) -> Any:
        """The list of a batch without tensors, while it is held."""
        return self.parts[0].items if self.parts and type(self.parts[0]) is Raw else ()

    def per_sample(self) -> list[list[Any]]:
        """Tensors of lists with one entry per sample, like members together: [boxes of 0, of 1, ...]."""
        count = len(self.indices) if isinstance(self.indices, (list, tuple)) else 0
        groups: list[list[Any]] = []
        for at, mark in enumerate(self.parts):
            if type(mark) is not tuple or mark[1] != count or count < 2:
                continue
            own = [part for part in self.parts[mark[0] : at] if type(part) is not tuple]
            each, rest = divmod(len(own), count)
            if rest or not each:
                continue
            alive = [part() if isinstance(part, weakref.ref) else part for part in own]
            for member in range(each):
                group = alive[member::each]
                if all(scope.is_tensor(part) and part.dim() == group[0].dim() for part in group):
                    groups.append(group)
        return groups


_noted: deque[tuple[Loader, int, Any, list[Any], int, int]] = deque()  # the last: how many elements it holds
_held = 0
_originals: dict[str, Callable[..., Any]] = {}
_serial = 0
_past = threading.local()  # .serial: the newest batch at the call whose fault is being told


def tell_each(listener: Optional[Callable[[int], Any]]) -> None:
    """`listener` gets the serial number of each batch, as it is given out: calls remember it."""
    global _listener
    _listener = listener


_listener: Optional[Callable[[int], Any]] = None
stand_in: Optional[Batch] = None  # of a program without a DataLoader, while it is looked at


def next_number() -> int:
    """A number between two batches', which calls are marked with from now on: a request has begun."""
    global _serial
    _serial += 1
    if _listener is not None:
        _listener(_serial)
    return _serial


@contextmanager
def as_of(serial: Optional[int]) -> Iterator[None]:
    """Inside it, later batches than this one have not come yet; None: all have."""
    _past.serial = serial
    try:
        yield
    finally:
        _past.serial = None


def at_call() -> Optional[int]:
    """The serial of as_of()."""
    return getattr(_past, "serial", None)


def newest_first(later: bool = False) -> list[Batch]:
    """The last batches of all loaders of this process. `later`: those after as_of(), too."""
    last = None if later else at_call()
    if stand_in is not None:
        return [stand_in]
    return [
        Batch(loader, n + loader.skipped, loader.indices(n, indices), parts, serial)
        for loader, n, indices, parts, serial, _ in reversed(list(_noted))
        if last is None or serial <= last
    ]


def given_out() -> bool:
    """Whether a DataLoader has."""
    return bool(_noted)


def install() -> None:
    """Wraps three methods that every DataLoader and its iterator have. A second call changes nothing."""
    if _originals:
        return
    import torch
    from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

    tensor_type = torch.Tensor
    reference = weakref.ref
    original_next = _BaseDataLoaderIter.__next__
    original_index = _BaseDataLoaderIter._next_index
    original_get = DataLoader._get_iterator

    def gather(data: Any, parts: list[Any], depth: int) -> None:
        kind = type(data)
        if kind is tensor_type:
            parts.append(data if data.numel() <= _HELD_ELEMENTS and not data._is_view() else reference(data))
        elif kind is list or kind is tuple:
            if depth:
                start = len(parts)
                for item in data[:_MAX_ITEMS] if len(data) > _MAX_ITEMS else data:
                    gather(item, parts, depth - 1)
                if depth < _DEPTH:  # one entry per sample, perhaps: Batch.per_sample()
                    parts.append((start, len(data)))
        elif kind is str or kind is int or kind is float or data is None:
            return
        elif isinstance(data, tensor_type):
            parts.append(reference(data))
        elif isinstance(data, tuple):
            for item in tuple(data)[:_MAX_ITEMS] if depth else ():
                gather(item, parts, depth - 1)
        elif callable(getattr(data, "values", None)) and hasattr(data, "keys"):
            for item in list(data.values())[:_MAX_ITEMS] if depth else ():
                gather(item, parts, depth - 1)
        else:
            try:
                parts.append(reference(data))
            except TypeError:
                return

    # Not around the iterator's __init__: its warnings would name this file.
    def _get_iterator(self: Any) -> Any:
        iterator = original_get(self)
        try:
            iterator._trapline_loader_ref = reference(self)  # once per epoch
        except (TypeError, AttributeError):
            pass
        return iterator

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
        global _serial, _held
        data = original_next(self)
        try:
            parts: list[Any] = []
            gather(data, parts, _DEPTH)
            if type(data) is list and data and not any(type(part) is not tuple for part in parts):
                parts = [Raw(data)]
            try:
                loader = self._trapline_loader
            except AttributeError:
                loader = self._trapline_loader = Loader(self)
            indices = _taken(self) if self._num_workers else self._trapline_index
            _serial += 1
            progress.newest_batch = _serial
            size = sum([part.numel() for part in parts if type(part) is tensor_type])
            _noted.append((loader, self._num_yielded - 1, indices, parts, _serial, size))
            _held += size
            if _held > _MAX_HELD or len(_noted) > _MAX_BATCHES:
                _make_room()
            if _listener is not None:
                _listener(_serial)
        except Exception:
            pass
        return data

    _originals["_get_iterator"] = original_get
    _originals["__next__"] = original_next
    _originals["_next_index"] = original_index
    DataLoader._get_iterator = _get_iterator
    _BaseDataLoaderIter._next_index = _next_index
    _BaseDataLoaderIter.__next__ = __next__


def _make_room() -> None:
    """Forgets the oldest batches."""
    global _held
    while len(_noted) > _MAX_BATCHES or (_held > _MAX_HELD and len(_noted) > _MIN_BATCHES):
        _held -= _noted.popleft()[5]
    if _held > _MAX_HELD:  # threads may have got in each other's way
        _held = sum(note[5] for note in list(_noted))


def uninstall() -> None:
    """Puts the original methods back and forgets all batches."""
    global _held
    if not _originals:
        return
    from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

    for name, method in _originals.items():
        setattr(DataLoader if name == "_get_iterator" else _BaseDataLoaderIter, name, method)
    _originals.clear()
    _noted.clear()
    _raw.clear()
    _held = 0


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
