"""DataLoader batch, row and data set index of a bad element, where equality or the stack proves it."""

from __future__ import annotations

import random
import sys
from typing import Any, Optional

from . import batches, contents, match, scope, values
from .batches import Batch
from .match import Match

_MAX_FETCHED = 256  # samples that are asked for again
Sample = dict[str, int]


class Located:
    """A bad element found in a batch: which batch, which of its tensors, where."""

    def __init__(self, batch: Batch, tensor: Any, found: Match) -> None:
        self.batch = batch
        self.tensor = tensor
        self.found = found


def locate(
    tensor: Any, scan: dict[str, Any], predicate: Optional[int], by_value: bool = True
) -> Optional[Located]:
    """Looks through the last batches, newest first. Two places that agree equally well prove neither.

    `by_value`: the elements that the scan calls bad have to agree; without it most of the tensor has to.
    """
    for age, batch in enumerate(batches.newest_first()):
        hits: list[Located] = []
        for candidate in batch.tensors():
            found = match.locate(tensor, scan, predicate, candidate, age == 0, by_value)
            if found is not None:
                hits.append(Located(batch, candidate, found))
        certain = [hit for hit in hits if hit.found.certain]
        hits = certain or [hit for hit in hits if hit.found.constant == 0] or hits
        if len({row_of(hit) for hit in hits}) == 1:
            return hits[0]
        if hits:
            return None
    return None


def locate_partner(violation: dict[str, Any]) -> Optional[Located]:
    """For a bad loss input: the target that the bad element was compared with tells the sample."""
    tensor, target = violation["tensor"], (violation.get("args") or {}).get("target")
    same_shape = scope.is_tensor(target) and target is not tensor and target.shape == tensor.shape
    first = violation["scan"].get("first", -1)
    if not same_shape or first < 0:
        return None
    return locate(target, {"first": first, "lo": None, "hi": None, "also": None}, None, by_value=False)


def locate_cast(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Located]:
    """For a NaN that became an integer: the newest batch's one floating tensor that is not finite at exactly
    the elements that are bad now. The values themselves cannot be compared: the cast has lost them."""
    newest = batches.newest_first()[:1]
    if not newest or scan.get("first", -1) < 0 or tensor.numel() > values.MAX_ELEMENTS:
        return None
    bad = values.bad_mask(tensor.detach().reshape(-1).cpu(), scan, predicate)
    if bad is None:
        return None
    hits: list[Located] = []
    for candidate in newest[0].tensors():
        if (
            not candidate.dim()
            or not candidate.dtype.is_floating_point
            or candidate.numel() != tensor.numel()
        ):
            continue
        if ((~candidate.detach().isfinite()).reshape(-1).cpu() == bad).all():
            place = values.unravel(scan["first"], candidate.shape)
            hits.append(Located(newest[0], candidate, Match(place, None, 0, False)))
    return hits[0] if len(hits) == 1 else None


def sample_facts(located: Optional[Located]) -> Optional[Sample]:
    """Batch, row and data set index, as far as they are known."""
    within = _in_data_set()
    if within is not None:
        return within
    return None if located is None else sample_facts_of(located)


def sample_facts_of(located: Located) -> Sample:
    """The same for an element that was found in a batch."""
    sample: Sample = {"batch": located.batch.number}
    row = row_of(located)
    if row is None:
        return _single(located, sample)
    sample["row"] = row
    index = index_of(located, row)
    if index is not None:
        sample["dataset_index"] = index
    return sample


def _single(located: Located, sample: Sample) -> Sample:
    """Loaders without batching (batch_size=None): the index is the sample's own."""
    index = located.batch.indices
    if not located.batch.loader.batched and _is_int(index):
        sample["dataset_index"] = int(index)
    return sample


def row_of(located: Located) -> Optional[int]:
    """The element's place along the batch dimension; None when it is not clear which dimension that is."""
    place, shape = located.found.place, located.tensor.shape
    indices = located.batch.indices
    loader = located.batch.loader
    if not place or (not loader.batched and (loader.iterable or _is_int(indices))):
        return None
    if not isinstance(indices, (list, tuple)):
        return place[0]  # iterable data sets: the row of the batch tensor
    count = len(indices)
    if shape[0] == count and (len(shape) < 2 or shape[1] != count or loader.keeps_order):
        return place[0]
    if len(shape) > 1 and shape[1] == count and shape[0] != count:
        return place[1]  # time first
    return None


def index_of(located: Located, row: int) -> Optional[int]:
    """The number, in the data set, of the sample that made the batch's row."""
    indices = located.batch.indices
    if not isinstance(indices, (list, tuple)) or row >= len(indices) or not _is_int(indices[row]):
        return None
    if located.batch.loader.keeps_order:
        return int(indices[row])
    data_set = located.batch.loader.data_set()
    if data_set is None:
        return None
    # A user's collate function may sort or drop samples: ask the data set which sample made the row.
    place, tensor = located.found.place, located.tensor
    whole_row = tensor[row] if place[0] == row else tensor[:, row]
    value = tensor[tuple(place)].item()
    with _RandomState():
        if contents.made(_fetch(data_set, indices[row]), whole_row, value):
            return int(indices[row])
        if len(indices) > _MAX_FETCHED:
            return None
        others = [index for index in indices if _is_int(index)]
        having = [index for index in others if contents.made(_fetch(data_set, index), whole_row, value)]
    return int(having[0]) if len(having) == 1 else None


def _is_int(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__index__")


def _fetch(data_set: Any, index: Any) -> Any:
    try:
        return data_set[index]
    except Exception:
        return None


class _RandomState:
    """Puts the random generators back: asking the data set must not change what the program draws next."""

    def __enter__(self) -> None:
        import torch

        self._python = random.getstate()
        self._torch = torch.get_rng_state()
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy is not None else None

    def __exit__(self, *_: object) -> None:
        import torch

        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)


def _in_data_set() -> Optional[Sample]:
    """The sample that is being made, when the fault is inside the data set's own code (also in a worker)."""
    sample: Sample = {}
    index: Any = None
    indices: Any = None
    for frame in scope.live_frames():
        name = frame.f_code.co_filename.replace("\\", "/")
        if name.endswith("torch/utils/data/_utils/fetch.py"):
            variables = frame.f_locals
            index = variables.get("idx", index)
            indices = variables.get("possibly_batched_index", indices)
        elif indices is not None and name.endswith("torch/utils/data/_utils/worker.py"):
            if _is_int(frame.f_locals.get("idx")):
                sample["batch"] = int(frame.f_locals["idx"])
        elif indices is not None and name.endswith("torch/utils/data/dataloader.py"):
            number = getattr(frame.f_locals.get("self"), "_num_yielded", None)
            if _is_int(number) and "batch" not in sample:
                sample["batch"] = int(number)
    if indices is None:
        return None
    if _is_int(index):
        sample["dataset_index"] = int(index)
        if isinstance(indices, (list, tuple)) and list(indices).count(index) == 1:
            sample["row"] = list(indices).index(index)
    elif _is_int(indices):
        sample["dataset_index"] = int(indices)
    return sample or None
