"""DataLoaders that leave quarantined samples out: their index sampler is seen through a filter.

``DataLoader._index_sampler`` is what a loader's iterators and ``len()`` take their indices from; the
attributes ``sampler`` and ``batch_sampler``, which programs hold on to (``set_epoch``), stay what they are.

One process: bad indices are dropped, and torch's own BatchSampler fills its batches from those that remain.
Several ranks: a bad index is replaced by the last good one of the same rank, so that all ranks keep equally
many batches of equal size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from trapline._skip import quarantine

_original: Any = None


def install() -> None:
    """Have DataLoaders leave out what is in quarantine. A second call changes nothing."""
    global _original
    if _original is not None:
        return
    from torch.utils.data import DataLoader

    original = DataLoader.__dict__["_index_sampler"]

    def _index_sampler(self: Any) -> Any:
        sampler = original.fget(self)
        try:
            return _filtered(self, sampler)
        except Exception:  # a loader of its own kind: it must not break
            return sampler

    _original = original
    DataLoader._index_sampler = property(_index_sampler)


def uninstall() -> None:
    """Put the property back."""
    global _original
    if _original is not None:
        from torch.utils.data import DataLoader

        DataLoader._index_sampler = _original
        _original = None


def _filtered(loader: Any, sampler: Any) -> Any:
    from torch.utils.data import BatchSampler
    from torch.utils.data.dataloader import _DatasetKind

    if loader._dataset_kind == _DatasetKind.Iterable:
        return sampler
    replace = _has_ranks(sampler)
    if type(sampler) is BatchSampler:
        inner = Filter(sampler.sampler, loader.dataset, replace)
        return BatchSampler(inner, sampler.batch_size, sampler.drop_last)
    return Filter(sampler, loader.dataset, replace)


def _has_ranks(sampler: Any) -> bool:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size() > 1
    return getattr(getattr(sampler, "sampler", sampler), "num_replicas", 1) > 1


class Filter:
    """A sampler without the indices in quarantine: of single indices, or of lists of them."""

    def __init__(self, sampler: Any, data_set: Any, replace: bool) -> None:
        self._sampler = sampler
        self._data_set = data_set
        self._replace = replace

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_sampler"], name)

    def __len__(self) -> int:
        """Exact for torch's samplers that take each sample once; else the sampler's own, an upper bound."""
        from torch.utils.data import RandomSampler, SequentialSampler

        whole = len(self._sampler)
        bad = 0 if self._replace else len(quarantine.bad_indices(self._data_set))
        once = type(self._sampler) is SequentialSampler or (
            type(self._sampler) is RandomSampler and not self._sampler.replacement
        )
        return whole - bad if bad and once and whole == len(self._data_set) else whole

    def __iter__(self) -> Iterator[Any]:
        bad = quarantine.bad_indices(self._data_set)
        if not bad:
            yield from self._sampler
            return
        known = quarantine.from_file(self._data_set)
        if known:
            quarantine.say_left_out(self._data_set, known)
        if self._replace:
            yield from self._with_replacements(bad)
        else:
            for item in self._sampler:
                if isinstance(item, (list, tuple)):
                    good = [index for index in item if index not in bad]
                    if good:
                        yield good
                elif item not in bad:
                    yield item

    def _with_replacements(self, bad: set[int]) -> Iterator[Any]:
        held: list[Any] = []  # until the first good index is known
        good: Any = None
        for item in self._sampler:
            indices = item if isinstance(item, (list, tuple)) else [item]
            if good is None:
                good = next((index for index in indices if index not in bad), None)
            if good is None:
                held.append(item)
                continue
            for early in held:
                yield [good] * len(early) if isinstance(early, (list, tuple)) else good
            held.clear()
            mended = []
            for index in indices:
                good = good if index in bad else index
                mended.append(good)
            yield mended if isinstance(item, (list, tuple)) else mended[0]
        yield from held  # every one of them is bad: nothing can take their place
