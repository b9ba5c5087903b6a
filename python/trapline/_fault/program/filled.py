"""Where the program gives the number of classes, or of rows, itself: to what is none of them (background, an
unknown word)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.program import texts

_FILLS = ("full", "full_like", "new_full", "fill_", "masked_fill", "masked_fill_", "where", "index_fill")
_MAX_TEXT = 80


def filled_with(made: list[dict[str, Any]]) -> Optional[dict[str, Any]]:
    """`text`, `file` and `line` of the only expression that fills a tensor with the number that the layer was
    made by (`made`), or answers with it; None where there is none, or several."""
    names = {str(step["text"]).rpartition("=")[2].rpartition(".")[2].strip() for step in made}
    found = {
        (file, node.lineno): node
        for file, tree in texts.user_trees()
        for node, value in _fills(tree)
        if _leaf(value) in names - {""}
    }
    if len(found) != 1:
        return None
    (file, line), node = found.popitem()
    text = ast.unparse(node)
    return {"text": text, "file": file, "line": line} if len(text) <= _MAX_TEXT else None


def _fills(tree: Any) -> Iterator[tuple[Any, ast.expr]]:
    """Each call or assignment that fills, with what it may fill with."""
    for node in texts.nodes_of(tree):
        if isinstance(node, ast.Call) and texts.called(node) in _FILLS:
            for value in [*node.args, *(given.value for given in node.keywords)]:
                yield node, value
        elif isinstance(node, ast.Call) and texts.called(node) == "get" and len(node.args) == 2:
            yield node, node.args[1]
        elif isinstance(node, ast.IfExp):
            yield from ((node, value) for value in (node.body, node.orelse))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            yield node, node.value


def _leaf(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))
