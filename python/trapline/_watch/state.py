"""Squares of the gradients that an optimizer keeps (Adam's `exp_avg_sq`): they overflow where the gradients
do not, and those elements of the weight stop moving.
"""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import batches, samples
from trapline._fault.data.match import Match
from trapline._fault.data.values import first_place
from trapline._watch.suspect import PLAIN, are_finite, parameters_of, values
from trapline._watch.weights import name_of

SQUARE_OVERFLOWS = 1.8e19  # the root of float32's largest number; also in src/kernel/watch.cpp
_MAX_BATCHES = 8  # of a step that accumulates


def largest(optimizer: Any) -> float:
    """Of its gradients, all finite: the norm is at least that."""
    every = [values(p.grad) for p in parameters_of(optimizer) if p.grad is not None]
    return max((float(held.abs().max()) for held in every if held.numel()), default=0.0)


def overflowed(optimizer: Any, norm: Optional[float], modules: list[Any]) -> dict[str, Any]:
    """After a step with gradients of this norm: what of the optimizer's state is not finite."""
    if norm is None or norm <= SQUARE_OVERFLOWS:
        return {}
    for parameter, held in list(optimizer.state.items()):
        for name, value in list(held.items()) if isinstance(held, dict) else ():
            if (
                type(value) in PLAIN
                and value.is_floating_point()
                and value.is_cpu
                and not are_finite([value])
            ):
                what = "nan" if bool(value.isnan().any()) else "inf"
                return {
                    "what": what,
                    "kind": "state",
                    "state": name,
                    **name_of(parameter, modules),
                    **_sample(),
                }
    return {}


def _sample() -> dict[str, Any]:
    """Whose data hold a number of which the square overflows: a fill value, most often."""
    for batch in batches.newest_first()[:_MAX_BATCHES]:
        for tensor in batch.tensors():
            if not tensor.dim() or not tensor.numel() or not tensor.is_floating_point():
                continue
            large = tensor.detach().abs() > SQUARE_OVERFLOWS
            if bool(large.any()):
                at = first_place(large)
                located = samples.Located(batch, tensor, Match(at, None, 0, True))
                return {"sample": samples.sample_facts(located, likely=True)}
    return {}
