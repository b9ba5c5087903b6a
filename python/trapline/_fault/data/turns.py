"""The record that a loop which is over was at in one of its turns: `for one in trips: losses.append(...)`."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import records, rows_of
from trapline._fault.data.samples import Sample
from trapline._fault.program import calls, holders, scope, texts

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.While, ast.For, ast.Break, ast.Continue, *_COMPREHENSIONS)


def of_call(module: Any, back: int, count: Optional[int]) -> Optional[Sample]:
    """What a loop of the user's that is over has drawn for the call of this module that is `back` before the
    last one (0: the last), where each of its turns calls it once. `count`: how often it was called; None: at
    least as often as is known.
    """
    for frame in holders.user_frames():
        tree = calls.tree_of(frame.f_code)
        if tree is None:
            continue
        line = scope.line_of(frame) - calls.first_line(frame.f_code) + 1
        every = texts.nodes_of(tree)
        sites = [
            node
            for node in every
            if isinstance(node, ast.Call)
            and node.lineno <= line
            and calls.resolve(node.func, frame) is module
        ]
        if not sites:
            continue
        if len(sites) != 1:  # which of them made it?
            return None
        loops = [node for node in every if _turns(node, sites[0])]
        return _drawn(frame, loops[0], back, count, line) if len(loops) == 1 else None
    return None


def _turns(loop: Any, site: ast.Call) -> bool:
    """Each turn of the loop comes to that call, once."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        inside = loop.body
    elif isinstance(loop, _COMPREHENSIONS) and len(loop.generators) == 1 and not loop.generators[0].ifs:
        inside = [loop.elt]
    else:
        return False
    nodes = [node for part in inside for node in ast.walk(part)]
    return any(node is site for node in nodes) and not any(isinstance(node, _BRANCHES) for node in nodes)


def _drawn(frame: FrameType, loop: Any, back: int, count: Optional[int], line: int) -> Optional[Sample]:
    if not isinstance(loop, _COMPREHENSIONS) and loop.lineno <= line <= (loop.end_lineno or 0):
        return None  # it is not over
    target, through = (
        (loop.generators[0].target, loop.generators[0].iter)
        if isinstance(loop, _COMPREHENSIONS)
        else (loop.target, loop.iter)
    )
    name, way = getattr(getattr(through, "func", None), "id", ""), getattr(through, "args", [])
    if name == "enumerate" and len(way) == 1 and isinstance(target, ast.Tuple):
        target, through = target.elts[1], way[0]
    sources = way if name == "zip" else [through]
    held = [(one, calls.resolve(one, frame)) for one in sources]
    if not held or any(type(value) not in (list, tuple) for _, value in held):
        return None
    length = min(len(value) for _, value in held)
    if (count is not None and count != length) or not 0 <= back < length:
        return None
    place = length - 1 - back
    for _, value in held:
        entry = value[place]
        found = _numbered(frame, loop, target, entry) if type(entry) is int else rows_of.entry_of(entry)
        if found is not None:
            return {**found, "by": "loop"}
    source, value = held[0]
    if type(value[place]) is int:
        return None
    return {**records.sample(ast.unparse(source), value, length, place, None, likely=True), "by": "loop"}


def _numbered(frame: FrameType, loop: Any, target: Any, number: int) -> Optional[Sample]:
    """The entry of the program's own data that has the number which the loop has drawn: `scans[i]`."""
    if not isinstance(target, ast.Name):
        return None
    found: dict[str, Any] = {}
    for node in ast.walk(loop):
        by = getattr(node, "slice", None)
        if isinstance(node, ast.Subscript) and isinstance(by, ast.Name) and by.id == target.id:
            found[ast.unparse(node.value)] = calls.resolve(node.value, frame)
    kept = {
        name: data
        for name, data in found.items()
        if (type(data) in (list, tuple) or holders.is_array(data)) and 0 <= number < _length(data)
    }
    if not kept:
        return None
    name, data = next(iter(kept.items()))
    return records.sample(name, data, _length(data), number, None, likely=True)


def _length(data: Any) -> int:
    return len(data) if type(data) in (list, tuple) else (data.shape[0] if data.shape else 0)
