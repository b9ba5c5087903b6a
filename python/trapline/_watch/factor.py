"""What a loss is multiplied with, where that is not finite: its name, and what computed it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from trapline._fault.data import values
from trapline._fault.data.casts import storage_pointer
from trapline._fault.model.autograd import bad_factor
from trapline._fault.program import assigned, scope
from trapline._watch import replayed
from trapline._watch.again import is_plain
from trapline._watch.rows import record_of, sample_of

_MAX_TABLE = 1 << 16


def is_loss(module: Any) -> bool:
    """One of PyTorch's: what it holds is no weight that is trained, but what the program gave it."""
    return type(module).__module__ == "torch.nn.modules.loss"


def factor_of(
    loss: Any, parameters: Iterable[Any], loss_weight: str = "", calls: Iterable[Any] = ()
) -> dict[str, Any]:
    """`op` and `factor`; `computed` and `origin` where a variable that still lives holds these numbers, or is
    the table that they were looked up in; the sample of the first row that has such a number. `factor_by`:
    the operation that made that variable's numbers, where its statements run again.

    `loss_weight`: the loss that was made with such weights, for where no variable has them.
    """
    found = bad_factor(loss.grad_fn)
    if found is None:
        return {}
    facts: dict[str, Any] = {"op": found.op, "factor": True}
    if not bool(found.given.isnan().any()):
        facts["what"] = "inf"
    known = assigned.last(lambda value: _is_it(value, found.given))
    of_class = not found.op.startswith(("mul", "div"))
    if known is None and not of_class:
        known = assigned.last(lambda value: _is_table_of(value, found.given))
        of_class = known is not None
    if of_class:  # else chance may have drawn what the numbers were computed of
        facts |= sample_of(found.bad, parameters, learned=False)
    if "sample" not in facts:
        facts |= record_of(found.given.detach())
    if known is None and loss_weight:
        facts["computed"] = {"name": loss_weight}
    elif known is not None:
        facts |= {"computed": known.facts, **({} if known.origin is None else {"origin": known.origin})}
        facts |= _element(known)
        made = replayed.of_value(replayed.Held(known.value), list(calls)) if is_plain(known.value) else {}
        if made.get("finite") and "origin" in made:
            facts |= {"factor_by": made["op"], "origin": made["origin"]}
    return facts


def _element(known: Any) -> dict[str, Any]:
    """`element`, the first place in a variable of which some numbers are finite: the class's, of weights."""
    value, name = known.value, known.facts.get("name", "")
    if not name or not is_plain(value) or not value.dim() or value.numel() > _MAX_TABLE:
        return {}
    bad = (~value.detach().isfinite()).cpu()
    if bool(bad.all()) or not bool(bad.any()):
        return {}
    return values.element(name, value, values.first_place(bad))


def _is_it(value: Any, given: Any) -> bool:
    """These numbers, or the same with another sign: `-gain * ratio`. One number alone is easily another's:
    that of `best = float("inf")`, of a loss that was kept.
    """
    if isinstance(value, float):  # Python's own number, which PyTorch saves as a double
        is_number = given.dim() == 0 and str(given.dtype) == "torch.float64"
        return is_number and math.isnan(value) and math.isnan(given.item())
    if not scope.is_tensor(value):
        return False
    if value is given or (given.dim() == 0 and storage_pointer(value) == storage_pointer(given) != 0):
        return True
    same = is_plain(value) and not value.requires_grad and value.dtype == given.dtype and given.dim() > 0
    return same and value.device == given.device and value.shape == given.shape and _are_equal(value, given)


def _is_table_of(value: Any, given: Any) -> bool:
    """One number for each class, say, and `given` has one of these for each sample: `weight[target]`."""
    import torch

    if not (scope.is_tensor(value) and is_plain(value) and value.dtype == given.dtype and given.dim() > 0):
        return False
    is_table = value.dim() == 1 and 1 < len(value) <= _MAX_TABLE and value.device == given.device
    if not is_table or value.requires_grad or bool(value.isfinite().all()):
        return False
    has_nan = bool(value.isnan().any())
    return bool((torch.isin(given, value) | (given.isnan() & has_nan)).all())


def _are_equal(one: Any, other: Any) -> bool:
    import torch

    return any(torch.allclose(one, other * sign, rtol=0, atol=0, equal_nan=True) for sign in (1, -1))
