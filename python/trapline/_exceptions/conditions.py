"""The condition behind an exception that code raised itself, evaluated once more on what its frame holds.

Known are operators, sizes, reductions and masks of plain tensors and arrays; all else is Unknown. Nothing of
the program's or of a library's own is called.
"""

from __future__ import annotations

import ast
import builtins
import dis
import operator
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Callable, Optional

from trapline._exceptions.forms import with_operators
from trapline._fault.data import values
from trapline._fault.program import frames, owners, scope, source
from trapline._fault.program.operands import ARITHMETIC, COMPARISONS

_MAX_LINES = 4000  # of one function
_MAX_BRACKETS = 20
_MAX_STEPS = 400  # nodes of one evaluation, names followed included
_PLAIN = (int, float, bool, str, type(None))

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    **COMPARISONS,
    **ARITHMETIC,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_UNARY = {ast.Not: operator.not_, ast.USub: operator.neg, ast.Invert: operator.invert}
# Methods and functions of one tensor; those in the second row take integers besides.
_OF_TENSOR = (
    *("sigmoid", "t"),
    *("min", "max", "amin", "amax", "any", "all", "unique", "isnan", "isinf", "isfinite", "abs", "numel"),
    *("nelement", "dim", "ndimension", "item", "long", "int", "float", "double", "bool", "flatten", "detach"),
    *("cpu", "cuda", "contiguous", "is_floating_point", "count_nonzero", "size", "sum"),
)
_WITH_INTEGERS = ("view", "reshape", "squeeze", "unsqueeze", "size", "flatten", "softmax", "max", "min")
_BUILTINS = {"len": len, "int": int, "float": float, "bool": bool, "abs": abs, "min": min, "max": max}
_BUILTINS.update(list=list, tuple=tuple)
# The elements of the result are those of the tensor: what is said of a value holds for it, too.
KEEPS_VALUES = ("flatten", "view", "reshape", "squeeze", "unsqueeze", "unique", "detach", "cpu", "cuda")
KEEPS_VALUES = (*KEEPS_VALUES, "contiguous", "long", "int", "to")


class Unknown(Exception):
    """An expression, or a value, that is not understood."""


