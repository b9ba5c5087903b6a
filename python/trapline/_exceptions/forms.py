"""Other ways to write a comparison: `x.ge(n)`, `torch.logical_or(a, b)`, brought to the operators."""

from __future__ import annotations

import ast
from typing import Any

_COMPARES: dict[str, type] = {
    **dict.fromkeys(("gt", "greater"), ast.Gt),
    **dict.fromkeys(("ge", "greater_equal"), ast.GtE),
    **dict.fromkeys(("lt", "less"), ast.Lt),
    **dict.fromkeys(("le", "less_equal"), ast.LtE),
    **dict.fromkeys(("eq",), ast.Eq),
    **dict.fromkeys(("ne", "not_equal"), ast.NotEq),
}
_JOINS: dict[str, type] = {"logical_or": ast.BitOr, "logical_and": ast.BitAnd}
_MODULES = ("torch", "np", "numpy")


class _Operators(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if node.keywords or not isinstance(node.func, ast.Attribute):
            return node
        holder, name = node.func.value, node.func.attr
        functional = isinstance(holder, ast.Name) and holder.id in _MODULES
        given = node.args if functional else [holder, *node.args]
        made: Any = None
        if len(given) == 2 and name in _COMPARES:
            made = ast.Compare(left=given[0], ops=[_COMPARES[name]()], comparators=[given[1]])
        elif len(given) == 2 and name in _JOINS:
            made = ast.BinOp(left=given[0], op=_JOINS[name](), right=given[1])
        elif len(given) == 1 and name == "logical_not":
            made = ast.UnaryOp(op=ast.Invert(), operand=given[0])
        return node if made is None else ast.copy_location(made, node)


def with_operators(tree: ast.AST) -> ast.AST:
    """The same function with operators in place of their methods."""
    return ast.fix_missing_locations(_Operators().visit(tree))


def links(node: ast.Compare) -> list[ast.Compare]:
    """`0 <= x < n` as `0 <= x` and `x < n`."""
    sides = [node.left, *node.comparators]
    return [
        ast.copy_location(ast.Compare(left=left, ops=[op], comparators=[right]), node)
        for left, op, right in zip(sides, node.ops, sides[1:])
    ]
