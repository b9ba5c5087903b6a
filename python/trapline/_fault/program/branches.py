"""Whether a statement has run on the way to a line: which way an `if` went, by the variables that it asks."""

from __future__ import annotations

import ast
import operator
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import calls, texts
from trapline._fault.program.operands import ARITHMETIC, COMPARISONS

_PLAIN = (int, float, bool, str, type(None))
_COMPARED = {**COMPARISONS, ast.Is: operator.is_, ast.IsNot: operator.is_not}


def ran(frame: FrameType, tree: ast.AST, statement: ast.AST, line: int) -> Optional[bool]:
    """True where no branch around the statement can have gone past it, None where one may have, and False
    where one has. `line` counts as those of the tree; what runs there is in its own branches."""
    known: Optional[bool] = True
    for branch in texts.nodes_of(tree):
        if not isinstance(branch, ast.If) or branch.lineno <= line <= (branch.end_lineno or 0):
            continue
        inside = [_has(part, statement) for part in (branch.body, branch.orelse)]
        if not any(inside):
            continue
        went = _answer(frame, tree, branch, line)
        if went is not None and not inside[0 if went else 1]:
            return False
        known = known if went is not None else None
    return known


def _has(statements: list[ast.stmt], wanted: ast.AST) -> bool:
    return any(one is wanted for statement in statements for one in ast.walk(statement))


def _answer(frame: FrameType, tree: ast.AST, branch: ast.If, line: int) -> Optional[bool]:
    """What the question of an `if` above the line gives, where its variables still are what they were."""
    names = {node.id for node in ast.walk(branch.test) if isinstance(node, ast.Name)}
    # A loop around the line alone has come back to what is below it.
    loops = [node for node in texts.nodes_of(tree) if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]
    last = max(
        (_end(loop) for loop in loops if branch.lineno < loop.lineno <= line <= _end(loop)), default=line
    )
    for node in texts.nodes_of(tree):
        written = isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del))
        if written and node.id in names and branch.lineno <= node.lineno <= last:  # type: ignore[attr-defined]
            return None
    try:
        return bool(_value(frame, branch.test))
    except (ValueError, TypeError, ArithmeticError):
        return None


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _value(frame: FrameType, node: ast.expr) -> Any:
    """Of numbers, texts and their comparisons; ValueError for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        value = calls.resolve(node, frame)
        if type(value) in _PLAIN:
            return value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(frame, node.operand)
    if isinstance(node, ast.BoolOp):
        values = [bool(_value(frame, part)) for part in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        left, right = _value(frame, node.left), _value(frame, node.right)
        if type(left) is int and type(right) is int:
            return ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        left, right = _value(frame, node.left), _value(frame, node.comparators[0])
        return _COMPARED[type(node.ops[0])](left, right)
    raise ValueError(ast.dump(node))
