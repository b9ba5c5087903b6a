"""A loss that PyTorch has taken apart, under vmap and grad of torch.func: its gather is met, not the loss.

The Python function that the user called is still on the stack, with the labels as they were given to it.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Optional

from trapline._fault.program import places, scope

_LOSSES = ("cross_entropy", "nll_loss")
_FILE = "/torch/nn/functional.py"
_APART = "/torch/_decomp/decompositions.py"
_MAX = 1 << 24


def as_called(violation: dict[str, Any]) -> dict[str, Any]:
    """The violation of the loss's own row where an index of its decomposition was bad; else as it is."""
    if violation.get("contract") != "gather.index" or violation.get("late"):
        return violation
    loss = _loss()
    tensor, scan = violation.get("tensor"), violation["scan"]
    if loss is None or tensor is None:
        return violation
    label, ignored = loss.f_locals.get("target"), loss.f_locals.get("ignore_index", -100)
    args = {"target": tensor}
    source = (violation.get("args") or {}).get("self")
    if source is not None:
        args["self"] = source
    changed = dict(violation, contract="nll_loss_forward.target", op="aten::nll_loss_forward", args=args)
    given = _given(label, scan, ignored)
    if given is not None:
        changed.update(tensor=label, scan=given, args={**args, "target": label})
    else:
        changed["scan"] = dict(scan, also=ignored)
    return changed


def _loss() -> Optional[FrameType]:
    """The frame of the loss, with the decomposition inside it and the user's line outside."""
    apart = False
    for frame in scope.live_frames():
        file = frame.f_code.co_filename.replace("\\", "/")
        apart = apart or file.endswith(_APART)
        if file.endswith(_FILE) and frame.f_code.co_name in _LOSSES:
            return frame if apart else None
        if places.is_user(frame.f_code):
            return None
    return None


def _given(label: Any, scan: dict[str, Any], ignored: int) -> Optional[dict[str, Any]]:
    """What the labels themselves show, where they were given once and not one by one of vmap's copies."""
    import torch

    if not scope.is_tensor(label) or label.dtype.is_floating_point or not 0 < label.numel() <= _MAX:
        return None
    if torch._C._functorch.is_functorch_wrapped_tensor(label):
        return None
    flat = label.detach().reshape(-1).cpu()
    bad = ((flat < scan["lo"]) | (flat >= scan["hi"])) & (flat != ignored)
    if not bool(bad.any()):
        return None
    first = int(bad.nonzero()[0])
    value = int(flat[first])
    return dict(
        scan,
        bad=int(bad.sum()),
        total=flat.numel(),
        first=first,
        value=value,
        min=int(flat.min()),
        max=int(flat.max()),
        also=ignored,
        reason=2 if value >= scan["hi"] else scan["reason"],
    )
