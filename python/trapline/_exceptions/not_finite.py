"""The bad element of a parameter that a distribution refuses, and what surrounds it where it is NaN."""

from __future__ import annotations

from typing import Any

import torch

from trapline._fault.data import values, which
from trapline._fault.model import models, nans

Facts = dict[str, Any]


def facts_of(error: BaseException) -> Facts:
    """The facts `element`, `nan`, `weights` and `sample`, by the frames of `scope`; {} for other errors."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return {}
    inner = trace.tb_frame
    value = inner.f_locals.get("value")
    if not inner.f_code.co_filename.replace("\\", "/").endswith("torch/distributions/distribution.py"):
        return {}
    if not values.is_tensor(value) or not value.dtype.is_floating_point or not value.numel():
        return {}
    content = value.detach().cpu()
    bad = ~content.reshape(-1).isfinite()
    finite = not bool(bad.any())
    if finite:
        valid = inner.f_locals.get("valid")
        if not values.is_tensor(valid) or valid.dtype is not torch.bool or valid.shape != content.shape:
            return {}
        bad = ~valid.detach().cpu().reshape(-1)
        if not bool(bad.any()):
            return {}
    first = int(bad.nonzero()[0])
    scan = {"first": first, "is_float": True, "reason": 3 if bool(content.isnan().any()) else 4}
    scan.update(bad=int(bad.sum()), total=content.numel(), value=_number(content.reshape(-1)[first]))
    facts: Facts = {
        "element": {
            "index": values.unravel(first, content.shape),
            "value": values.number(scan["value"]),
            "bad": scan["bad"],
            "total": scan["total"],
        }
    }
    if finite:
        return facts
    violation = {"tensor": content, "scan": scan, "args": {}}
    weights = models.bad_weights(reachable=True)
    facts["nan"] = nans.nan_facts(violation, value)
    if weights is not None:
        facts["weights"] = weights
    if not (weights or {}).get("bad"):  # broken weights are no sample's
        sample = which.sample_of(violation, None, False, [])
        if sample is not None:
            facts["sample"] = sample
    return facts


def _number(element: Any) -> float:
    """As many digits as the dtype has, not those of the double that it becomes."""
    return element.item() if element.dtype is torch.float64 else float(f"{element.item():.7g}")
