"""`boxes = boxes[keep]` below `order = scores.argsort()`: what is indexed was cut after that was made."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import calls, computed, holders, scope, texts
from trapline._fault.program.texts import called

_FUNCTIONS = ("gather", "index_select", "take", "take_along_dim")


def cut_since(indexed: Any, made: dict[str, Any]) -> Optional[dict[str, Any]]:
    """`name` of the variable that is indexed, and `text` and `line` of the statement that made it of itself,
    below the one that made the index (`made`), in the same function."""
    frame = next(iter(holders.user_frames()), None)
    tree = calls.tree_of(frame.f_code) if frame is not None else None
    line = made.get("line")
    if frame is None or tree is None or type(line) is not int:
        return None
    if made.get("file", frame.f_code.co_filename) != frame.f_code.co_filename:
        return None
    now = scope.line_of(frame)
    for name in _indexed(frame, tree, now):
        if frame.f_locals.get(name) is not indexed:
            continue
        found = computed.binding(frame, name, now)
        if found is None or not line < found[1] < now or not _is_cut(found[0], name):
            continue
        if computed.last_bound(frame, name, line) is None and not _is_parameter(frame, name):
            continue
        return {"name": name, "text": computed.text_of(found[0]), "line": found[1]}
    return None


def _indexed(frame: FrameType, tree: Any, now: int) -> list[str]:
    """The variables that the statement which runs takes elements of."""
    line = now - calls.first_line(frame.f_code) + 1
    found = []
    for node in texts.nodes_of(tree):
        if not getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", 0) or 0):
            continue
        if isinstance(node, ast.Subscript):
            found.append(node.value)
        elif isinstance(node, ast.Call) and called(node) in _FUNCTIONS:
            found += [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args[:1]]
    return [node.id for node in found if isinstance(node, ast.Name)]


def _is_cut(node: ast.expr, name: str) -> bool:
    """`boxes[keep]`, `scores[:, 1:]`: some of its own elements."""
    own = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name
    return own and not isinstance(node.slice, ast.Constant)  # type: ignore[attr-defined]


def _is_parameter(frame: FrameType, name: str) -> bool:
    code = frame.f_code
    return name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
