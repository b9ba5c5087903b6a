"""From the failing line back to the loop that the numbers came in by: `for images, labels in loader`.

By the text of the live functions alone: names are followed through views, through the calls between the
functions, and through what takes a batch apart, `x, y = batch`, `batch["label"]`.
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, NamedTuple, Optional, Union

from trapline._fault.program import calls, frames, holders, places, scope, source, texts
from trapline._fault.program.functions import KEEPS
from trapline._fault.program.texts import WRAPS, called

_DEPTH = 12
_MOST = 1 << 20
_ONWARD = ("tqdm", "trange", "list", "iter", "track")  # each gives out what it goes over
_MOVES = ("float", "double", "half", "bfloat16", "byte", "requires_grad_", "pin_memory", "tolist")
_INLINE = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
_CALLS = ("torch/nn/modules/module.py", "torch/utils/_contextlib.py", "torch/amp/autocast_mode.py")
Key = Union[int, str]


class Called(NamedTuple):
    """What a function gave: `for x, y in batches(data)`, `x, y = get_batch("train")`."""

    name: str


class Handed(NamedTuple):
    """What a library's loop gave a function of the program's: `training_step(self, batch)`."""

    value: Any


class Entered(NamedTuple):
    """`source`: what the loop goes over. `path`: the places in what it gives, the outermost first."""

    source: Any
    path: tuple[Key, ...]


class _At(NamedTuple):
    """A name, the frames from its own one outwards, the line before which it was given what it has, and the
    places in it that the numbers stand at."""

    name: str
    frames: list[FrameType]
    line: int
    path: tuple[Key, ...]


def entered(variable: str, tensor: Any) -> Optional[Entered]:
    """Of the variable with the bad numbers; None where the text leaves that open."""
    live = holders.user_frames()
    for depth, frame in enumerate(live):
        names = [variable] if variable in frame.f_locals else []
        names += [name for name, value in scope.variables(frame) if value is tensor and name not in names]
        here: list[Union[_At, Entered, None]] = [
            _At(name, live[depth:], scope.line_of(frame), ()) for name in names
        ]
        if not names and depth == 0:
            here += _in_call(live, tensor)
        for begin in here:
            at = begin
            for _ in range(_DEPTH):
                if not isinstance(at, _At):
                    break
                at = _before(at)
            if isinstance(at, Entered):
                return at
        if here:
            return None
    return None


def _in_call(live: list[FrameType], tensor: Any) -> list[Union[_At, Entered, None]]:
    """What stands in the failing call itself, of a variable with all of the numbers: `loss(x[k], y[k])`."""
    frame = live[0]
    found: list[Union[_At, Entered, None]] = []
    for one in _arguments(frame):
        at = None if isinstance(one, ast.Name) else _of(one, _At("", live, scope.line_of(frame), ()), ())
        if isinstance(at, _At) and _holds_all(_part(frame.f_locals.get(at.name), at.path), tensor):
            found.append(at)
    return found if len(found) == 1 else []


def names_in_call() -> set[str]:
    """The variables in the arguments of the failing call; none where it hands variables on as they are, or
    the text of the innermost function does not tell."""
    frame = next(iter(holders.user_frames()), None)
    given = [] if frame is None else _arguments(frame)
    if all(isinstance(one, (ast.Name, ast.Constant)) for one in given):
        return set()
    return {part.id for one in given for part in ast.walk(one) if isinstance(part, ast.Name)}


def _arguments(frame: FrameType) -> list[ast.expr]:
    """What stands in the call or between the brackets that a frame is at."""
    node = _running(frame, (ast.Call, ast.Subscript))
    if isinstance(node, ast.Subscript):
        return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [] if node is None else [*node.args, *(word.value for word in node.keywords)]


def _part(value: Any, path: tuple[Key, ...]) -> Any:
    """What a batch has at these places; None where they are not to be had without the program's own code."""
    for key in path:
        at_hand = type(value) is dict or (type(value) in (list, tuple) and type(key) is int)
        if not at_hand or (key not in value if type(value) is dict else not -len(value) <= key < len(value)):
            return None
        value = value[key]
    return value


