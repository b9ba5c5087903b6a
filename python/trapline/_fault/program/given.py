"""What the variable with the bad numbers was given last: `target = torch.tensor(bandit.predict(contexts))`.

Of numbers that a computation made computed.py tells more; here is any other call or cut.
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, NamedTuple, Optional

from trapline._fault.program import computed, holders, scope
from trapline._fault.program.texts import WRAPS, called

_DEPTH = 5
_ONWARD = ("next", "collate", "batch_to", "move_to", "to_device")  # hand on what they are given


class _Given(NamedTuple):
    name: str
    node: ast.expr
    line: int


def given_facts(variable: str, tensor: Any) -> Optional[dict[str, Any]]:
    """`name`, `text`, `file` and `line`, of the innermost function that did not just hand the numbers on."""
    held: Any = tensor
    own = variable.isidentifier()
    taken: Optional[tuple[str, int]] = None  # the parameter of the function inside, and its place
    for at, frame in enumerate(holders.user_frames()):
        names = [variable] if own and variable in frame.f_locals else []
        names += [
            name
            for name, value in scope.variables(frame)
            if value is held and name.isidentifier() and name not in names
        ]
        own = own and not names
        found = next(
            filter(None, (_given(frame, name, scope.line_of(frame), _DEPTH) for name in names)), None
        )
        if found is None and not names and (taken is not None or not at):
            found = _written(frame, taken)
        if found is not None:
            text = computed.text_of(found.node)
            file = frame.f_code.co_filename
            return {"name": found.name, "text": text, "file": file, "line": found.line}
        taken = computed.parameter_of(frame, names)
        if taken is None:
            return None
        held = frame.f_locals.get(taken[0])
    return None


def _written(frame: FrameType, taken: Optional[tuple[str, int]]) -> Optional[_Given]:
    """What stands in the call itself: `generator(z, torch.tensor(labels))`, of which `labels` was given more
    than its form."""
    found = computed.argument(frame, taken)
    if found is None:
        return None
    node, line = found
    while isinstance(node, ast.Call) and called(node) in WRAPS and node.args:
        node = node.args[0]
    kept = computed.kept_name(node)
    if kept is not None:
        return _given(frame, kept, line, _DEPTH)
    return _Given("", node, line) if _makes(node) else None


def _given(frame: FrameType, name: str, line: int, depth: int) -> Optional[_Given]:
    found = computed.binding(frame, name, line) if depth else None
    if found is None:
        return None
    node, at = found
    kept = computed.kept_name(node)
    if kept is not None:
        return _given(frame, kept, at, depth - 1)
    return _Given(name, node, at) if _makes(node) else None


def _makes(node: ast.expr) -> bool:
    """A call, arithmetic, or a cut; no entry of a batch."""
    if isinstance(node, ast.Call):
        return called(node) not in _ONWARD
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(isinstance(part, (ast.Slice, ast.Name)) for part in parts)
    return isinstance(node, ast.BinOp)
