"""A text that is too long for a position table: the longest sample of the batch in hand."""

from __future__ import annotations

from types import FrameType
from typing import Any, Optional

from trapline._fault.data import contents, fetched, hand, order, rows_of, samples, strings
from trapline._fault.data.batches import Batch
from trapline._fault.data.samples import Sample
from trapline._fault.program import scope

_MAX_MASK = 1 << 22
_IGNORED = -100


def too_long(
    limit: int,
    tensor: Any = None,
    bad: Any = None,
    frames: Optional[list[FrameType]] = None,
    before: int = 0,
) -> Optional[Sample]:
    """The longest sample of the batch in hand; all of them where several are equally long.

    `tensor`: the positions, when there are any, and `bad` which of them; `before` of them are no text's.
    Positions of a text that the model has made longer (generate) are as wide as nothing in the batch: then no
    sample is at fault.
    """
    batch = hand.in_hand(frames)
    if batch is None or batch.raw():
        return strings.longest(limit, frames)
    widths = {part.shape[1] for part in batch.tensors() if part.dim() == 2 or _is_of_parts(part)}
    if tensor is None:
        fits = any(width > limit for width in widths)
    else:
        last = tensor.shape[-1] - before if tensor.dim() else 0
        fits = last > 1 and not widths.isdisjoint((last - 1, last, last + 1))  # ids[:, :-1], one token more
    if not fits:
        return None
    sample: Sample = {"batch": batch.number}
    indices = batch.indices
    if not isinstance(indices, (list, tuple)) or not all(samples.is_int(index) for index in indices):
        return samples.described(batch, sample)
    count, in_order = len(indices), batch.loader.keeps_order
    masked = _masked_lengths(batch, frames) if in_order else {}
    labels: dict[int, int] = {}
    if tensor is not None and order.may_be_kept(batch):
        labels = _label_lengths(batch, last) or _lengths_in_parts(batch, last)
    lengths = labels or masked or _own_lengths(batch, None if tensor is None else last)
    beyond = {at: length for at, length in lengths.items() if length > limit}
    if in_order and bad is not None and tensor.dim() == 2 and tensor.shape[0] == count > 1:
        rows = rows_of.bad_rows(tensor, bad)  # one row of positions for each text
        own = [] if rows is None else rows.nonzero().reshape(-1).tolist()
        beyond = {at: lengths.get(at, 0) for at in own} or beyond
    longest = [at for at, length in beyond.items() if length == max(beyond.values())]
    if len(longest) != 1 and bad is not None and tensor.dim() == 2 and tensor.shape[0] == count > 1:
        rows = rows_of.bad_rows(tensor, bad)  # the program's own collate function keeps the order, as a rule
        if rows is not None and int(rows.sum()) == 1:
            return rows_of.of_row(batch, int(rows.nonzero()[0]))
    if len(longest) != 1:
        return samples.described(
            batch, samples.with_candidates(sample, [indices[at] for at in longest] or indices)
        )
    sample["dataset_index"] = int(indices[longest[0]])
    if in_order or labels:
        sample["row"] = longest[0]
    if lengths and count > 1:
        sample["by"] = "length"
    sample.update({} if lengths and (in_order or not labels) else {"likely": True})
    return samples.described(batch, sample)


def _label_lengths(batch: Batch, last: int) -> dict[int, int]:
    """Row to length of the one tensor of labels that is as wide as the positions, filled to its end with what
    losses leave out: a decoder is given what it has to say."""
    count = len(batch.indices)
    near = (last - 1, last, last + 1)
    found = [
        part.detach().cpu()
        for part in batch.tensors()
        if part.dim() == 2 and tuple(part.shape) in [(count, width) for width in near]
        if not part.dtype.is_floating_point and part.numel() <= _MAX_MASK
    ]
    filled = [part for part in found if bool((part[:, -1] == _IGNORED).any())]
    if len(filled) != 1 or len(found) != 1:
        return {}
    kept = (filled[0] != _IGNORED).tolist()
    return {at: len(row) - row[::-1].index(True) if True in row else 0 for at, row in enumerate(kept)}


def _is_of_parts(part: Any) -> bool:
    """Ids, [rows, parts, places]: documents of paragraphs, sessions of baskets."""
    return part.dim() == 3 and not part.dtype.is_floating_point


def _lengths_in_parts(batch: Batch, last: int) -> dict[int, int]:
    """Row to how many parts it has, where the batch is filled up with parts of 0 alone."""
    count = len(batch.indices)
    found = [
        part for part in batch.tensors() if _is_of_parts(part) and tuple(part.shape[:2]) == (count, last)
    ]
    if len(found) != 1 or found[0].numel() > _MAX_MASK:
        return {}
    kept = (found[0].detach().cpu() != 0).any(2).tolist()
    return {at: len(row) - row[::-1].index(True) if True in row else 0 for at, row in enumerate(kept)}


def _masked_lengths(batch: Batch, frames: Optional[list[FrameType]]) -> dict[int, int]:
    """Row to length, as an `attention_mask` of the innermost frame that has one for this batch says."""
    count = len(batch.indices)
    for frame in scope.live_frames() if frames is None else frames:
        variables = frame.f_locals
        for held in (variables, *(value for value in variables.values() if hasattr(value, "keys"))):
            try:
                mask = held.get("attention_mask") if hasattr(held, "get") else None
            except Exception:
                continue
            if not scope.is_tensor(mask) or mask.dim() != 2 or mask.shape[0] != count:
                continue
            if not mask.dtype.is_floating_point and mask.numel() <= _MAX_MASK:
                return dict(enumerate((mask.detach() != 0).sum(1).tolist()))
    return {}


def _own_lengths(batch: Batch, last: Optional[int]) -> dict[int, int]:
    """Position in the batch to length, as the data set's samples have it; {} unless the batch is as long.
    `last`: of samples with several sequences the one that is so long in the longest of them."""
    data_set = batch.loader.data_set()
    if data_set is None or len(batch.indices) > fetched.MAX_FETCHED:
        return {}
    with fetched.RandomState(data_set):
        asked = [fetched.fetch(data_set, index) for index in batch.indices]
    runs = [[len(run) for run in contents.integers(sample)] for sample in asked]
    alike = {len(run) for run in runs}
    if len(alike) == 1 and alike != {1} and last is not None:
        own = [list(place) for place in zip(*runs) if max(place) == last]
        if len(own) == 1:
            return dict(enumerate(own[0]))
    lengths = {at: max(run, default=0) for at, run in enumerate(runs)}
    widest = max(lengths.values(), default=0)
    # Only if the collate function padded to the longest, and neither cut nor added, are they the batch's.
    shapes = [tuple(tensor.shape) for tensor in batch.tensors() if tensor.dim() == 2]
    return lengths if widest > 1 and any(widest in shape for shape in shapes) else {}
