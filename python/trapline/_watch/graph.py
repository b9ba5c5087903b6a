"""What the graph of a loss has saved tells of the operation that made a number that is not finite."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

_MAX_NODES = 20_000
_OPS = {"NllLoss": "nll_loss", "NllLoss2D": "nll_loss"}
# What hides a bad value on purpose: what lies before it in the graph is not accused.
MASKING = (
    "WhereBackward",
    "MaskedFillBackward",
    "NanToNumBackward",
    "ClampBackward",
    "MaskedScatter",
    "Maximum",
    "Minimum",
)


def _nodes(root: Any, hidden: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The operations that lead to `root` with their names, nearest to it first, but what lies before one of
    `hidden`.
    """
    seen, queue = {root}, deque([root])
    while queue and len(seen) < _MAX_NODES:
        node = queue.popleft()
        if node is None:
            continue
        name = node.name().split("::")[-1]
        yield name, node
        if name.startswith(hidden):
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def in_graph(root: Any, is_bad: Any, hidden: tuple[str, ...] = ()) -> dict[str, Any]:
    """The operation nearest to the inputs whose saved tensors show that it is the one."""
    hit = None
    for name, node in _nodes(root, hidden):
        try:
            if is_bad(name, node):
                hit = name
        except (RuntimeError, AttributeError):  # saved nothing, or freed already
            pass
    if hit is None:
        return {}
    name = hit.rstrip("0123456789").removesuffix("Backward")
    return {"op": _OPS.get(name, name.lower())}


# Of these only what puts another value in a NaN's place: maximum and clamp hand it on.
_REPLACING = ("WhereBackward", "MaskedFillBackward", "NanToNumBackward", "MaskedScatter")


# What leaves elements out: what it was given need not have reached the loss.
_CHOOSING = (*MASKING, "Index", "MaskedSelect", "Gather", "Select", "Slice", "Take", "Narrow", "Nansum")


def bad_saved(root: Any) -> list[tuple[Any, bool]]:
    """Tensors that are not finite and that operations of a loss have saved, nearest to the inputs first.

    With each, whether it is the target that a loss function was given.
    """
    out = []
    for name, node in _nodes(root, _CHOOSING):
        if name.startswith(_CHOOSING):
            continue
        for key in ("_saved_target", "_saved_self", "_saved_other"):
            try:
                saved = getattr(node, key, None)
            except RuntimeError:  # freed already
                continue
            if _is_floating(saved) and not _finite(saved):
                given = getattr(node, "_saved_self", None)
                out.append((saved.detach(), key == "_saved_target" and given is not None and _finite(given)))
    return out[::-1]


def bad_factor(root: Any) -> dict[str, Any]:
    """A product in the loss of numbers that are finite with others, no result of the model, that are not:
    weights, advantages, a mask.
    """
    hit = {}
    for name, node in _nodes(root, _REPLACING):
        if name.startswith(("MulBackward", "DivBackward")):
            try:
                pair = (getattr(node, "_saved_self", None), getattr(node, "_saved_other", None))
            except RuntimeError:  # freed already
                pair = (None, None)
            for given, beside in (pair, pair[::-1]):
                is_bad = _is_floating(given) and not given.requires_grad and not _finite(given)
                if is_bad and (not _is_floating(beside) or _finite(beside)):
                    op = name.rstrip("0123456789").removesuffix("Backward").lower()
                    hit = {"op": op, "factor": True}
    return hit


_MAX_NAMES = 40


def operations(root: Any) -> list[str]:
    """What the loss is made with, nearest to it first; also when its graph is used up."""
    names = (name.rstrip("0123456789") for name, _ in _nodes(root))
    made = dict.fromkeys(name.removesuffix("Backward").lower() for name in names if name.endswith("Backward"))
    return list(made)[:_MAX_NAMES]


# Operations that have saved what they were given, by their names in torch.
_OF_SELF = {
    f"{name.capitalize()}Backward": name
    for name in ("log", "log2", "log10", "acos", "asin", "acosh", "atanh", "cosh", "sinh", "lgamma", "erfinv")
} | {"Log1PBackward": "log1p"}
# And those that have saved their result only: what hands a NaN on is not accused.
_OF_RESULT = (
    *("SqrtBackward", "ExpBackward", "Exp2Backward", "Expm1Backward", "ReciprocalBackward", "RsqrtBackward"),
    *("SoftmaxBackward", "LogSoftmaxBackward", "LogsumexpBackward", "TanBackward", "ProdBackward"),
    *("NormBackward", "LinalgVectorNormBackward"),
)


def is_bad_value(name: str, node: Any) -> bool:
    again = _OF_SELF.get(name.rstrip("0123456789"))
    if again is not None:
        given = node._saved_self.detach()
        return _finite(given) and not _finite(getattr(torch, again)(given))
    if name.startswith("DivBackward"):
        other = node._saved_other
        return other is not None and _finite(other) and bool((other == 0).any())
    if name.startswith(_OF_RESULT):
        return not _finite(node._saved_result) and _is_finite_below(node)
    if name.startswith(("VarBackward", "StdBackward")):
        given = node._saved_self
        return _finite(given) and not _finite(_spread_again(node, given))
    if name.startswith("PowBackward"):
        base = node._saved_self
        return _finite(base) and not _finite(base**node._saved_exponent)
    if name.startswith("NllLoss"):
        return bool(node._saved_total_weight == 0)
    if name.startswith("MeanBackward"):
        return int(node._saved_self_sym_numel) == 0
    return False


def _spread_again(node: Any, given: Any) -> Any:
    """The variance, NaN or Inf where there are no more elements than the correction takes off."""
    dims = node._saved_dim
    dims = None if dims is None else [at - 2**64 if at >= 2**63 else at for at in dims]  # read as unsigned
    return given.detach().var(dims, correction=node._saved_correction)


def _is_finite_below(node: Any) -> bool:
    """All that the graph has saved before this operation is finite."""
    seen, queue = {node}, deque(following for following, _ in node.next_functions)
    while queue:
        before = queue.popleft()
        if before is None or before in seen:
            continue
        if len(seen) >= _MAX_NODES:
            return False
        seen.add(before)
        name = before.name()
        of_spread = "VarBackward" in name or "StdBackward" in name
        if of_spread and is_bad_value(name.split("::")[-1], before):
            return False
        variable = getattr(before, "variable", None)
        saved = [variable, *(getattr(before, key, None) for key in dir(before) if key.startswith("_saved_"))]
        if not all(_finite(one) for one in saved if _is_floating(one)):
            return False
        queue.extend(following for following, _ in before.next_functions)
    return True


def _is_floating(value: Any) -> bool:
    return hasattr(value, "is_floating_point") and value.is_floating_point()


def is_bad_slope(name: str, node: Any) -> bool:
    if name.startswith("SqrtBackward"):
        return bool((node._saved_result == 0).any())
    if name.startswith("PowBackward"):
        exponent = node._saved_exponent
        return isinstance(exponent, float) and exponent < 1 and bool((node._saved_self == 0).any())
    if name.startswith("LogBackward"):
        return bool((node._saved_self == 0).any())
    if name.startswith("DivBackward"):
        return node._saved_other is not None and bool((node._saved_other == 0).any())
    return False


def _finite(tensor: Any) -> bool:
    return tensor is not None and bool(tensor.isfinite().all())
