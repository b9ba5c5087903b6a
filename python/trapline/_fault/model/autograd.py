"""What the graph of a loss has saved tells of the operation that made a number that is not finite."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, Optional

import torch

_MAX_NODES = 20_000
_NEAR = 3  # the derivative of one operation is a product or two of what it had saved
_OPS = {
    "nllloss": "nll_loss",
    "nllloss2d": "nll_loss",
    "mseloss": "mse_loss",
    "smoothl1loss": "smooth_l1_loss",
    "huberloss": "huber_loss",
    "kldiv": "kl_div",
    "softmarginloss": "soft_margin_loss",
    "binarycrossentropy": "binary_cross_entropy",
    "binarycrossentropywithlogits": "binary_cross_entropy_with_logits",
} | {f"linalg{name}": f"linalg.{name}" for name in ("eigh", "eig", "svd", "qr")}
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
        if not is_packed(node):
            yield name, node
        if name.startswith(hidden):
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


@lru_cache(maxsize=1024)
def _raw_names(kind: type) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))


def is_packed(node: Any) -> bool:
    """A hook gives what the operation has saved: asking for it would run that, and `torch.utils.checkpoint`
    runs the program's forward pass again. False where PyTorch does not tell."""
    for name in _raw_names(type(node)):
        try:
            raw = getattr(node, name)
        except RuntimeError:  # freed
            return False
        for saved in raw if isinstance(raw, (list, tuple)) else (raw,):
            if getattr(saved, "unpack_hook", None) is not None:
                return True
    return False


def in_graph(root: Any, is_bad: Any, hidden: tuple[str, ...] = ()) -> dict[str, Any]:
    """The operation nearest to the inputs whose saved tensors show that it is the one."""
    hit = node_in_graph(root, is_bad, hidden)
    return {} if hit is None else {"op": op_named(hit[0])}


def node_in_graph(root: Any, is_bad: Any, hidden: tuple[str, ...] = ()) -> Optional[tuple[str, Any]]:
    """The same with its name, and the node."""
    hit = None
    for name, node in _nodes(root, hidden):
        try:
            if is_bad(name, node):
                hit = (name, node)
        except (RuntimeError, AttributeError):  # saved nothing, or freed already
            pass
    return hit


def near_in_graph(root: Any, is_bad: Any) -> list[tuple[str, Any]]:
    """Operations that lead to `root` by few others."""
    found, near = [], [root]
    for _ in range(_NEAR):
        near = [following for node in near for following, _ in node.next_functions if following is not None]
        for node in near:
            name = node.name().split("::")[-1]
            try:
                if not is_packed(node) and is_bad(name, node):
                    found.append((name, node))
            except (RuntimeError, AttributeError):
                pass
    return found


# Of these only what puts another value in a NaN's place: maximum and clamp hand it on.
_REPLACING = ("WhereBackward", "MaskedFillBackward", "NanToNumBackward", "MaskedScatter")


_READING = ("PowBackward", "MulBackward", "DivBackward", "AbsBackward", "TanhBackward", "ExpBackward")

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
            if _is_floating(saved) and not finite(saved):
                given = getattr(node, "_saved_self", None)
                out.append((saved.detach(), key == "_saved_target" and given is not None and finite(given)))
    return out[::-1]


# Losses that multiply by numbers that they were given, and where these are saved.
_WEIGHTED = {
    "NllLoss": ("_saved_weight",),
    "BinaryCrossEntropy": ("_saved_weight", "_saved_pos_weight"),
}


class Factor(NamedTuple):
    """`op`; `given`: the numbers that are not finite; `bad`: where the model's results meet those."""

    op: str
    given: Any
    bad: Any


def bad_factor(root: Any) -> Optional[Factor]:
    """A product in the loss of numbers that are finite with others, no result of the model, that are not:
    weights, advantages, a mask.
    """
    hit = None
    for name, node in _nodes(root, _REPLACING):
        try:
            hit = _factor_of(name, node) or hit
        except RuntimeError:  # freed already
            continue
    return hit


