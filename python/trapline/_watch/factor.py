"""What a loss is multiplied with, where that is not finite: its name, and what computed it."""

from __future__ import annotations

import math
from typing import Any

from trapline._fault.program import assigned, scope
from trapline._watch.again import is_plain
from trapline._watch.graph import bad_factor


def factor_of(loss: Any) -> dict[str, Any]:
    """`op` and `factor`; `computed` and `origin` where a variable that still lives holds these numbers."""
    found = bad_factor(loss.grad_fn)
    if found is None:
        return {}
    op, given = found
    facts: dict[str, Any] = {"op": op, "factor": True}
    known = assigned.last(lambda value: _is_it(value, given))
    if known is not None:
        facts |= {"computed": known.facts, **({} if known.origin is None else {"origin": known.origin})}
    return facts


def _is_it(value: Any, given: Any) -> bool:
    """These numbers, or the same with another sign: `-gain * ratio`. One number alone is easily another's:
    that of `best = float("inf")`, of a loss that was kept.
    """
    if isinstance(value, float):  # Python's own number, which PyTorch saves as a double
        is_number = given.dim() == 0 and str(given.dtype) == "torch.float64"
        return is_number and math.isnan(value) and math.isnan(given.item())
    if not scope.is_tensor(value):
        return False
    if value is given:
        return True
    same = is_plain(value) and not value.requires_grad and value.dtype == given.dtype and given.dim() > 0
    return same and value.device == given.device and value.shape == given.shape and _are_equal(value, given)


def _are_equal(one: Any, other: Any) -> bool:
    import torch

    return any(torch.allclose(one, other * sign, rtol=0, atol=0, equal_nan=True) for sign in (1, -1))
