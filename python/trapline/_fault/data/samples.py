"""DataLoader batch, row and data set index of a bad element, where equality or the stack proves it."""

from __future__ import annotations

from itertools import accumulate
from types import FrameType
from typing import Any, NamedTuple, Optional

from trapline._fault.data import batches, contents, hand, match, order, values, where
from trapline._fault.data.batches import Batch
from trapline._fault.data.casts import storage_pointer
from trapline._fault.data.fetched import MAX_FETCHED, RandomState, fetch
from trapline._fault.data.match import Match
from trapline._fault.program import holders, loops, scope
from trapline._fault.program.names import length

_TINY = 16
_MAX_ASKED = 64  # samples that are asked for a value: each may be a picture to decode
_MAX_SHOWN = 8  # candidates
_KINDS = 4  # different numbers, of the first so many
_TELLING = 1 << 12
Sample = dict[str, Any]


class Located:
    """A bad element found in a batch: which batch, which of its tensors, where. `row`: of a list's entry."""

    def __init__(self, batch: Batch, tensor: Any, found: Match, row: Optional[int] = None) -> None:
        self.batch = batch
        self.tensor = tensor
        self.found = found
        self.row = row


def locate(
    tensor: Any, scan: dict[str, Any], predicate: Optional[int], by_value: bool = True
) -> Optional[Located]:
    """Looks through the last batches, newest first. Two places that agree equally well prove neither.

    `by_value`: the elements that the scan calls bad have to agree; without it most of the tensor has to.
    """
    for age, batch in enumerate(_current_first()):
        hits: list[Located] = []
        tensors = batch.tensors()
        rows = {id(part): row for group in batch.per_sample() for row, part in enumerate(group)}
        masks = [part for part in tensors if part.numel() > tensor.numel() and _is_mask(part)]
        for candidate in tensors:
            found = match.locate(tensor, scan, predicate, candidate, age == 0, by_value, masks)
            if found is not None:
                hits.append(Located(batch, candidate, found, rows.get(id(candidate))))
        hits = hits or _concatenated(tensor, scan, batch) or _repeated(tensor, scan, batch)
        certain = [hit for hit in hits if hit.found.certain]
        hits = certain or [hit for hit in hits if hit.found.constant == 0] or hits
        if len({row_of(hit) for hit in hits}) == 1:
            return hits[0]
        if hits:
            return None
    return None


def _current_first() -> list[Batch]:
    """The last batches, newest first; before them the one that the program works on, where frames show it."""
    remembered = batches.newest_first()
    current = hand.in_hand() if len(remembered) > 1 else None
    if current is None:
        return remembered
    return [current] + [batch for batch in remembered if batch.parts is not current.parts]


def _is_mask(part: Any) -> bool:
    if part.dtype.is_floating_point or part.is_complex() or part.numel() > values.MAX_ELEMENTS:
        return False
    return bool(((part == 0) | (part == 1)).all())


def _concatenated(tensor: Any, scan: dict[str, Any], batch: Batch) -> list[Located]:
    """The entry of a list, one per sample, that the element came from when the program put them together."""
    import torch

    first, hits = scan.get("first", -1), []
    for group in batch.per_sample():
        sizes = [part.numel() for part in group]
        if first < 0 or sum(sizes) != tensor.numel() or tensor.numel() < match.TELLING:
            continue
        if len({part.dtype for part in group}) > 1 or tensor.numel() > values.MAX_ELEMENTS:
            continue
        flat = tensor.detach().reshape(-1).cpu()
        whole = torch.cat([part.detach().reshape(-1).cpu() for part in group]).to(flat.dtype)
        if not bool((whole == flat).all()) or not bool((flat != flat[0]).any()):
            continue
        row = 0
        while first >= sizes[row]:
            first, row = first - sizes[row], row + 1
        place = values.unravel(first, group[row].shape)
        hits.append(Located(batch, group[row], Match(place, None, 0, False), row))
    return hits


