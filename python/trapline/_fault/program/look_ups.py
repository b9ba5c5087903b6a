"""The only look-up of the program's that gives -1 for what it does not find, in what some size is the length
of: `letters.find(c)` beside `len(letters)`, `classes.get(name, -1)` beside `len(classes)`."""

from __future__ import annotations

import ast
from typing import Any, Optional

from trapline._fault.program import texts

_MAX_TEXT = 80
_FINDS = ("find", "rfind")


def of_nothing() -> Optional[dict[str, Any]]:
    """`text`, `file` and `line`; None where there are several, or none."""
    calls = [
        (file, node)
        for file, tree in texts.user_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    ]
    found = {
        (file, call.lineno, ast.unparse(call)): ast.unparse(call.func.value)  # type: ignore[attr-defined]
        for file, call in calls
        if _gives_nothing(call)
    }
    if len(found) != 1:
        return None
    (file, line, text), looked_in = found.popitem()
    sized = any(ast.unparse(call) == f"len({looked_in})" for _, call in calls)
    return {"text": text, "file": file, "line": line} if sized and len(text) <= _MAX_TEXT else None


def _gives_nothing(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in _FINDS:  # of a constant: a part of a text, a tag of XML
        return len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Constant)
    return call.func.attr == "get" and len(call.args) == 2 and ast.unparse(call.args[1]) == "-1"
