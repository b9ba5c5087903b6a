"""The only call of an operation in the program, as its text shows: where nothing else tells the line."""

from __future__ import annotations

import ast
from typing import Any

from trapline._fault.program import arisen, calls, holders, source, texts


def place(op: str) -> dict[str, Any]:
    """`origin` of the only such operation on tensors in the whole program; of several the one in a function
    that the innermost one of the user's may call."""
    found = [
        (file, node.lineno, function)
        for file, tree in texts.user_trees()
        for function, _ in texts.functions(tree)
        for node, kind in arisen.operations(function if function is not None else tree, own=True)
        if kind == op and isinstance(node, ast.Call) and not _is_of_numbers(node)
    ]
    if len(found) > 1:
        reached = _reached()
        found = [one for one in found if one[2] is not None and one[2].name in reached]
    if len(found) != 1:
        return {}
    file, number, _ = found[0]
    code = source.line_text(file, number)
    return {"origin": {"file": file, "line": number, "function": "", "code": code, "user": True}}


def _is_of_numbers(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") in (
        "math",
        "np",
        "numpy",
    )


def _reached() -> set[str]:
    """Names of the functions that the innermost one of the user's that runs may call, itself among them; of
    modules what they do when they are called."""
    frame = next(iter(holders.user_frames()), None)
    tree = None if frame is None else calls.tree_of(frame.f_code)
    if frame is None or tree is None or frame.f_code.co_name == "<module>":
        return set()
    bodies: dict[str, list[Any]] = {}
    for _, other in texts.user_trees():
        for function, _ in texts.functions(other):
            if function is not None:
                bodies.setdefault(function.name, []).append(function)
    reached: set[str] = set()
    waiting = {frame.f_code.co_name, "forward"}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        inside = [node for body in bodies.get(name, ()) for node in texts.own_nodes(body)]
        waiting |= {texts.called(node) for node in inside if isinstance(node, ast.Call)} - reached
    return reached
