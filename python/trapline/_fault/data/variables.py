"""The bad element as the user's own variable names it: `edge_index[1, 3]` where a library, or a line before,
made something of it (shifted, flattened, filtered, self-loops added) and the operation was given that.

A variable is named when it holds the very value, and its memory or its elements tie it to the argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.data import match
from trapline._fault.data.casts import storage_pointer
from trapline._fault.data.values import bad_mask, unravel
from trapline._fault.program import entering, holders, scope
from trapline._library import capi

_EXACT = {"bfloat16": 1 << 8, "float16": 1 << 11}  # whole numbers up to there, and not all beyond
_MAX = 1 << 22  # elements of a candidate
_MAX_SORTED = 1 << 20
_BUDGET = 1 << 24  # elements of all candidates
_PARTS = 16  # rows or columns of a candidate that are tried by themselves
_MAX_PLACES = 64
_MIN_LENGTH = 8  # fewer may be anything
_TELLING = 4
_TELLING_MIXED = 8  # elements that tell when their order is not looked at
_OTHERS = 3  # of a piece, those that are not the most frequent one
_ALIKE = 0.9
_WIDER = 4

# How the variable is tied to the argument, surest first.
_SAME, _MEMORY, _ELEMENTS, _RUN, _MIXED = range(5)
_Tie = tuple[int, list[int]]


def variable_facts(
    violation: dict[str, Any], given: Any, predicate: Optional[int]
) -> Optional[dict[str, Any]]:
    """`name` and `index` of the first bad element in a variable of the user's frames; None: none is tied.

    `given`: the argument itself; `violation` holds a copy of it on the host.
    """
    scan, tensor = violation["scan"], violation["tensor"]
    if scan.get("first", -1) < 0 or not 0 < tensor.numel() <= _MAX or tensor.dim() == 0:
        return None
    if scan.get("reason") == capi.REASON_ZERO_SUM:
        return _empty_row(tensor, given, scan["first"])
    best: Optional[tuple[tuple[bool, int, bool, int], str, list[int], Any]] = None
    named = entering.names_in_call()
    argument = str(violation.get("contract", "")).rpartition(".")[2]
    budget = _BUDGET
    for depth, frame in enumerate(holders.user_frames()):
        for name, value in holders.held_by(frame):
            tie = same_memory(given, value, scan["first"])
            if tie is None and budget > 0:
                held = holders.as_tensor(value, _MAX)
                if held is None or not _comparable(tensor, held):
                    continue
                budget -= int(held.numel())
                tie = _tie(tensor, scan, predicate, held, best is None)
            if tie is not None:
                # Equal numbers tell less than the text of the call. The argument's own name says nothing: the
                # entry of a dictionary that holds it does.
                equal = tie[0] not in (_SAME, _MEMORY)
                other = depth == 0 and equal and bool(named) and name.partition(".")[0] not in named
                rank = (tie[0] == _MIXED, depth, other, tie[0] + (name == argument))
                if best is None or rank < best[0]:
                    best = (rank, name, tie[1], value)
        if best is not None and not best[0][0]:
            break  # no farther frame has a better name
    half = _in_half(tensor, scan)
    if half is not None:
        return half
    if best is None:
        return None
    found: dict[str, Any] = {"name": best[1], "index": best[2]}
    held = holders.as_tensor(best[3], _MAX)
    if held is not None and _is_repeated(tensor.reshape(-1), held.reshape(-1)):
        found["repeated"] = True
    return found


def _in_half(tensor: Any, scan: dict[str, Any]) -> Optional[dict[str, Any]]:
    """The same numbers in a float of 16 bits, which has not all whole numbers of that size: they were made of
    that, whatever name they have now."""
    value = scan.get("value")
    if type(value) is not int or tensor.dtype.is_floating_point:
        return None
    for frame in holders.user_frames():
        for name, held in holders.held_by(frame):
            dtype = str(getattr(held, "dtype", "")).removeprefix("torch.")
            if value < _EXACT.get(dtype, value + 1):
                continue
            half = holders.as_tensor(held, _MAX)
            tie = None if half is None else _tie(tensor, scan, None, half, False)
            if tie is not None:
                return {"name": name, "index": tie[1], "rounded": dtype, "exact": _EXACT[dtype]}
    return None


def _is_repeated(flat: Any, held: Any) -> bool:
    """The elements of `held` several times, each of them or all in turn."""
    times, left = divmod(len(flat), max(1, len(held)))
    if times < 2 or left or not len(held):
        return False
    held = held.to(flat.dtype)
    ways = (flat.reshape(times, -1) == held, flat.reshape(-1, times) == held[:, None])
    return any(bool(same.all()) for same in ways)


def is_as_long(name: str, size: Any) -> bool:
    """The tensor of that name in the user's frames has as many columns."""
    for frame in holders.user_frames() if name else ():
        for held_as, value in holders.held_by(frame):
            if held_as == name and holders.is_array(value):
                return value.ndim > 1 and int(value.shape[-1]) == size
    return False


