"""What a variable was given last, as the source says it: `gain = (gain - gain.mean()) / gain.std()`."""

from __future__ import annotations

import ast
import dis
from types import FrameType
from typing import Any, Callable, NamedTuple, Optional

from trapline._fault.program import computed, frames, holders, owners, scope, texts, written

Facts = dict[str, Any]
_DEPTH = 5


class Assigned(NamedTuple):
    """`facts`: `name` of the variable; `text` and `line` of what it was given, where that is beyond doubt;
    `origin`, the frame of that. `value`: what it holds.
    """

    facts: Facts
    origin: Optional[Facts]
    value: Any = None


def last(is_wanted: Callable[[Any], bool]) -> Optional[Assigned]:
    """Of the first variable of the user's live functions, innermost first, that holds what is wanted."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            if name.isidentifier() and is_wanted(value):
                return _of(frame, name)._replace(value=value)
    return _member(is_wanted)


def _member(is_wanted: Callable[[Any], bool]) -> Optional[Assigned]:
    """Of an object of the program's that is no module: what a method of its class has given it."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            if not name.isidentifier() or scope.is_tensor(value) or owners.is_module(value):
                continue
            for member, held in list(scope.members(value).items()):
                if isinstance(member, str) and is_wanted(held):
                    origin = written.by_module(value, member).get("origin")
                    _, _, text = str((origin or {}).get("code", "")).partition(f".{member} = ")
                    line = {"text": text.strip(), "line": origin["line"]} if origin and text else {}
                    return Assigned({"name": f"{name}.{member}", **line}, origin, held)
    return None


def _of(frame: FrameType, name: str) -> Assigned:
    found = _expression(frame, name, scope.line_of(frame), _DEPTH)
    if found is None:
        return Assigned({"name": name}, None)
    node, line = found
    facts: Facts = {"name": name, "text": computed.text_of(node), "line": line}
    earlier = _earlier(frame, name, node, line)
    if earlier is not None:
        facts["before"] = earlier
    starts = (start for start, number in dis.findlinestarts(frame.f_code) if number == line)
    origin = frames.make_frame((frame.f_code, next(starts, -1)))
    for part in ("column", "end_column"):  # of its first instruction alone
        origin.pop(part, None)
    return Assigned(facts, origin if origin["line"] == line else None)


def _earlier(frame: FrameType, name: str, node: ast.expr, line: int) -> Optional[Facts]:
    """What the variable was before a statement that makes it of itself, `w = w / w.sum()`; of a function of
    the program's what that returns."""
    if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node)):
        found = _expression(frame, name, line, _DEPTH)
        if found is None:
            return None
        node, line = found
        facts: Facts = {"text": computed.text_of(node), "line": line, "file": frame.f_code.co_filename}
    elif isinstance(node, ast.Call):
        facts = {}
    else:
        return None
    inside = texts.returned_by(texts.called(node), None) if isinstance(node, ast.Call) else None
    if inside is not None and isinstance(inside.node, (ast.BinOp, ast.Call)):
        facts = {"text": computed.text_of(inside.node), "line": inside.node.lineno, "file": inside.file}
    return facts or None


def _expression(frame: FrameType, name: str, line: int, depth: int) -> Optional[tuple[ast.expr, int]]:
    """What computes it: a name alone is followed to what that was given."""
    found = computed.binding(frame, name, line) if depth else None
    if found is None:
        return None
    node, at = found
    kept = computed.kept_name(node)
    return (_expression(frame, kept, at, depth - 1) if kept else None) or (node, at)
