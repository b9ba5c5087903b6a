"""Which derivative of a loss is not finite, in the steps that are not looked at (:mod:`trapline._watch.hot`).

`backward` frees what the graph has saved, and a bad gradient is seen only behind it. So the operations of the
loss that have a point without a finite derivative are learnt in a step that is looked at, with the way to
them through the graph; in the steps between, what these few have saved is held until the next loss is known
to be finite: not all that is bad reaches the gradient that is looked at. A loss without such operations costs
nothing.
"""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any, Callable, NamedTuple, Optional

import torch

from trapline._fault.model.autograd import base_of, dims_of, finite, is_packed, op_named
from trapline._library.say import debug
from trapline._watch.again import plain
from trapline._watch.suspect import may_look

_MAX_NODES = 256  # operations of the loss that are walked through to learn it
_MAX_HOPS = 32  # of the graph that are followed in each step
_MAX_PLANS = 3  # a program may have several losses
_MAX_UNLIKE = 256  # losses that are learnt where none was looked at, a twentieth of a millisecond each
_MAX_MORE = 64  # operations of all losses of a step
_MAX_HELD = 1 << 18  # elements of a tensor that is held


class Slope(NamedTuple):
    """An operation whose derivative is not finite somewhere."""

    saved: tuple[str, ...]  # what its node has saved of that
    is_bad: Callable[[Any], bool]  # of a node, or of what stands for it
    by: tuple[int, ...] = (0,)  # the outputs that have this derivative


def _again(function: Callable[..., Any], node: Any, *names: str, **options: Any) -> bool:
    """The derivative of `function` by what it was given, once more."""
    given = [getattr(node, f"_saved_{name}") for name in names]
    if any(one is None or not one.is_floating_point() or bool(one.isnan().any()) for one in given):
        return False
    leaves = [one.detach().requires_grad_() for one in given]
    with torch.enable_grad():
        made = function(*leaves, **options)
    return not all(map(finite, torch.autograd.grad(made.sum(), leaves)))


def _of_self(name: str) -> Slope:
    return Slope(("self",), lambda node: _again(getattr(torch, name), node, "self"))


def _of_both(name: str) -> Slope:
    return Slope(("self", "other"), lambda node: _again(getattr(torch, name), node, "self", "other"))


def _is_zero(tensor: Any) -> bool:
    return tensor is not None and bool((tensor == 0).any())


def _pow_is_bad(node: Any) -> bool:
    exponent = node._saved_exponent
    if isinstance(exponent, torch.Tensor):
        base = getattr(node, "_saved_self", None)
        # By the exponent it is result * log(base).
        below = exponent.requires_grad and isinstance(base, torch.Tensor) and bool((base < 0).any())
        return below or (base is not None and bool(((base == 0) & (exponent < 1) & (exponent != 0)).any()))
    return isinstance(exponent, float) and exponent < 1 and exponent != 0 and _is_zero(node._saved_self)


def _some_are_equal(values: Any) -> bool:
    return values is not None and values.shape[-1] > 1 and _is_zero(values.diff(dim=-1))


# By the name of the node, without its number. Formulas: tools/autograd/derivatives.yaml of PyTorch.
SLOPES = {
    "SqrtBackward": Slope(("result",), lambda node: _is_zero(node._saved_result)),
    "PowBackward": Slope(("self", "exponent"), _pow_is_bad),
    "DivBackward": Slope(("other",), lambda node: _is_zero(node._saved_other)),
    "HypotBackward": _of_both("hypot"),
    "XlogyBackward": _of_both("xlogy"),
    "LogaddexpBackward": _of_both("logaddexp"),
    "LogsumexpBackward": Slope(
        ("self", "dim"), lambda node: _again(torch.logsumexp, node, "self", dim=dims_of(node))
    ),
    "LogcumsumexpBackward": Slope(
        ("self", "dim"), lambda node: _again(torch.logcumsumexp, node, "self", dim=dims_of(node))
    ),
    "LogitBackward": Slope(
        ("self", "eps"), lambda node: _again(torch.logit, node, "self", eps=node._saved_eps)
    ),
    "SpecialEntrBackward": Slope(("self",), lambda node: _again(torch.special.entr, node, "self")),
    **dict.fromkeys(
        ("ExpBackward", "ReciprocalBackward", "RsqrtBackward"),
        Slope(("result",), lambda node: not finite(node._saved_result)),
    ),
    "LinalgEighBackward": Slope(
        ("eigenvalues",), lambda node: _some_are_equal(node._saved_eigenvalues), by=(1,)
    ),
    "LinalgSvdBackward": Slope(("S",), lambda node: _some_are_equal(node._saved_S), by=(0, 2)),
    "Log1PBackward": _of_self("log1p"),
} | {
    f"{name.capitalize()}Backward": _of_self(name)
    for name in ("log", "log2", "log10", "acos", "asin", "acosh", "atanh", "lgamma", "erfinv", "digamma")
}


def is_bad_slope(name: str, node: Any) -> bool:
    slope = SLOPES.get(base_of(name))
    return slope is not None and slope.is_bad(node)


