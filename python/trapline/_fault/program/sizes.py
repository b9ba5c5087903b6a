"""Whether an expression reads nothing but sizes: `(torch.arange(2 * n) + x.size(0)) % (2 * n)`."""

from __future__ import annotations

import ast
import builtins
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

from trapline._fault.program import scope
from trapline._fault.program.texts import called

_OF_SIZE = ("size", "shape", "device", "dtype", "ndim", "dim")
_PLAIN = (int, float, str, bool, type(None), type, ModuleType, FunctionType, BuiltinFunctionType)


def are_alone(frame: FrameType, node: ast.expr) -> bool:
    """No tensor's content, and nothing that the frame does not hold, goes into it."""
    around = {id(part): up for up in ast.walk(node) for part in ast.iter_child_nodes(up)}
    return all(
        _is_size(frame, part, around.get(id(part))) for part in ast.walk(node) if isinstance(part, ast.Name)
    )


def _is_size(frame: FrameType, name: ast.Name, up: Any) -> bool:
    places = (frame.f_locals, frame.f_globals, vars(builtins))
    held = next((place for place in places if name.id in place), None)
    if held is None:
        return False
    value = held[name.id]
    if isinstance(value, _PLAIN) or (type(value).__module__ == "torch" and not scope.is_tensor(value)):
        return True
    if isinstance(up, ast.Attribute):
        own = scope.members(value).get(up.attr)  # self.temperature
        return up.attr in _OF_SIZE if scope.is_tensor(value) else type(own) in (int, float)
    return isinstance(up, ast.Call) and called(up) == "len"
