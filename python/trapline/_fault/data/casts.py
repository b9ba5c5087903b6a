"""NaN or Inf turned into an integer: the cast is the origin of a bad index or label."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import recorded, values
from trapline._fault.program import frames, graphs, texts, warned

OF_NAN = (-(1 << 63), -(1 << 31))  # what x86 makes of it
_NEAR_LOWEST = 1 << 24  # an index may have been added to what the cast made


def storage_pointer(tensor: Any) -> int:
    """Address of a tensor's storage; 0 when it has none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except AttributeError:  # torch < 2.0
        return int(tensor.storage().data_ptr())
    except (RuntimeError, ValueError, NotImplementedError):
        return 0


def nan_cast_facts(tensor: Any, scan: dict[str, Any]) -> Optional[dict[str, Any]]:
    """The remembered cast that this tensor came from; None when no cast makes the bad value of NaN."""
    import torch

    if tensor.dtype.is_floating_point or tensor.dtype is torch.bool or scan.get("is_float"):
        return None
    limits = torch.iinfo(tensor.dtype)
    value = scan.get("value")
    # x86 makes the smallest integer of NaN and Inf, other machines 0 or the nearest integer.
    wide = torch.iinfo(torch.int32)
    extreme = value in (limits.min, limits.max, wide.min, wide.max) and value != 0
    remembered = recorded.remembered()
    storage = storage_pointer(tensor)
    for cast in remembered:
        same = (
            bool(storage)
            and cast.get("storage") == storage
            and list(cast.get("shape") or []) == list(tensor.shape)
        )
        if same and (extreme or value == 0):
            return _facts(cast)
    if extreme and limits.min < 0 and remembered:
        return _facts(remembered[0])
    return None


def _facts(cast: dict[str, Any]) -> Optional[dict[str, Any]]:
    origin = frames.origin_of(graphs.make_stack(cast.get("frames") or [], "", cast.get("graph_stack")))
    if origin is None:
        return None
    scan = cast.get("scan") or {}
    found: dict[str, Any] = {"frame": origin, "bad": int(scan.get("bad", 1))}
    value = scan.get("value")
    return found | ({"value": values.number(value)} if type(value) is float else {})


def narrow_facts(scan: dict[str, Any]) -> Optional[str]:
    """The type of the program's that holds what was seen, and not the highest place: what is beyond it has
    become negative there."""
    low, high, places = scan.get("min"), scan.get("max"), scan.get("hi")
    if type(low) is not int or type(high) is not int or type(places) is not int or low > -2:  # -1 is a mark
        return None
    for bits in (8, 16):
        end = 1 << (bits - 1)
        if -end <= low and high < end < places and texts.matches(rf"(?<![a-z])int{bits}\b"):
            return f"int{bits}"
    return None


def numpy_cast_facts(scan: dict[str, Any]) -> Optional[dict[str, Any]]:
    """Where NumPy warned of NaN or Inf in a cast; None for other values, and where several places warned."""
    value = scan.get("value")
    if scan.get("is_float") or type(value) is not int:
        return None
    if not any(lowest <= value < lowest + _NEAR_LOWEST for lowest in (-(1 << 63), -(1 << 31))):
        return None
    return warned.of_cast()
