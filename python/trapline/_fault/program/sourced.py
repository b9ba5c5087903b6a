"""The statement that made what a variable of a live function holds, where that was given several things at
once, or a member: `index, kind = build(graph)`, `step = self.at`. By the text, from function to function.
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import computed, holders, origins, scope, texts
from trapline._fault.program.creations import At

_ROOTS = (ast.Name, ast.Attribute)


def sourced_facts(variable: str, tensor: Any) -> Optional[dict[str, Any]]:
    """`name`, `text`, `file` and `line`, of the variable of that name, or of one that holds the tensor, in
    the innermost function that was not just given it.
    """
    for depth, frame in enumerate(holders.user_frames()):
        names = [name for name, value in scope.variables(frame) if value is tensor and name.isidentifier()]
        if depth == 0 and _is_in(frame, variable) and variable not in names:
            names.insert(0, variable)
        for name in names:
            found = _origin(frame, name)
            if found is not None:
                return origins.facts_of(found)
        if names and computed.parameter_of(frame, names) is None:
            return None
    return None


def _is_in(frame: FrameType, variable: str) -> bool:
    root = variable.partition(".")[0]
    return variable.replace(".", "").isidentifier() and (root in frame.f_locals)


def _origin(frame: FrameType, name: str) -> Optional[At]:
    at = _at(frame, name)
    plain = name.isidentifier()  # of a member the class tells
    if at is None or (plain and computed.binding(frame, name, scope.line_of(frame), one_of=True) is None):
        return None
    found = origins.origin(at)
    return found if isinstance(found, At) and not isinstance(found.node, _ROOTS) else None


def _at(frame: FrameType, name: str) -> Optional[At]:
    """The variable as it stands on the line that runs."""
    node = ast.parse(name, mode="eval").body
    line = scope.line_of(frame)
    for part in ast.walk(node):
        if isinstance(part, ast.expr):
            part.lineno = part.end_lineno = line
    code = frame.f_code
    tree = texts.tree_of(code.co_filename)
    if tree is None:
        return None
    if code.co_name == "<module>":
        return At(node, code.co_filename, None, None)
    around = texts.function_of(code)
    return None if around is None else At(node, code.co_filename, *around)
