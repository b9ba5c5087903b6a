"""What made the tensor that an index is used on: `hits = torch.zeros(len(users))`, of `hits[user] += 1`.

An index may be right, and what it is used on have too few elements.
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import computed, given, holders, scope, texts
from trapline._fault.program.texts import called

_DEPTH = 5


def indexed_facts(indexed: Any) -> Optional[dict[str, Any]]:
    """`name`, `text`, `file` and `line` of the statement that made it, in the innermost function that did not
    just hand it on; a member of the function's own object by the one statement of its class."""
    if not scope.is_tensor(indexed):
        return None
    for frame in holders.user_frames():
        names = [name for name, value in scope.variables(frame) if value is indexed and name.isidentifier()]
        for name in names:
            found = _made(frame, name)
            if found is not None:
                return found
        if names and computed.parameter_of(frame, names) is None:
            return None
        own = frame.f_locals.get("self")
        members = [name for name, value in _members(own) if value is indexed]
        if members:
            return _of_class(type(own), members[0]) if len(members) == 1 else None
    return None


def _facts(name: str, node: ast.expr, file: str, line: int) -> dict[str, Any]:
    return {"name": name, "text": computed.text_of(node), "file": file, "line": line}


def _members(own: Any) -> list[tuple[str, Any]]:
    held = scope.members(own)
    of_module = [held.get("_buffers"), held.get("_parameters")]
    return [item for part in (held, *of_module) if type(part) is dict for item in list(part.items())]


def _made(frame: FrameType, name: str) -> Optional[dict[str, Any]]:
    line = scope.line_of(frame)
    made: Optional[dict[str, Any]] = None
    for _ in range(_DEPTH):
        found = computed.binding(frame, name, line) or computed.binding(frame, name, line, one_of=True)
        if found is None:
            return made
        node, line = found
        if _says_size(node):
            file = frame.f_code.co_filename
            made = _facts(texts.given_to(node, file, line) or name, node, file, line)
        kept = computed.kept_name(given.viewed(_like(node)))
        if kept is None:
            return made
        name = kept
    return made


def _says_size(node: ast.expr) -> bool:
    return given.makes(node) or isinstance(node, ast.IfExp)  # torch.ones(n) if weight is None else weight


def _like(node: ast.expr) -> ast.expr:
    """`x` of `torch.zeros_like(x)`, which says how large that is."""
    return (
        node.args[0] if isinstance(node, ast.Call) and called(node).endswith("_like") and node.args else node
    )


def _of_class(kind: type, member: str) -> Optional[dict[str, Any]]:
    found = given.member_values(kind, member)
    if len(found) != 1 or not _says_size(found[0][1]):
        return None
    file, value = found[0]
    return _facts(f"self.{member}", value, file, value.lineno)
