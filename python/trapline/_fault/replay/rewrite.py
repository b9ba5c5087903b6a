"""A function of the program as one that leaves nothing behind: to run it again.

The text of the function is compiled once more, with its own file name and lines. What is there for its
effect alone is left out (calls whose result nobody takes: logging, printing, `optimizer.step()`), what it
would write into objects is kept beside them, and all that it calls is asked for first (:mod:`may_call`).
Tensors are watched while it runs: nothing is written into one that it has not made (:mod:`session`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, Callable

from trapline._fault.program import calls, source

CALL, WITH, TICK, SET, GET, KEEP, FILL = (
    f"__trapline_{name}" for name in ["call", "with", "tick", "set", "get", "keep", "fill"]
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_DEFINITIONS, ast.Lambda, ast.ClassDef)
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS = {"list", "dict", "set", "defaultdict", "deque", "OrderedDict", "Counter"}
_FILLS = {"append", "extend", "insert", "add", "update", "appendleft", "setdefault"}
_FUTURE = 0x1FF0000  # the bits of `from __future__` in a code object


class CannotRun(Exception):
    """Something in it may leave traces, or is not known."""


def again(function: FunctionType, helpers: dict[str, Any], outside: Callable[[Any], Any]) -> FunctionType:
    """The function, to be run again; raises CannotRun. `outside`: what it gets of a global or a cell."""
    code = function.__code__
    node = _definition(code)
    free = list(code.co_freevars)
    if isinstance(node, ast.Lambda):
        made: list[ast.stmt] = [ast.Return(value=_quiet(node, function))]
    else:
        made = [_quiet(node, function)]
    factory = ast.parse("def factory(): pass").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.args.args = [ast.arg(arg=name) for name in free]
    factory.body = made
    whole = _compiled(ast.Module(body=[factory], type_ignores=[]), code)
    inner = _inside(_inside(whole, "factory"), code.co_name)
    cells = {name: _cell(cell, outside) for name, cell in zip(free, function.__closure__ or ())}
    around = function.__globals__
    for name in inner.co_freevars:  # its own name, which it reads as a global
        if name not in cells and name in around:
            cells[name] = CellType(around[name])
    read = {name: outside(around[name]) for name in _names_of(inner) if name in around}
    out = FunctionType(
        inner,
        {**around, **read, **helpers},
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in inner.co_freevars),
    )
    out.__kwdefaults__ = function.__kwdefaults__
    return out


def _cell(cell: CellType, outside: Callable[[Any], Any]) -> CellType:
    try:
        value = cell.cell_contents
    except ValueError:  # not given yet
        return cell
    made = outside(value)
    return cell if made is value else CellType(made)


def _names_of(code: CodeType) -> set[str]:
    inside = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names_of, inside))


def statement(node: ast.stmt, code: CodeType, owns: set[str]) -> CodeType:
    """One statement of a function, whose variables are globals where it runs."""
    out = _Quiet(owns).visit(node)
    body = out if isinstance(out, list) else [out]
    made = _compiled(ast.Module(body=body, type_ignores=[]), code)
    return made.replace(co_name=code.co_name)


def tree_of(code: CodeType) -> Any:
    """The function's text, with the lines and columns of its file."""
    tree = calls.parsed(code)
    if tree is None:
        raise CannotRun(f"no source of {code.co_name} in {code.co_filename}")
    first = calls.first_line(code)
    text = source.line_text(code.co_filename, first)
    indent = len(text) - len(text.lstrip()) if first > 1 else 0
    ast.increment_lineno(tree, first - 1)
    for node in ast.walk(tree):
        if indent and hasattr(node, "col_offset"):
            node.col_offset += indent
            if node.end_col_offset is not None:
                node.end_col_offset += indent
    return tree


def owned(body: Iterable[ast.AST]) -> set[str]:
    """Variables that hold nothing but lists and mappings that the statements make themselves."""
    bound: dict[str, list[Any]] = {}
    for node in parts(body):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for one, value in _pairs(target, node.value):
                    for name in names_in(one):
                        bound.setdefault(name, []).append(value if isinstance(one, ast.Name) else None)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            bound.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, (ast.For, ast.comprehension, ast.NamedExpr)):
            for name in names_in(node.target):
                bound.setdefault(name, []).append(None)
        elif isinstance(node, ast.arg):
            bound.setdefault(node.arg, []).append(None)
    return {name for name, values in bound.items() if all(map(_is_new, values))}


