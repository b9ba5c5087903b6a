"""Finds the place in a batch tensor that an element of another tensor came from, by equality only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional

from trapline._fault.data.casts import storage_pointer
from trapline._fault.data.values import MAX_ELEMENTS, bad_mask, unravel

_MAX_OFFSETS = 64
TELLING = 4  # elements whose equality is taken for more than chance, when they are not all the same
_TELLING_PART = 8  # the same where it was also chosen which elements to compare
_NOWHERE = -100  # what stands where a shift left a column free; Hugging Face puts the same there
View = Callable[[Any], Any]


class Match:
    """`place` is the element's index in the batch tensor, `view` takes the same part of a like tensor."""

    def __init__(self, place: list[int], view: Optional[View], constant: int, certain: bool) -> None:
        self.place = place
        self.view = view
        self.constant = constant  # what the program added to the batch's values
        self.certain = certain  # the memory is the same: nothing had to be compared


def locate(
    tensor: Any,
    scan: dict[str, Any],
    predicate: Optional[int],
    batch: Any,
    newest: bool,
    values: bool = True,
    masks: Sequence[Any] = (),
) -> Optional[Match]:
    """Where tensor's first bad element is in `batch`, or None when that cannot be shown.

    A few equal numbers prove little: then only the whole tensor of the newest batch counts. `masks` are the
    batch's tensors that may have said which elements to take: labels[mask == 1].
    """
    if not tensor.numel() or not batch.numel() or scan.get("first", -1) < 0 or not batch.dim():
        return None
    shared = _same_memory(tensor, scan["first"], batch)
    if shared is not None:
        return Match(shared, _same_part(tensor, batch), 0, True)
    if max(tensor.numel(), batch.numel()) > MAX_ELEMENTS or batch.is_complex():
        return None
    flat = tensor.detach().reshape(-1).cpu()
    mask = bad_mask(flat, scan, predicate) if values else None
    source = batch.detach().cpu()
    telling = flat.numel() >= TELLING and bool((flat != flat[0]).any())
    whole = (
        tensor.numel() == batch.numel() and tensor.dtype.is_floating_point == batch.dtype.is_floating_point
    )
    if not telling and not (newest and whole):
        return None
    for view in _views(tensor, batch):
        part = view(source).reshape(-1)
        if part.numel() != flat.numel():
            continue
        constant = _difference(flat, part.to(flat.dtype), scan, mask)
        if constant is not None and (telling or constant == 0):
            place = _place(view, batch, scan["first"])
            if place is not None:
                return Match(place, view, constant, False)
    if telling and _TELLING_PART <= flat.numel() < batch.numel():
        for view in _selections(flat, source, masks):
            if bool((view(source).to(flat.dtype) == flat).all()):
                place = _place(view, batch, scan["first"])
                return None if place is None else Match(place, view, 0, False)
    return None


def _same_memory(tensor: Any, first: int, batch: Any) -> Optional[list[int]]:
    pointer = storage_pointer(tensor)
    if not pointer or pointer != storage_pointer(batch) or tensor.dtype != batch.dtype:
        return None
    place = unravel(first, tensor.shape)
    offset = (
        tensor.storage_offset() + sum(i * s for i, s in zip(place, tensor.stride())) - batch.storage_offset()
    )
    if not batch.is_contiguous() or not 0 <= offset < batch.numel():
        return None
    return unravel(offset, batch.shape)


def _same_part(tensor: Any, batch: Any) -> Optional[View]:
    if tensor.shape == batch.shape:
        return lambda value: value
    for view in _views(tensor, batch):
        part = view(batch)
        same_start = part.storage_offset() == tensor.storage_offset()
        if (
            part.numel() == tensor.numel()
            and same_start
            and bool((part.reshape(-1) == tensor.reshape(-1)).all())
        ):
            return view
    return None


def _offsets(size: int, length: int) -> list[int]:
    last = size - length
    if last < 0:
        return []
    return list(range(last + 1)) if last < _MAX_OFFSETS else [0, 1, last]


