"""A difference of two infinities of the same sign, or a sum of two of other signs, is NaN."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import calls, computed, holders, scope

_MAX = 1 << 24  # elements


def of_infinities(given: Any, first: int) -> Optional[dict[str, Any]]:
    """`text` and `line` of the only such statement before the line that runs, in the user's innermost frames:
    each side names a tensor that is like the argument and infinite in its bad row."""
    for frame in holders.user_frames():
        tree, begin, now = calls.tree_of(frame.f_code), calls.first_line(frame.f_code), scope.line_of(frame)
        found = {
            (computed.text_of(node), node.lineno + begin - 1)
            for node in ast.walk(tree or ast.Pass())
            if isinstance(node, ast.BinOp)
            and isinstance(node.op, (ast.Sub, ast.Add))
            and node.lineno + begin - 1 < now
            and _cancels(frame, node, given, first)
        }
        if len(found) == 1:
            text, line = found.pop()
            return {"text": text, "line": line}
    return None


def _cancels(frame: FrameType, node: ast.BinOp, given: Any, first: int) -> bool:
    left, right = (list(_rows(frame, side, given, first)) for side in (node.left, node.right))
    for one in left:
        for other in right:
            same = one == other if isinstance(node.op, ast.Sub) else one == -other
            if bool((same & one.isinf()).any()):
                return True
    return False


def _rows(frame: FrameType, node: ast.expr, given: Any, first: int) -> Iterator[Any]:
    """What the variables of an expression have in the argument's row: a softmax spreads a NaN over it."""
    for name in {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}:
        held = frame.f_locals.get(name)
        if not scope.is_tensor(held) or held.shape != given.shape or not 0 < held.numel() <= _MAX:
            continue
        if held.dtype.is_floating_point and held.dim():
            width = int(held.shape[-1])
            yield held.detach().reshape(-1, width)[first // width]
