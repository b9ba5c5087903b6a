"""Another dimension of the indexed tensor that the index would fit: `q.gather(0, actions)` in place of 1."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import fits, hand
from trapline._fault.program import scope

_FULL = 0.75  # of the places of the other dimension: what goes so far was made for as many, or nearly so
_SHARE = 4
_INDEX = "torch.int64"


def other_dimension(violation: dict[str, Any]) -> Optional[dict[str, Any]]:
    """`dim` and `size` of the only other dimension that has all the elements that the index asks for, and not
    many more; `batch`: the indexed one, and no other, is as large as the batch in hand."""
    scan, arguments = violation["scan"], violation.get("args") or {}
    source, most = arguments.get("self"), scan.get("max")
    if not scope.is_tensor(source) or type(most) is not int or (scan.get("min") or 0) < 0:
        return None
    dim = fits.dimension(source, scan, arguments)
    if dim is None or most < scan["hi"] or _SHARE * scan.get("bad", 0) < scan.get("total", 1):
        return None
    sizes = list(source.shape)
    room = [
        at
        for at, size in enumerate(sizes)
        if at != dim and size != sizes[dim] and most < size and most + 1 >= _FULL * size
    ]
    exact = [at for at in room if sizes[at] == most + 1]
    room = exact if len(exact) == 1 else room
    if len(room) != 1 or not _goes_there(arguments, room[0], scan):
        return None
    facts: dict[str, Any] = {"dim": room[0], "size": sizes[room[0]]}
    if sizes.count(sizes[dim]) == 1 and hand.size() == sizes[dim]:
        facts["batch"] = True
    return facts if exact or "batch" in facts else None


def _goes_there(arguments: dict[str, Any], dim: int, scan: dict[str, Any]) -> bool:
    """What index_add and its kin put there has a slice for each index in that dimension."""
    given = arguments.get("source")
    if not scope.is_tensor(given) or given.dim() <= dim:
        return True
    return bool(given.shape[dim] == scan.get("total"))


def is_selected(violation: dict[str, Any]) -> bool:
    """Of `x[0, index]` the indexed tensor is `x[0]`, which has another first dimension."""
    source = (violation.get("args") or {}).get("self")
    base = source._base if scope.is_tensor(source) and source._is_view() else None
    return base is not None and base.dim() > source.dim()


def cut_from(violation: dict[str, Any]) -> Optional[int]:
    """How many places the larger tensor has in the indexed dimension that the indexed one is a part of."""
    scan, arguments = violation["scan"], violation.get("args") or {}
    source = arguments.get("self")
    base = source._base if scope.is_tensor(source) and source._is_view() else None
    if base is None or base.dim() != source.dim() or base.stride() != source.stride():
        return None
    dim = fits.dimension(source, scan, arguments)
    larger = [at for at, size in enumerate(base.shape) if size != source.shape[at]]
    return int(base.shape[dim]) if dim is not None and larger == [dim] else None


def are_exchanged(violation: dict[str, Any]) -> bool:
    """Of `x[i, j]` the bad one and another would fit each other's dimensions: `attention[target, source]`."""
    scan, arguments = violation["scan"], violation.get("args") or {}
    source, index, at = arguments.get("self"), arguments.get("indices"), scan.get("list_position")
    if not scope.is_tensor(source) or type(index) is not list or type(at) is not int:
        return False
    if not len(index) <= source.dim() or not all(map(scope.is_tensor, index)):
        return False
    reach = [int(one.max()) if one.numel() and str(one.dtype) == _INDEX else -1 for one in index]
    return any(
        here != at and 0 <= reach[here] < source.shape[at] and reach[at] < source.shape[here]
        for here in range(len(index))
    )
