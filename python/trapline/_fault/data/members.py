"""Several models as one, `torch.func.vmap`: its rule for an embedding puts their tables below each other and
adds to the ids of each model the rows of those before it (aten/src/ATen/functorch/BatchRulesModules.cpp).
What is told of such a call is told of one model: its id, its rows.
"""

from __future__ import annotations

import sys
from typing import Any, Optional

from trapline._fault.data.values import MAX_ELEMENTS, number
from trapline._fault.program import scope

_MOST_BAD = 0.5  # of the ids: else the rule is another


def of_one(violation: dict[str, Any]) -> dict[str, Any]:
    """The violation by the ids and rows of one model, with `members`, how many there are; as it is where no
    vmap runs, or its numbers are not made so."""
    import torch

    size, tensor, scan = _mapped(), violation["tensor"], violation["scan"]
    rows = scan.get("hi")
    if size is None or violation["contract"] != "embedding.indices" or not scope.is_tensor(tensor):
        return violation
    fits = tensor.dim() and len(tensor) == size and 0 < tensor.numel() <= MAX_ELEMENTS
    if not fits or type(rows) is not int or rows < size or rows % size:
        return violation
    rows //= size
    before = torch.arange(size).mul_(rows).view(size, *[1] * (tensor.dim() - 1))
    own = tensor.detach().cpu() - before
    bad = (own < 0) | (own >= rows)
    count = int(bad.sum())
    if not 0 < count <= _MOST_BAD * own.numel():
        return violation
    first = int(bad.reshape(-1).int().argmax())
    told = {
        "bad": count,
        "first": first,
        "value": number(own.reshape(-1)[first].item()),
        "min": number(own.min().item()),
        "max": number(own.max().item()),
        "hi": rows,
    }
    return {**violation, "tensor": own, "scan": {**scan, **told}, "members": size}


def _mapped() -> Optional[int]:
    """How many the innermost vmap that runs maps over."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_flat_vmap" and code.co_filename.replace("\\", "/").endswith(
            "_functorch/vmap.py"
        ):
            size = frame.f_locals.get("batch_size")
            return size if type(size) is int and size > 1 else None
        frame = frame.f_back  # type: ignore[assignment]
    return None