class Plan(NamedTuple):
    """The way to the operations of a loss that may be to blame."""

    root: type  # of its last operation
    hops: list[tuple[int, int]]  # from which of the nodes so far, by which of its inputs
    ends: list[tuple[int, str, tuple[str, ...]]]  # which of the nodes, its name, what it has saved

    def follows(self, loss: Any) -> Optional[list[Any]]:
        """What they have saved; None: the loss is made otherwise, or was changed in place."""
        nodes = [loss.grad_fn]
        try:
            if type(nodes[0]) is not self.root:
                return None
            for before, at in self.hops:
                nodes.append(nodes[before].next_functions[at][0])
            if any(nodes[place].name() != name for place, name, _ in self.ends):
                return None
            return [
                (name, keys, [getattr(nodes[place], key) for key in keys]) for place, name, keys in self.ends
            ]
        except (AttributeError, IndexError, RuntimeError):
            return None


def plan_of(loss: Any) -> Plan:
    places = {loss.grad_fn: 0}
    ways: list[tuple[int, int]] = [(0, 0)]  # to each of `places`
    queue = deque([loss.grad_fn])
    used = {(loss.grad_fn, loss.output_nr)}
    while queue:
        node = queue.popleft()
        for at, (following, output) in enumerate(node.next_functions):
            used.add((following, output))
            if following is None or following in places or len(places) >= _MAX_NODES:
                continue
            places[following] = len(ways)
            ways.append((places[node], at))
            queue.append(following)
    plan, numbers = Plan(type(loss.grad_fn), [], []), {0: 0}
    for node, place in places.items():
        slope = SLOPES.get(base_of(node.name()))
        if slope is None or not any((node, at) in used for at in slope.by) or not _may_be_bad(node, slope):
            continue
        path = [place]
        while path[-1] not in numbers:
            path.append(ways[path[-1]][0])
        if len(plan.hops) + len(path) - 1 > _MAX_HOPS:
            continue
        for one in reversed(path[:-1]):
            before, at = ways[one]
            plan.hops.append((numbers[before], at))
            numbers[one] = len(plan.hops)
        saved = tuple(f"_saved_{key}" for key in slope.saved)
        plan.ends.append((numbers[place], node.name(), saved))
    return plan


class Slopes:
    def __init__(self) -> None:
        self._plans: list[Plan] = []  # of the losses looked at last, the newest first
        self.knows = False  # some operation to hold
        # Of the last loss. None: it is unlike those that were learnt, or its step was looked at.
        self.held: Optional[list[Any]] = None
        self._unlike = 0  # losses that no plan was for
        self.graph: Any = None  # of a loss whose gradients are bad, in a step that was not looked at

    def learns(self, loss: Any) -> None:
        """Of a loss in a step that is looked at, before `backward`."""
        plan = plan_of(loss)
        self._plans = [plan, *(known for known in self._plans if known != plan)][:_MAX_PLANS]
        self.knows = any(known.ends for known in self._plans)
        self.held = None

    def holds(self, loss: Any, more: bool = False) -> None:
        """In another step, before `backward`, where it `knows` what to hold.

        To be given the graph takes a hundredth of a step of half a millisecond. With `more` beside what is
        held of the losses before it.
        """
        before, self.held = self.held if more else None, None
        try:
            self.held = self._of(loss)
        except Exception as error:  # of a hook of the program's that unpacks
            debug(f"watch: {error!r}")
            self._plans, self.knows = [], False
        if before and self.held is not None:
            self.held = [*self.held, *before][:_MAX_MORE]

    def _of(self, loss: Any) -> Optional[list[Any]]:
        for plan in self._plans:
            held = plan.follows(loss)
            if held is not None:
                return held
        if self._unlike >= _MAX_UNLIKE:
            return None
        self._unlike += 1  # what is rare may be the culprit
        self.learns(loss)
        return self._plans[0].follows(loss)

    def take_between(self) -> tuple[Any, Optional[list[Any]]]:
        """The graph of a loss whose gradients are bad, and what was held of it."""
        graph, self.graph = self.graph, None
        return graph, self.held


def op_of(held: Optional[list[Any]]) -> str:
    """The operation nearest to the loss whose derivative was not finite; empty: none of those held."""
    for name, keys, saved in held or ():
        try:
            if is_bad_slope(name, SimpleNamespace(**dict(zip(keys, map(plain, saved))))):
                return op_named(name)
        except (RuntimeError, AttributeError):
            continue
    return ""


def _may_be_bad(node: Any, slope: Slope) -> bool:
    """Not a square, not a division by a plain number, nothing large, and nothing that a hook unpacks: that
    may compute it again.
    """
    if is_packed(node):
        return False
    try:
        saved = [getattr(node, f"_saved_{name}") for name in slope.saved]
        again = [getattr(node, f"_saved_{name}") for name in slope.saved]
    except (RuntimeError, AttributeError):
        return False
    name = base_of(node.name())
    if name == "PowBackward" and not isinstance(saved[1], torch.Tensor) and saved[1] >= 1:
        return False
    divisor = saved[0] if name == "DivBackward" else None
    is_number = not isinstance(divisor, torch.Tensor)  # None, or Python's own: by how many a sum is divided
    if name == "DivBackward" and (is_number or (divisor.dim() == 0 and not divisor.requires_grad)):
        return False
    pairs = [(one, two) for one, two in zip(saved, again) if isinstance(one, torch.Tensor)]
    return all(
        may_look(plain(one)) and one.numel() <= _MAX_HELD and one.data_ptr() == two.data_ptr()
        for one, two in pairs
    )