class Place:
    """A frame, its function's source, and what the names in it stand for."""

    def __init__(self, frame: FrameType, line: int) -> None:
        self.frame, self.line = frame, line
        self.tree = _function(frame.f_code)
        self.parents = {
            child: node
            for node in (ast.walk(self.tree) if self.tree is not None else ())
            for child in ast.iter_child_nodes(node)
        }
        self._hosts: dict[int, tuple[Any, Any]] = {}  # of each tensor its copy on the host

    def value(self, node: ast.AST) -> Any:
        """What an expression is now. Raises Unknown."""
        self._steps = 0
        try:
            return self._value(node)
        except Unknown:
            raise
        except Exception as error:
            raise Unknown(str(error)) from error

    def stored(self, node: ast.AST) -> Any:
        """The object itself that a name, an attribute or an item stands for. Raises Unknown."""
        if isinstance(node, ast.Name):
            for names in (self.frame.f_locals, self.frame.f_globals):
                if node.id in names:
                    return names[node.id]
            raise Unknown(node.id)
        if isinstance(node, ast.Attribute):
            holder = self.stored(node.value)
            held = scope.members(holder)
            if not scope.is_tensor(holder):
                groups = ("_parameters", "_buffers", "_modules") if owners.is_module(holder) else ()
                for group in (held, *(held.get(name) for name in groups)):
                    if type(group) is dict and node.attr in group:
                        return group[node.attr]
            return self._of_class(holder, node.attr)
        if isinstance(node, ast.Subscript):
            holder = self.stored(node.value)
            if type(holder) in (dict, list, tuple) and isinstance(node.slice, ast.Constant):
                return holder[node.slice.value]
        raise Unknown(type(node).__name__)

    def _of_class(self, holder: Any, name: str) -> Any:
        """A plain value that stands in the class: `class Config: k = 7`."""
        for kind in (holder if isinstance(holder, type) else type(holder)).__mro__:
            if name in kind.__dict__:
                if type(kind.__dict__[name]) in (*_PLAIN, tuple, list):
                    return kind.__dict__[name]
                break
        raise Unknown(name)

    def assigned(self, name: str) -> Optional[ast.AST]:
        """The expression that a local variable was last given; None where that is not clear."""
        if self.tree is None or any(isinstance(n, ast.arg) and n.arg == name for n in ast.walk(self.tree)):
            return None
        given = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        ]
        for target in sorted(given, key=lambda node: -node.lineno):
            statement = self.parents.get(target)
            if target.lineno >= self.line:
                continue
            unpacked = statement if isinstance(statement, (ast.Tuple, ast.List)) else None
            if unpacked is not None:
                statement = self.parents.get(unpacked)
            if not isinstance(statement, ast.Assign) or statement.targets != [unpacked or target]:
                return None
            reached = self._reached(statement)
            if reached is None:
                return None
            if reached and unpacked is None:
                return statement.value
            if reached:
                return _item_of(statement.value, unpacked.elts.index(target))  # type: ignore[union-attr]
        return None

    def _reached(self, statement: ast.AST) -> Optional[bool]:
        """Whether the branches to a statement before the line were taken; None: that cannot be told."""
        inner = statement
        while inner is not self.tree:
            above = self.parents[inner]
            if above is self.tree:
                return True
            around = above.lineno <= self.line <= (above.end_lineno or 0)  # type: ignore[attr-defined]
            if isinstance(above, ast.If) and not (around and _same_branch(above, inner, self.line)):
                try:
                    if bool(self.value(above.test)) != (inner in above.body):
                        return False
                except Unknown:
                    return None
            elif not around and not isinstance(above, (ast.If, ast.With)):
                return None
            inner = above
        return True

    def same(self, name: str, expression: ast.AST) -> bool:
        """Whether the expression still gives what the variable holds."""
        try:
            held = self._taken(self.frame.f_locals[name])
            return _equal(held, self.value(expression))
        except (KeyError, Unknown):
            return False

    def text(self, node: ast.AST) -> str:
        """The expression as the source has it, on one line."""
        return " ".join(ast.unparse(node).split())

    def _taken(self, value: Any) -> Any:
        """A value that may be computed with. Raises Unknown."""
        import torch

        if type(value) in _PLAIN or type(value) in (torch.Size, torch.dtype):
            return value
        if type(value) in (list, tuple) and len(value) <= 64 and all(type(item) in _PLAIN for item in value):
            return value
        if id(value) in self._hosts:
            return self._hosts[id(value)][1]
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            strided = value.layout is torch.strided and value.device.type != "meta" and not value.is_quantized
            if strided and value.numel() <= values.MAX_ELEMENTS:
                copy = value.detach() if value.device.type == "cpu" else value.detach().cpu()
                self._hosts[id(value)] = (value, copy)
                return copy
        numpy = sys.modules.get("numpy")
        array = numpy is not None and type(value) is numpy.ndarray
        if array and value.dtype.kind in "iufb" and 0 < value.size <= values.MAX_ELEMENTS:
            copy = torch.from_numpy(value.copy())
            self._hosts[id(value)] = (value, copy)
            return copy
        if numpy is not None and isinstance(value, (numpy.integer, numpy.floating, numpy.bool_)):
            return value.item()
        raise Unknown(type(value).__name__)

    def _value(self, node: ast.AST) -> Any:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise Unknown("too long")
        if isinstance(node, ast.Constant):
            return self._taken(node.value) if node.value is not Ellipsis else Ellipsis
        if isinstance(node, ast.Name):
            return self._taken(self.stored(node))
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._value(node.test) else node.orelse)
        if isinstance(node, ast.BoolOp):
            stop = isinstance(node.op, ast.Or)
            result: Any = None
            for part in node.values:
                result = self._value(part)
                if bool(result) == stop:
                    break
            return result
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            return _UNARY[type(node.op)](self._value(node.operand))
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](self._value(node.left), self._value(node.right))
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self._value(part) for part in node.elts)
        raise Unknown(type(node).__name__)

    def _compare(self, node: ast.Compare) -> Any:
        left, result = node.left, True
        for op, right in zip(node.ops, node.comparators):
            if isinstance(op, (ast.Is, ast.IsNot)):
                if not (isinstance(right, ast.Constant) and right.value in (None, True, False)):
                    raise Unknown("is")
                result = (self.stored(left) is right.value) == isinstance(op, ast.Is)
            elif isinstance(op, (ast.In, ast.NotIn)):
                one, many = self._value(left), self._value(right)
                if type(one) not in _PLAIN or type(many) not in (list, tuple):
                    raise Unknown("in")
                result = (one in many) == isinstance(op, ast.In)
            else:
                result = OPERATORS[type(op)](self._value(left), self._value(right))
            if len(node.ops) > 1 and not bool(result):
                return False
            left = right
        return result

    def _attribute(self, node: ast.Attribute) -> Any:
        try:
            return self._taken(self.stored(node))
        except Unknown:
            held = self._value(node.value)
        if scope.is_tensor(held) and node.attr in ("shape", "ndim", "dtype", "T"):
            return getattr(held, node.attr)
        if type(held).__module__ == "torch.return_types" and node.attr in ("values", "indices"):
            return getattr(held, node.attr)
        raise Unknown(node.attr)

    def _item(self, node: ast.Subscript) -> Any:
        try:
            return self._taken(self.stored(node))
        except Unknown:
            held = self._value(node.value)
        if scope.is_tensor(held) or isinstance(held, tuple) or type(held) is list:
            return held[self._key(node.slice)]
        raise Unknown("item")

    def _key(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._key(part) for part in node.elts)
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if end is None else self._value(end) for end in ends))
        return self._value(node)

    def _call(self, node: ast.Call) -> Any:
        name, holder = called(node), None
        if any(keyword.arg != "dim" for keyword in node.keywords):
            raise Unknown("keyword")
        arguments = [self._value(argument) for argument in node.args]
        arguments += [self._value(keyword.value) for keyword in node.keywords if not _is_none(keyword.value)]
        if isinstance(node.func, ast.Name):
            if name in self.frame.f_locals or name in self.frame.f_globals or name not in _BUILTINS:
                raise Unknown(name)
            if not hasattr(builtins, name) or (name in ("min", "max") and not _comparable(arguments)):
                raise Unknown(name)
            if name in ("list", "tuple") and type(arguments[0]) is not torch_size():
                raise Unknown(name)
            return _BUILTINS[name](*arguments)
        if not isinstance(node.func, ast.Attribute):
            raise Unknown("call")
        if self.is_module(node.func.value):
            holder, arguments = (arguments[0], arguments[1:]) if arguments else (None, [])
        else:
            holder = self._value(node.func.value)
        whole = all(type(argument) is int for argument in arguments)
        if not scope.is_tensor(holder):
            raise Unknown(name)
        if name == "isin" and len(arguments) == 1 and _is_numbers(arguments[0]):
            return _isin(holder, arguments[0])
        if name == "to" and len(arguments) == 1 and str(arguments[0]).startswith("torch."):
            return holder.to(arguments[0])
        if (name in _OF_TENSOR and not arguments) or (name in _WITH_INTEGERS and whole):
            return getattr(holder, name if name != "cuda" else "cpu")(*arguments)
        raise Unknown(name)

    def is_module(self, node: ast.AST) -> bool:
        """Whether the expression is torch or NumPy itself: `torch.any`, `np.isnan`."""
        if not isinstance(node, ast.Name):
            return False
        module = self.frame.f_locals.get(node.id, self.frame.f_globals.get(node.id))
        return any(module is not None and module is sys.modules.get(name) for name in ("torch", "numpy"))