def _holds_all(value: Any, tensor: Any) -> bool:
    import torch

    alike = scope.is_tensor(value) and value.dtype is tensor.dtype and not value.dtype.is_floating_point
    if not alike or not 0 < tensor.numel() <= value.numel() <= _MOST:
        return False
    if not (scope.is_at_hand(value) and scope.is_at_hand(tensor)):
        return False
    return bool(torch.isin(tensor.detach(), value.detach()).all())


def _before(at: _At) -> Union[_At, Entered, None]:
    """One step further back."""
    frame = at.frames[0]
    tree = calls.tree_of(frame.f_code)
    if tree is None:
        return None
    first = calls.first_line(frame.f_code) - 1
    here = at.line - first
    bound = [
        (node, path, value)
        for node in texts.nodes_of(tree)
        for path, value in _bindings(node, at.name)
        if node.lineno < here or (isinstance(node, (ast.For, ast.AsyncFor)) and node.lineno == here)
    ]
    if not bound and frame.f_code.co_name in _INLINE and at.frames[1:]:
        return at._replace(frames=at.frames[1:], line=scope.line_of(at.frames[1]))
    if not bound:
        return _given(at)
    node, path, value = max(bound, key=lambda one: one[0].lineno)
    if sum(one.lineno == node.lineno for one, _, _ in bound) > 1 or path is None or value is None:
        return None
    path = (*path, *at.path)
    if isinstance(node, (ast.For, ast.AsyncFor)):
        inside = node.body[0].lineno <= here <= (node.body[-1].end_lineno or 0)
        return _drawn(frame, value, path) if inside else None
    return _of(value, at._replace(line=node.lineno + first), path)


def _bindings(node: Any, name: str) -> list[tuple[Optional[tuple[Key, ...]], Optional[ast.expr]]]:
    """The place of the name in what a statement gives out, and that; (None, None) where that is open."""
    if isinstance(node, ast.Assign):
        found = [(place_of(target, name), node.value) for target in node.targets if _holds(target, name)]
        return [(path, value if path is not None else None) for path, value in found]
    if isinstance(node, (ast.For, ast.AsyncFor)) and _holds(node.target, name):
        return [(place_of(node.target, name), node.iter)]
    if isinstance(node, ast.AnnAssign) and node.value is not None and _holds(node.target, name):
        return [((), node.value)]
    changed = isinstance(node, (ast.AugAssign, ast.NamedExpr)) and _holds(node.target, name)
    with_name = isinstance(node, ast.With) and any(
        item.optional_vars is not None and _holds(item.optional_vars, name) for item in node.items
    )
    return [(None, None)] if changed or with_name else []


def _holds(target: ast.expr, name: str) -> bool:
    return any(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
        for part in ast.walk(target)
    )


def place_of(target: ast.expr, name: str) -> Optional[tuple[Key, ...]]:
    if isinstance(target, ast.Name):
        return () if target.id == name else None
    for place, part in enumerate(target.elts if isinstance(target, (ast.Tuple, ast.List)) else ()):
        if isinstance(part, ast.Starred):
            return None
        inside = place_of(part, name)
        if inside is not None:
            return (place, *inside)
    return None