def _factor_of(name: str, node: Any) -> Optional[Factor]:
    op = op_named(name)
    if name.startswith(("MulBackward", "DivBackward")):
        pair = (getattr(node, "_saved_self", None), getattr(node, "_saved_other", None))
        for given, beside in (pair, pair[::-1]):
            if _is_bad_constant(given) and (not _is_floating(beside) or finite(beside)):
                return Factor(op, given, ~given.isfinite())
    for loss, places in _WEIGHTED.items():
        for place in places if name.startswith(loss) else ():
            given = getattr(node, place, None)
            if _is_bad_constant(given) and (loss != "NllLoss" or _is_used(node)):
                return Factor(op, given, _weighed(loss, node, given))
    return None


def _is_used(node: Any) -> bool:
    """The weights of the classes that occur are not finite, or 0 beside one that is not: 1 / inf."""
    total = node._saved_total_weight
    return not finite(total) or bool(total == 0)


def _weighed(loss: str, node: Any, weight: Any) -> Any:
    """Which targets have a weight that is not finite; None: not known."""
    bad, target = ~weight.isfinite(), node._saved_target
    if loss == "NllLoss":
        known = (target >= 0) & (target < len(bad))
        return bad[target.clamp(0, len(bad) - 1)] & known
    return bad.expand_as(target) if bad.dim() <= target.dim() else None


def _is_bad_constant(value: Any) -> bool:
    return _is_floating(value) and not value.requires_grad and not finite(value)


def is_smoothed(root: Any) -> bool:
    """A loss adds the log-probabilities of all classes, as cross_entropy() does with `label_smoothing`."""
    sums = (node.next_functions[0][0] for name, node in _nodes(root) if name.startswith("SumBackward"))
    return any(node is not None and node.name().startswith("LogSoftmaxBackward") for node in sums)


def bad_constant(root: Any) -> Any:
    """A sum or difference in the loss that is not finite, of the model's numbers, which are, and others, that
    no operation before it has made: actions, targets. None: there is none.
    """
    seen, queue = {root}, deque([(root, None)])
    while queue and len(seen) < _MAX_NODES:
        node, passed = queue.popleft()
        name = node.name().split("::")[-1]
        try:
            found = None if is_packed(node) else _sum_with_constant(name, node)
            if found is not None and _goes_on(found, passed):
                return found
            following = _chosen(name, node, passed)
        except RuntimeError:  # freed already
            continue
        for before, mask in following:
            if before is not None and before not in seen:
                seen.add(before)
                queue.append((before, mask))
    return None


def _sum_with_constant(name: str, node: Any) -> Any:
    """What the operation was given, where that is such a sum."""
    if not name.startswith(_READING):
        return None
    before = node.next_functions[0][0]
    if before is None or not before.name().startswith(("AddBackward", "SubBackward", "RsubBackward")):
        return None
    edges = [following for following, _ in before.next_functions]
    saved = getattr(node, "_saved_self", None)
    bad = None in edges and _is_floating(saved) and not finite(saved) and _is_finite_below(before)
    return saved.detach() if bad else None


def _chosen(name: str, node: Any, passed: Any) -> list[tuple[Any, Any]]:
    """The operations before this one, each with which of its elements reach the loss; None: all."""
    edges = [following for following, _ in node.next_functions]
    if name.startswith("WhereBackward"):
        condition = node._saved_condition
        both = [condition, ~condition]
        if passed is not None and passed.shape == condition.shape:
            both = [one & passed for one in both]
        return list(zip(edges, both))
    return [] if name.startswith(_CHOOSING) else [(one, passed) for one in edges]


def _goes_on(found: Any, passed: Any) -> bool:
    if passed is None:
        return True
    return bool(found.shape == passed.shape and (~found.isfinite() & passed).any())


def name_of(node: Any) -> str:
    """`sqrt`; of a `torch.autograd.Function` `Scale.backward`."""
    name = str(node.name())
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return name.removesuffix("Backward") + ".backward"
    return op_named(name)


def op_named(name: str) -> str:
    """As its function is called, of the name of a node."""
    op = base_of(name).removesuffix("Backward").lower()
    return _OPS.get(op, op)


def base_of(name: str) -> str:
    """Of a node's name, without namespace and number."""
    return name.rsplit("::", maxsplit=1)[-1].rstrip("0123456789")


