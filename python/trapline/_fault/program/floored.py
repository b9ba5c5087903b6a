"""`days // 30`, which rounds down: what lies a little below 0 becomes -1, and marks nothing."""

from __future__ import annotations

import ast
from typing import Any, Optional

from trapline._fault.program import computed, texts

_COUNTS = ("len", "range", "numel", "size", "count", "shape")  # never below 0


def only_division() -> Optional[dict[str, Any]]:
    """`text`, `file` and `line` of the program's only `//` of something that is no count, and that nothing
    keeps at 0 or above."""
    found = []
    for file, tree in texts.user_trees():
        for function, _ in texts.functions(tree):
            if getattr(function, "name", "") == "__init__":
                continue  # sizes and settings
            nodes = texts.own_nodes(function if function is not None else tree)
            kept = {id(part) for node in nodes if _keeps(node) for part in ast.walk(node)}
            found += [(file, node) for node in nodes if id(node) not in kept and _may_be_negative(node)]
    if len(found) != 1:
        return None
    file, node = found[0]
    return {"text": computed.text_of(node), "file": file, "line": node.lineno}


def _may_be_negative(node: Any) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
        return False
    words = {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node.left)}
    return not isinstance(node.left, ast.Constant) and not words & set(_COUNTS)


def _keeps(node: Any) -> bool:
    """`.clip(lower=0)`, `max(0, ...)`, `% n`, `abs()`."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod)
    if not isinstance(node, ast.Call):
        return False
    name, given = texts.called(node), {one.arg for one in node.keywords}
    if name in ("clip", "clamp"):
        return bool(node.args) or bool(given & {"lower", "min", "a_min"})
    return name in ("max", "maximum", "abs", "clamp_min", "relu", "range")
