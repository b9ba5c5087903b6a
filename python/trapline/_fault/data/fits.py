"""Another tensor of the program's that the index would fit: one that was made for the other point cloud, the
other split, the graph before it was cut."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import recorded
from trapline._fault.data.casts import storage_pointer
from trapline._fault.program import holders, scope

_TELLING = 8  # elements


def fits_facts(violation: dict[str, Any]) -> Optional[dict[str, Any]]:
    """`name` and `shape` of the only tensor, in the nearest frame that has any, that is like the indexed one
    but for the indexed dimension, and has all the elements that the index asks for. Without a `name`: what an
    earlier call of this very line indexed by the same numbers."""
    scan, arguments = violation["scan"], violation.get("args") or {}
    source, most = arguments.get("self"), scan.get("max")
    if not scope.is_tensor(source) or type(most) is not int or type(scan.get("hi")) is not int:
        return None
    dim = dimension(source, scan, arguments)
    if dim is None or most < scan["hi"] or (scan.get("min") or 0) < 0:
        return None
    earlier = _indexed_before(violation, dim, most)
    if earlier is not None:
        return {"shape": earlier}
    if source.dim() == 2 and source.shape[0] == source.shape[1]:  # of pairs: what has as many rows is another
        return None
    beside = tuple(violation["tensor"].shape)  # what has an element for each of the index goes with it
    found: dict[tuple[int, ...], str] = {}
    for frame in holders.user_frames():
        for name, value in holders.held_by(frame):
            if not _is_like(source, value, dim) or value.shape[dim] in beside:
                continue
            if value.shape[dim] > most:
                found.setdefault((storage_pointer(value), *value.shape), name)
        if found:
            break
    if len(found) != 1:
        return None
    key, name = found.popitem()
    return {"name": name, "shape": list(key[1:])}


def _indexed_before(violation: dict[str, Any], dim: int, most: int) -> Optional[list[int]]:
    """Numbers of the same shape, with the same lowest and highest: the line is a layer's, called twice."""
    scan, at = violation["scan"], (violation.get("frames") or [None])[0]
    index = {"shape": list(violation["tensor"].shape), "min": scan.get("min"), "max": most}
    if at is None or violation["tensor"].numel() < _TELLING or scan.get("min") == most:
        return None
    for call in reversed(recorded.history()):
        if call.get("op") != violation.get("op") or list(call.get("frames") or ())[:1] != [at]:
            continue
        given = {argument.get("name"): argument for argument in call.get("args") or ()}
        shape = list((given.get("self") or {}).get("shape") or ())
        if len(shape) > dim and shape[dim] > most and index.items() <= (given.get("index") or {}).items():
            return shape
    return None


def dimension(source: Any, scan: dict[str, Any], arguments: dict[str, Any]) -> Optional[int]:
    """The dimension that is indexed."""
    dim = arguments.get("dim", scan.get("list_position"))
    if type(dim) is not int or not -source.dim() <= dim < source.dim():
        return None
    dim %= source.dim()
    return dim if source.shape[dim] == scan["hi"] else None


def _is_like(source: Any, value: Any, dim: int) -> bool:
    if not scope.is_tensor(value) or value.dim() != source.dim() or value.dtype != source.dtype:
        return False
    if value.requires_grad != source.requires_grad:  # one is a model's result, the other data
        return False
    if not value.dtype.is_floating_point or storage_pointer(value) == storage_pointer(source):
        return False
    return all(a == b for at, (a, b) in enumerate(zip(value.shape, source.shape)) if at != dim)
