"""What the variable with the bad numbers was given last: `target = torch.tensor(bandit.predict(contexts))`.

Of numbers that a computation made computed.py tells more; here is any other call or cut.
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, NamedTuple, Optional

from trapline._fault.program import calls, computed, holders, scope, texts
from trapline._fault.program.functions import EMPTY, KEEPS
from trapline._fault.program.texts import WRAPS, called

_DEPTH = 5
_LIMITS = ("clamp", "clip", "clamp_min", "clamp_max")  # which keep a NaN, and make none
_SOME = ("where", "masked_fill", "nan_to_num", *_LIMITS)
_FORMS = {*KEEPS, *_LIMITS, "float", "double"}
_READS = (
    *("print", "pprint", "display", "info", "debug", "log", "write", "save", "show", "plot", "imshow"),
    *("hist", "append", "extend", "add", "put"),
)
_ONWARD = ("next", "collate", "batch_to", "move_to", "to_device")  # hand on what they are given


class _Given(NamedTuple):
    name: str
    node: ast.expr
    line: int
    entered: bool = False


def given_facts(variable: str, tensor: Any) -> Optional[dict[str, Any]]:
    """`name`, `text`, `file` and `line`, of the innermost function that did not just hand the numbers on.
    `entered`: it is no tensor yet (of NumPy, a list), and is made one behind that."""
    if variable.startswith("self."):
        return _of_member(variable)
    held: Any = tensor
    own = variable.isidentifier()
    taken: Optional[tuple[str, int]] = None  # the parameter of the function inside, and its place
    for depth, frame in enumerate(holders.user_frames()):
        innermost = depth == 0
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
        if found is None and not names and (taken is not None or innermost):
            found = _written(frame, taken)
        if found is not None:
            text = computed.text_of(found.node)
            file = frame.f_code.co_filename
            facts = {"name": found.name, "text": text, "file": file, "line": found.line}
            return {**facts, "entered": True} if found.entered or _is_wrapped(found.node) else facts
        taken = computed.parameter_of(frame, names)
        if taken is None:
            return None
        held = frame.f_locals.get(taken[0])
    return None


def _of_member(variable: str) -> Optional[dict[str, Any]]:
    """The only statement of the class that gives `self.weights` something that is made there."""
    name = variable[len("self.") :]
    holder = next((f.f_locals["self"] for f in holders.user_frames() if "self" in f.f_locals), None)
    if holder is None or not name.isidentifier():
        return None
    found = member_values(type(holder), name)
    if len(found) != 1 or not makes(found[0][1]):
        return None
    file, value = found[0]
    if isinstance(value, ast.Call) and called(value) in EMPTY:
        return None
    return {"name": variable, "text": computed.text_of(value), "file": file, "line": value.lineno}


def member_values(kind: type, member: str) -> list[tuple[str, ast.expr]]:
    """(file, value) of each statement of a class that gives a member something; a buffer is given one."""
    return [
        (file, value)
        for at_class, file in texts.classes(kind)
        for node in ast.walk(at_class)
        for value in _values(node, member)
    ]


def _values(node: Any, member: str) -> list[ast.expr]:
    if isinstance(node, ast.Assign) and f"self.{member}" in map(ast.unparse, node.targets):
        none = isinstance(node.value, ast.Constant) and node.value.value is None
        return [] if none else [node.value]
    if isinstance(node, ast.Call) and called(node) == "register_buffer":
        return node.args[1:2] if getattr(next(iter(node.args), None), "value", None) == member else []
    return []


def _written(frame: FrameType, taken: Optional[tuple[str, int]]) -> Optional[_Given]:
    """What stands in the call itself: `generator(z, torch.tensor(labels))`, of which `labels` was given more
    than its form."""
    found = computed.argument(frame, taken, alone=taken is None)
    if found is None:
        return None
    node, line = found
    while isinstance(node, ast.Call) and called(node) in WRAPS and node.args:
        node = node.args[0]
    kept = computed.kept_name(node)
    if kept is not None:
        return _given(frame, kept, line, _DEPTH)
    return _Given("", node, line) if makes(node) else None


def _given(frame: FrameType, name: str, line: int, depth: int) -> Optional[_Given]:
    found = computed.binding(frame, name, line) if depth else None
    if found is None:
        wrote = _filled(frame, name, 0, line, by_calls=False)
        last = computed.last_bound(frame, name, line)
        if wrote is None or last is None or last > wrote.line:
            return None
        # Into what had numbers of its own it wrote a part, and which part has the bad one is not known.
        before = computed.binding(frame, name, wrote.line)
        empty = before is None or (isinstance(before[0], ast.Call) and called(before[0]) in EMPTY)
        return wrote if empty or "inf" in ast.unparse(wrote.node) else None
    node, at = found
    kept = computed.kept_name(viewed(node)) or _changed(node, name)
    if kept is not None:
        earlier = _given(frame, kept, at, depth - 1)
        handed_on = isinstance(_unwrapped(node), ast.Name)  # else it may have put a NaN there itself
        return earlier and earlier._replace(entered=handed_on and (earlier.entered or _is_wrapped(node)))
    if isinstance(node, ast.Call) and called(node) in EMPTY:
        return _filled(frame, name, at, line)
    return _Given(name, node, at) if makes(node) else None


def viewed(node: ast.expr) -> ast.expr:
    """`x` of `x[:, None, :].expand(2, -1, 3)`: all of it in another shape."""
    outer = node
    while isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and called(outer) in KEEPS:
        outer = outer.func.value
    while isinstance(outer, ast.Subscript) and all(map(_is_whole, _parts(outer))):
        outer = outer.value
    return outer if isinstance(outer, ast.Name) else node


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_whole(part: ast.expr) -> bool:
    if isinstance(part, ast.Slice):
        return part.lower is None and part.upper is None and part.step is None
    return isinstance(part, ast.Constant) and part.value in (None, ...)


def _changed(node: ast.expr, name: str) -> Optional[str]:
    """`y = torch.where(known, y, zeros)`: some of its elements were given others; `p = torch.tensor(p)`."""
    inside = _unwrapped(node)
    if _is_wrapped(node) and isinstance(inside, ast.Name):
        return name if inside.id == name else None
    some = isinstance(node, ast.Call) and called(node) in _SOME
    holds = any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
    return name if some and holds else None


def _unwrapped(node: ast.expr) -> ast.expr:
    """`p` of `torch.as_tensor(p, dtype=torch.float32).clamp(0, 1)`."""
    while isinstance(node, ast.Call):
        if called(node) in WRAPS and node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and called(node) in _FORMS:
            node = node.func.value
        else:
            break
    return node


def _is_wrapped(node: ast.expr) -> bool:
    """`torch.as_tensor(...)`, whatever form it is given behind that."""
    while isinstance(node, ast.Call) and called(node) not in WRAPS:
        if not isinstance(node.func, ast.Attribute) or called(node) not in _FORMS:
            return False
        node = node.func.value
    return isinstance(node, ast.Call)


def _filled(frame: FrameType, name: str, begin: int, end: int, by_calls: bool = True) -> Optional[_Given]:
    """What writes into a tensor, the last of it: `t[i] = label`, `t.fill_(0)`; and, `by_calls`, what may,
    `match(boxes, t)`."""
    tree = calls.tree_of(frame.f_code)
    first = calls.first_line(frame.f_code) - 1
    found: list[_Given] = []
    for node in texts.nodes_of(tree) if tree is not None else ():
        line = getattr(node, "lineno", 0) + first
        if not begin < line < end:
            continue
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if _base(target) == name:
                found.append(_Given(ast.unparse(target), node.value, line))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            own = _base(getattr(call.func, "value", None)) == name and called(call).endswith(
                "_"
            )  # t[i].fill_(7)
            given = [*call.args, *(word.value for word in call.keywords)]
            other = by_calls and called(call) not in _READS and name in map(_base, given)
            if own or other:
                found.append(_Given("", call, line))
    return max(found, key=lambda one: one.line, default=None)


def _base(node: Any) -> Optional[str]:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def makes(node: ast.expr) -> bool:
    """A call, arithmetic, or a cut; no entry of a batch."""
    if isinstance(node, ast.Attribute) and node.attr in ("values", "indices"):  # x.min(dim=1).values
        node = node.value
    if isinstance(node, ast.Call):
        return called(node) not in _ONWARD
    if isinstance(node, ast.Subscript):
        return any(isinstance(part, (ast.Slice, ast.Name)) and not _is_whole(part) for part in _parts(node))
    return isinstance(node, (ast.BinOp, ast.ListComp))
