"""A bad argument made harmless (``--on-fault skip``): a copy in which the bad elements are replaced.

As ``trapline_heal`` in ``include/trapline/device.h`` has it: an index is clamped into its range, a number
into its interval (NaN becomes the lower end), a bad row of probabilities becomes a row of equal ones, and a
list of offsets becomes all zeros. What comes of such a copy is no result: it only keeps the program going
until the optimizer's step, which is left out.
"""

from __future__ import annotations

from typing import Any

# trapline::Predicate (src/contracts/contract.hpp)
_INDEX, _WRAPPED, _LIST, _UNIT, _NON_NEGATIVE, _ROWS, _OFFSETS, _FINITE, _PADDED, _ENDED, _PIVOTS = range(11)
_ENDS, _COUNTS, _LENGTHS, _MASK_COUNT = range(11, 15)
_RANGES = (_INDEX, _WRAPPED, _LIST, _PADDED, _ENDED, _PIVOTS)
# Bad as a whole, and zeros are in order. Ends, counts and lengths are not among them: they have to add up.
_ZEROS = (_OFFSETS, _MASK_COUNT)


def bad_elements(tensor: Any, scan: dict[str, Any], predicate: int | None) -> Any:
    """Boolean tensor of the shape of ``tensor``: what is wrong with it; None where that is not known.

    A row of probabilities that sum to nothing is bad as a whole, and so are offsets and masks.
    """
    import torch

    if predicate in _RANGES:
        bad = (tensor < scan["lo"]) | (tensor >= scan["hi"])
        if predicate == _ENDED:  # -1 ends a row
            bad = bad & (tensor != -1)
        return bad if scan.get("also") is None else bad & (tensor != scan["also"])
    if predicate == _UNIT:
        return ~((tensor >= 0) & (tensor <= 1))
    if predicate == _NON_NEGATIVE:
        return ~(tensor >= 0)
    if predicate == _FINITE:
        return ~tensor.isfinite()
    if predicate == _ROWS:
        bad = ~((tensor >= 0) & tensor.isfinite())
        return bad | ~(tensor > 0).any(-1, keepdim=True) if tensor.dim() else bad | ~(tensor > 0)
    return torch.ones_like(tensor, dtype=torch.bool) if predicate in _ZEROS else None


def heal(tensor: Any, scan: dict[str, Any], predicate: int | None) -> Any:
    """The harmless copy; None where there is none: an index into a dimension of size 0, counts."""
    import torch

    with torch.no_grad():
        tensor = tensor.detach()
        bad = bad_elements(tensor, scan, predicate)
        if bad is None:
            return None
        if predicate in _RANGES:
            if scan["lo"] >= scan["hi"]:
                return None
            return torch.where(bad, tensor.clamp(scan["lo"], scan["hi"] - 1), tensor)
        if predicate == _ROWS:
            rows = bad.any(-1, keepdim=True) if tensor.dim() else bad
            return torch.where(rows, torch.ones_like(tensor), tensor)
        if predicate in _ZEROS:
            return torch.zeros_like(tensor)
        if predicate == _FINITE:
            return torch.where(bad, torch.zeros_like(tensor), tensor)
        if not tensor.is_floating_point():
            return tensor.clamp(min=0)
        high = 1.0 if predicate == _UNIT else float("inf")
        return torch.nan_to_num(tensor, nan=0.0, posinf=high, neginf=0.0).clamp(0.0, high)