def _repeated(tensor: Any, scan: dict[str, Any], batch: Batch) -> list[Located]:
    """The tensor of the batch that was repeated, as a whole or each element by itself."""
    first, hits, total = scan.get("first", -1), [], tensor.numel()
    if first < 0 or total > values.MAX_ELEMENTS or tensor.dtype.is_floating_point:
        return []
    flat: Any = None
    for candidate in batch.tensors():
        count = candidate.numel()
        if count < match.TELLING or total % count or total == count or candidate.dtype != tensor.dtype:
            continue
        flat = tensor.detach().reshape(-1).cpu() if flat is None else flat
        one = candidate.detach().reshape(-1).cpu()
        if not bool((one != one[0]).any()):
            continue
        whole = bool((flat.reshape(-1, count) == one).all())
        if whole or bool((flat.reshape(count, -1) == one[:, None]).all()):
            at = first % count if whole else first // (total // count)
            place = values.unravel(at, candidate.shape)
            hits.append(Located(batch, candidate, Match(place, None, 0, False)))
    return hits


def locate_partner(violation: dict[str, Any]) -> Optional[Located]:
    """For a bad loss input: the target that the bad element was compared with tells the sample."""
    tensor, target = violation["tensor"], (violation.get("args") or {}).get("target")
    same_shape = scope.is_tensor(target) and target is not tensor and target.shape == tensor.shape
    first = violation["scan"].get("first", -1)
    if not same_shape or first < 0:
        return None
    found = locate(target, {"first": first, "lo": None, "hi": None, "also": None}, None, by_value=False)
    # So few numbers, of so few kinds, are easily those of a batch that the program has done with.
    by_memory = found is not None and storage_pointer(found.tensor) == storage_pointer(target)
    current = hand.in_hand() if found is not None and not by_memory else None
    if found is None or by_memory or (current is not None and current.parts is found.batch.parts):
        return found
    return found if len(target.detach().reshape(-1)[:_TELLING].unique()) >= _KINDS else None


def sample_facts(located: Optional[Located], by: str = "", likely: bool = False) -> Optional[Sample]:
    """Batch, row and data set index, as far as they are known, in terms of the program."""
    within = _in_data_set()
    if within is not None:
        return within
    if located is None:
        return None
    sample = sample_facts_of(located)
    if "dataset_index" in sample or "row" in sample:
        if by:
            sample["by"] = by
        if likely:
            sample["likely"] = True
    if "dataset_index" not in sample:
        _find_candidates(located, sample)
    if not by and "by" not in sample and "dataset_index" in sample:
        made = order.not_its_own(located.batch, located.tensor, located.found.place, sample)
        if made:
            sample["by"] = made
    _beside(located, sample)
    return described(located.batch, sample)


def described(batch: Batch, sample: Sample) -> Sample:
    """The same with the names of the data set and the loader."""
    if sample.get("batch", 0) is None:  # no loader counts them
        del sample["batch"]
    return where.described(sample, batch.loader.data_set(), batch.loader.user_loader())


def sample_facts_of(located: Located) -> Sample:
    """Batch, row and data set index of an element that was found in a batch."""
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
    if not located.batch.loader.batched and is_int(index):
        sample["dataset_index"] = int(index)
    return sample


def _find_candidates(located: Located, sample: Sample) -> None:
    """The sample, or those of the batch that it may be: who has the box, who has the value."""
    indices, data_set = located.batch.indices, located.batch.loader.data_set()
    if not isinstance(indices, (list, tuple)) or not all(is_int(index) for index in indices):
        return
    box = _box_of(located) if located.row is None else None
    having: list[Any] = []
    whole_box = False
    if data_set is not None and len(indices) <= _MAX_ASKED and located.tensor.dim():
        value = located.tensor[tuple(located.found.place)].item()
        runs = ([box[1]] if box else []) + ([[value]] if isinstance(value, int) else [])
        with RandomState(data_set):
            fetched = [fetch(data_set, index) for index in indices] if runs else []
            for run in runs:
                having = [i for i, item in zip(indices, fetched) if contents.holds(item, run)]
                if len(run) == 1 and abs(run[0]) < _TINY and len(having) > 1:
                    having = []  # a class, a flag, a length: such numbers are in many, for other reasons
                if having:
                    whole_box = len(run) > 1
                    break
    if len(having) == 1:
        sample["dataset_index"] = int(having[0])
        if not whole_box:  # one number may be in a sample for another reason
            sample.update(by="value", likely=True)
        return
    image = box[0] if box else located.row if located.row is not None else _graph_of(located)
    if image is not None and image < len(indices) and (not having or indices[image] in having):
        sample.update(row=image, dataset_index=int(indices[image]), likely=True)
        if box:
            sample["by"] = "column"
        return
    row = sample.get("row")
    if row is not None and not having and row < len(indices) and order.may_be_kept(located.batch):
        sample.update(dataset_index=int(indices[row]), likely=True)
        return
    if row is not None and not having and row < len(indices):  # as likely as any, and more so than most
        indices = [indices[row], *indices]
    with_candidates(sample, having or list(indices))
    if not having and not box and order.is_collated(located.batch, located.tensor, located.found.place):
        sample["by"] = "collate"


