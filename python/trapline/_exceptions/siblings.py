"""The other bound of a value that was refused: the same function checks it beside the one that failed."""

from __future__ import annotations

import ast
from typing import Any

from trapline._exceptions.conditions import Place, Unknown, called
from trapline._exceptions.refused import OPPOSITE, Refused, beyond

_MAX = 8  # checks of a function
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def complete(place: Place, found: Refused, asserting: tuple[str, ...]) -> None:
    """Takes the bound that the check before it, or the one behind it, asks of the same numbers."""
    bounds = found.bounds
    if found.kind != "value" or bounds.allowed or (bounds.lower is None) == (bounds.upper is None):
        return
    for node in _checks(place, found.node, asserting)[:_MAX]:
        try:
            other = beyond(place, node, OPPOSITE[type(node.ops[0])])
        except (Unknown, RuntimeError, IndexError, TypeError, ValueError, KeyError):
            continue
        if other is None or not _same_numbers(other[0], found.content):
            continue
        limits = other[1]
        if bounds.lower is None and limits.lower is not None:
            bounds.lower = limits.lower
        elif bounds.upper is None and limits.upper is not None:
            bounds.upper, bounds.closed, bounds.text = limits.upper, limits.closed, limits.text


def _checks(place: Place, refused: ast.AST, asserting: tuple[str, ...]) -> list[ast.Compare]:
    """What has to hold of numbers, in order, by the asserts of the function; without the one that failed."""
    found = []
    for node in ast.walk(place.tree) if place.tree is not None else ():
        test = None
        if isinstance(node, ast.Assert):
            test = node.test
        elif isinstance(node, ast.Call) and called(node) in asserting and node.args:
            test = node.args[0]
        compares = isinstance(test, ast.Compare) and test is not refused and len(test.ops) == 1
        if compares and isinstance(test.ops[0], _ORDERS):  # type: ignore[union-attr]
            found.append(test)
    return found


def _same_numbers(one: Any, other: Any) -> bool:
    import torch

    if one is None or other is None or one.numel() != other.numel():
        return False
    return torch.equal(one.reshape(-1), other.reshape(-1).to(one.dtype))
