"""The sample, or the batch, of an exception that says nothing about either: where a data set was making it,
where its batch was put together, and the batch that is shorter than the others."""

from __future__ import annotations

import re
from types import FrameType
from typing import Any, Optional

from trapline._exceptions import uneven
from trapline._fault.data import at_work, batches, hand, samples, where
from trapline._fault.program import scope

Facts = dict[str, Any]
_ENTRIES = re.compile(r"at entry (\d+) and .* at entry (\d+)")
_FETCH = "torch/utils/data/_utils/fetch.py"
_LOADER = "torch/utils/data/dataloader.py"


def facts_of(message: str, tensors: Optional[list[Any]] = None, told: Optional[Facts] = None) -> Facts:
    """The facts `sample`, `batch`, `uneven` and `in_hand`, as far as the frames of `scope` tell. `tensors`:
    those that the failing call names; None where nothing of it is known. `told`: what a worker said of the
    sample."""
    facts: Facts = {}
    frames = scope.live_frames()
    if _in(frames, _FETCH):
        shapes = uneven.facts_of(frames, message)
        sample = _being_made(frames, message, shapes)
        if shapes is not None:
            facts["uneven"] = shapes
    else:
        sample = _of_worker(frames, message, told or {})
    if sample:
        facts["sample"] = sample
    elif not _in(frames, _LOADER):
        shorter = _shorter()
        if shorter is not None:
            facts["batch"] = shorter
        later = _first_refused()
        if later is None and tensors is not None:
            later = at_work.sample_facts(tensors, message)
        if later is not None:
            facts["in_hand"] = {"sample": later}
    return facts


def _in(frames: list[FrameType], suffix: str) -> Optional[FrameType]:
    return next((f for f in frames if f.f_code.co_filename.replace("\\", "/").endswith(suffix)), None)


def _being_made(frames: list[FrameType], message: str, shapes: Optional[Facts]) -> Optional[Facts]:
    sample = samples.sample_facts(None)
    fetch = _in(frames, _FETCH)
    indices = None if fetch is None else fetch.f_locals.get("possibly_batched_index")
    if sample is None or "dataset_index" in sample:
        return sample
    entries = (shapes or {}).get("entries") or []
    if isinstance(indices, (list, tuple)) and len(entries) == 1 and (shapes or {}).get("of") == len(indices):
        index = indices[entries[0]]
        sample = {name: told for name, told in sample.items() if name not in ("one_of", "of")}
        sample.update(row=entries[0], by="shape")
        if not samples.is_int(index):  # an iterable data set has no numbers
            return sample
        sample["dataset_index"] = int(index)
        loader = _in(frames, _LOADER)
        return sample if loader is None else _described(sample, loader.f_locals.get("self"))
    return _of_entries(sample, indices, message, entries)


def _of_entries(sample: Facts, indices: Any, message: str, odd: list[int]) -> Facts:
    """Some samples of the batch do not go with the others, or one of all failed."""
    if not isinstance(indices, (list, tuple)) or not all(samples.is_int(index) for index in indices):
        return sample
    found = _ENTRIES.search(message)
    entries = odd or ([int(text) for text in found.groups()] if found else range(len(indices)))
    if any(entry >= len(indices) for entry in entries):
        return sample
    return samples.with_candidates(sample, [indices[entry] for entry in entries])


def _of_worker(frames: list[FrameType], message: str, told: Facts) -> Optional[Facts]:
    """A worker's exception, raised again by the iterator that it works for."""
    frame = _in(frames, _LOADER)
    if frame is None or frame.f_code.co_name != "_process_data":
        return None
    iterator = frame.f_locals.get("self")
    held = scope.members(iterator)
    number, task = held.get("_num_yielded"), held.get("_rcvd_idx")
    own = {name: told[name] for name in _OF_SAMPLE if name in told}
    if not samples.is_int(number) or not samples.is_int(task) or not held.get("_in_order", True):
        return _described(own, iterator) if own else None
    sample: Facts = {"batch": int(number), **own}
    if not own:
        indices = (held.get("_trapline_tasks") or {}).get(int(task) - 1)
        sample = _of_entries(sample, indices, message, [])
    return _described(sample, iterator)


_OF_SAMPLE = ("dataset_index", "row", "one_of", "of", "by", "likely")


def _described(sample: Facts, iterator: Any) -> Facts:
    loader = batches.Loader(iterator)
    return where.described(sample, loader.data_set(), loader.user_loader())


def _shorter() -> Optional[Facts]:
    """The batch in hand, where it has fewer rows than the loader's batches have."""
    batch = hand.in_hand() or _newest_in_hand()
    if batch is None or not isinstance(batch.indices, (list, tuple)) or not batch.loader.batched:
        return None
    rows, size = len(batch.indices), batch.loader.batch_size
    return {"number": batch.number, "rows": rows, "size": size} if size is not None and rows < size else None


def _first_refused() -> Optional[Facts]:
    """The samples of the batch in hand, where it has other sizes than those that went before it."""
    batch = hand.in_hand() or _newest_in_hand()
    if batch is None or batch.number < 1:
        return None
    before = [other for other in batches.newest_first() if other.serial < batch.serial]
    if not before or any(_row_sizes(other) == _row_sizes(batch) for other in before):
        return None
    sample: Facts = {"batch": batch.number}
    indices = batch.indices
    if isinstance(indices, (list, tuple)) and indices and all(samples.is_int(index) for index in indices):
        if len(indices) == 1:
            sample["dataset_index"] = int(indices[0])
        else:
            samples.with_candidates(sample, list(indices))
    return samples.described(batch, sample)


def _row_sizes(batch: batches.Batch) -> list[tuple[int, ...]]:
    """The sizes of a batch's tensors but for how many samples they are of."""
    return [tuple(tensor.shape)[1:] for tensor in batch.tensors()]


def _newest_in_hand() -> Optional[batches.Batch]:
    """The newest batch, where a frame holds a tensor of it beside what it made of an older one."""
    for batch in batches.newest_first()[:1]:
        own = {id(tensor) for tensor in batch.tensors()}
        if any(id(tensor) in own for frame in scope.live_frames() for tensor in hand.tensors_of(frame)):
            return batch
    return None
