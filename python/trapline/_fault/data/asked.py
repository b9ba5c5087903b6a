"""The entry of the program's own data that a loop asks for by its number: `scan = scans[step]`."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import records
from trapline._fault.data.samples import Sample
from trapline._fault.program import calls, holders, loops, owners, scope, texts

_MAX_ENTRIES = 1 << 24
_TOOLS = ("builtins", "collections", "array", "torch", "pandas")


def in_loop(frame: FrameType) -> Optional[Sample]:
    """Where the innermost loop around the line has asked for one entry, of one list or data set alone."""
    tree = calls.tree_of(frame.f_code)
    if tree is None:
        return None
    line = scope.line_of(frame) - calls.first_line(frame.f_code) + 1
    loop = loops.innermost(tree, line)
    if loop is None:
        return None
    drawn = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    found: dict[tuple[str, int], Sample] = {}
    for statement in loop.body:
        for node in ast.walk(statement):
            if (
                not isinstance(node, ast.Subscript)
                or not isinstance(node.ctx, ast.Load)
                or node.lineno > line
            ):
                continue
            index = _index(frame, node.slice, drawn)
            data = calls.resolve(node.value, frame)
            if index is not None and _is_data(data, index):
                name = ast.unparse(node.value)
                found[name, index] = records.sample(name, data, len(data), index, None, likely=True)
    return {**found.popitem()[1], "by": "loop"} if len(found) == 1 else None


def _index(frame: FrameType, node: ast.expr, drawn: set[str]) -> Optional[int]:
    """The number that the loop draws, or what a list of numbers has at that place: `order[k]`."""
    value: Any = None
    if isinstance(node, ast.Name) and node.id in drawn:
        value = frame.f_locals.get(node.id)
    elif isinstance(node, ast.Subscript):
        at, order = _index(frame, node.slice, drawn), calls.resolve(node.value, frame)
        if type(order) in (list, tuple) and at is not None and 0 <= at < len(order):
            value = order[at]
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "int" and len(node.args) == 1:
        return _index(frame, node.args[0], drawn)
    if (
        scope.is_tensor(value)
        and not value.dim()
        and not value.dtype.is_floating_point
        and scope.is_at_hand(value)
    ):
        value = int(value)
    return value if type(value) is int else None


def _is_data(data: Any, index: int) -> bool:
    """A list of records, or an object that gives them by their numbers. It is not asked for one."""
    if type(data) in (list, tuple):
        return 0 <= index < len(data) <= _MAX_ENTRIES and len(data) > 1 and _is_record(data[index])
    kind = type(data)
    asks = hasattr(kind, "__getitem__") and hasattr(kind, "__len__")
    if (
        not asks
        or _is_tools(kind)
        or scope.is_tensor(data)
        or holders.is_array(data)
        or owners.is_module(data)
    ):
        return False
    try:
        return 0 <= index < len(data) <= _MAX_ENTRIES
    except Exception:
        return False


def _is_tools(kind: type) -> bool:
    """Python's own, or PyTorch's but for its data sets: containers of anything, optimizers, devices."""
    module = kind.__module__
    return module.partition(".")[0] in _TOOLS and not module.startswith("torch.utils.data")


def _is_record(entry: Any, depth: int = 1) -> bool:
    """Numbers of the program's, a text, or what has some as a part: no setting, no layer and no result."""
    if scope.is_tensor(entry) or holders.is_array(entry) or type(entry) in (list, tuple):
        return True
    if type(entry) is str:
        return " " in entry
    if callable(entry) or isinstance(entry, type):
        return False
    if type(entry) is dict:
        return depth > 0 and any(_is_record(part, depth - 1) for part in list(entry.values()))
    return texts.is_users_class(type(entry))
