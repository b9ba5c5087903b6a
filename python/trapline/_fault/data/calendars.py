"""Numbers of a calendar that count from 1: `day.isoweekday()` gives 1 to 7, and a layer with 7 places takes 0
to 6. By what Python's datetime and time and pandas give; where only one place of the program reads such a
number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.program import computed, texts

# The last number of each, by the name of the attribute or method.
_LAST = {
    "isoweekday": 7,
    "month": 12,
    "tm_mon": 12,
    "quarter": 4,
    "day": 31,
    "tm_mday": 31,
    "dayofyear": 366,
    "day_of_year": 366,
    "tm_yday": 366,
    "weekofyear": 53,
}
_SAME = ("values", "to_numpy", "astype", "tolist")  # the same numbers


def calendar_facts(scan: dict[str, Any]) -> Optional[dict[str, Any]]:
    """`text`, `file` and `line` of the expression, its `last` number, and `by`, what it is divided by."""
    value, lo, hi = (scan.get(name) for name in ("value", "lo", "hi"))
    if not (type(value) is type(hi) is int and value == hi and lo == 0 and scan.get("max") == hi):
        return None
    found = [
        (file, node, by)
        for file, tree in texts.user_trees()
        for node, by in _numbers(tree)
        if _LAST[_name(node)] // by == hi and (by > 1 or scan.get("min", 0) >= 1)
    ]
    if len(found) != 1:
        return None
    file, node, by = found[0]
    facts = {"text": computed.text_of(node), "file": file, "line": node.lineno, "last": _LAST[_name(node)]}
    return facts | ({"by": by} if by > 1 else {})


def _numbers(tree: ast.AST) -> Iterator[tuple[ast.expr, int]]:
    """Where the program reads one, and takes nothing off it; and what it divides it by, or 1."""
    above = {child: node for node in texts.nodes_of(tree) for child in ast.iter_child_nodes(node)}
    for name in texts.nodes_of(tree):
        if not isinstance(name, ast.Attribute) or name.attr not in _LAST:
            continue
        number = _called(name, above)
        whole = number
        while isinstance(above.get(whole), ast.Attribute) and above[whole].attr in _SAME:
            whole = _called(above[whole], above)
        around = above.get(whole)
        if isinstance(around, ast.BinOp):
            by = around.right.value if isinstance(around.right, ast.Constant) else None
            divides = isinstance(around.op, ast.FloorDiv) and around.left is whole
            if divides and type(by) is int and by > 1:
                yield number, by
        elif not isinstance(around, (ast.Compare, ast.Attribute)) and not _is_handed_on(whole, around):
            yield number, 1


def _called(node: Any, above: dict[Any, Any]) -> Any:
    """`day.isoweekday` and its call."""
    around = above.get(node)
    return around if isinstance(around, ast.Call) and around.func is node else node


def _is_handed_on(node: Any, around: Any) -> bool:
    """To a function, which may do anything with it."""
    return isinstance(around, ast.Call) and around.func is not node


def _name(node: Any) -> str:
    return str((node.func if isinstance(node, ast.Call) else node).attr)
