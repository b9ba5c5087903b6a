"""Where the user's source numbers categories with pandas, which has -1 for what it has none for."""

from __future__ import annotations

import ast
from typing import Any, Optional

from trapline._fault.program import calls, holders, texts

_MISSING, _UNKNOWN, _EITHER, _EDGES = "missing", "unknown", "either", "edges"
_CALLS = {"factorize": _MISSING, "get_indexer": _UNKNOWN, "get_indexer_for": _UNKNOWN}
_MAX_TEXT = 80


def codes_facts() -> Optional[dict[str, Any]]:
    """`text` and `line` of the one such place in the functions that run, and what -1 stands for there: `of`,
    "missing", "unknown", "either" (the categories are given) or "edges" (of bins); None where there is none,
    or several."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    seen = set()
    for frame in holders.user_frames():
        if frame.f_code in seen:
            continue
        seen.add(frame.f_code)
        tree = calls.tree_of(frame.f_code)
        for node in texts.nodes_of(tree) if tree is not None else ():
            stands_for = _stands_for(node)
            if stands_for:
                line = node.lineno + calls.first_line(frame.f_code) - 1  # type: ignore[attr-defined]
                text = ast.unparse(node)
                found[frame.f_code.co_filename, line] = {"text": text, "line": line, "of": stands_for}
    facts = next(iter(found.values())) if len(found) == 1 else None
    return facts if facts is not None and len(facts["text"]) <= _MAX_TEXT else None


def _names_categories(node: Any) -> bool:
    """What is none of them is numbered -1, too: another spelling, a new one."""
    if isinstance(node, ast.Attribute):  # of a column, which may have been given them before
        return texts.speak_of("categoricaldtype", "set_categories", "categories=")
    return len(node.args) > 1 or any(given.arg in ("categories", "dtype") for given in node.keywords)


def _stands_for(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute) and node.attr == "codes":
        inner = node.value
        of_column = isinstance(inner, ast.Attribute) and inner.attr == "cat"
        made = isinstance(inner, ast.Call) and getattr(inner.func, "attr", "") == "Categorical"
        if of_column and texts.speak_of("pd.cut(", "pandas.cut(", "qcut("):
            return _EDGES
        if of_column or made:
            return _EITHER if _names_categories(inner) else _MISSING
        return ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _CALLS.get(node.func.attr, "")
    return ""
