"""What made the scores that a loss was given, where the autograd graph says that they are no raw ones: a
tanh, a cosine, the logarithm of probabilities.
"""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.model.layers import ADAPTERS, node_kind

_MAX_NODES = 16
_LOGARITHMS = ("LogSoftmax", "LogSigmoid", "Log")
_PRODUCTS = ("Mm", "Bmm", "Mv", "Dot")


def squashed_by(scores: Any) -> Optional[str]:
    """ "tanh", "cosine" or "log"; None: not known, or nothing of the kind."""
    node = _computing(getattr(scores, "grad_fn", None))
    if node is None:
        return None
    kind = node_kind(node)
    if kind == "Tanh":
        return "tanh"
    if kind in _LOGARITHMS:
        return "log"
    # cosine_similarity() and its like written by hand: the product of what was divided by its norm.
    if kind == "Sum":
        node = _computing(_first(node))
        return "cosine" if node is not None and node_kind(node) == "Mul" and _divided(node) else None
    return "cosine" if kind in _PRODUCTS and _divided(node) else None


def _divided(product: Any) -> bool:
    factors = [_computing(following) for following, _ in product.next_functions]
    return any(factor is not None and node_kind(factor) == "Div" for factor in factors)


def _first(node: Any) -> Any:
    return next((following for following, _ in node.next_functions if following is not None), None)


def _computing(node: Any) -> Any:
    """The node behind views and casts."""
    for _ in range(_MAX_NODES):
        if node is None or node_kind(node) not in ADAPTERS:
            return node
        node = _first(node)
    return None
