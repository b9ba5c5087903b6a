"""Which derivatives of a finite loss can have been without a finite value, where nothing of them was held.

The graph of a loss that `backward` has used up still tells its operations. One whose result is infinite just
where its derivative is (log, a division) is none of them, if nothing hides that on the way to the loss, which
was finite.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Optional

import torch

from trapline._fault.model.autograd import base_of, name_of, op_named
from trapline._watch.slopes import SLOPES, op_of
from trapline._watch.suspect import are_finite

_MAX_NODES = 20_000
_LARGE = 1e6  # a loss or a norm on its way to overflow


def _nodes_of(names: str) -> set[str]:
    return {f"{name}Backward" for name in names.split()}


# Finite where their derivative is not.
_FINITE = _nodes_of("Sqrt Pow Acos Asin Acosh Hypot Xlogy SpecialEntr LinalgEigh LinalgSvd")
# An infinity that goes in comes out, or NaN: nothing is left out, and none becomes 0.
_OPEN = _nodes_of(
    "Add Sub Rsub Mul Neg Abs Sum Mean Sqrt MseLoss L1Loss Stack Cat Clone ToCopy Alias "
    "View UnsafeView ReshapeAlias Unsqueeze Squeeze Expand Transpose T Permute"
)


def candidates(loss_node: Any, bad: Optional[set[int]] = None) -> list[str]:
    """Names of operations, nearest to the loss first. `bad`: ids of parameters that are, or whose gradients
    are: what a derivative makes goes to all parameters behind it, so that one of it leads to bad ones alone.
    """
    seen, queue = {(loss_node, True)}, deque([(loss_node, True)])
    nodes: dict[Any, bool] = {}  # whether an infinity of it would be seen in the loss
    while queue and len(seen) < _MAX_NODES:
        node, is_open = queue.popleft()
        nodes[node] = nodes.get(node, False) or is_open
        base = base_of(node.name())
        for at, (following, _) in enumerate(node.next_functions):
            if following is None:
                continue
            goes_on = is_open and _is_open(node, base, at)
            if (following, goes_on) not in seen:
                seen.add((following, goes_on))
                queue.append((following, goes_on))
    can_be = [node for node, is_open in nodes.items() if _can_be(node, is_open)]
    if bad:
        leads = _leads(list(nodes), bad)
        left = [node for node in can_be if any(leads.get(one) == {True} for one, _ in node.next_functions)]
        can_be = left or can_be
    return list(dict.fromkeys(map(name_of, can_be)))


def _leads(nodes: list[Any], bad: set[int]) -> dict[Any, set[bool]]:
    """Of each operation whether the parameters behind it are bad ones."""
    leads: dict[Any, set[bool]] = {}
    behind: dict[Any, list[Any]] = {}
    for node in nodes:
        variable = getattr(node, "variable", None)
        leads[node] = set() if variable is None else {id(variable) in bad}
        for following, _ in node.next_functions:
            behind.setdefault(following, []).append(node)
    queue = deque(node for node in nodes if leads[node])
    while queue:
        node = queue.popleft()
        for above in behind.get(node, ()):
            if not leads[node] <= leads[above]:
                leads[above] |= leads[node]
                queue.append(above)
    return leads


def _is_open(node: Any, base: str, at: int) -> bool:
    if base == "DivBackward":
        return at == 0
    return base in _OPEN or (base == "PowBackward" and (_exponent(node) or 0) > 0)


def _exponent(node: Any) -> Optional[float]:
    """That of a number; it is not freed."""
    exponent = getattr(node, "_saved_exponent", None) if node.name().endswith("PowBackward0") else None
    return exponent if isinstance(exponent, (int, float)) else None


def _can_be(node: Any, is_open: bool) -> bool:
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        kind = getattr(node, "_forward_cls", None)
        return not str(getattr(kind, "__module__", "")).startswith("torch.")
    base = base_of(node.name())
    if base not in SLOPES or (is_open and base not in _FINITE):
        return False
    exponent = _exponent(node)
    return exponent is None or exponent < 1


def left_of(loss_node: Any, held: Optional[list[Any]], bad: Optional[set[int]] = None) -> dict[str, Any]:
    """Facts: the only one that is left but those that were held, and fine; or else all of these."""
    fine = {op_named(name) for name, _, _ in held or ()}
    left = [name for name in candidates(loss_node, bad) if name not in fine]
    if len(left) == 1:
        return {"op": left[0], "alone": True}
    return {"made_with": left} if left else {}


def of_step_before(
    loss: Any, held: Optional[list[Any]], optimizers: Any, parameters: Iterable[Any]
) -> dict[str, Any]:
    """What is known of the step before this loss, which was made alike, and whose gradients nobody saw."""
    parameters = list(parameters)
    if were_finite(optimizers, parameters):
        return {"gradients_finite": True}
    by = op_of(held)
    bad = {id(one) for one in parameters if not are_finite([one])}
    facts = {"op": by} if by else left_of(loss.grad_fn, held, bad)
    return facts if "op" in facts else {**facts, **rows_of(parameters)}


def rows_of(parameters: Any) -> dict[str, Any]:
    """Where only some rows of a table are bad, they may have been so for long: each step reads others."""
    for parameter in parameters:
        bad = (
            (~parameter.detach().isfinite()).reshape(len(parameter), -1).any(1)
            if parameter.dim() == 2
            else None
        )
        if bad is not None and bool(bad.any()):
            return {} if bool(bad.all()) else {"or_before": True}
    return {}


def doubt(fact: dict[str, Any]) -> None:
    """What is named only because nothing else is left is not, where numbers grew: they may overflow."""
    if fact.pop("alone", False) and fact.get("growth", {}).get("high", 0.0) > _LARGE:
        fact["made_with"] = [fact.pop("op")]


def were_finite(optimizers: Any, parameters: Any) -> bool:
    """The gradients of the last step, by what optimizers keep of them (momentum, mean of squares), which they
    would have spoilt. False where nothing is kept.
    """
    for parameter in parameters:
        if bool(parameter.detach().isfinite().all()):
            continue
        for optimizer in list(optimizers):
            state = optimizer.state.get(parameter) or {}
            kept = [v for v in state.values() if isinstance(v, torch.Tensor) and v.shape == parameter.shape]
            if kept and parameter.dim():
                return all(bool(one.isfinite().all()) for one in kept)
    return False
