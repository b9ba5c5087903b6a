"""What the loops around a line have drawn, as the source says."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from trapline._fault.program import calls, scope, texts

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def drawn(frame: FrameType) -> Iterator[list[Any]]:
    """The variables that each loop around a frame's line draws, those of the innermost loop first: the
    targets of `for`, and what `next()` was assigned to inside a `while`."""
    tree = calls.tree_of(frame.f_code)
    if tree is None:
        return
    line = scope.line_of(frame) - calls.first_line(frame.f_code) + 1
    around = [node for node in texts.nodes_of(tree) if _holds(node, line)]
    for loop in sorted(around, key=lambda node: node.lineno, reverse=True):  # type: ignore[attr-defined]
        names = [name.id for part in _targets(loop) for name in ast.walk(part) if isinstance(name, ast.Name)]
        yield [frame.f_locals[name] for name in names if name in frame.f_locals]


@functools.lru_cache(maxsize=64)
def left_over(code: CodeType, line: int) -> frozenset[str]:
    """Variables that a `for` above the line has left behind: it is over, nothing else sets them, and no
    statement from its end to the line reads them."""
    tree = calls.tree_of(code)
    if tree is None:
        return frozenset()
    line -= calls.first_line(code) - 1
    every = texts.nodes_of(tree)
    names = [node for node in every if isinstance(node, ast.Name)]
    statements = [node for node in every if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    here = max((node.end_lineno or 0 for node in statements if node.lineno <= line), default=line)
    found: set[str] = set()
    for loop in texts.nodes_of(tree):
        end = getattr(loop, "end_lineno", 0)
        if not isinstance(loop, (ast.For, ast.AsyncFor)) or end >= line:
            continue
        inside = {id(node) for node in ast.walk(loop)}
        set_here = {node.id for node in names if id(node) in inside and isinstance(node.ctx, ast.Store)}
        found |= set_here - {
            node.id
            for node in names
            if id(node) not in inside
            and (isinstance(node.ctx, ast.Store) or end < node.lineno <= max(here, line))
        }
    return frozenset(found)


def innermost(tree: ast.AST, line: int) -> Any:
    """The `for` around a line of the tree; None where there is none, or a comprehension stands there."""
    around = [
        node
        for node in texts.nodes_of(tree)
        if isinstance(node, (ast.For, ast.AsyncFor)) and _holds(node, line)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def _holds(node: ast.AST, line: int) -> bool:
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):  # not the line that draws, nor `else`
        return node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
    return isinstance(node, _COMPREHENSIONS) and node.lineno <= line <= (node.end_lineno or 0)


def _targets(loop: ast.AST) -> list[ast.expr]:
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        return [loop.target]
    if isinstance(loop, ast.While):
        assigned = [node for node in ast.walk(loop) if isinstance(node, ast.Assign)]
        return [target for node in assigned if _is_next(node.value) for target in node.targets]
    return [part.target for part in loop.generators]  # type: ignore[attr-defined]


def _is_next(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "next"
