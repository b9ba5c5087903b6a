"""The rows that a step of the program picks by its own text, `X[idx]`, whatever became of them since."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import columns
from trapline._fault.program import calls, holders, loops, places, scope

_MOST = 1 << 16  # rows of a step


def by_text() -> Optional[tuple[Any, list[int]]]:
    """The program's array, and the rows of it, by the innermost frame that picks any: in the loop around its
    line, else in its function. None where it picks by several indices."""
    for frame in scope.live_frames():
        if not places.is_user(frame.f_code):
            continue
        found = _picks_of(frame)
        if found:
            return found[0] if len({tuple(index) for _, index in found}) == 1 else None
    return None


def _picks_of(frame: FrameType) -> list[tuple[Any, list[int]]]:
    tree = calls.tree_of(frame.f_code)
    if tree is None:
        return []
    loop = loops.innermost(tree, scope.line_of(frame) - calls.first_line(frame.f_code) + 1)
    if loop is None and frame.f_code.co_name == "<module>":
        return []
    found = []
    for node in ast.walk(loop or tree):
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, (ast.Name, ast.Attribute)):
            continue
        index, held = _index(calls.resolve(node.slice, frame)), calls.resolve(node.value, frame)
        if index is not None and columns.is_data(held) and max(len(index), *index) < len(held):
            found.append((held, index))
    return found


def _index(value: Any) -> Optional[list[int]]:
    """Whole numbers, none twice: which rows."""
    if holders.is_array(value) and value.ndim == 1 and 1 < len(value) <= _MOST:
        value = value.tolist()
    if type(value) is not list or not 1 < len(value) <= _MOST or any(type(one) is not int for one in value):
        return None
    return value if min(value) >= 0 and len(set(value)) == len(value) else None
