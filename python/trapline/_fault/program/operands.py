"""What a bad number was computed of, `skill + 20 * correct`: the numbers that the statement's variables hold
at the same place. Told only where the statement's own arithmetic makes the bad number of them. Nothing of
the program runs.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, Optional, Union

from trapline._fault.program import before, scope

Number = Union[int, float]
_KEEPS = ("to", "type", "cpu", "cuda", "float", "double", "clone", "detach")
_CUTS: dict[str, Callable[[float], float]] = {
    "long": math.trunc,
    "int": math.trunc,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
}
_COUNTS = "torch.arange("
_NEAR = 1e-6  # the program computes in float32
_LAID_OUT = ("flatten", "reshape", "view", "ravel", "contiguous", "squeeze", "unsqueeze", "view_as")
_MAX_PARTS = 3
_MAX_ELEMENTS = 1 << 22
COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}
_DIVIDES = (operator.floordiv, operator.mod, operator.truediv)


class Operand:
    """One tensor of the statement, and the element of it that the bad number was computed of."""

    def __init__(self, name: str, tensor: Any, index: list[int]) -> None:
        self.name = name
        self.tensor = tensor
        self.index = index

    @property
    def counts(self) -> bool:
        """It only counts places: `torch.arange(n)`."""
        return self.name.startswith(_COUNTS)

    @property
    def value(self) -> Number:
        return self.tensor.detach()[tuple(self.index)].item()

    @property
    def first(self) -> int:
        at = 0
        for place, size in zip(self.index, self.tensor.shape):
            at = at * size + place
        return at


def operands(frame: FrameType, node: ast.expr, given: Any, first: int) -> list[Operand]:
    """The tensors that element `first` of `given` was computed of; [] where that is not beyond doubt."""
    if not scope.is_tensor(given) or not 0 <= first < given.numel() or given.dtype.is_floating_point:
        return []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LAID_OUT:
        node = node.func.value  # the elements keep their order
    tensors = {ast.unparse(part): held for part, held in _tensors(frame, node)}
    if not 1 <= len(tensors) <= _MAX_PARTS:
        return []
    shape = _broadcast([held.shape for held in tensors.values()])
    if shape is None or math.prod(shape) != given.numel():
        return []
    place = before.place_of(first, shape)
    found = {}
    for name, held in tensors.items():
        own = place[len(place) - held.dim() :] if held.dim() else []
        found[name] = Operand(name, held, [at if size > 1 else 0 for at, size in zip(own, held.shape)])
    number, bad = _number(frame, node, found), given.detach().reshape(-1)[first].item()
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("to", "type") and number is not None:
        number = math.trunc(number)
    held_ones = [operand for operand in found.values() if not operand.counts]
    return [_whole(frame, operand) for operand in held_ones] if number == bad else []


def _whole(frame: FrameType, operand: Operand) -> Operand:
    """Of `x[:, 0]` the element of x."""
    import torch

    node = ast.parse(operand.name, mode="eval").body
    held = before.held_by(frame, node.value) if isinstance(node, ast.Subscript) else None
    if not isinstance(node, ast.Subscript) or type(held) is not torch.Tensor or held.numel() > _MAX_ELEMENTS:
        return operand
    places = before.part_of(torch.arange(held.numel()).reshape(held.shape), node.slice)
    if places is None:
        return operand
    at = int(places[tuple(operand.index)])
    return Operand(ast.unparse(node.value), held, before.place_of(at, held.shape))


def _tensors(frame: FrameType, node: ast.expr) -> Iterator[tuple[ast.expr, Any]]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield from _tensors(frame, node.left)
        yield from _tensors(frame, node.right)
        return
    if isinstance(node, ast.UnaryOp):
        yield from _tensors(frame, node.operand)
        return
    if isinstance(node, ast.Call):
        counted = _counted(frame, node)
        inner = _uncast(node)
        if counted is not None:
            yield node, counted
        elif inner is not None:
            yield from _tensors(frame, inner)
        return
    held = before.held_by(frame, node)
    if scope.is_tensor(held) and not held.is_complex() and held.numel():
        yield node, held


def _number(frame: FrameType, node: ast.expr, found: dict[str, Operand]) -> Optional[Number]:
    if isinstance(node, ast.BinOp):
        left, right = (_number(frame, part, found) for part in (node.left, node.right))
        by = ARITHMETIC.get(type(node.op))
        if left is None or right is None or by is None:
            return None
        return None if right == 0 and by in _DIVIDES else by(left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(frame, node.operand, found)
        return None if number is None else -number
    if isinstance(node, ast.Call) and ast.unparse(node) not in found:
        inner = _uncast(node)
        number = None if inner is None else _number(frame, inner, found)
        return None if number is None else _cut(node, number)
    own = found.get(ast.unparse(node))
    held = own.value if own is not None else getattr(node, "value", None)
    if not isinstance(node, ast.Constant) and own is None:
        held = before.held_by(frame, node)
    return held if type(held) in (int, float) else None


def _counted(frame: FrameType, node: ast.Call) -> Any:
    """What `torch.arange(n)` gives: where its ends are written or held as whole numbers."""
    import torch

    if ast.unparse(node.func) != "torch.arange" or any(
        one.arg not in ("device", "dtype") for one in node.keywords
    ):
        return None
    given = [
        part.value if isinstance(part, ast.Constant) else before.held_by(frame, part) for part in node.args
    ]
    if not 1 <= len(given) <= 3 or any(type(number) is not int for number in given) or 0 in given[2:]:
        return None
    places = range(*given)
    return torch.arange(*given) if 0 < len(places) <= _MAX_ELEMENTS else None


def _uncast(node: ast.Call) -> Optional[ast.expr]:
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in (*_KEEPS, *_CUTS):
        return None
    of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
    return (node.args[0] if node.args else None) if of_torch else node.func.value


def _cut(node: ast.Call, number: Number) -> Optional[Number]:
    """What the call makes of a number: 24 of 24.000001, which the program's own arithmetic may have met."""
    if not math.isfinite(number):
        return None
    cut = _CUTS.get(getattr(node.func, "attr", ""))
    near = round(number)
    exact = near if abs(number - near) <= _NEAR * max(abs(number), 1.0) else number
    return exact if cut is None else cut(exact)


def _broadcast(shapes: list[Any]) -> Optional[Sequence[int]]:
    import torch

    try:
        return torch.broadcast_shapes(*shapes)
    except RuntimeError:
        return None