def _box_of(located: Located) -> Optional[tuple[int, list[Any]]]:
    """Of targets [boxes, 5 or more] whose first column counts the images: which image, and the box itself."""
    tensor, place = located.tensor, located.found.place
    if tensor.dim() != 2 or tensor.shape[1] < _BOX or tensor.numel() > values.MAX_ELEMENTS:
        return None
    if not tensor.dtype.is_floating_point:  # boxes are; rows of edges or tokens may begin with 0 and 1, too
        return None
    images = tensor[:, 0].detach().cpu().double()
    rises = bool((images[1:] >= images[:-1]).all()) and float(images[0]) >= 0
    if not rises or not bool((images == images.floor()).all()) or images[-1] >= len(located.batch.indices):
        return None
    return int(images[place[0]]), tensor[place[0], 1:].tolist()


def _graph_of(located: Located) -> Optional[int]:
    """Of samples that were put together row after row: whose row it is, by the offsets in the batch
    (torch_geometric's ``ptr``).
    """
    rows, count = located.tensor.shape[0] if located.tensor.dim() else 0, len(located.batch.indices)
    for offsets in located.batch.tensors():
        whole = not offsets.dtype.is_floating_point and offsets.dim() == 1 and len(offsets) == count + 1
        if not whole or count < 2 or rows == count or int(offsets[0]) != 0 or int(offsets[-1]) != rows:
            continue
        if bool((offsets[1:] >= offsets[:-1]).all()):
            return int((offsets[1:] <= located.found.place[0]).sum())
    return None


_BOX = 5  # image, and four numbers at least


def with_candidates(sample: Sample, indices: list[Any]) -> Sample:
    """The sample is one of these."""
    distinct = list(dict.fromkeys(int(index) for index in indices))
    sample["one_of"], sample["of"] = distinct[:_MAX_SHOWN], len(distinct)
    return sample


def _beside(located: Located, sample: Sample) -> None:
    """What the batch itself says about its row: webdataset's keys, a list of paths."""
    row, count = sample.get("row"), located.tensor.shape[0] if located.tensor.dim() else 0
    for key, name in (("__key__", "key"), ("path", "file"), ("file_name", "file"), ("image_path", "file")):
        entries = hand.beside(located.tensor, key) if row is not None and name not in sample else None
        listed = isinstance(entries, (list, tuple)) and len(entries) == count and row < count
        if listed and isinstance(entries[row], str):
            sample[name] = entries[row]


def row_of(located: Located) -> Optional[int]:
    """The element's place along the batch dimension; None when it is not clear which dimension that is."""
    if located.row is not None:
        return located.row
    place, shape = located.found.place, located.tensor.shape
    indices = located.batch.indices
    loader = located.batch.loader
    if not place or (not loader.batched and is_int(indices)):
        return None
    if not loader.batched and loader.iterable:
        return place[0] if _made_as_batch(located) else None
    if not isinstance(indices, (list, tuple)):  # iterable data sets: the row of the batch tensor
        most = loader.batch_size
        return place[0] if most is None or shape[0] <= most else None
    count = len(indices)
    square = len(shape) > 1 and shape[1] == count
    if shape[0] == count and (not square or located.batch.in_order or _samples_first(located, count)):
        return place[0]
    if len(shape) > 1 and shape[1] == count and shape[0] != count:
        return place[1]  # time first
    if shape[0] != count and shape[0] == length(loader.data_set()) and place[0] in indices:
        return indices.index(place[0])  # a table that all batches share, with a row for each sample
    return None