def _views(tensor: Any, batch: Any) -> Iterator[View]:
    """Parts of the batch tensor that have as many elements as `tensor`, the usual ones first."""
    count, shape = tensor.numel(), batch.shape
    outer = tensor.shape[: batch.dim()]
    if tensor.dim() > batch.dim() and outer == shape and count > batch.numel():
        ones = (1,) * (tensor.dim() - batch.dim())
        yield lambda value: value.reshape(tuple(shape) + ones).expand(
            tensor.shape
        )  # lengths.view(-1, 1).expand
        return
    if count == batch.numel():
        yield lambda value: value
        if batch.dim() > 1:
            yield lambda value: value.transpose(0, 1)
        if batch.dim() > 1 and shape[-1] > 1:  # targets shifted by one, the last padded; decoder ids
            yield lambda value: _cat(value[..., 1:], value.new_full((*shape[:-1], 1), _NOWHERE))
            yield lambda value: _cat(value.new_full((*shape[:-1], 1), _NOWHERE), value[..., :-1])
        return
    if batch.dim() > 1:
        rest = batch.numel() // shape[1] if shape[1] else 0
        if rest and count % rest == 0:
            length = count // rest
            for offset in _offsets(shape[1], length):  # ids[:, 1:], ids[:, :-1], columns[:, 3]
                yield lambda value, o=offset, n=length: value.narrow(1, o, n)
    rest = batch.numel() // shape[0]
    if count % rest == 0:
        length = count // rest
        for offset in _offsets(shape[0], length):  # data[1:] of time-first batches, micro-batches
            yield lambda value, o=offset, n=length: value.narrow(0, o, n)
    if batch.dim() > 2 and count * shape[-1] == batch.numel():
        for column in range(min(shape[-1], _MAX_OFFSETS)):
            yield lambda value, c=column: value.select(-1, c)


def _cat(left: Any, right: Any) -> Any:
    import torch

    return torch.cat([left, right], -1)


def _selections(flat: Any, batch: Any, masks: Sequence[Any]) -> Iterator[View]:
    """Elements that the program picked out: by a mask of the batch's own, or those of some values."""
    import torch

    chosen = [mask.detach().cpu().reshape(-1) != 0 for mask in masks if mask.shape == batch.shape]
    if not flat.dtype.is_floating_point and str(batch.dtype) != "torch.bool":
        chosen.append(torch.isin(batch.reshape(-1), flat.unique().to(batch.dtype)))
    for keep in chosen:
        if int(keep.sum()) == flat.numel():
            yield lambda value, keep=keep: value.reshape(-1)[keep]


def _difference(flat: Any, part: Any, scan: dict[str, Any], mask: Any) -> Optional[int]:
    """What was added to `part` to give `flat`: 0 when they agree, None when they do not belong together."""
    first = scan["first"]
    equal = flat == part
    if flat.dtype.is_floating_point:
        equal = equal | (flat.isnan() & part.isnan())
    if bool(equal[first]):
        bad = equal[mask] if mask is not None else equal[first : first + 1]
        # Labels may have been replaced in places (padding to -100); every bad element has to agree.
        return 0 if bool(bad.all()) and int(equal.sum()) * 2 > flat.numel() else None
    if flat.dtype.is_floating_point or flat.numel() < 2:
        return None
    keep = flat != scan["also"] if scan.get("also") is not None else slice(None)
    left, right = flat[keep].long(), part[keep].long()
    constant = int(left[0] - right[0]) if left.numel() > 1 else 0
    if constant and bool((left - right == constant).all()) and int(right.min()) != int(right.max()):
        return constant
    return None


def _place(view: View, batch: Any, first: int) -> Optional[list[int]]:
    """Where the element is in the batch; None when the program put it there itself."""
    import torch

    positions = torch.arange(batch.numel()).reshape(batch.shape)
    position = int(view(positions).reshape(-1)[first])
    return unravel(position, batch.shape) if position >= 0 else None
