"""The bad element of what a distribution or torch.normal refuses, and what surrounds it where it is NaN."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

import torch

from trapline._exceptions.conditions import Place, Unknown, call_at, called
from trapline._fault.data import values, which
from trapline._fault.model import models, nans
from trapline._fault.program import frames

Facts = dict[str, Any]
_NORMAL = "normal expects all elements of std"


def deviations(frame: FrameType, lasti: int, message: str) -> Any:
    """The tensor that torch.normal refused as `std`; None where something else raised."""
    if not message.startswith(_NORMAL):
        return None
    place = Place(frame, frames.line_of(frame.f_code, lasti))
    call = call_at(place, lasti, ("normal",))
    if call is None:
        return None
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "std"), None)
    node = given if given is not None else call.args[1] if len(call.args) > 1 else None
    while isinstance(node, ast.Call) and called(node) == "expand" and isinstance(node.func, ast.Attribute):
        node = node.func.value
    try:
        return place.stored(node) if node is not None else None
    except Unknown:
        return None


def facts_of(error: BaseException) -> Facts:
    """The facts `element`, `nan`, `weights` and `sample`, by the frames of `scope`; {} for other errors."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return {}
    inner = trace.tb_frame
    value, valid = deviations(inner, trace.tb_lasti, str(error)), None
    if value is None:
        value, valid = inner.f_locals.get("value"), inner.f_locals.get("valid")
        if not inner.f_code.co_filename.replace("\\", "/").endswith("torch/distributions/distribution.py"):
            return {}
    if not values.is_tensor(value) or not value.numel():
        return {}
    if not value.dtype.is_floating_point:
        return _outside(value, valid)
    content = value.detach().cpu()
    bad = ~content.reshape(-1).isfinite()
    finite = not bool(bad.any())
    if finite and _NORMAL in str(error):
        valid = content >= 0
    if finite:
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
    facts["nan"] = nans.nan_facts(violation, value, weights)
    if weights is not None:
        facts["weights"] = weights
    if not (weights or {}).get("bad"):  # broken weights are no sample's
        sample = which.sample_of(violation, None, False, [])
        if sample is not None:
            facts["sample"] = sample
    return facts


def _outside(value: Any, valid: Any) -> Facts:
    """Class numbers that a distribution does not have: the facts `element` and `sample`."""
    whole = value.dtype in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)
    if (
        not whole
        or not values.is_tensor(valid)
        or valid.dtype is not torch.bool
        or valid.shape != value.shape
    ):
        return {}
    content, good = value.detach().cpu(), valid.detach().cpu()
    if bool(good.all()) or value.numel() > values.MAX_ELEMENTS:
        return {}
    first = int((~good).reshape(-1).nonzero()[0])
    facts: Facts = {
        "element": {
            "index": values.unravel(first, content.shape),
            "value": int(content.reshape(-1)[first]),
            "bad": int((~good).sum()),
            "total": content.numel(),
            "min": int(content.min()),
            "max": int(content.max()),
        }
    }
    right = content[good]
    low, high = (int(right.min()), int(right.max())) if right.numel() else (0, 0)
    scan = {"first": first, "lo": low, "hi": high + 1, "also": None, "bad": int((~good).sum())}
    scan.update(
        value=facts["element"]["value"], total=content.numel(), min=int(content.min()), max=int(content.max())
    )
    sample = which.sample_of({"tensor": content, "scan": scan, "args": {}}, None, False, [])
    if sample is not None:
        facts["sample"] = sample
    return facts


def _number(element: Any) -> float:
    """As many digits as the dtype has, not those of the double that it becomes."""
    return element.item() if element.dtype is torch.float64 else float(f"{element.item():.7g}")
