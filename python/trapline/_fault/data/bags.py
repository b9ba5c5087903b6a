"""An argument in the shape that its caller has it in: F.embedding_bag flattens ids, and cross_entropy of
[batch, classes, length] puts a dimension of 1 into its target, before the operation."""

from __future__ import annotations

from typing import Any

from trapline._fault.program import holders, places, scope

_IDS = ("_embedding_bag.indices", "_embedding_bag_forward_only.indices")


def as_passed(violation: dict[str, Any]) -> Any:
    """The 2-D ids that the caller passed, where they are still a variable there; else the operation's own.

    A fault of the device is told when the call is over: any frame of the user's may hold them, or a copy.
    """
    import torch

    flat = violation["tensor"]
    if str(violation["contract"]).startswith("nll_loss2d"):
        return _target(flat)
    if violation["contract"] not in _IDS or flat.dim() != 1:
        return flat
    if violation.get("late"):
        return _reshaped(flat)
    for frame in scope.live_frames():
        for _, value in scope.variables(frame):
            if (
                scope.is_tensor(value)
                and value.dim() == 2
                and value.numel() == flat.numel()
                and value.dtype == flat.dtype
                and value.device == flat.device
                and value.layout is torch.strided
                and torch.equal(value.reshape(-1), flat)
            ):
                return value
        if places.is_user(frame.f_code):  # nearer frames know the call; farther ones may hold anything
            break
    return flat


def _target(given: Any) -> Any:
    """[batch, length] of a target that is [batch, 1, length]."""
    if given.dim() != 3 or given.shape[1] != 1:
        return given
    for frame in scope.live_frames():
        value = frame.f_locals.get("target")
        if frame.f_globals.get("__name__") == "torch.nn.functional" and scope.is_tensor(value):
            same = value.dim() == 2 and value.numel() == given.numel()
            return value if same and value.data_ptr() == given.data_ptr() else given
    return given


def _reshaped(flat: Any) -> Any:
    shapes = set()
    content = flat.detach().cpu()
    for frame in holders.user_frames():
        for _, value in holders.held_by(frame):
            held = holders.as_tensor(value, content.numel())
            if held is None or held.dim() != 2 or held.dtype != content.dtype:
                continue
            if held.numel() == content.numel() and bool((held.reshape(-1) == content).all()):
                shapes.add(tuple(held.shape))
    return flat.reshape(shapes.pop()) if len(shapes) == 1 else flat
