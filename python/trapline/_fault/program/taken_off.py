"""The only statement of the program's that takes a number off labels: `labels = events[:, -1] - 2`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.program import computed, loss_labels, texts

_WRAPS = 3  # int(...), torch.tensor(...), .long()


def from_labels() -> Optional[dict[str, Any]]:
    """`text`, `file`, `line`, and the `number`; None where there are several."""
    found = [
        {"text": computed.text_of(node), "file": file, "line": node.lineno, "number": number}
        for file, tree in texts.user_trees()
        for node, number in _statements(tree)
    ]
    return found[0] if len(found) == 1 else None


def _statements(tree: ast.AST) -> Iterator[tuple[ast.stmt, int]]:
    for node in texts.nodes_of(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub):
            target, number = node.target, _constant(node.value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, number = node.targets[0], _less(node.value)
        else:
            continue
        if number and loss_labels.is_name_of_labels(_name(target)):
            yield node, number


def _less(value: ast.expr) -> int:
    for _ in range(_WRAPS):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
            value = value.func.value
        elif isinstance(value, ast.Call) and value.args:
            value = value.args[0]
    is_less = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)
    return _constant(value.right) if is_less else 0  # type: ignore[attr-defined]


def _constant(value: ast.expr) -> int:
    known = value.value if isinstance(value, ast.Constant) else 0
    return known if type(known) is int and known > 0 else 0


def _name(target: ast.expr) -> str:
    """`labels`, of `self.labels`, of `item["labels"]`, of `df["label"]`."""
    if isinstance(target, ast.Subscript):
        key = target.slice
        return key.value if isinstance(key, ast.Constant) and type(key.value) is str else _name(target.value)
    return getattr(target, "attr", None) or getattr(target, "id", "")
