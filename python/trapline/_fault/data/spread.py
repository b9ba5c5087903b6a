"""Where the bad elements of an argument lie and which values it holds: few numbers, for a picture."""

from __future__ import annotations

import math
from typing import Any, Optional

from trapline._fault.data import values
from trapline._library import capi

_CELLS = 64
_BINS = 40


def strip(content: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[list[int]]:
    """The bad elements in each of at most 64 equal stretches, row-major; None where that is not known."""
    total = int(content.numel())
    if not 0 < total <= values.MAX_ELEMENTS:
        return None
    bad = values.bad_mask(content, scan, predicate)
    if bad is None:
        return None
    cells = min(_CELLS, total)
    places = bad.reshape(-1).nonzero().reshape(-1)
    return (places * cells // total).bincount(minlength=cells).tolist()


def histogram(content: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[dict[str, Any]]:
    """The values in at most 40 equal bins over what is valid, and how many lie outside of that."""
    import torch

    total = int(content.numel())
    if not 0 < total <= values.MAX_ELEMENTS or content.dtype.is_complex or content.dtype == torch.bool:
        return None
    numbers = content.detach().reshape(-1)
    if not content.dtype.is_floating_point:
        return _of_integers(numbers, scan)
    return _of_numbers(numbers, predicate == capi.PREDICATE_UNIT_INTERVAL)


def _of_integers(numbers: Any, scan: dict[str, Any]) -> Optional[dict[str, Any]]:
    import torch

    low, end = scan.get("lo"), scan.get("hi")
    if numbers.dtype == getattr(torch, "uint64", None):  # torch cannot compare them
        return None
    if type(low) is not int or type(end) is not int or not -(1 << 53) < low < end < 1 << 53:
        return None
    numbers = numbers.long()
    inside = numbers[(numbers >= low) & (numbers < end)]
    width = -(-(end - low) // _BINS)
    bins = -(-(end - low) // width)
    found: dict[str, Any] = {
        "low": low,
        "high": low + bins * width,
        "counts": ((inside - low) // width).bincount(minlength=bins).tolist(),
        "below": int((numbers < low).sum()),
        "above": int((numbers >= end).sum()),
    }
    also = scan.get("also")
    if type(also) is int and not low <= also < end:
        found["also"] = int((numbers == also).sum())
        found["below" if also < low else "above"] -= found["also"]
    return found


def _of_numbers(numbers: Any, unit: bool) -> Optional[dict[str, Any]]:
    numbers = numbers.double()
    finite = numbers[numbers.isfinite()]
    if not finite.numel():
        return {"low": 0.0, "high": 1.0, "counts": [0], "not_finite": int(numbers.numel())}
    low, high = (0.0, 1.0) if unit else (float(finite.min()), float(finite.max()))
    if not math.isfinite(high - low):
        return None
    if low == high:
        low, high = low - 0.5, high + 0.5
    inside = finite[(finite >= low) & (finite <= high)]
    places = ((inside - low) / (high - low) * _BINS).long().clamp(0, _BINS - 1)
    return {
        "low": low,
        "high": high,
        "counts": places.bincount(minlength=_BINS).tolist(),
        "below": int((finite < low).sum()),
        "above": int((finite > high).sum()),
        "not_finite": int(numbers.numel() - finite.numel()),
    }
