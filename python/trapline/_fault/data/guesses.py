"""Samples where the bad element is not one of the batch's own: by lengths, places of NaN, computation.

Each says in a word (`by`) how the sample was found, and whether that proves it.
"""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import batches, hand, order, rows_of, samples, values
from trapline._fault.data.batches import Batch
from trapline._fault.data.match import Match
from trapline._fault.data.samples import Located, Sample
from trapline._fault.program import computed, scope

_MAX_MASK = 1 << 22
_MIN = 8  # elements
_DIFFERENT = 4  # values
_MIN_ROWS = 4
_OF_NAN = (-(1 << 63), -(1 << 31))  # what a NaN becomes in an integer
_IGNORED = -100
_LABELS = ("nll_loss", "multi_margin_loss", "one_hot")  # operations that take them


def sample_facts(violation: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """The sample of a bad element that is not itself one of a batch's."""
    tensor, scan = violation["tensor"], violation["scan"]
    located = samples.locate_partner(violation)
    if located is not None:
        return samples.sample_facts(located)
    if violation.get("late") and batches.at_call() is None:
        return samples.sample_facts(None)  # the frames may be past the call, and with them the batch in hand
    by_place = by_nan(tensor, scan, predicate)
    if by_place is not None:
        return samples.sample_facts(*by_place)
    located = by_operands(violation.get("given", tensor), scan)
    if located is not None:
        return samples.sample_facts(located, "function")
    located = replaced(tensor, scan, predicate)
    if located is not None:
        return samples.sample_facts(located, "replaced")
    located = by_function(tensor, scan, predicate)
    if located is not None:
        return samples.sample_facts(located, "function", likely=True)
    located = selected(tensor, scan)
    if located is not None:
        return samples.sample_facts(located)
    in_bag = rows_of.by_bag(violation)
    if in_bag is not None:
        return in_bag
    located = by_row(tensor, scan, predicate)
    if located is not None:
        return samples.sample_facts(located, "rows" if _is_broken(located) else "row", likely=True)
    located = laid_out(tensor, scan)
    if located is not None:
        return samples.sample_facts(located, "place")
    return samples.sample_facts(None)


def batch_of_labels(violation: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """The batch in hand, where each of its rows holds the bad label, and each row of the labels, which were
    made of it: no sample is special, whatever was done to them between."""
    tensor, scan, batch = violation["tensor"], violation["scan"], hand.in_hand()
    operator = str(violation.get("op") or "").replace("aten::", "")
    if batch is None or not operator.startswith(_LABELS) or not isinstance(batch.indices, (list, tuple)):
        return None
    count = len(batch.indices)
    if tensor.dtype.is_floating_point or tensor.numel() > values.MAX_ELEMENTS or count < 2:
        return None
    flat = tensor.detach().reshape(-1).cpu()
    bad = values.bad_mask(flat, scan, predicate) if tensor.numel() % count == 0 else None
    if bad is None or not bool(bad.any()) or not bool(bad.reshape(count, -1).any(1).all()):
        return None
    value = flat[bad][0]
    for part in batch.tensors():
        fits = part.dim() and part.shape[0] == count and part.dtype == tensor.dtype
        if fits and bool((part.detach().cpu() == value).reshape(count, -1).any(1).all()):
            return samples.described(batch, {"batch": batch.number})
    return None


def batch_in_hand(violation: dict[str, Any], predicate: Optional[int], seen: list[Any]) -> Optional[Sample]:
    """The batch in hand, with its samples, where no row is known and the call is inside a function that was
    given the batch. Only of a later batch than the first: those before it went through. And only where a part
    of the elements is bad: what is wrong as a whole is wrong for another reason than a sample. `seen` gets
    the tensor of the batch, where one has the value."""
    tensor, scan = violation["tensor"], violation["scan"]
    batch = hand.in_hand() if tensor.numel() <= values.MAX_ELEMENTS else None
    if batch is None or batch.number < 1 or scan.get("first", -1) < 0 or not hand.is_argument(batch):
        return None
    flat = tensor.detach().reshape(-1).cpu()
    bad = ~flat.isfinite() if flat.dtype.is_floating_point else values.bad_mask(flat, scan, predicate)
    if bad is None or not bool(bad.any()):
        return None
    if is_run(tensor):
        return None
    located = _who_has(batch, flat[bad])
    if located is not None:
        seen.append(located)
        return samples.sample_facts(located, "value", likely=True)
    if bool(bad.all()) or _is_drawn(tensor, batch):
        return None
    sample: Sample = {"batch": batch.number}
    indices = batch.indices
    if isinstance(indices, (list, tuple)) and indices and all(samples.is_int(index) for index in indices):
        rows = bad.reshape(len(tensor), -1).any(1) if tensor.dim() and len(tensor) == len(indices) else []
        own = [index for index, is_bad in zip(indices, rows) if is_bad]  # first, as the rows may be theirs
        samples.with_candidates(sample, [*own, *indices])
        sample["likely"] = True
    return samples.described(batch, sample)


def is_run(tensor: Any) -> bool:
    """True for what arange() makes: nobody's numbers."""
    if tensor.dtype.is_floating_point or not 1 < tensor.numel() <= values.MAX_ELEMENTS:
        return False
    flat = tensor.detach().reshape(-1).cpu()
    return bool((flat[1:] - flat[:-1] == 1).all())


def _is_drawn(tensor: Any, batch: Batch) -> bool:
    """A whole number for each sample that the batch does not have and nothing computed of it: time steps that
    chance drew."""
    indices = batch.indices
    one_each = isinstance(indices, (list, tuple)) and tuple(tensor.shape) == (len(indices),)
    return one_each and not tensor.dtype.is_floating_point and not _made_of(batch, tensor)


def _who_has(batch: Batch, bad: Any) -> Optional[Located]:
    """The one entry of the batch's lists, one for each sample, that has all of the bad numbers: a detector
    puts the labels of an image among those of its proposals."""
    numbers = set(bad.tolist()) if not bad.dtype.is_floating_point else set()
    found: list[Located] = []
    for group in batch.per_sample():
        for row, part in enumerate(group):
            if part.dtype != bad.dtype or part.numel() > values.MAX_ELEMENTS:
                continue
            own = part.detach().reshape(-1).cpu().tolist()
            if numbers and numbers <= set(own):
                place = values.unravel(own.index(int(bad[0])), part.shape)
                found.append(Located(batch, part, Match(place, None, 0, False), row))
    return found[0] if len(found) == 1 else None


def counts_up(tensor: Any, scan: dict[str, Any]) -> bool:
    """True for positions: the numbers before the bad one rise by one, whatever the operation."""
    first = scan.get("first", -1)
    if tensor.dtype.is_floating_point or not tensor.dim() or first < 0 or tensor.numel() > _MAX_MASK:
        return False
    place = values.unravel(first, tensor.shape)
    row = tensor.detach()[tuple(place[:-1])][: place[-1] + 1].cpu()
    return row.numel() >= _MIN and bool((row[1:] - row[:-1] == 1).all())


# NaN that went through arithmetic --------------------------------------------------------------


def by_nan(
    tensor: Any, scan: dict[str, Any], predicate: Optional[int]
) -> Optional[tuple[Located, str, bool]]:
    """The one floating tensor of a batch that is not finite where `tensor` is bad: element by element, or by
    rows. The values themselves cannot be compared: the arithmetic has changed them."""
    if scan.get("first", -1) < 0 or tensor.numel() > values.MAX_ELEMENTS or not tensor.dim():
        return None
    flat = tensor.detach().reshape(-1).cpu()
    bad = ~flat.isfinite() if flat.dtype.is_floating_point else values.bad_mask(flat, scan, predicate)
    if bad is None or not bool(bad[scan["first"]]):
        return None
    current = hand.in_hand()
    remembered = batches.newest_first() if current is None else [current]
    for batch in remembered:
        floating = [part for part in batch.tensors() if part.dim() and part.dtype.is_floating_point]
        floating = [part for part in floating if part.numel() <= values.MAX_ELEMENTS]
        found = [
            part for part in floating if part.numel() == bad.numel() and bool((_broken(part) == bad).all())
        ]
        if len(found) == 1:
            place = values.unravel(scan["first"], found[0].shape)
            return Located(batch, found[0], Match(place, None, 0, False)), "nan", bad.numel() < 2
        if found:
            return None
        rows = rows_of.bad_rows(tensor, bad)
        if rows is None or not isinstance(batch.indices, (list, tuple)) or len(rows) != len(batch.indices):
            continue
        found = [part for part in floating if _same_rows(part, rows)]
        if len(found) == 1:
            row = int(rows.nonzero()[0])
            inside = int(_broken(found[0]).reshape(len(rows), -1)[row].nonzero()[0])
            place = [row, *values.unravel(inside, found[0].shape[1:])]
            return Located(batch, found[0], Match(place, None, 0, False)), "rows", True
    cast = not flat.dtype.is_floating_point and scan.get("value") not in _OF_NAN
    return None if current is None or cast or not bool(bad.all()) else _only_row(current)


def _only_row(batch: Batch) -> Optional[tuple[Located, str, bool]]:
    """The one row of the batch that has a NaN or an Inf: it may have spread to all that was computed."""
    if not isinstance(batch.indices, (list, tuple)) or not order.is_kept(batch):
        return None
    count, found = len(batch.indices), []
    for part in batch.tensors():
        fits = part.dim() and part.shape[0] == count and part.numel() <= values.MAX_ELEMENTS
        if fits and part.dtype.is_floating_point:
            places = _broken(part).reshape(count, -1)
            found += [(part, row, places) for row in places.any(1).nonzero().reshape(-1).tolist()]
    if len(found) != 1 or count < 2:
        return None
    part, row, places = found[0]
    place = [row, *values.unravel(int(places[row].nonzero()[0]), part.shape[1:])]
    return Located(batch, part, Match(place, None, 0, False)), "rows", True


def _broken(part: Any) -> Any:
    return (~part.detach().isfinite()).reshape(-1).cpu()


def by_row(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Located]:
    """The one bad row of a tensor with a row for each sample of the batch in hand, whose loader keeps their
    order. Most of what a model computes has such rows."""
    batch = hand.in_hand()
    if batch is None or not isinstance(batch.indices, (list, tuple)):
        return None
    count = len(batch.indices)
    if not tensor.dim() or tensor.shape[0] != count or count in tensor.shape[1:] or count < _MIN_ROWS:
        return None
    if tensor.dim() == 1 and not _made_of(batch, tensor):
        return None  # of so many numbers nothing else says that they are one for each sample
    row = rows_of.only_bad_row(tensor, scan, predicate)
    if row is None or not order.is_kept(batch):
        return None
    parts = [part for part in batch.tensors() if part.dim() and part.shape[0] == count]
    if not parts:
        return None
    return Located(batch, parts[0], Match([row] + [0] * (parts[0].dim() - 1), None, 0, False))


def laid_out(tensor: Any, scan: dict[str, Any]) -> Optional[Located]:
    """The row of the batch in hand that an element stands for, where the program laid several entries of each
    row one after the other: a frame holds the same memory with a row for each sample, and flattened."""
    batch, first = hand.in_hand(), scan.get("first", -1)
    if batch is None or not isinstance(batch.indices, (list, tuple)) or not order.is_kept(batch):
        return None
    count, total = len(batch.indices), tensor.shape[0] if tensor.dim() else 0
    if first < 0 or count < 2 or total <= count or total % count or total == count * count:
        return None
    if not _flattened(count, total // count):
        return None
    parts = [part for part in batch.tensors() if part.dim() and part.shape[0] == count]
    if not parts:
        return None
    row = values.unravel(first, tensor.shape)[0] // (total // count)
    return Located(batch, parts[0], Match([row] + [0] * (parts[0].dim() - 1), None, 0, False))


def _flattened(count: int, each: int) -> bool:
    """Whether a frame holds a tensor [count, each, ...] and the same memory as [count * each, ...]."""
    for frame in scope.live_frames():
        whole: set[int] = set()
        flat: set[int] = set()
        for part in hand.tensors_of(frame):
            if part.layout is not _strided() or not part.is_contiguous():
                continue
            if tuple(part.shape[:2]) == (count, each):
                whole.add(part.data_ptr())
            elif part.shape[0] == count * each:
                flat.add(part.data_ptr())
        if whole & flat:
            return True
    return False


def _strided() -> Any:
    import torch

    return torch.strided


def selected(tensor: Any, scan: dict[str, Any]) -> Optional[Located]:
    """The element of the batch in hand that the line took by a mask, labels[mask]: the source says it, and
    the values agree."""
    import torch

    batch, first = hand.in_hand(), scan.get("first", -1)
    if batch is None or first < 0 or not tensor.dim() or tensor.numel() > values.MAX_ELEMENTS:
        return None
    own = {id(part) for part in batch.tensors()}
    for _, whole, mask in computed.selections():
        if id(whole) not in own or mask.dtype is not torch.bool or mask.shape != whole.shape[: mask.dim()]:
            continue
        if not mask.dim() or not torch.equal(whole.detach()[mask], tensor.detach().to(whole.device)):
            continue
        place = values.unravel(first, tensor.shape)
        chosen = mask.nonzero()[place[0]].tolist()
        return Located(batch, whole, Match([*chosen, *place[1:]], None, 0, False))
    return None


def _made_of(batch: Batch, tensor: Any) -> bool:
    """Whether arithmetic made the numbers of a tensor of the batch, one from each sample's."""
    count = tensor.shape[0]
    own = {id(part) for part in batch.tensors() if part.dim() == 1 and part.shape[0] == count}
    return any(id(part) in own for part in computed.parts_of(tensor))


def _is_broken(located: Located) -> bool:
    """Whether the batch itself has a NaN or an Inf in that row."""
    row, count = located.found.place[0], located.tensor.shape[0]
    floating = (part for part in located.batch.tensors() if part.dim() and part.dtype.is_floating_point)
    return any(part.shape[0] == count and bool(_broken(part[row]).any()) for part in floating)


def _same_rows(part: Any, rows: Any) -> bool:
    return part.shape[0] == len(rows) and bool((_broken(part).reshape(len(rows), -1).any(1) == rows).all())


# Numbers that the program computed ---------------------------------------------------------------


def by_function(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Located]:
    """The one tensor of the current batch whose elements these were computed from, one from one: where it is
    equal they are, or they rise or fall with it. Chance does not do that to several different values."""
    batch = hand.in_hand()
    if batch is None or scan.get("first", -1) < 0 or not _MIN <= tensor.numel() <= _MAX_MASK:
        return None
    flat = tensor.detach().reshape(-1).cpu()
    bad = values.bad_mask(flat, scan, predicate)
    if bad is None or bool(bad.all()):
        return None
    found = []
    for part in batch.tensors():
        fits = part.dim() and part.numel() == flat.numel() and not part.is_complex()
        if not fits:
            continue
        source = part.detach().reshape(-1).cpu()
        if _is_function(source.double(), flat.double()) or _by_columns(source, flat, tensor.shape):
            found.append(part)
    if len(found) != 1:
        return None
    place = values.unravel(scan["first"], found[0].shape)
    return Located(batch, found[0], Match(place, None, 0, False))


def by_operands(tensor: Any, scan: dict[str, Any]) -> Optional[Located]:
    """The row of a batch that has every operand of the arithmetic that made the element."""
    found = []
    for operand in computed.operands_of("", tensor, scan.get("first", -1)):
        scanned = {"first": operand.first, "lo": None, "hi": None, "also": None}
        located = samples.locate(operand.tensor, scanned, None, by_value=False)
        if located is not None and located.found.constant == 0:
            found.append(located)
    same = len({(id(one.batch.parts), samples.row_of(one)) for one in found}) == 1
    return found[0] if same else None


def _by_columns(source: Any, result: Any, shape: Any) -> bool:
    """Every column is shifted by a number of its own: the fields of a table that they share."""
    columns = int(shape[-1]) if len(shape) > 1 else 0
    if source.dtype.is_floating_point or result.dtype.is_floating_point or columns < 2:
        return False
    if source.numel() // columns < _MIN_ROWS:
        return False
    differences = (result.long() - source.long()).reshape(-1, columns)
    return bool((differences == differences[0]).all()) and bool((differences[0] != differences[0, 0]).any())


def replaced(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Located]:
    """The one tensor of the current batch that this one equals but where it is bad, and perhaps in a part of
    the other places: what stands between (a mask, noise, a wrapper of the model) has put numbers there."""
    batch = hand.in_hand()
    if batch is None or scan.get("first", -1) < 0 or not _MIN <= tensor.numel() <= _MAX_MASK:
        return None
    flat = tensor.detach().reshape(-1).cpu()
    bad = None if flat.dtype.is_floating_point else values.bad_mask(flat, scan, predicate)
    if bad is None or int(bad.sum()) * 2 > flat.numel():
        return None
    found = []
    for part in batch.tensors():
        one_each = part.dim() == 1 and part.numel() == flat.numel() == tensor.shape[0]
        if not one_each and (part.dim() < 2 or part.shape != tensor.shape):
            continue
        equal = part.detach().reshape(-1).cpu() == flat
        fits = bool((equal == ~bad).all()) if one_each else not bool((equal & bad).any())
        enough = 2 * int(equal.sum()) > flat.numel()
        if fits and enough and flat[equal].unique().numel() >= _DIFFERENT - 1:
            found.append(part)
    if len(found) != 1:
        return None
    place = values.unravel(scan["first"], found[0].shape)
    return Located(batch, found[0], Match(place, None, 0, False))


def _is_function(source: Any, result: Any) -> bool:
    order = source.argsort(stable=True)
    source, result = source[order], result[order]
    twins = source[1:] == source[:-1]
    steps = result[1:] - result[:-1]
    if bool((steps[twins] != 0).any()) or not bool(source.isfinite().all() & result.isfinite().all()):
        return False
    if result.unique().numel() < _DIFFERENT:
        return False
    monotonous = bool((steps >= 0).all()) or bool((steps <= 0).all())
    return monotonous or result[1:][twins].unique().numel() >= _DIFFERENT
