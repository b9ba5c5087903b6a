"""The batch that a failing call was made for, where the program shows it: a tensor of the call is the batch's
own, a function that runs was given the batch, or the line stands in the loop that has drawn it.

Nothing says that the batch is at fault: `by` is "hand".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import batches, hand, samples
from trapline._fault.data.batches import Batch
from trapline._fault.data.casts import storage_pointer
from trapline._fault.data.samples import Sample
from trapline._fault.data.unusual import stands_out
from trapline._fault.program import holders, loops, scope

_USUAL = 3  # below it a number is in many tensors
_MOST = 1 << 20
_MAX_DRAWN = 16  # loops around a line
_SHAPE = re.compile(r"\d+(?:x\d+)+|[\[(]\d[\d, ]*[\])]")  # 3x7, [3, 7], (3,)
_NUMBER = re.compile(r"\d+")
_DEPTH = 2  # (images, {"boxes": ..., "labels": ...})


def sample_facts(tensors: list[Any], message: str, value: Any = None) -> Optional[Sample]:
    """The batch and its indices. `tensors`: those that the failing call names; `value`: the bad number."""
    remembered = batches.newest_first()
    batch = _of(tensors, remembered) if remembered else None
    if batch is None and remembered:
        batch = _of_frames(remembered)
        if batch is None:
            return None
        if not (_goes_with(tensors, message, batch) or _is_given(batch) or _has(batch, value)):
            return None
    return None if batch is None else told(batch)


def at_call(tensor: Any) -> Optional[Sample]:
    """The same for a fault that a device tells late: the program still works on batches, and has perhaps
    gone on to another one.
    """
    if _of_frames(batches.newest_first(later=True)) is None:
        return None
    batch = hand.in_hand()
    return told(batch) if batch is not None and _goes_with([tensor], "", batch) else None


def told(batch: Batch) -> Sample:
    """Its number, and the samples that it holds."""
    sample: Sample = {"batch": batch.number, "by": "hand"}
    indices = batch.indices
    if isinstance(indices, (list, tuple)) and indices and all(samples.is_int(index) for index in indices):
        samples.with_candidates(sample, list(indices))
    elif not batch.loader.batched and samples.is_int(indices):
        samples.with_candidates(sample, [indices])
    return samples.described(batch, sample)


def _of_frames(remembered: list[Batch]) -> Optional[Batch]:
    """The innermost frame that was given a batch, or is in a loop over batches, tells; of several, none."""
    for frame in scope.live_frames():
        for held in _held(frame):
            found = _owners(held, remembered)
            if found:
                return remembered[found.pop()] if len(found) == 1 else None
    return None


def _held(frame: FrameType) -> Iterator[list[Any]]:
    for count, values in enumerate(loops.drawn(frame)):
        if count == _MAX_DRAWN:
            break
        yield values
    code = frame.f_code
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
    yield [frame.f_locals[name] for name in given if name != "self" and name in frame.f_locals]


def _of(tensors: list[Any], remembered: list[Batch]) -> Optional[Batch]:
    found = _owners(tensors, remembered)
    return remembered[found.pop()] if len(found) == 1 else None


def _owners(held: list[Any], remembered: list[Batch]) -> set[int]:
    """Places in `remembered` of the batches that these values are parts or copies of, or that they hold."""
    items = held
    found: set[int] = set()
    for _ in range(_DEPTH):
        found |= {at for at, batch in enumerate(remembered) if batch.raw() and any(map(batch.has, items))}
        items = [item for value in items for item in hand.items_of(value)]
    copies: list[Any] = []
    for item in items:
        if not scope.is_tensor(item):
            found |= {at for at, batch in enumerate(remembered) if batch.has(item)}
        elif item.dim() and item.numel() and item.device.type != "meta":
            pointer = storage_pointer(item)
            own = {at for at, batch in enumerate(remembered) if pointer and pointer in _pointers(batch)}
            found |= own
            copies += [] if own else [item]
    return found or hand.copied(copies, remembered)


def _pointers(batch: Batch) -> set[int]:
    return {storage_pointer(tensor) for tensor in batch.tensors() if tensor.numel()}


def _goes_with(tensors: list[Any], message: str, batch: Batch) -> bool:
    """Whether a tensor of the call has a size that it can have from the batch: its rows, or those of one of
    its tensors; the message tells the sizes of tensors without a name. What the program computes beside the
    batch is none of it."""
    rows = {tensor.shape[0] for tensor in batch.tensors() if tensor.dim()}
    if isinstance(batch.indices, (list, tuple)):
        rows.add(len(batch.indices))
    shapes = [tuple(tensor.shape) for tensor in tensors] or [
        tuple(int(number) for number in _NUMBER.findall(text)) for text in _SHAPE.findall(message)
    ]
    return not shapes or any(
        size in rows or (at == 0 and _is_multiple(size, rows))
        for shape in shapes
        for at, size in enumerate(shape)
    )


def _is_given(batch: Batch) -> bool:
    """A batch of one sample, of which a user's function that runs was given a part."""
    if not isinstance(batch.indices, (list, tuple)) or len(batch.indices) != 1:
        return False
    own = _pointers(batch)
    for frame in holders.user_frames():
        code = frame.f_code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            held = frame.f_locals.get(name)
            if scope.is_tensor(held) and held.numel() and storage_pointer(held) in own:
                return True
    return False


def _has(batch: Batch, value: Any) -> bool:
    """It holds the number, which is no usual one that is in many: a target of boxes has the class
    that the program picks from it."""
    if type(value) is not int or abs(value) < _USUAL:
        return False
    return any(
        0 < tensor.numel() <= _MOST and scope.is_at_hand(tensor) and bool((tensor == value).any())
        for tensor in batch.tensors()
        if scope.is_tensor(tensor) and str(tensor.layout) == "torch.strided"
    )


def _is_multiple(size: int, rows: set[int]) -> bool:
    return size > 0 and any(count > 1 and size % count == 0 for count in rows)


def of_a_prediction(sample: Optional[Sample]) -> Optional[Sample]:
    """Of numbers that the model made: the sample where it stands out in its batch, else the batch."""
    if sample is None or "dataset_index" not in sample or type(sample.get("row")) is not int:
        return sample
    batch = next((b for b in batches.newest_first() if b.number == sample.get("batch")), None)
    return sample if batch is None or stands_out(batch, sample["row"], unknown=False) else told(batch)