def parts(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes but those of functions inside; of these their own arguments."""
    queue = list(body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, _SCOPES):
            queue.extend(ast.iter_child_nodes(node))


def names_in(target: ast.AST) -> list[str]:
    """The variables that an assignment to the target binds."""
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def written_by(node: ast.AST) -> list[str]:
    """Variables that a call counts for: `losses.append(loss)`, `x[0].clamp_(0)`, `torch.add(a, b, out=x)`."""
    if not isinstance(node, ast.Call):
        return []
    targets = [word.value for word in node.keywords if word.arg == "out"]
    if isinstance(node.func, ast.Attribute) and (node.func.attr in _FILLS or _works_in_place(node)):
        targets.append(node.func.value)
    return [name for name in map(_base, targets) if name]


def _base(node: Any) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_filling(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS


def _writes_tensors(node: ast.Call) -> bool:
    """`out.narrow(0, 0, 1).zero_()`, `torch.cumsum(x, 0, out=out)`: the tensors are asked for then."""
    return _works_in_place(node) or any(word.arg == "out" for word in node.keywords)


def _works_in_place(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name.endswith("_") and not name.endswith("__") and not name.startswith("_")


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`a, b = [], 0` is two assignments."""
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    if both and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
        return list(zip(target.elts, value.elts))  # type: ignore[attr-defined]
    return [(target, value)]


def _is_new(value: Any) -> bool:
    if isinstance(value, ast.Call):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return name in _CONTAINERS
    return isinstance(value, _DISPLAYS)


def _definition(code: CodeType) -> Any:
    tree = tree_of(code)
    kinds = ast.Lambda if code.co_name == "<lambda>" else _DEFINITIONS
    here = [
        node
        for node in ast.walk(tree)
        if isinstance(node, kinds) and (isinstance(node, ast.Lambda) or node.name == code.co_name)
    ]
    if len(here) != 1 and isinstance(tree.body[0], kinds):
        here = [tree.body[0]]
    if len(here) != 1 or isinstance(here[0], ast.AsyncFunctionDef):
        raise CannotRun(code.co_name)
    return here[0]


def _quiet(node: Any, function: FunctionType) -> Any:
    body = node.body if isinstance(node.body, list) else [node.body]
    parameters = [p for p in ast.walk(node.args) if isinstance(p, ast.arg)]
    of_class = function.__qualname__.split(".")[-2:-1]
    out = _Quiet(owned([*parameters, *body]), "".join(of_class), [node]).visit(node)
    if not isinstance(out, ast.Lambda):
        out.decorator_list, out.returns = [], None
    return out


def _compiled(tree: ast.Module, code: CodeType) -> CodeType:
    ast.fix_missing_locations(tree)
    flags = code.co_flags & _FUTURE
    try:
        made: CodeType = compile(tree, code.co_filename, "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError, TypeError, RecursionError) as error:
        raise CannotRun(str(error)) from None
    # Its lines are told as those of the function that they are of.
    names = {name: getattr(code, name) for name in ("co_name", "co_qualname") if hasattr(code, name)}
    return made.replace(**names)


def _inside(code: CodeType, name: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == name:
            return constant
    raise CannotRun(name)


class _Quiet(ast.NodeTransformer):
    """`of_class`: the class that the text stands in, which is part of the names of its private members."""

    def __init__(self, owns: set[str], of_class: str = "", whole: Iterable[Any] = ()) -> None:
        self._owns, self._of_class, self._whole = owns, of_class.lstrip("_"), set(whole)
        self._count = 0

    def _member(self, name: str) -> ast.Constant:
        private = name.startswith("__") and not name.endswith("__") and self._of_class.isidentifier()
        return ast.Constant(value=f"_{self._of_class}{name}" if private else name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node in self._whole:
            return self.generic_visit(node)
        inner = _Quiet(self._owns | owned([*ast.walk(node.args), *node.body]), self._of_class, [node])
        node.decorator_list, node.returns = [], None
        return inner.visit(node)

    def _refuse(self, node: Any) -> Any:
        raise CannotRun(type(node).__name__)

    visit_AsyncFunctionDef = visit_ClassDef = visit_Await = visit_AsyncFor = visit_AsyncWith = _refuse
    visit_Global = visit_Nonlocal = _refuse

    def visit_Delete(self, node: ast.Delete) -> Any:
        """Of a variable alone, which is nobody else's."""
        if not all(isinstance(target, ast.Name) for target in node.targets):
            raise CannotRun("del")
        return ast.copy_location(ast.Pass(), node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.copy_location(ast.Pass(), node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        value = node.value
        if isinstance(value, (ast.Yield, ast.YieldFrom)):
            return self.generic_visit(node)
        if isinstance(value, ast.Call) and _writes_tensors(value):
            return self.generic_visit(node)
        if isinstance(value, ast.Call) and _is_filling(value):
            holder = value.func.value  # type: ignore[attr-defined]
            if isinstance(holder, ast.Name) and holder.id in self._owns:
                value.args = [self.visit(one) for one in value.args]
                value.keywords = [self.visit(one) for one in value.keywords]
                return node
            if _is_path(holder) and not value.keywords:
                return self._filled(node, value)
        return ast.copy_location(ast.Pass(), node)

    def _filled(self, node: ast.Expr, call: Any) -> Any:
        """What a container is filled with, where that is a copy: asked for then."""
        given = ast.copy_location(ast.Tuple(elts=call.args, ctx=ast.Load()), call)
        name = ast.copy_location(ast.Constant(value=call.func.attr), call)
        find, give = (_later(self.visit(one)) for one in (call.func.value, given))
        return ast.copy_location(ast.Expr(value=_helper(FILL, node, find, name, give)), node)

    def visit_While(self, node: ast.While) -> Any:
        out = self.generic_visit(node)
        out.body.insert(0, ast.copy_location(ast.Expr(value=_helper(TICK, node)), node))
        return out

    def visit_With(self, node: ast.With) -> Any:
        out = self.generic_visit(node)
        for item in out.items:
            item.context_expr = _helper(WITH, item.context_expr, _later(item.context_expr))
        return out

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self.generic_visit(node)
        out = self.generic_visit(node)
        out.func = _helper(CALL, out.func, out.func)
        return out

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        out = self.generic_visit(node)
        if isinstance(out.ctx, ast.Load):
            return _helper(GET, out, out.value, self._member(out.attr))
        return out

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        after: list[ast.stmt] = []
        node.targets = [self._target(target, after) for target in node.targets]
        return [node, *after] if after else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        plain = ast.Assign(targets=[node.target], value=node.value)
        return self.visit(ast.copy_location(plain, node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """`x += y` as `x = x + y`: what `x` was before stays as it is."""
        read: Any = ast.parse(ast.unparse(node.target), mode="eval").body
        for part in ast.walk(read):
            ast.copy_location(part, node.target)
        value = ast.copy_location(ast.BinOp(left=read, op=node.op, right=node.value), node)
        return self.visit(ast.copy_location(ast.Assign(targets=[node.target], value=value), node))

    def _target(self, target: Any, after: list[ast.stmt]) -> Any:
        if isinstance(target, ast.Name):
            return target
        if isinstance(target, ast.Starred):
            target.value = self._target(target.value, after)
            return target
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(one, after) for one in target.elts]
            return target
        self._count += 1
        name = f"__trapline_value_{self._count}"
        value = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), target)
        holder = self.visit(target.value)
        if isinstance(target, ast.Attribute):
            call = _helper(KEEP, target, holder, self._member(target.attr), value)
        else:
            owns = isinstance(target.value, ast.Name) and target.value.id in self._owns
            call = _helper(SET, target, holder, self.visit(target.slice), value, ast.Constant(value=owns))
        after.append(ast.copy_location(ast.Expr(value=call), target))
        return ast.copy_location(ast.Name(id=name, ctx=ast.Store()), target)

    def visit_For(self, node: ast.For) -> Any:
        after: list[ast.stmt] = []
        node.target = self._target(node.target, after)
        node.iter = self.visit(node.iter)
        node.body = after + self._all(node.body)
        node.orelse = self._all(node.orelse)
        return node

    def _all(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for one in body:
            made = self.visit(one)
            out += made if isinstance(made, list) else [made]
        return out


def _is_path(node: Any) -> bool:
    """`losses`, `self.history`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _later(node: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(args=nothing, body=node), node)


def _helper(name: str, at: ast.AST, *args: Any) -> ast.Call:
    call = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(args), keywords=[])
    for node in (call, call.func, *args):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, at)
    return call