# Operations that have saved what they were given, by their names in torch.
_OF_SELF = {
    f"{name.capitalize()}Backward": name
    for name in (
        "log",
        "log2",
        "log10",
        "acos",
        "asin",
        "acosh",
        "atanh",
        "cosh",
        "sinh",
        "lgamma",
        "erfinv",
        "i0",
    )
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
        return finite(given) and not finite(getattr(torch, again)(given))
    if name.startswith("DivBackward"):
        other = node._saved_other
        return other is not None and finite(other) and bool((other == 0).any())
    if name.startswith(_OF_RESULT):
        return not finite(node._saved_result) and _is_finite_below(node)
    if name.startswith(("VarBackward", "StdBackward")):
        given = node._saved_self
        return finite(given) and not finite(_spread_again(node, given))
    if name.startswith("PowBackward"):
        base = node._saved_self
        return finite(base) and not finite(base**node._saved_exponent)
    if name.startswith("NllLoss"):
        is_mean = getattr(node, "_saved_reduction", 1) == 1  # else nothing is divided
        weight = getattr(node, "_saved_weight", None)
        return is_mean and bool(node._saved_total_weight == 0) and (weight is None or finite(weight))
    if name.startswith("MeanBackward"):
        return int(node._saved_self_sym_numel) == 0
    return False


def overflowed_before(node: Any) -> Optional[tuple[str, Any]]:
    """The operation before this one whose result is not finite, as what it went into has saved, of numbers
    that are: a sum or a product that overflowed. With its name; None where none is known."""
    hit = None
    for _, one in _nodes(node, MASKING):
        for key, at in (("_saved_self", 0), ("_saved_other", 1)):
            try:
                saved = getattr(one, key, None)
                if not _is_floating(saved) or finite(saved) or at >= len(one.next_functions):
                    continue
                before = one.next_functions[at][0]
                if before is not None and hasattr(before, "next_functions") and _is_finite_below(before):
                    hit = (before.name().split("::")[-1], before)
            except (RuntimeError, AttributeError):  # freed already
                continue
    return None if hit is None or hit[0].startswith("AccumulateGrad") else hit


def is_finite_below(node: Any) -> bool:
    """All that the graph has saved before this operation is finite."""
    return _is_finite_below(node)


def exponent_of(node: Any) -> Optional[float]:
    """Of a power its exponent; NaN: a tensor. None: it is no power."""
    if not node.name().split("::")[-1].startswith("PowBackward"):
        return None
    exponent = getattr(node, "_saved_exponent", None) if node.name().endswith("PowBackward0") else None
    return float(exponent) if isinstance(exponent, (int, float)) else math.nan


def where_bad(name: str, node: Any) -> Any:
    """Of one that :func:`is_bad_value` has found: where its result is not finite; None: not known."""
    again = _OF_SELF.get(name.rstrip("0123456789"))
    if again is not None:
        return ~getattr(torch, again)(node._saved_self.detach()).isfinite()
    if name.startswith("DivBackward"):
        return node._saved_other.detach() == 0
    if name.startswith(_OF_RESULT):
        return ~node._saved_result.detach().isfinite()
    if name.startswith("PowBackward"):
        return ~(node._saved_self.detach() ** node._saved_exponent).isfinite()
    return None


def _spread_again(node: Any, given: Any) -> Any:
    """The variance, NaN or Inf where there are no more elements than the correction takes off."""
    return given.detach().var(dims_of(node), correction=node._saved_correction)


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
        if not all(finite(one) for one in saved if _is_floating(one)):
            return False
        queue.extend(following for following, _ in before.next_functions)
    return True


def _is_floating(value: Any) -> bool:
    return hasattr(value, "is_floating_point") and value.is_floating_point()


def finite(tensor: Any) -> bool:
    return tensor is not None and bool(tensor.isfinite().all())


def dims_of(node: Any) -> Any:
    """As they were given: PyTorch hands negative ones out as unsigned."""
    known = node._saved_dim
    if isinstance(known, int):
        return _signed(known)
    return None if known is None else [_signed(at) for at in known]


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
