"""Where the program's own text writes gradients or weights, besides `backward` and the optimizer's step."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import partial
from types import CodeType, FrameType
from typing import Any, Callable

from trapline._fault.program import arisen, calls, holders, owners, places, scope, texts

_DEEP = 2  # a trainer's handler, its callbacks
_MOST = 64
_KEEP = ("zero_", "requires_grad_")  # in place, and no number of it
_LOADED = ("optim", "sched", "scaler", "sampler")  # what else a state is loaded into
_WEIGHTS = ("weight", "bias")
_SOURCES = ("parameters", "named_parameters", "param_groups", "params", "weights", "state_dict")
Writes = Callable[[ast.AST, ast.AST], bool]  # (statement or call, the function that it stands in)


def gradients() -> dict[str, Any]:
    """`origin` of the only statement between `backward` and the line that runs that writes gradients, in the
    user's function or in one that it calls there; {} where there are none or several."""
    for frame in holders.user_frames():
        tree, now = calls.tree_of(frame.f_code), _now(frame)
        since = max((line for line in _calls_of(tree, "backward") if line < now), default=None)
        if since is not None:
            return _only(frame, partial(_is_between, since, now), _writes_gradient)
    return {}


def weights(since: str, name: str = "") -> dict[str, Any]:
    """The same of weights, first of those of this name (`linear.bias`): since the `"backward"` of this step,
    the optimizer's `"step"`, or the `"loss"` of the step before, of which the loop is all there is."""
    for frame in holders.user_frames():
        tree, now = calls.tree_of(frame.f_code), _now(frame)
        if since == "backward":
            first = max((line for line in _calls_of(tree, "backward") if line < now), default=now)
            is_there = partial(_is_between, first, now)
        else:  # the loop comes round to the line that runs
            loop = _loop_around(tree, now)
            steps = _calls_of(loop, "step")
            if loop is None or not (steps or since == "step"):
                continue
            # Where a function takes the step, this turn of the loop is what is known to come after it.
            first = min(steps, default=loop.end_lineno) if since == "step" else now - 1
            is_there = partial(_is_in_turn, loop, first, now)
        leaf = name.rpartition(".")[2]
        found = _only(frame, is_there, partial(_writes_named, leaf)) if leaf else {}
        found = found or _only(frame, is_there, _writes_weight)
        if found:
            return found
    return {} if since == "backward" else _by_callback()


def weights_before(name: str) -> dict[str, Any]:
    """The same of weights that no optimizer has stepped with: before the line that runs, in each function."""
    for frame in holders.user_frames():
        is_there = partial(_is_between, 0, _now(frame))
        found = _only(frame, is_there, partial(_writes_named, name.rpartition(".")[2])) if name else {}
        found = found or _only(frame, is_there, _writes_weight)
        if found:
            return found
    return {}


def by_loop(name: str) -> dict[str, Any]:
    """The same of weights that no optimizer has: before the line that runs, or behind it in its loop."""
    return weights_before(name) or weights("step", name)


def _told(code: CodeType, line: int) -> dict[str, Any]:
    """`origin` of the statement; `divides`: `text` and `line` of the only division in its function."""
    tree = calls.tree_of(code)
    divisions = [
        node
        for node in ast.walk(tree or ast.Pass())
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not _is_number(node.right)
    ]
    facts = arisen.origin_of(code, line)
    if len(divisions) == 1 and code.co_name != "<module>":
        at = divisions[0].lineno + calls.first_line(code) - 1
        facts["divides"] = {"text": ast.unparse(divisions[0]), "line": at, "file": code.co_filename}
    return facts


def _is_number(node: ast.expr) -> bool:
    return all(
        isinstance(part, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop))
        for part in ast.walk(node)
    )


def _by_callback() -> dict[str, Any]:
    """The only statement that writes weights in the classes of the user's that a trainer calls back."""
    kinds = {
        type(one)
        for frame in scope.live_frames()
        for one in _called_back(list(frame.f_locals.values()), _DEEP)
    }
    found: set[tuple[CodeType, int]] = set()
    for kind in kinds:
        for function in vars(kind).values():
            code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
            found |= set() if code is None else set(_inside(code, _writes_weight))
    return arisen.origin_of(*found.pop()) if len(found) == 1 else {}


def _called_back(values: list[Any], depth: int) -> Iterator[Any]:
    """Objects of the user's classes in lists that the values hold, or what these hold."""
    for value in values[:_MOST]:
        if isinstance(value, (list, tuple)):
            yield from (one for one in value[:_MOST] if not callable(one) and texts.is_users_class(type(one)))
        elif depth and not owners.is_module(value) and not scope.is_tensor(value):
            yield from _called_back(list(scope.members(value).values()), depth - 1)


def by_module(module: Any, name: str) -> dict[str, Any]:
    """`origin` of the only statement of a module's class, the user's or a library's, that writes a weight of
    its own."""
    found = set()
    for _, code, tree in methods_of(module):
        for node in ast.walk(tree) if code.co_name != "__init__" else ():
            if any(_is_own(target, name) for target in _target_of(node)):
                found.add((code, node.lineno + calls.first_line(code) - 1))
    return arisen.origin_of(*found.pop()) if len(found) == 1 else {}


def methods_of(module: Any) -> Iterator[tuple[type, CodeType, ast.AST]]:
    """(class, code, its tree) of the functions of a module's classes, but those of PyTorch's base class."""
    for kind in type(module).__mro__:
        if kind.__module__.startswith("torch.nn.modules.module"):
            break
        for function in vars(kind).values():
            code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
            tree = None if code is None else calls.tree_of(code)
            if code is not None and tree is not None:
                yield kind, code, tree


