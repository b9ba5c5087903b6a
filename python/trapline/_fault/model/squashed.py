"""What made the scores that a loss was given, as the autograd graph says: a layer, whose scores are raw; or a
tanh, a cosine, 1 less a distance, the logarithm of probabilities.
"""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.model.layers import ADAPTERS, node_kind

_MAX_NODES = 16
_LOGARITHMS = ("LogSoftmax", "LogSigmoid", "Log")
_LESS = {"Exp": "one_less_exp", "Cumsum": "one_less_sum"}  # of what 1 less it is
_ENDS = ("Sigmoid", "Softmax", "SoftmaxBackwardData")
_NEAR = 4
_PRODUCTS = ("Mm", "Bmm", "Mv", "Dot")
_LAYERS = ("Addmm", "Addmv", "Baddbmm", "Linear", "MkldnnLinear", "Convolution", "MkldnnConvolution")


def squashed_by(scores: Any) -> Optional[str]:
    """ "raw", "tanh", "cosine", "difference" (1 - x), "one_less_exp", "one_less_sum", "quotient", "log" or
    "past_sigmoid"; None: none of them."""
    node = _computing(getattr(scores, "grad_fn", None))
    if node is None:
        return None
    kind = node_kind(node)
    if kind == "Tanh":
        return "tanh"
    if kind == "Rsub":
        less = _computing(_first(node))
        return _LESS.get(node_kind(less) if less is not None else "", "difference")
    if kind in _LOGARITHMS:
        return "log"
    if kind == "Div":
        above = _computing(_first(node))  # scores / temperature are scores
        layers = above is not None and (node_kind(above) == "Add" and _of_layer(above))
        return "raw" if layers or (above is not None and node_kind(above) in _LAYERS) else "quotient"
    if kind in _LAYERS or (kind == "Add" and _of_layer(node)):
        return "raw"
    if kind not in _ENDS and _is_past_sigmoid(node):
        return "past_sigmoid"
    # cosine_similarity() and its like written by hand: the product of what was divided by its norm.
    if kind == "Sum":
        node = _computing(_first(node))
        if node is None or node_kind(node) != "Mul":
            return None
    elif kind not in _PRODUCTS:
        return None
    return "cosine" if _divided(node) else "raw"


def _is_past_sigmoid(node: Any) -> bool:
    """A few operations back, with no layer between, it was between 0 and 1."""
    near = [node]
    for _ in range(_NEAR):
        near = [before for one in near for before, _ in one.next_functions if before is not None]
        if any(node_kind(one) in _ENDS for one in near):
            return True
        near = [one for one in near if node_kind(one) not in (*_LAYERS, *_PRODUCTS)]
    return False


def _of_layer(total: Any) -> bool:
    """A layer without a bias of its own, or the sum of two."""
    parts = [_computing(following) for following, _ in total.next_functions]
    return any(part is not None and node_kind(part) in (*_LAYERS, *_PRODUCTS) for part in parts)


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