def ids_as_long(target: Any, size: Any) -> Optional[str]:
    """The ids of which each row has as many places as there are classes, one row for each label: the classes
    are these places."""
    if type(size) is not int or size < _MIN_LENGTH or not scope.is_tensor(target) or target.dim() != 1:
        return None
    for frame in holders.user_frames():
        for name, value in holders.held_by(frame):
            if holders.is_array(value) and tuple(value.shape) == (len(target), size) and len(target) != size:
                held = holders.as_tensor(value, _MAX)
                if held is not None and not held.dtype.is_floating_point and held.dtype.itemsize > 1:
                    return name
    return None


def _empty_row(tensor: Any, given: Any, first: int) -> Optional[dict[str, Any]]:
    """Of a row that is all 0: it has to be the only such row of the variable, or in the argument itself."""
    columns = int(tensor.shape[-1])
    for frame in holders.user_frames():
        for name, value in holders.held_by(frame):
            tie = same_memory(given, value, first)
            if tie is not None:
                return {"name": name, "index": tie[1]}
            held = holders.as_tensor(value, _MAX)
            if held is None or held.dim() != 2 or held.shape[1] != columns or not _comparable(tensor, held):
                continue
            rows = (held == 0).all(1).nonzero().reshape(-1).tolist()
            if len(rows) == 1 and len(held) != len(tensor):
                return {"name": name, "index": [rows[0], 0]}
    return None


def _comparable(tensor: Any, held: Any) -> bool:
    if str(held.dtype) == "torch.bool":
        return False
    return bool(held.dtype.is_floating_point) or not tensor.dtype.is_floating_point


def same_memory(given: Any, value: Any, first: int) -> Optional[_Tie]:
    """The argument itself, or a tensor over the same memory."""
    import torch

    if value is given:
        return _SAME, unravel(first, given.shape)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.dtype != given.dtype:
        return None
    pointer = storage_pointer(given)
    if not pointer or pointer != storage_pointer(value) or not value.numel():
        return None
    place = unravel(first, given.shape)
    at = given.storage_offset() + sum(i * s for i, s in zip(place, given.stride())) - value.storage_offset()
    index = _index_of_offset(at, value.shape, value.stride())
    if index is None:
        return None
    return (_SAME if value.shape == given.shape else _MEMORY), index


def _index_of_offset(offset: int, shape: Any, strides: Any) -> Optional[list[int]]:
    """Which index of a tensor lies `offset` elements after its first; None: no index does."""
    index = [0] * len(shape)
    for dim in sorted(range(len(shape)), key=lambda d: -strides[d]):
        if shape[dim] > 1 and strides[dim] > 0:
            index[dim], offset = divmod(offset, strides[dim])
    inside = all(0 <= i < max(int(size), 1) for i, size in zip(index, shape))
    return index if offset == 0 and inside else None


def _tie(
    tensor: Any, scan: dict[str, Any], predicate: Optional[int], held: Any, mixed: bool
) -> Optional[_Tie]:
    flat = tensor.detach().reshape(-1)
    value = flat[scan["first"]]
    if not bool((held == value).any()):
        return None
    found = match.locate(tensor, scan, predicate, held, True)
    if found is not None and found.constant == 0:
        return _ELEMENTS, found.place
    bad = bad_mask(flat, scan, predicate)
    place = _piece(tensor, unravel(scan["first"], tensor.shape), held, bad)
    if place is not None:
        return _ELEMENTS, place
    parts = list(_parts(held, flat.dtype))
    for part, where in parts:
        at = _run(flat, scan["first"], value, part)
        if at is not None:
            return _RUN, where(at)
    return _mixed(flat, value, parts, lambda one: bad_mask(one, scan, predicate)) if mixed else None


