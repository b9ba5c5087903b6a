"""The statement that made a number which is not finite, where all that it was given is finite:
`weights = priorities ** alpha`.

Followed back from the line that runs, through what the variables of the user's functions were given last and
through the arguments of their callers, as the source says it. The values that are looked at are those that
the variables hold by now, so that what stands here is likely and no proof.
"""

from __future__ import annotations

import ast
import dis
import inspect
import math
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple, Optional

from trapline._fault.program import calls, computed, frames, holders, owners, places, scope, texts

Facts = dict[str, Any]
_MAX = 1 << 24  # elements of a value that are looked at
_DEPTH = 8
_NESTED = 3  # functions that are called by others
_OTHER_NAMES = {
    "arccos": "acos",
    "arcsin": "asin",
    "arctanh": "atanh",
    "arccosh": "acosh",
    "divide": "div",
    "true_divide": "div",
    "log_softmax": "logsoftmax",
    "float_power": "pow",
    "vector_norm": "norm",
}
# By their names in source; as the graph of a loss calls them, for :func:`made`.
_MAKERS = {
    *("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "div", "reciprocal", "pow", "exp", "exp2", "expm1"),
    *("acos", "asin", "atanh", "acosh", "cosh", "sinh", "tan", "logit", "prod", "std", "var", "mean"),
    *("softmax", "logsoftmax", "norm", "lgamma", "erfinv"),
}
_OF_ROWS = ("softmax", "logsoftmax")  # which a mask may leave nothing of
# Calls that hand finite numbers on as such.
_KEEPING = {
    *("to", "float", "double", "half", "cuda", "cpu", "view", "reshape", "squeeze", "unsqueeze", "flatten"),
    *("clone", "detach", "contiguous", "expand", "repeat", "transpose", "permute", "numpy", "tensor", "abs"),
    *("as_tensor", "from_numpy", "stack", "cat", "clamp", "relu", "sigmoid", "tanh", "max", "min", "mean"),
    *(
        "size",
        "len",
        "arange",
        "zeros",
        "ones",
        "where",
        "masked_fill",
        "item",
        "t",
        "gather",
        "index_select",
    ),
    *("type_as", "expand_as", "view_as", "sum", "range", "int", "bool", "str", "print", "zeros_like"),
}
_OF_RESULT = {"linalgvectornorm": "norm", "linalg_vector_norm": "norm"}


class Statement(NamedTuple):
    """`node` is what the line computes; `whole`: every floating value in it was looked at and is finite."""

    frame: FrameType
    node: ast.expr
    name: str
    line: int
    whole: bool


def made(op: str = "", exponent: Optional[float] = None) -> Optional[Facts]:
    """`text`, `line`, `name` of the variable that was given it ("" in a call), `op`, and `origin`, its frame.

    `op`: what the graph says of the operation, of a power with its `exponent` (NaN: a tensor); else the only
    one of the statement that can make such numbers.
    """
    op = _OF_RESULT.get(op, op)
    for chain in _chains():
        found = _by_name(chain, op, exponent) if op else None
        if found is None and chain[-1].whole and not op:
            found = _only(chain[-1])
        if found is not None:
            return found
        if chain[-1].whole or len(chain) > 1:
            return None
    return None


def line() -> Facts:
    """`origin` of the statement that was given finite numbers alone and made others, whatever it calls."""
    last = next((chain[-1] for chain in _chains() if len(chain) > 1), None)
    return origin_of(last.frame.f_code, last.line) if last is not None and last.whole else {}


def bound(value: Any) -> Facts:
    """`origin` of the statement that gave a variable of the program's this very object."""
    for frame in holders.user_frames():
        for name, held in list(frame.f_locals.items()):
            at = computed.last_bound(frame, name, scope.line_of(frame)) if held is value else None
            if at is not None:
                return origin_of(frame.f_code, at)
    return {}


def beside() -> Facts:
    """Of a function that runs, and holds numbers that are not finite, the one statement that made them of
    finite ones: its operation, or `origin` alone; {} where there are several, or none is known."""
    for frame in holders.user_frames():
        line = scope.line_of(frame)
        bad = [name for name, value in scope.variables(frame) if _state(value) in ("nan", "inf")]
        chains = [list(_chain(frame, ast.Name(name, ast.Load()), "", line, _DEPTH)) for name in bad]
        makers = {chain[-1].line: chain[-1] for chain in chains if len(chain) > 1 and chain[-1].whole}
        if any(_calls_module(maker) for maker in makers.values()):  # whose weights may be what is not finite
            return {}
        if len(makers) == 1:
            maker = makers.popitem()[1]
            return _only(maker) or origin_of(maker.frame.f_code, maker.line)
        if bad:
            return {}
    return {}


def _calls_module(statement: Statement) -> bool:
    called = (part.func for part in ast.walk(statement.node) if isinstance(part, ast.Call))
    return any(owners.is_module(calls.resolve(function, statement.frame)) for function in called)


def _chains() -> Iterator[list[Statement]]:
    """Of each of the user's frames the line that runs, and what led to it."""
    for frame in holders.user_frames():
        start = _running(frame)
        if start is not None:
            yield list(_chain(frame, start, "", scope.line_of(frame), _DEPTH))


def is_drawn(given: Any, further: int = 0) -> bool:
    """Chance made these numbers: in the statement or argument that they come from, or in a function of the
    user's that it calls. `further`: also in as many statements that made what the first was given."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            if value is not given and not _is_same(value, given):
                continue
            found = computed.binding(frame, name, scope.line_of(frame))
            outer = given_by(frame, name) if found is None else None
            if found is not None:
                return _draws(frame, found[0]) or _draws_before(frame, *found, further)
            if outer is not None and not isinstance(outer[1], ast.Name):
                return _draws(*outer)
    return False


def _draws_before(frame: FrameType, node: ast.expr, line: int, further: int) -> bool:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} if further else set()
    for found in (computed.binding(frame, name, line) for name in names):
        if found is not None and (_draws(frame, found[0]) or _draws_before(frame, *found, further - 1)):
            return True
    return False


def _draws(frame: FrameType, node: ast.expr) -> bool:
    for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
        codes = [code for code in codes_of(frame, call.func) if places.is_user(code)]
        inside = [part for code in codes for part in ast.walk(calls.tree_of(code) or ast.Pass())]
        if any(
            isinstance(one, ast.Call) and computed.called(one) in computed.DRAWS for one in [call, *inside]
        ):
            return True
    return False


def codes_of(frame: FrameType, node: Any) -> list[CodeType]:
    """The functions that a call's name stands for in a frame."""
    value = calls.resolve(node, frame)
    return _codes(_method(frame, node) if value is calls.MISSING else value)


def _is_same(value: Any, given: Any) -> bool:
    """The guard may be given a view of what the variable holds."""
    known = scope.is_tensor(value) and scope.is_tensor(given) and value.shape == given.shape
    return known and owners.data_pointer(value) == owners.data_pointer(given) != 0


def _method(frame: FrameType, node: Any) -> Any:
    """What a class has of that name: `sampler.draw`."""
    owner = calls.resolve(node.value, frame) if isinstance(node, ast.Attribute) else calls.MISSING
    if owner is calls.MISSING or owner is None:
        return calls.MISSING
    held = (vars(kind) for kind in type(owner).__mro__)
    return next((members[node.attr] for members in held if node.attr in members), calls.MISSING)


def _by_name(chain: list[Statement], op: str, exponent: Optional[float]) -> Optional[Facts]:
    """The only place of the operation: in the statements, the one that began it first, or what they call."""
    for statement in reversed(chain):
        hits = [node for node, kind in operations(statement.node) if kind == op and _has(node, exponent)]
        if len(hits) == 1:
            return _facts(statement, op)
        if hits:
            return None
    for statement in reversed(chain):
        for code in _called_by(statement):
            inside_it = operations(calls.tree_of(code))
            hits = [node for node, kind in inside_it if kind == op and _has(node, exponent)]
            if len(hits) == 1:
                line = hits[0].lineno + calls.first_line(code) - 1
                return {"op": op, "text": computed.text_of(hits[0]), "line": line, **origin_of(code, line)}
            if hits:  # which of them is not known: the call is
                return _facts(statement, op) if statement.whole else None
    return None


def _has(node: Any, exponent: Optional[float]) -> bool:
    """A power by that number, as far as the text shows."""
    if isinstance(node, ast.BinOp):
        by: Any = node.right
    else:
        by = node.args[-1] if isinstance(node, ast.Call) and node.args else None
    if isinstance(by, ast.UnaryOp) and isinstance(by.op, ast.USub) and isinstance(by.operand, ast.Constant):
        value = by.operand.value
        value = -value if type(value) in (int, float) else None
    else:
        value = by.value if isinstance(by, ast.Constant) else None
    if exponent is None or type(value) not in (int, float):
        return True
    return bool(value == exponent)


def _only(statement: Statement) -> Optional[Facts]:
    """The one operation of the statement, and of the user's functions that it calls, that can have made it;
    of several in one function that function. None where something else is called that is not known.
    """
    found: list[tuple[str, Optional[CodeType], Any]] = []
    called = set()
    for node, kind in operations(statement.node):
        if kind in _MAKERS:
            if not _is_harmless(statement.frame, node, kind):
                found.append((kind, None, node))
        elif isinstance(node, ast.Call) and kind not in _KEEPING:
            own = [code for code in _codes(calls.resolve(node.func, statement.frame)) if places.is_user(code)]
            if not own or owners.is_module(calls.resolve(node.func, statement.frame)):
                return None
            called.add(kind)
            for code in own:
                inside = list(operations(calls.tree_of(code)))
                if any(isinstance(n, ast.Call) and k not in (*_MAKERS, *_KEEPING) for n, k in inside):
                    inside = []
                found += [(k, code, n) for n, k in inside if k in _MAKERS] or [(kind, code, None)]
    if (
        len(called) == 1
        and all(code is not None for _, code, _ in found)
        and (len(found) > 1 or not found[0][2])
    ):
        return _facts(statement, called.pop())
    if len(found) != 1:
        return None
    kind, code, node = found[0]
    if code is None:
        return _facts(statement, kind)
    line = node.lineno + calls.first_line(code) - 1
    return {"op": kind, "text": computed.text_of(node), "line": line, **origin_of(code, line)}


def _is_harmless(frame: FrameType, node: Any, kind: str) -> bool:
    """A division by a number that is not 0, the logarithm of one above it: as far as the variable shows."""
    if kind == "div" and isinstance(node, ast.BinOp):
        below = _number(frame, node.right)
        return below is not None and below[0] * below[1] > 0
    if kind in ("log", "log2", "log10", "sqrt", "rsqrt") and isinstance(node, ast.Call):
        given = node.args[0] if node.args else getattr(node.func, "value", None)
        seen = _number(frame, given)
        return seen is not None and (seen[0] >= 0 if kind == "sqrt" else seen[0] > 0)
    return False


def _number(frame: FrameType, node: Any) -> Optional[tuple[float, float]]:
    """The smallest and the largest of what a constant or a variable holds."""
    value = node.value if isinstance(node, ast.Constant) else calls.resolve(node, frame)
    if type(value) in (int, float):
        return float(value), float(value)
    held = holders.as_tensor(value, _MAX) if holders.is_array(value) else None
    return None if held is None or not held.numel() else (float(held.min()), float(held.max()))


def _facts(statement: Statement, op: str) -> Facts:
    text = computed.text_of(statement.node)
    name = {"name": statement.name} if statement.name else {}
    masked = op in _OF_ROWS and any(map(_is_infinite, ast.walk(statement.node)))
    return {
        "op": op,
        **({"finite": False} if masked else {}),
        "text": text,
        "line": statement.line,
        **name,
        **origin_of(statement.frame.f_code, statement.line),
    }


def _is_infinite(node: Any) -> bool:
    """`float("-inf")`, `torch.inf`."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "float" and len(node.args) == 1:
        return str(getattr(node.args[0], "value", "")).strip("+-").lower() in ("inf", "infinity")
    return getattr(node, "attr", getattr(node, "id", "")) in ("inf", "NINF", "PINF")


def origin_of(code: CodeType, line: int) -> Facts:
    starts = (start for start, number in dis.findlinestarts(code) if number == line)
    origin = frames.make_frame((code, next(starts, -1)))
    for part in ("column", "end_column"):  # of its first instruction alone
        origin.pop(part, None)
    return {"origin": origin} if origin["line"] == line else {}


def operations(tree: Any, own: bool = False) -> Iterator[tuple[Any, str]]:
    """Divisions, powers and calls, with their names as graphs have them. `own`: not of functions in it."""
    nodes = () if tree is None else texts.own_nodes(tree) if own else texts.nodes_of(tree)
    for node in nodes:
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            if isinstance(node.op, (ast.Div, ast.Pow)):
                yield node, "div" if isinstance(node.op, ast.Div) else "pow"
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield node, _OTHER_NAMES.get(name.rstrip("_"), name.rstrip("_"))


def _running(frame: FrameType) -> Optional[ast.expr]:
    """The expression of the innermost statement that the line stands in."""
    tree = calls.tree_of(frame.f_code)
    if tree is None:
        return None
    at = scope.line_of(frame) - calls.first_line(frame.f_code) + 1
    held = [
        node
        for node in texts.nodes_of(tree)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return))
        and node.value is not None
        and node.lineno <= at <= (node.end_lineno or 0)
    ]
    return min(held, key=lambda node: (node.end_lineno or 0) - node.lineno).value if held else None


def _chain(frame: FrameType, node: ast.expr, name: str, line: int, depth: int) -> Iterator[Statement]:
    """The statement, then the one that made the first of its values that is not finite, and so on."""
    held = list(_values(frame, node, name, line))
    bad = next((path for kind in ("nan", "inf") for path, state in held if state == kind), None)
    whole = bool(held) and all(state == "finite" for _, state in held)
    yield Statement(frame, node, name, line, whole)
    if bad is None or depth == 0 or not bad.isidentifier():
        return
    found = computed.binding(frame, bad, line)
    if found is not None:
        yield from _chain(frame, found[0], bad, found[1], depth - 1)
        return
    outer = given_by(frame, bad)
    if outer is not None:
        yield from _chain(outer[0], outer[1], "", scope.line_of(outer[0]), depth - 1)


def _values(frame: FrameType, node: ast.expr, own: str, line: int) -> Iterator[tuple[str, str]]:
    """The variables of an expression that hold floating numbers, with "finite", "nan", "inf" or "changed"."""
    for path, value in _paths(frame, node):
        state = _state(value)
        if state is None:
            continue
        name = path.split(".")[0].split("[")[0]
        yield path, "changed" if name == own or _is_changed(frame, name, line) else state


def _paths(frame: FrameType, node: Any) -> Iterator[tuple[str, Any]]:
    """(source, value) of the longest names: `self.alpha` and not `self`."""
    if isinstance(node, (ast.Lambda, ast.comprehension)):
        return
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        value = calls.resolve(node, frame)
        if value is not calls.MISSING:
            yield ast.unparse(node), value
            return
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):  # of `x.log()` x is a value, of `torch.log(x)` torch is none
        parts[0:1] = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    for part in parts:
        yield from _paths(frame, part)


def _is_changed(frame: FrameType, name: str, line: int) -> bool:
    """The variable was given something else since that line."""
    found = computed.last_bound(frame, name, scope.line_of(frame))
    return found is not None and line < found


def _state(value: Any, depth: int = 1) -> Optional[str]:
    """None: it holds no floating numbers, or none that are looked at."""
    if type(value) is float:
        return "finite" if math.isfinite(value) else "nan" if math.isnan(value) else "inf"
    if holders.is_array(value):
        held = holders.as_tensor(value, _MAX)
        if held is None or not held.dtype.is_floating_point:
            return None
        return "finite" if bool(held.isfinite().all()) else "nan" if bool(held.isnan().any()) else "inf"
    if depth == 0 or owners.is_module(value) or not issubclass(type(value), (list, tuple, dict)):
        return None
    inside = {_state(item, depth - 1) for _, item in holders.items("", value)}
    return next((state for state in ("nan", "inf", "finite") if state in inside), None)


def given_by(frame: FrameType, name: str) -> Optional[tuple[FrameType, ast.expr]]:
    """The caller's frame and what it gave for a parameter, where the caller is the user's code as well."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if name not in names:
        return None
    live = scope.live_frames()
    at = next((at for at, one in enumerate(live) if one is frame), None)
    # A module's call goes through PyTorch's own frames.
    outer = (
        next((one for one in live[at + 1 :] if places.is_user(one.f_code)), None) if at is not None else None
    )
    if outer is None:
        return None
    for node in ast.walk(_running(outer) or ast.Constant(value=None)):
        if isinstance(node, ast.Call) and code in _codes(calls.resolve(node.func, outer)):
            for word in node.keywords:
                if word.arg == name:
                    return outer, word.value
            first = 1 if names and names[0] in ("self", "cls") else 0
            place = names.index(name) - first
            if any(isinstance(one, ast.Starred) for one in node.args) or not 0 <= place < len(node.args):
                return None
            return outer, node.args[place]
    return None


def _called_by(statement: Statement) -> Iterator[CodeType]:
    """The user's functions, and what his modules do, that a statement calls, and what these call."""
    for node in ast.walk(statement.node):
        if isinstance(node, ast.Call):
            for function in functions(calls.resolve(node.func, statement.frame)):
                yield from inside(function)


def inside(function: Any, depth: int = _NESTED) -> Iterator[CodeType]:
    """The code of a function of the user's, and of those that it calls by name."""
    code = function.__code__
    if not places.is_user(code):
        return
    yield code
    tree = calls.tree_of(code) if depth else None
    closure = dict(zip(code.co_freevars, function.__closure__ or ()))
    for node in texts.nodes_of(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            cell = closure.get(node.func.id)
            value = _content(cell) if cell is not None else function.__globals__.get(node.func.id)
            for inner in functions(value):
                yield from inside(inner, depth - 1)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not given yet
        return None


def _codes(value: Any) -> list[CodeType]:
    return [function.__code__ for function in functions(value)]


def functions(value: Any) -> list[Any]:
    """What a callable runs: of a module its forward."""
    if value is calls.MISSING or value is None:
        return []
    if owners.is_module(value):
        value = type(value).forward
    value = inspect.unwrap(value) if inspect.isfunction(value) else getattr(value, "__func__", value)
    return [value] if inspect.isfunction(value) else []