def torch_size() -> type:
    import torch

    return torch.Size


def _item_of(node: ast.AST, at: int) -> Optional[ast.AST]:
    """The part of sizes that a variable was given: `batch, width = x.shape`, also of a list of expressions,
    and of `low, high = x.aminmax()`."""
    if isinstance(node, (ast.Tuple, ast.List)):
        plain = at < len(node.elts) and not any(isinstance(part, ast.Starred) for part in node.elts)
        return node.elts[at] if plain else None
    if isinstance(node, ast.Call) and called(node) == "aminmax" and isinstance(node.func, ast.Attribute):
        module = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        of = node.args[0] if module and node.args else None if module else node.func.value
        whole = of is not None and at < 2
        extreme = ast.Attribute(value=of, attr=("min", "max")[at], ctx=ast.Load()) if whole else None
        return ast.Call(func=extreme, args=[], keywords=[]) if extreme is not None else None
    sizes = isinstance(node, ast.Attribute) and node.attr == "shape"
    if not sizes and not (isinstance(node, ast.Call) and called(node) == "size" and not node.args):
        return None
    return ast.Subscript(value=node, slice=ast.Constant(value=at), ctx=ast.Load())  # type: ignore[arg-type]


def _same_branch(choice: ast.If, inner: ast.AST, line: int) -> bool:
    """Whether the line is in that branch of the `if` in which `inner` stands."""
    branch = choice.body if inner in choice.body else choice.orelse
    return bool(branch) and branch[0].lineno <= line <= (branch[-1].end_lineno or 0)