def _piece(tensor: Any, place: list[int], held: Any, bad: Any) -> Optional[list[int]]:
    """The candidate is a piece of the argument, to which something was joined along one dimension: it has all
    the bad elements. A column of differences to 0 is equal to what they were made of, too."""
    if tensor.dim() != held.dim() or held.numel() < _TELLING or held.numel() >= tensor.numel():
        return None
    longer = [d for d in range(tensor.dim()) if tensor.shape[d] != held.shape[d]]
    if len(longer) != 1 or held.shape[longer[0]] > tensor.shape[longer[0]]:
        return None
    dim, length = longer[0], int(held.shape[longer[0]])
    for start in {0, int(tensor.shape[dim]) - length}:
        inside = start <= place[dim] < start + length
        if inside and bool((tensor.narrow(dim, start, length) == held.to(tensor.dtype)).all()):
            within = None if bad is None else bad.reshape(tensor.shape).narrow(dim, start, length)
            if within is not None and int(within.sum()) < int(bad.sum()):
                continue
            return [p - start if d == dim else p for d, p in enumerate(place)]
    return None


def _parts(held: Any, dtype: Any) -> Iterator[tuple[Any, Any]]:
    """The candidate as one run of elements, its rows and its columns; with what a position stands for."""
    whole = _as(held, dtype)
    if whole is not None:
        yield whole.reshape(-1), lambda at: unravel(at, held.shape)
    if held.dim() != 2:
        return
    for row in range(held.shape[0] if held.shape[0] <= _PARTS else 0):
        part = _as(held[row], dtype)
        if part is not None:
            yield part, lambda at, row=row: [row, at]
    for column in range(held.shape[1] if held.shape[1] <= _PARTS else 0):
        part = _as(held[:, column], dtype)
        if part is not None:
            yield part, lambda at, column=column: [at, column]


def _as(part: Any, dtype: Any) -> Any:
    """In the argument's dtype, where that loses nothing: classes are often a column of floats."""
    if part.dtype == dtype:
        return part
    cast = part.to(dtype)
    return cast if bool((cast.to(part.dtype) == part).all()) else None


def _run(flat: Any, first: int, value: Any, part: Any) -> Optional[int]:
    """Where the element is in `part`, when one of the two is a run of the other, whole."""
    length = min(flat.numel(), part.numel())
    if length < _TELLING:
        return None
    for at in (part == value).nonzero().reshape(-1)[:_MAX_PLACES].tolist():
        shift = at - first  # flat[i] would be part[i + shift]
        begin, end = max(0, -shift), min(flat.numel(), part.numel() - shift)
        if end - begin != length:
            continue
        piece = flat[begin:end]
        if bool((piece == part[begin + shift : end + shift]).all()) and _tells(piece, flat.numel() == length):
            return at
    return None


def _tells(piece: Any, is_whole: bool) -> bool:
    """Nearly all background, a few elements in a row are found anywhere."""
    others = int((piece != piece.mode().values).sum())
    return others > 0 if is_whole else others >= _OTHERS


def _mixed(flat: Any, value: Any, parts: list[tuple[Any, Any]], mask: Any) -> Optional[_Tie]:
    """Filtered or sorted: nearly all elements of the smaller one occur in the other as often, and the bad
    ones are the same. Small numbers occur in everything, so neither may be much larger than the other."""
    best: Optional[tuple[float, _Tie]] = None
    wanted = mask(flat)
    if wanted is None or flat.numel() > _MAX_SORTED:
        return None
    offending = flat[wanted].sort().values
    for part, where in parts:
        small, large = sorted((flat.numel(), part.numel()))
        if small < _TELLING_MIXED or large > _MAX_SORTED or large > _WIDER * small:
            continue
        bad = part[mask(part)]
        if bad.numel() != offending.numel() or not bool((bad.sort().values == offending).all()):
            continue
        hits = (part == value).nonzero()
        if hits.numel() != 1:  # which of them was the first nobody can tell
            continue
        share = _common(flat, part) / min(flat.numel(), part.numel())
        # of the whole and its parts the one that explains most of the argument
        score = share * min(1.0, part.numel() / flat.numel(), flat.numel() / part.numel())
        if share >= _ALIKE and (best is None or score > best[0]):
            best = (score, (_MIXED, where(int(hits[0]))))
    return None if best is None else best[1]


def _common(one: Any, other: Any) -> int:
    """How many elements the two have in common, each as often as in the one that has it less often."""
    import torch

    values, places = torch.cat([one, other]).unique(return_inverse=True)
    if values.numel() == 1:
        return 0
    counts = [
        torch.bincount(part, minlength=values.numel())
        for part in (places[: one.numel()], places[one.numel() :])
    ]
    return int(torch.minimum(counts[0], counts[1]).sum())
