"""The batch that the program works on at the fault: the one whose tensors its innermost frames hold.

Loaders may read ahead (accelerate's by one batch), so the newest batch is not always the current one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import batches
from trapline._fault.data.batches import Batch
from trapline._fault.data.casts import storage_pointer
from trapline._fault.data.values import MAX_ELEMENTS
from trapline._fault.program import loops, scope

_MAX_ITEMS = 64
_MAX_COMPARED = 1 << 16  # elements
_TELLING = 8
_NESTED = 2  # (images, [{"boxes": ..., "labels": ...}, ...]), as it is given on in *args


def in_hand(frames: Optional[list[FrameType]] = None) -> Optional[Batch]:
    """The batch of the innermost frame that holds tensors of one; None when it holds those of several.

    A fault of the device may be told when the program has gone on to another batch. Then it is the one that
    was as far behind the newest at the call as the frame's is now (batches.as_of()).
    """
    remembered = batches.newest_first(later=True)
    serial = batches.at_call()
    ahead = _ahead(frames, remembered)
    if serial is None:
        return None if ahead is None else remembered[ahead]
    wanted = serial - (0 if ahead is None else remembered[0].serial - remembered[ahead].serial)
    return next((batch for batch in remembered if batch.serial == wanted), None)


def newest() -> Optional[Batch]:
    """For where no frame holds any: the batch that was made last, where one loader makes them all, and does
    not read ahead."""
    remembered = batches.newest_first()
    # The program's loader is one for all epochs.
    users = [(batch.loader, batch.loader.user_loader()) for batch in remembered]
    loaders = {id(own if user is None else user) for own, user in users}
    ahead = remembered and type(users[0][1]).__module__.startswith("accelerate.")
    return remembered[0] if len(loaders) == 1 and not ahead else None


def _ahead(frames: Optional[list[FrameType]], remembered: list[Batch]) -> Optional[int]:
    """The place in `remembered`, newest first, of the batch that the frames hold."""
    owners: dict[int, set[int]] = {}
    for position, batch in enumerate(remembered):
        for tensor in batch.tensors():
            pointer = storage_pointer(tensor) if tensor.numel() else 0
            if pointer:
                owners.setdefault(pointer, set()).add(position)
    live = scope.live_frames() if frames is None else frames
    raw = {at: batch for at, batch in enumerate(remembered) if batch.raw()}
    if not owners and not raw:
        return None
    for frame in live:
        listed = {at for at, batch in raw.items() if _has_records(frame, batch)}
        if listed:
            return listed.pop() if len(listed) == 1 else None
        for deep in (False, True):
            held: set[int] = set()
            copies: list[Any] = []
            for tensor in tensors_of(frame, deep):
                found = owners.get(storage_pointer(tensor))
                if found is None:
                    copies.append(tensor)
                else:
                    held |= found
            held = held or copied(copies, remembered)
            if held:
                return held.pop() if len(held) == 1 else None
    return None


def _has_records(frame: FrameType, batch: Batch) -> bool:
    """Whether a variable is the list of a batch without tensors, or another list of the same records."""
    raw = batch.raw()
    for value in _in_use(frame):
        if value is raw:
            return True
        alike = type(value) in (list, tuple) and len(value) == len(raw)
        if alike and all(mine is item and type(item) not in (int, bool) for mine, item in zip(value, raw)):
            return True
    return False


def is_finite(late: bool = False) -> bool:
    """Whether the batch in hand holds numbers with a fraction, all of them are finite, and no whole number is
    what a cast makes of one that is not."""
    batch = None if late and batches.at_call() is None else in_hand()
    parts = [part.detach() for part in batch.tensors() if part.numel()] if batch is not None else []
    if sum(part.numel() for part in parts) > MAX_ELEMENTS or any(part.is_complex() for part in parts):
        return False
    floating = [part for part in parts if part.dtype.is_floating_point]
    whole = [part for part in parts if not part.dtype.is_floating_point and part.element_size() > 2]
    casts = any(int(part.min()) <= -(1 << 31) for part in whole)
    return bool(floating) and not casts and all(bool(part.isfinite().all()) for part in floating)


def size() -> Optional[int]:
    """How many samples the batch in hand has, where all of its tensors have a row for each."""
    batch = in_hand()
    sizes = {int(part.shape[0]) for part in batch.tensors() if part.dim()} if batch is not None else set()
    return sizes.pop() if len(sizes) == 1 else None


def padded_to() -> Optional[int]:
    """What the collate function fills rows up to a multiple of (transformers' `pad_to_multiple_of`)."""
    batch = in_hand()
    given = scope.members(batch.loader.collate()).get("pad_to_multiple_of") if batch is not None else None
    return given if type(given) is int and given > 1 else None


def tensors_of(frame: FrameType, deep: bool = False) -> Iterator[Any]:
    """Tensors that are variables of a frame, or items of its containers; `deep`: also of those inside."""
    for value in _in_use(frame):
        for item in items_of(value, _NESTED if deep else 0):
            if scope.is_tensor(item) and item.device.type != "meta" and item.dim() and item.numel():
                yield item


def _in_use(frame: FrameType) -> Iterator[Any]:
    """The values of a frame's variables, but for those that a loop which is over has left behind."""
    left = loops.left_over(frame.f_code, scope.line_of(frame))
    return (value for name, value in scope.variables(frame) if name not in left)


def is_argument(batch: Batch) -> bool:
    """Whether a function that runs now was given a tensor of the batch."""
    own = {storage_pointer(tensor) for tensor in batch.tensors() if tensor.numel()}
    for frame in scope.live_frames():
        code = frame.f_code
        flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
        for name in given[:_MAX_ITEMS]:
            items = items_of(frame.f_locals.get(name), _NESTED)
            if any(scope.is_tensor(item) and storage_pointer(item) in own for item in items):
                return True
    return False


def items_of(value: Any, nested: int = 0) -> list[Any]:
    """The value itself, or the items of a list, tuple or dictionary; `nested` levels below them, too."""
    kind = type(value)
    if kind in (list, tuple):
        items = list(value[:_MAX_ITEMS])
    else:
        held = value if kind is dict else scope.members(value).get("data") if _is_map(value) else None
        if type(held) is not dict:
            return [value]
        items = list(held.values())[:_MAX_ITEMS]
    if not nested:
        return items
    return [inner for item in items for inner in items_of(item, nested - 1)][:_MAX_ITEMS]


def _is_map(value: Any) -> bool:
    from collections import UserDict  # transformers' BatchEncoding and BatchFeature

    return isinstance(value, UserDict)


def copied(tensors: list[Any], remembered: list[Batch]) -> set[int]:
    """Batches that a frame's tensors are equal copies of, as `.to(device)` makes them."""
    import torch

    held: set[int] = set()
    for tensor in tensors[:_MAX_ITEMS]:
        if not _TELLING <= tensor.numel() <= _MAX_COMPARED or tensor.layout is not torch.strided:
            continue
        if tensor.is_quantized:
            continue
        content: Any = None
        for position, batch in enumerate(remembered):
            for other in batch.tensors():
                if other.shape != tensor.shape or other.dtype != tensor.dtype:
                    continue
                content = tensor.detach().cpu() if content is None else content
                if torch.equal(content, other.detach().cpu()) and bool(
                    (content != content.flatten()[0]).any()
                ):
                    held.add(position)
    return held


def beside(tensor: Any, key: str) -> Any:
    """What the program's batch, a dictionary that holds `tensor`, has under another key."""
    pointer = storage_pointer(tensor)
    for frame in scope.live_frames():
        for _, value in scope.variables(frame):
            held = scope.members(value).get("data") if _is_map(value) else value
            if type(held) is dict and key in held:
                own = [item for item in list(held.values())[:_MAX_ITEMS] if scope.is_tensor(item)]
                if any(item is tensor or storage_pointer(item) == pointer for item in own):
                    return held[key]
    return None