def call_at(place: Place, lasti: int, names: tuple[str, ...]) -> Optional[ast.Call]:
    """The call of one of these that the frame is in; None where the line has several and no columns."""
    line, end_line, column, end_column = frames.position(place.frame.f_code, lasti)
    nodes = ast.walk(place.tree) if place.tree is not None else ()
    calls = [n for n in nodes if isinstance(n, ast.Call) and n.lineno == line and called(n) in names]
    if column is not None:
        exact = (line, column, end_line, end_column)
        calls = [n for n in calls if (n.lineno, n.col_offset, n.end_lineno, n.end_col_offset) == exact]
    return calls[0] if len(calls) == 1 else None


def called(node: ast.Call) -> str:
    """The last word of what a call calls."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _comparable(arguments: list[Any]) -> bool:
    """Of what min() and max() are plain: several arguments, or one list of numbers."""
    if len(arguments) != 1:
        return len(arguments) > 1
    return type(arguments[0]) in (list, tuple) and all(type(item) in (int, float) for item in arguments[0])


def _is_numbers(value: Any) -> bool:
    plain = type(value) in (list, tuple) and all(type(item) in (int, float) for item in value)
    return plain or scope.is_tensor(value)


def _isin(tensor: Any, allowed: Any) -> Any:
    import torch

    return torch.isin(tensor, allowed if scope.is_tensor(allowed) else torch.tensor(allowed))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _equal(one: Any, other: Any) -> bool:
    if scope.is_tensor(one) and scope.is_tensor(other):
        same = one.dtype == other.dtype and one.shape == other.shape
        if same and one.dtype.is_floating_point:
            return bool(((one == other) | (one.isnan() & other.isnan())).all())
        return same and bool((one == other).all())
    if scope.is_tensor(one) or scope.is_tensor(other):
        return False
    return type(one) is type(other) and bool(one == other)


@lru_cache(maxsize=16)
def _function(code: CodeType) -> Optional[ast.AST]:
    """The syntax tree of a function, or of a whole program, with the lines of its file; None where the source
    cannot be told."""
    whole = code.co_name == "<module>"
    first, last = code.co_firstlineno, _last_line(code)
    if not 0 <= last - first < _MAX_LINES:
        return None
    for more in range(_MAX_BRACKETS):
        text = "\n".join(source.line_text(code.co_filename, line) for line in range(first, last + 1 + more))
        above = "if 1:\n" if text[:1].isspace() else ""  # a method: its columns stay as they are
        try:
            tree = ast.parse(above + text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # a bracket is closed on a line of its own
        if whole:
            return with_operators(ast.increment_lineno(tree, first - 1))
        body = tree.body[0].body[0] if above else tree.body[0]  # type: ignore[attr-defined]
        if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)) and body.name == code.co_name:
            return with_operators(ast.increment_lineno(body, first - 2 if above else first - 1))
    return None


def _last_line(code: CodeType) -> int:
    lines = [line for _, line in dis.findlinestarts(code) if line is not None]
    inner = [_last_line(part) for part in code.co_consts if isinstance(part, CodeType)]
    return max([code.co_firstlineno, *lines, *inner])
