"""Whether a layer has been trained: then it took inputs of its own size, and another size is the input's."""

from __future__ import annotations

from types import FrameType
from typing import Any

from trapline._fault.program import scope


def is_trained(module: Any, frames: list[FrameType]) -> bool:
    """True where a weight of the layer has a gradient, or an optimizer of the program's has stepped on it."""
    import torch

    weights = list((scope.members(module).get("_parameters") or {}).values())
    weights = [weight for weight in weights if isinstance(weight, torch.Tensor) and weight.requires_grad]
    if any(weight.is_leaf and weight.grad is not None for weight in weights):
        return True
    for frame in frames if weights else ():
        for _, value in scope.variables(frame):
            if isinstance(value, torch.optim.Optimizer):
                state = scope.members(value).get("state") or {}
                if any(weight in state for weight in weights):
                    return True
    return False