def _is_own(target: Any, name: str) -> bool:
    whole = _without_data(target.value if isinstance(target, ast.Subscript) else target)
    held = isinstance(whole, ast.Attribute) and whole.attr == name and isinstance(whole.value, ast.Name)
    return held and whole.value.id == "self"


def _loop_around(tree: Any, line: int) -> Any:
    """The innermost one."""
    loops = [
        node
        for node in ast.walk(tree or ast.Pass())
        if isinstance(node, (ast.For, ast.While)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(loops, key=lambda node: node.lineno, default=None)


def _is_between(first: int, last: int, line: int) -> bool:
    return first < line < last


def _is_in_turn(loop: Any, first: int, now: int, line: int) -> bool:
    """From behind one line of a loop round to another one."""
    return loop.lineno <= line <= loop.end_lineno and (line > first or line < now)


def _now(frame: FrameType) -> int:
    """In lines of the function's text, as its tree counts them."""
    return scope.line_of(frame) - calls.first_line(frame.f_code) + 1


def _calls_of(tree: Any, name: str) -> list[int]:
    """Also `manual_backward`, as Lightning calls it."""
    return [node.lineno for node in ast.walk(tree or ast.Pass()) if _is_call(node, name)]


def _only(frame: FrameType, is_there: Callable[[int], bool], writes: Writes) -> dict[str, Any]:
    tree = calls.tree_of(frame.f_code)
    found: set[tuple[CodeType, int]] = set()
    # What a function that stands in a file does, its calls tell.
    for node in texts.own_nodes(tree) if frame.f_code.co_name == "<module>" else ast.walk(tree):
        if not is_there(getattr(node, "lineno", -1)):
            continue
        if writes(node, tree):
            found.add((frame.f_code, node.lineno + calls.first_line(frame.f_code) - 1))
        elif isinstance(node, ast.Call):
            found |= {place for code in arisen.codes_of(frame, node.func) for place in _inside(code, writes)}
    return _told(*found.pop()) if len(found) == 1 else {}


def _inside(code: CodeType, writes: Writes) -> Iterator[tuple[CodeType, int]]:
    tree = calls.tree_of(code) if places.is_user(code) else None
    for node in ast.walk(tree) if tree is not None else ():
        if writes(node, tree):
            yield code, node.lineno + calls.first_line(code) - 1


def _is_call(node: Any, name: str) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith(name)
    )


def _target_of(node: Any) -> list[Any]:
    """What a statement, or a call in place, writes: not where that sets it to zero or to none."""
    if isinstance(node, ast.Assign):
        return [] if isinstance(node.value, ast.Constant) else node.targets
    if isinstance(node, ast.AugAssign):
        return [node.target]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        in_place = name.endswith("_") and not name.endswith("__") and name not in _KEEP
        return [node.func.value] if in_place else []
    return []


def _writes_gradient(node: Any, _tree: Any) -> bool:
    """`p.grad = ...`, `p.grad /= norm`, `p.grad.mul_(scale)`."""
    return any(_is_gradient(target) for target in _target_of(node))


def _is_gradient(node: Any) -> bool:
    node = _without_data(node)
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _without_data(node: Any) -> Any:
    while isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return node


def _writes_weight(node: Any, tree: Any) -> bool:
    """`p.add_(...)`, `p.data = ...` of a `p` that comes from `parameters()`, `layer.weight.data.mul_(...)`;
    an assignment to `p` or `layer.weight` itself puts another in its place. `model.load_state_dict(...)`,
    `vector_to_parameters(...)`."""
    if isinstance(node, ast.Call) and texts.called(node) == "vector_to_parameters":
        return True
    if _is_call(node, "load_state_dict"):
        return not any(word in ast.unparse(node.func.value).lower() for word in _LOADED)
    return any(
        held.attr in _WEIGHTS
        if isinstance(held, ast.Attribute)
        else isinstance(held, ast.Name) and held.id in _parameters(tree)
        for held in _written_into(node)
    )


def _writes_named(leaf: str, node: Any, _tree: Any) -> bool:
    """`self.w_enc[:, dead] = ...`, `critic.linear.bias.copy_(...)`; not what binds the member anew."""
    return any(isinstance(held, ast.Attribute) and held.attr == leaf for held in _written_into(node))


def _written_into(node: Any) -> Iterator[Any]:
    """Whose numbers a statement changes; not what it only binds anew."""
    for target in _target_of(node):
        held = _without_data(target.value if isinstance(target, ast.Subscript) else target)
        if not isinstance(node, ast.Assign) or held is not target:
            yield held


def _parameters(tree: Any) -> set[str]:
    """Variables that stand for one weight after the other; of `zip(params, buffers)` the first alone."""
    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.comprehension))]
    drawn = [pair for loop in loops for pair in _drawn(loop.target, loop.iter)]
    return {
        name.id
        for target, source in drawn
        if any(_names(part) in _SOURCES for part in ast.walk(source))
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }


def _drawn(target: ast.expr, source: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(source, ast.Call) and isinstance(target, ast.Tuple):
        if _names(source.func) == "zip" and len(source.args) == len(target.elts):
            return [pair for one in zip(target.elts, source.args) for pair in _drawn(*one)]
        if _names(source.func) == "enumerate" and len(target.elts) == 2 and source.args:
            return _drawn(target.elts[1], source.args[0])
    return [(target, source)]


def _names(node: Any) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return str(getattr(node, "attr", getattr(node, "id", "")))
