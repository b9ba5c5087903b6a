"""The line of the program that called a module, by its text: the module itself keeps no trace of that."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import FrameType
from typing import Any

from trapline._fault.program import arisen, branches, calls, holders, scope, texts


def line_of(modules: Iterable[Any]) -> dict[str, Any]:
    """`origin` of the last call of one of these that has run, in the innermost of the user's frames that has
    such a call; {} where several lines may be the one."""
    wanted = {id(module) for module in modules}
    for frame in holders.user_frames():
        lines = _lines(frame, wanted)
        if lines:
            return arisen.origin_of(frame.f_code, *lines) if len(lines) == 1 else {}
    return {}


def _lines(frame: FrameType, wanted: set[int]) -> set[int]:
    tree = calls.tree_of(frame.f_code)
    first = calls.first_line(frame.f_code) - 1
    line = scope.line_of(frame) - first
    return {
        node.lineno + first
        for node in (texts.nodes_of(tree) if tree is not None else ())
        if isinstance(node, ast.Call)
        and node.lineno <= line
        and id(calls.resolve(node.func, frame)) in wanted
        and branches.ran(frame, tree, node, line) is not False
    }