def _of(node: ast.expr, at: _At, path: tuple[Key, ...]) -> Union[_At, Entered, None]:
    """The name that an expression hands on, and the place in that."""
    for _ in range(_DEPTH):
        if isinstance(node, ast.Call):
            of_method = isinstance(node.func, ast.Attribute) and called(node) in (*KEEPS, *_MOVES)
            if of_method:
                node = node.func.value  # type: ignore[attr-defined]
            elif called(node) in WRAPS and node.args:
                node = node.args[0]
            elif called(node) == "next" and node.args:
                return _drawn(at.frames[0], node.args[0], path)
            else:
                return Entered(Called(called(node)), path)
        elif isinstance(node, ast.Subscript):
            key = node.slice
            if isinstance(key, ast.Constant) and type(key.value) in (int, str):
                path = (key.value, *path)  # of a tensor it is a row: then no data set has that place
            elif not (_is_cut(key) or _is_tensor(node.value, at)):  # some rows of it, x[mask]
                return None
            node = node.value
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            path, node = (node.attr, *path), node.value
        else:
            break
    return at._replace(name=node.id, path=path) if isinstance(node, ast.Name) and node.id != "self" else None


def _is_tensor(node: ast.expr, at: _At) -> bool:
    return isinstance(node, ast.Name) and scope.is_tensor(at.frames[0].f_locals.get(node.id))


def _is_cut(key: ast.expr) -> bool:
    if isinstance(key, ast.Tuple):  # of several dimensions: a column, by whatever number
        return any(isinstance(part, ast.Slice) or getattr(part, "value", 0) is ... for part in key.elts)
    return isinstance(key, (ast.Slice, ast.Constant))


def _given(at: _At) -> Union[_At, Entered, None]:
    """What the function's caller gave it for the parameter."""
    code = at.frames[0].f_code
    own = [name for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if name != "self"]
    if at.name not in own:
        return None
    if _is_between(at.frames[0]):
        return Entered(Handed(at.frames[0].f_locals.get(at.name)), at.path)
    outer = at.frames[1:]
    if not outer:
        return None
    call = _running(outer[0])
    if call is None or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    words = [word.value for word in call.keywords if word.arg == at.name]
    node = next(iter(words), None)
    place = own.index(at.name)
    if node is None and place < len(call.args):
        node = call.args[place]
    if node is None:
        return None
    found = _of(node, _At("", outer, scope.line_of(outer[0]), ()), at.path)
    return found


def _is_between(frame: FrameType) -> bool:
    """A library has called the function, and it is not PyTorch's call of a module."""
    live = scope.live_frames()
    at = next((at for at, one in enumerate(live) if one is frame), len(live))
    for outer in live[at + 1 :]:
        name = outer.f_code.co_filename.replace("\\", "/")
        if places.is_user(outer.f_code):
            return False
        if not name.endswith(_CALLS):
            return True
    return False


def _running(frame: FrameType, kinds: Any = ast.Call) -> Any:
    """The call that a frame is in, or what else of these kinds."""
    line, end, column, end_column = frames.position(frame.f_code, frame.f_lasti)
    tree = calls.tree_of(frame.f_code)
    if tree is None or end is None or not places.is_user(frame.f_code):
        return None
    first = calls.first_line(frame.f_code) - 1
    text = source.line_text(frame.f_code.co_filename, first + 1)
    indent = 0 if frame.f_code.co_name == "<module>" else len(text) - len(text.lstrip())
    found = [
        node
        for node in texts.nodes_of(tree)
        if isinstance(node, kinds)
        and node.lineno + first == line
        and (node.end_lineno or 0) + first == end
        and (node.col_offset + indent, (node.end_col_offset or 0) + indent) == (column, end_column)
    ]
    return found[0] if len(found) == 1 else None


def _drawn(frame: FrameType, node: ast.expr, path: tuple[Key, ...]) -> Optional[Entered]:
    """The object that a loop goes over: of `enumerate(loader)` what stands in it."""
    for _ in range(_DEPTH):
        if not isinstance(node, ast.Call) or not node.args:
            break
        if called(node) == "enumerate":
            if path[:1] != (1,):
                return None
            path = path[1:]
        elif called(node) not in _ONWARD:
            break
        node = node.args[0]
    if isinstance(node, ast.Call):
        return Entered(Called(called(node)), path)
    held = calls.resolve(node, frame)
    return None if held is calls.MISSING else Entered(held, path)