def _samples_first(located: Located, count: int) -> bool:
    """The batch's other tensors count the samples in their first dimension, by their shapes where these tell;
    else by what is in them."""
    shapes = [tuple(part.shape) for part in located.batch.tensors() if part.dim() > 1]
    telling = [shape for shape in shapes if (shape[0] == count) != (shape[1] == count)]
    if telling:
        return all(shape[0] == count for shape in telling)
    return order.is_kept(located.batch)


def _made_as_batch(located: Located) -> bool:
    """An iterable data set gave out a whole batch: each of its tensors has as many rows."""
    sizes = [part.shape[0] for part in located.batch.tensors() if part.dim()]
    return len(sizes) > 1 and sizes[0] > 1 and len(set(sizes)) == 1 and located.tensor.shape[0] == sizes[0]


def index_of(located: Located, row: int) -> Optional[int]:
    """The number, in the data set, of the sample that made the batch's row."""
    indices = located.batch.indices
    if not isinstance(indices, (list, tuple)) or row >= len(indices) or not is_int(indices[row]):
        return None
    if located.batch.in_order:
        return int(indices[row])
    data_set = located.batch.loader.data_set()
    if data_set is None:
        return None
    # A user's collate function may sort or drop samples: ask the data set which sample made the row.
    place, tensor = located.found.place, located.tensor
    whole_row = tensor  # an entry of a list
    if located.row is None:
        whole_row = tensor[row] if place[0] == row else tensor[:, row]
    value = tensor[tuple(place)].item()
    with RandomState(data_set):
        if contents.sample_produced_row(fetch(data_set, indices[row]), whole_row, value):
            return int(indices[row])
        if order.is_kept(located.batch):  # what the collate function made of the row's sample
            return int(indices[row])
        if len(indices) > MAX_FETCHED:
            return None
        others = [index for index in indices if is_int(index)]
        having = [
            index
            for index in others
            if contents.sample_produced_row(fetch(data_set, index), whole_row, value)
        ]
    return int(having[0]) if len(having) == 1 else None


