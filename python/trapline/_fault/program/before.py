"""What a bad integer was before its cast, `(u * steps).long()`: by the statement's own arithmetic, of the
numbers that its variables hold. Nothing of the program runs.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import scope

Facts = dict[str, Any]
_CASTS = ("long", "int", "short", "floor", "trunc", "to", "type", "astype")
_NEAR = 1e-6  # rounding: the program computes in float32


def before_cast(frame: FrameType, node: ast.expr, given: Any, first: int) -> Facts:
    """`before`, the number, and `source`, the one tensor that it was computed of: `name`, `index`, `value`.
    Only where the cast of that number is the bad one."""
    inner = _uncast(node)
    if inner is None or not scope.is_tensor(given) or not 0 <= first < given.numel():
        return {}
    bad = given.detach().reshape(-1)[first].item()
    number = _number(frame, inner, given, first)
    if number is None or not math.isfinite(number):
        return {}
    if abs(number - round(number)) <= _NEAR * abs(number):
        number = float(round(number))
    if math.trunc(number) != bad and math.floor(number) != bad:
        return {}
    facts: Facts = {"before": number}
    sources = {}
    for part in ast.walk(inner):
        held = held_by(frame, part) if isinstance(part, (ast.Name, ast.Attribute)) else None
        if scope.is_tensor(held) and held.dtype.is_floating_point and held.shape == given.shape:
            sources[ast.unparse(part)] = held
    if len(sources) == 1:
        name, held = next(iter(sources.items()))
        value = held.detach().reshape(-1)[first].item()
        facts["source"] = {"name": name, "index": place_of(first, held.shape), "value": value}
    return facts


def place_of(first: int, shape: Sequence[int]) -> list[int]:
    place: list[int] = []
    for size in reversed(shape):
        place.insert(0, first % size)
        first //= size
    return place


def _uncast(node: ast.expr) -> Optional[ast.expr]:
    """What is cast; None where no cast stands around it."""
    inner, found = node, False
    while isinstance(inner, ast.Call):
        if not isinstance(inner.func, ast.Attribute) or inner.func.attr not in _CASTS:
            return None
        of_torch = isinstance(inner.func.value, ast.Name) and inner.func.value.id == "torch"
        inner = inner.args[0] if of_torch and inner.args else inner.func.value
        found = True
    return inner if found else None


def _number(frame: FrameType, node: ast.expr, given: Any, first: int) -> Optional[float]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        of = _number(frame, node.operand, given, first)
        return None if of is None else -of
    if isinstance(node, ast.BinOp):
        left, right = (_number(frame, part, given, first) for part in (node.left, node.right))
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        return left / right if isinstance(node.op, ast.Div) and right else None
    held = node.value if isinstance(node, ast.Constant) else held_by(frame, node)
    if type(held) in (int, float):
        return float(held)
    if not scope.is_tensor(held) or held.is_complex() or not held.numel():
        return None
    if held.shape == given.shape:
        return float(held.detach().reshape(-1)[first].item())
    return float(held.detach().reshape(-1)[0].item()) if held.numel() == 1 else None


def held_by(frame: FrameType, node: Any) -> Any:
    """What a name, a stored attribute or an entry of a dictionary holds; None for anything else."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        held = held_by(frame, node.value)
        return scope.members(held).get(node.attr)
    if isinstance(node, ast.Subscript):
        held = held_by(frame, node.value)
        if isinstance(node.slice, ast.Constant) and type(held) is dict:
            return held.get(node.slice.value)
        return part_of(held, node.slice) if type(held) is _plain_tensor() else None
    return None


def _plain_tensor() -> type:
    import torch

    return torch.Tensor


def part_of(held: Any, node: ast.expr) -> Any:
    """The view of a tensor that is written there; None where not with numbers alone."""
    place = _place_in(node)
    try:
        return None if place is None else held.detach()[place]
    except IndexError:
        return None


def _place_in(node: ast.expr) -> Optional[tuple[Any, ...]]:
    """`[:, 0]`, `[..., 1:]`, `[:, None]`: of numbers, and of slices between numbers."""
    place: list[Any] = []
    for part in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(part, ast.Constant) and part.value is None:
            place.append(None)
            continue
        ends = [part.lower, part.upper, part.step] if isinstance(part, ast.Slice) else [part]
        known = [_written(end) for end in ends]
        if any(end is not None and number is None for end, number in zip(ends, known)):
            return None
        place.append(slice(*known) if isinstance(part, ast.Slice) else known[0])
    return tuple(place)


def _written(node: Optional[ast.expr]) -> Any:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _written(node.operand)
        return -number if type(number) is int else None
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int or value is Ellipsis else None
