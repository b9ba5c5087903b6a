"""`torch.arange(x.size(0))`: the dimension that positions are counted along, as the source says it."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import hand
from trapline._fault.program import branches, calls, computed, holders, scope, texts

Facts = dict[str, Any]
_DEPTH = 4


def ranged_facts(positions: Any) -> Optional[Facts]:
    """`name` and `shape` of the tensor of several dimensions, and `dim`, the one that the only `arange`
    behind the positions counts; its `text`, `file` and `line`; `batch`: as many as the batch in hand has
    samples, and no other dimension of the tensor has so many."""
    frame = next(iter(holders.user_frames()), None)
    tree = calls.tree_of(frame.f_code) if frame is not None else None
    if frame is None or tree is None:
        return None
    found = _arange(frame, tree, positions)
    if found is None:
        return None
    call, line = found
    end = _end(call)
    sized = _size(frame, tree, end, line, _DEPTH) if end is not None else None
    if sized is None:
        return None
    name, dim = sized
    counted = frame.f_locals.get(name)
    if not scope.is_tensor(counted) or counted.is_nested or counted.dim() < 2:
        return None
    dim = dim + counted.dim() if dim < 0 else dim
    if not 0 <= dim < counted.dim() or counted.shape[dim] != positions.shape[-1]:
        return None
    facts: Facts = {"name": name, "shape": list(counted.shape), "dim": dim, "line": line}
    facts["text"] = computed.text_of(call)
    facts["file"] = frame.f_code.co_filename
    if list(counted.shape).count(counted.shape[dim]) == 1 and hand.size() == counted.shape[dim]:
        facts["batch"] = True
    return facts


def _arange(frame: FrameType, tree: Any, positions: Any) -> Optional[tuple[ast.Call, int]]:
    """The only one in the statement that runs, or in the assignment of the variable that holds them."""
    first = calls.first_line(frame.f_code) - 1
    line = scope.line_of(frame) - first
    here = [
        node
        for node in texts.nodes_of(tree)
        if isinstance(node, ast.Call)
        and texts.called(node) == "arange"
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if here:
        return (here[0], here[0].lineno + first) if len(here) == 1 else None
    for name, value in scope.variables(frame):
        if value is positions and name.isidentifier():
            bound = computed.binding(frame, name, scope.line_of(frame))
            made = bound and [
                node
                for node in ast.walk(bound[0])
                if isinstance(node, ast.Call) and texts.called(node) == "arange"
            ]
            return (made[0], bound[1]) if bound and made and len(made) == 1 else None
    return None


def _end(call: ast.Call) -> Optional[ast.expr]:
    named = next((given.value for given in call.keywords if given.arg == "end"), None)
    at_zero = len(call.args) > 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    if len(call.args) == 1 or named is not None:
        return named or call.args[0]
    return call.args[1] if at_zero and len(call.args) == 2 else None


def _size(frame: FrameType, tree: Any, node: ast.expr, line: int, depth: int) -> Optional[tuple[str, int]]:
    """(variable, dimension) of `x.size(1)`, `x.shape[1]`, `len(x)`, and of a name that was given one, also
    among others: `B, T = x.shape`."""
    whole = _shape(node)
    if whole is not None and whole[1] is not None:
        return whole[0], whole[1]
    if not isinstance(node, ast.Name) or not depth:
        return None
    first = calls.first_line(frame.f_code) - 1
    own = tree.body[0] if len(tree.body) == 1 and isinstance(tree.body[0], texts.FUNCTION) else tree
    given = [
        (one, place)
        for one in texts.own_nodes(own)
        if isinstance(one, ast.Assign) and one.lineno + first < line
        for place in _places(one.targets[0], node.id)
    ]
    if len(given) != 1 or len(given[0][0].targets) != 1:
        return None
    one, place = given[0]
    if not branches.ran(frame, tree, one, line - first):
        return None
    if place is None:
        return _size(frame, tree, one.value, one.lineno + first, depth - 1)
    if isinstance(one.value, ast.Tuple):
        inside = one.value.elts[place] if place < len(one.value.elts) else node
        return _size(frame, tree, inside, one.lineno + first, depth - 1)
    whole = _shape(one.value)
    return (whole[0], place) if whole is not None and whole[1] is None else None


def _places(target: ast.expr, name: str) -> list[Optional[int]]:
    """Where the name stands in a target: None alone, or its place in a tuple without a star."""
    if isinstance(target, ast.Name):
        return [None] if target.id == name else []
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    if any(isinstance(part, ast.Starred) for part in parts):
        return []
    return [at for at, part in enumerate(parts) if isinstance(part, ast.Name) and part.id == name]


def _shape(node: ast.expr) -> Optional[tuple[str, Optional[int]]]:
    """(variable, dimension) of an expression; no dimension: all sizes of the variable, `x.size()`."""
    if isinstance(node, ast.Subscript):
        around, at = _shape(node.value), _number(node.slice)
        return (around[0], at) if around is not None and around[1] is None and at is not None else None
    if isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name):
        return node.value.id, None
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        return (node.args[0].id, 0) if isinstance(node.args[0], ast.Name) else None
    is_size = isinstance(node.func, ast.Attribute) and node.func.attr == "size"
    if not is_size or not isinstance(node.func.value, ast.Name):  # type: ignore[attr-defined]
        return None
    name = node.func.value.id  # type: ignore[attr-defined]
    if not node.args and not node.keywords:
        return name, None
    at = _number(node.args[0]) if node.args else None
    return None if at is None else (name, at)


def _number(node: ast.expr) -> Optional[int]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