def is_int(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__index__")


class _Making(NamedTuple):
    """A batch that is being made, in this process or in a worker."""

    sample: Sample  # what is known of its number
    indices: Any
    index: Any  # of the record that the data set is asked for
    made: Any  # the records that the collate function was given
    collating: list[FrameType]
    data_set: Any
    loader: Any


def _making() -> Optional[_Making]:
    sample: Sample = {}
    made: Any = None
    collating: list[FrameType] = []
    index: Any = None
    indices: Any = None
    data_set: Any = None
    loader: Any = None
    for frame in scope.live_frames():
        name = frame.f_code.co_filename.replace("\\", "/")
        if name.endswith("torch/utils/data/_utils/fetch.py"):
            variables = frame.f_locals
            index = variables.get("idx", index)
            made = variables.get("data", made)
            indices = variables.get("possibly_batched_index", indices)
            data_set = getattr(variables.get("self"), "dataset", data_set)
        elif indices is None:
            collating.append(frame)
        elif name.endswith("torch/utils/data/_utils/worker.py"):
            if is_int(frame.f_locals.get("idx")):
                sample["batch"] = int(frame.f_locals["idx"])
        elif name.endswith("torch/utils/data/dataloader.py"):
            iterator = frame.f_locals.get("self")
            number = getattr(iterator, "_num_yielded", None)
            reference = getattr(iterator, "_trapline_loader_ref", None)
            loader = reference() if reference is not None else loader
            if is_int(number) and "batch" not in sample:
                sample["batch"] = int(number)
    return None if indices is None else _Making(sample, indices, index, made, collating, data_set, loader)


def _in_data_set() -> Optional[Sample]:
    """The sample that is being made, when the fault is inside the data set's own code (also in a worker); in
    the collate function's, the one that its loop is at, or those of the batch."""
    now = _making()
    if now is None:
        return None
    sample, indices, index = now.sample, now.indices, now.index
    if is_int(index):
        sample["dataset_index"] = int(index)
        if isinstance(indices, (list, tuple)) and list(indices).count(index) == 1:
            sample["row"] = list(indices).index(index)
    elif is_int(indices):
        sample["dataset_index"] = int(indices)
    elif _is_collated(now):
        row = _drawn_of(now.made, now.collating)
        if row is not None:
            sample["row"] = row
        if row is not None and is_int(indices[row]):
            sample.update(dataset_index=int(indices[row]), by="loop")
        elif all(is_int(one) for one in indices):
            with_candidates(sample, list(indices))
    if "dataset_index" in sample and "by" not in sample:
        sample["by"] = "inside"  # asking for it again fails again
    return where.described(sample, now.data_set, now.loader) if sample else None


def _is_collated(now: _Making) -> bool:
    whole = type(now.made) is list and isinstance(now.indices, (list, tuple))
    return whole and len(now.made) == len(now.indices)


def of_collated(tensor: Any, scan: dict[str, Any]) -> Optional[Sample]:
    """In a collate function: the one record that has the bad number, where the tensor's row is made of it."""
    now, first = _making(), scan.get("first", -1)
    if now is None or not _is_collated(now) or first < 0 or not tensor.dim():
        return None
    flat = _row_of_flat(tensor, first, now.made)
    if flat is not None and is_int(now.indices[flat]):
        sample = {**now.sample, "row": flat, "dataset_index": int(now.indices[flat])}
        return where.described(sample, now.data_set, now.loader)
    if tensor.shape[0] != len(now.made):
        return None
    row = values.unravel(first, tensor.shape)[0]
    having = [at for at, record in enumerate(now.made) if _has(record, scan.get("value"))]
    if having != [row] or not is_int(now.indices[row]):
        return None
    if not contents.sample_produced_row(now.made[row], tensor[row], scan.get("value")):
        return None
    sample = {**now.sample, "row": row, "dataset_index": int(now.indices[row])}
    return where.described(sample, now.data_set, now.loader)


def _row_of_flat(tensor: Any, first: int, made: list[Any]) -> Optional[int]:
    """The record of an element of a tensor in which a part of all records stands, one after the other."""
    if tensor.dim() != 1 or tensor.numel() > values.MAX_ELEMENTS:
        return None
    for place in range(len(parts_of(made[0]))):
        held = [parts_of(record)[place : place + 1] for record in made]
        parts = [
            holders.as_tensor(one[0], values.MAX_ELEMENTS) for one in held if one and holders.is_array(one[0])
        ]
        if len(parts) != len(made) or any(part is None or part.dim() != 1 for part in parts):
            continue
        ends = list(accumulate(len(part) for part in parts))
        if ends[-1] != len(tensor):
            continue
        begins = [0, *ends]
        if all(bool((tensor[at : at + len(part)] == part).all()) for at, part in zip(begins, parts)):
            return next(row for row, end in enumerate(ends) if first < end)
    return None


def _has(record: Any, value: Any) -> bool:
    """One of its tensors, arrays or numbers has it."""
    for part in parts_of(record):
        held = holders.as_tensor(part, values.MAX_ELEMENTS) if holders.is_array(part) else None
        if (type(part) is int and part == value) or (held is not None and bool((held == value).any())):
            return True
    return False


def _drawn_of(made: list[Any], frames: list[FrameType]) -> Optional[int]:
    """The one record that a loop of these frames has drawn, or drawn a part of."""
    for frame in frames:
        for drawn in loops.drawn(frame):
            own = {id(value) for value in drawn if not isinstance(value, (int, float, str, type(None)))}
            rows = [at for at, record in enumerate(made) if own & {id(one) for one in parts_of(record)}]
            if len(rows) == 1:
                return rows[0]
    return None


def parts_of(record: Any) -> list[Any]:
    """A record and what stands in it."""
    parts = record.values() if type(record) is dict else record if type(record) in (list, tuple) else ()
    return [record, *parts]
