"""The rows that a step of the program picks by its own text, `X[idx]` or `X[at : at + size]`, whatever became
of them since.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import columns
from trapline._fault.program import calls, holders, loops, places, scope

_MOST = 1 << 16  # rows of a step
_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def by_text() -> Optional[tuple[list[Any], list[int]]]:
    """The program's arrays, as they stand in the text, and the rows of them, by the innermost frame that
    picks any: in the loop around its line, else in its function. None where it picks by several indices."""
    for frame in scope.live_frames():
        if not places.is_user(frame.f_code):
            continue
        found = _picks_of(frame)
        if found:
            several = len({tuple(index) for _, index in found}) > 1
            return None if several else ([held for held, _ in found], found[0][1])
    return None


def _picks_of(frame: FrameType) -> list[tuple[Any, list[int]]]:
    tree = calls.tree_of(frame.f_code)
    if tree is None:
        return []
    loop = loops.innermost(tree, scope.line_of(frame) - calls.first_line(frame.f_code) + 1)
    if loop is None and frame.f_code.co_name == "<module>":
        return []
    found = []
    nodes = [node for node in ast.walk(loop or tree) if isinstance(node, ast.Subscript)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        held = calls.resolve(node.value, frame)
        if not columns.is_data(held):
            continue
        index = _index(_value(node.slice, frame), len(held))
        if index is not None and max(len(index), *index) < len(held):
            found.append((held, index, isinstance(node.slice, ast.Slice)))
    found += [(held, index, False) for held, index in _one_by_one(loop or tree, frame)]
    # A slice may have cut the index itself: `idx = order[at : at + size]`, `x[idx]`.
    by_index = [(held, index) for held, index, is_slice in found if not is_slice]
    return by_index or [(held, index) for held, index, _ in found]


def _one_by_one(tree: Any, frame: FrameType) -> Iterator[tuple[Any, list[int]]]:
    """`[records[i] for i in order[at : at + size]]`: the numbers are no data."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ListComp) or len(node.generators) != 1 or node.generators[0].ifs:
            continue
        target, through = node.generators[0].target, node.generators[0].iter
        numbers = calls.resolve(through, frame)
        if isinstance(through, ast.Subscript) and isinstance(through.slice, ast.Slice):
            whole, cut = calls.resolve(through.value, frame), _value(through.slice, frame)
            is_list = type(whole) in (list, tuple) or holders.is_array(whole)
            numbers = whole[cut] if is_list and cut is not None else None
        for part in ast.walk(node.elt) if isinstance(target, ast.Name) else ():
            if not isinstance(part, ast.Subscript) or getattr(part.slice, "id", "") != target.id:
                continue
            held = calls.resolve(part.value, frame)
            if columns.is_data(held):
                index = _index(list(numbers) if type(numbers) is tuple else numbers, len(held))
                if index is not None and max(len(index), *index) < len(held):
                    yield held, index


def _value(node: Any, frame: FrameType) -> Any:
    """What stands in the brackets: a variable, or a slice between numbers that variables hold."""
    if not isinstance(node, ast.Slice):
        return calls.resolve(node, frame)
    ends = [None if end is None else _number(end, frame) for end in (node.lower, node.upper)]
    known = all(end is None or number is not None for end, number in zip((node.lower, node.upper), ends))
    return slice(*ends) if known and node.step is None and node.upper is not None else None


def _number(node: Any, frame: FrameType) -> Optional[int]:
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _number(node.left, frame), _number(node.right, frame)
        return None if left is None or right is None else _ARITHMETIC[type(node.op)](left, right)
    value = node.value if isinstance(node, ast.Constant) else calls.resolve(node, frame)
    return value if type(value) is int and abs(value) <= _MOST * _MOST else None


def _index(value: Any, length: int) -> Optional[list[int]]:
    """Whole numbers, none twice: which rows."""
    if type(value) is slice:
        numbers = (value.start, value.stop, value.step)
        if any(one is not None and type(one) is not int for one in numbers) or value.step == 0:
            return None
        value = range(*value.indices(length))
        value = list(value) if len(value) <= _MOST else None
    elif holders.is_array(value) and value.ndim == 1 and 1 < len(value) <= _MOST:
        value = value.tolist()
    if type(value) is not list or not 1 < len(value) <= _MOST or any(type(one) is not int for one in value):
        return None
    return value if min(value) >= 0 and len(set(value)) == len(value) else None
