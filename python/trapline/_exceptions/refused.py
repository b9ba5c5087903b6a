"""What a condition that came out wrong says of the tensors in it: which elements, which sizes.

A condition is taken apart into the comparisons that decided it; each is evaluated once more, so that what is
said of it is what holds in the frame.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any, Optional

from trapline._exceptions.conditions import KEEPS_VALUES, OPERATORS, Place, Unknown, called
from trapline._exceptions.forms import links
from trapline._fault.program import scope

_MAX_VALUES = 4096
_SWAPPED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
OPPOSITE = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
OPPOSITE.update({ast.Eq: ast.NotEq, ast.NotEq: ast.Eq})
_LARGEST, _SMALLEST = ("max", "amax"), ("min", "amin")
_SETTING = re.compile(r"(?:^|[._])(?:n|num|max|min|len)_|count|size|length")
_SIZES = ("shape", "ndim")
_SIZE_CALLS = ("size", "dim", "ndimension", "numel", "nelement", "len")


class Bounds:
    """What an element may be: `lower` is allowed, `upper` as `closed` says; `allowed`: a few values."""

    def __init__(self) -> None:
        self.lower: Any = None
        self.upper: Any = None
        self.closed = False
        self.allowed: list[Any] = []
        self.text = ""  # the source of the upper bound: "pred.size(1)"


class Refused:
    """`kind`: "value" (elements are wrong), "nan", "unknown" (a table has no place for them), "distinct" (too
    many different values), "rows" (whole rows are wrong), "shape", "number" (a plain integer is wrong)."""

    def __init__(self, kind: str, node: ast.AST) -> None:
        self.kind, self.node = kind, node
        self.tensor: Any = None  # as the frame holds it
        self.name = ""
        self.bad: Any = None  # boolean, on the host, of the tensor's shape; None: sizes
        self.content: Any = None  # the tensor on the host
        self.bounds = Bounds()
        self.distinct = 0
        self.tensors: list[tuple[str, Any]] = []
        self.sides: list[tuple[str, Any]] = []


Atom = tuple[Place, ast.AST, bool]


def decisive(place: Place, node: ast.AST, truth: bool) -> list[Atom]:
    """The comparisons that made the condition what it was. Each holds; what is not understood is left out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return decisive(place, node.operand, not truth)
    if isinstance(node, ast.BoolOp):
        found = [decisive(place, part, truth) for part in node.values]
        if isinstance(node.op, ast.Or) != truth:  # all of them are so
            return [atom for atoms in found for atom in atoms]
        return next((atoms for atoms in found if atoms), [])
    if isinstance(node, ast.IfExp):
        try:
            return decisive(place, node.body if place.value(node.test) else node.orelse, truth)
        except Unknown:
            return []
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return decisive(place, ast.BoolOp(op=ast.And(), values=links(node)), truth)  # type: ignore[arg-type]
    if isinstance(node, ast.Call) and len(node.args) + len(node.keywords) == 1 and called(node) == "bool":
        return decisive(place, node.args[0], truth) if node.args else []
    method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args
    if method and called(node) in ("item", "cpu", "bool"):  # type: ignore[arg-type]
        return decisive(place, node.func.value, truth)  # type: ignore[attr-defined]
    if isinstance(node, ast.Name):
        expression = place.assigned(node.id)
        if expression is not None and place.same(node.id, expression):
            return decisive(place, expression, truth)
    try:
        return [(place, node, truth)] if bool(place.value(node)) == truth else []
    except Unknown:
        return []


def refused(atom: Atom) -> Optional[Refused]:
    """What the comparison says; None where that is not certain."""
    place, node, truth = atom
    try:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return _compared(place, node, truth)
        if isinstance(node, ast.Call) and called(node) in ("any", "all"):
            return _masked(place, node, truth)
    except (Unknown, RuntimeError, IndexError, TypeError, ValueError):
        return None
    return None


def _inlined(place: Place, node: ast.AST) -> ast.AST:
    """The expression behind a local variable, where it still gives the variable's value."""
    for _ in range(8):
        node = _stripped(node)
        expression = place.assigned(node.id) if isinstance(node, ast.Name) else None
        if expression is None or not place.same(node.id, expression):  # type: ignore[attr-defined]
            return node
        node = expression
    return node


def _stripped(node: ast.AST) -> ast.AST:
    """Without int(...), float(...), .item()."""
    while isinstance(node, ast.Call):
        name = called(node)
        if isinstance(node.func, ast.Name) and name in ("int", "float", "bool") and len(node.args) == 1:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and name in ("item", "cpu") and not node.args:
            node = node.func.value
        else:
            break
    return node


def _operand(place: Place, node: ast.AST, names: tuple[str, ...]) -> Optional[ast.AST]:
    """What a call of one of these is made for: `x` of x.max(), torch.max(x), len(x)."""
    if not isinstance(node, ast.Call) or called(node) not in names:
        return None
    if isinstance(node.func, ast.Attribute) and not place.is_module(node.func.value):
        return node.func.value if not node.args else None
    return node.args[0] if len(node.args) == 1 else None


def _is_one(place: Place, node: ast.AST) -> bool:
    """A tensor of one element, and not a setting: `label` of `for label in labels`."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or _SETTING.search(place.text(node)):
        return False
    value = place.value(node)
    return scope.is_tensor(value) and value.numel() == 1 and str(value.dtype) != "torch.bool"


def _compared(place: Place, node: ast.Compare, truth: bool) -> Optional[Refused]:
    op = type(node.ops[0])
    if not truth:
        op = OPPOSITE.get(op, op)
    sides = [(node.left, node.comparators[0], op)]
    sides.append((node.comparators[0], node.left, _SWAPPED.get(op, op)))
    for one, other, how in sides:
        inner = _inlined(place, one)
        for names, hows in ((_LARGEST, (ast.Gt, ast.GtE)), (_SMALLEST, (ast.Lt, ast.LtE))):
            operand = _operand(place, inner, names)
            if operand is not None and how in hows:
                return _beyond(place, node, operand, other, how)
        mask = _operand(place, inner, ("sum", "count_nonzero"))
        if mask is not None and how in (ast.Gt, ast.NotEq) and place.value(other) == 0:
            return _any_of(place, node, mask)
        counted = _counted(place, inner)
        if counted is not None and how in (ast.Gt, ast.GtE):
            return _too_many(place, node, counted, other, how)
        if how in (ast.Gt, ast.GtE, ast.Lt, ast.LtE) and _is_one(place, one):
            return _beyond(place, node, one, other, how)
    found = _sizes(place, node)
    return found if found is not None and found.tensors else _number(place, node, truth)


def beyond(place: Place, node: ast.Compare, op: type) -> Optional[tuple[Any, Bounds]]:
    """Of a check that holds: the numbers whose extreme it compares, and the bound; `op`: what is wrong."""
    left, right = node.left, node.comparators[0]
    for one, other, how in ((left, right, op), (right, left, _SWAPPED.get(op, op))):
        inner = _inlined(place, one)
        for names, hows in ((_LARGEST, (ast.Gt, ast.GtE)), (_SMALLEST, (ast.Lt, ast.LtE))):
            operand = _operand(place, inner, names)
            if operand is not None and how in hows:
                bounds = Bounds()
                _bound(bounds, how, place.value(other), place.text(other))
                return place.value(operand), bounds
    return None


def _number(place: Place, node: ast.Compare, truth: bool) -> Optional[Refused]:
    """Two integers, of which the left one is too large or too small."""
    op = type(node.ops[0]) if truth else OPPOSITE.get(type(node.ops[0]))
    value, limit = (place.value(part) for part in (node.left, node.comparators[0]))
    if type(value) is not int or type(limit) is not int or op not in _SWAPPED:
        return None
    found = Refused("number", node)
    found.name, found.content = place.text(node.left), value
    _bound(found.bounds, op, limit, place.text(node.comparators[0]))
    return found


def _counted(place: Place, node: ast.AST) -> Optional[ast.AST]:
    """`x` of len(torch.unique(x)), x.unique().numel(), x.unique().shape[0]."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        node = node.value.value if node.value.attr == "shape" else node
    else:
        node = _operand(place, node, ("len", "numel", "nelement")) or node
    return _operand(place, _inlined(place, node), ("unique",))


def _beyond(place: Place, node: ast.AST, operand: ast.AST, other: ast.AST, how: type) -> Optional[Refused]:
    limit = place.value(other)
    if type(limit) not in (int, float) and not scope.is_tensor(limit):
        return None
    content = place.value(operand)
    if type(content) in (list, tuple):
        content = _of_numbers(content)
    found = Refused("value", node)
    bad = OPERATORS[how](content, limit)
    if content.dtype.is_floating_point and not bool(bad.any()):
        bad = content.isnan()  # no comparison holds for it
    _trace(place, operand, content, bad, found)
    _bound(found.bounds, how, limit, place.text(other))
    return _with_nan(found)


def _of_numbers(numbers: Any) -> Any:
    """The tensor of a list of plain integers, of which max() and min() were asked. Raises Unknown."""
    import torch

    if not numbers or any(type(number) is not int for number in numbers):
        raise Unknown("no integers")
    return torch.tensor(numbers)


def _bound(bounds: Bounds, how: type, limit: Any, text: str) -> None:
    """A bound from the comparison that wrong elements fulfil."""
    number = limit.item() if scope.is_tensor(limit) and limit.numel() == 1 else limit
    if type(number) not in (int, float):
        return
    if how in (ast.Gt, ast.GtE):
        bounds.upper, bounds.closed, bounds.text = number, how is ast.Gt, text
    elif how is ast.Lt:
        bounds.lower = number
    elif type(number) is int:
        bounds.lower = number + 1


def _too_many(place: Place, node: ast.AST, operand: ast.AST, other: ast.AST, how: type) -> Optional[Refused]:
    limit = place.value(other)
    content = place.value(operand)
    if type(limit) is not int or not content.numel():
        return None
    if content.dtype.is_floating_point and not bool((content == content.round()).all()):
        return None
    limit = limit if how is ast.Gt else limit - 1
    found = Refused("distinct", node)
    bad = (content < 0) | (content >= limit)  # with so many different ones there is one
    if not bool(bad.any()):
        return None
    _trace(place, operand, content, bad, found)
    found.distinct = int(content.unique().numel())
    found.content = found.content.long()  # classes, whatever they are kept in
    found.bounds.lower, found.bounds.upper, found.bounds.text = 0, limit, place.text(other)
    return found


def _masked(place: Place, node: ast.Call, truth: bool) -> Optional[Refused]:
    """A mask of which any element is true, or not all are."""
    wants_any = called(node) == "any"
    if truth != wants_any:
        return None
    inner = _operand(place, node, ("any", "all"))
    return None if inner is None else _any_of(place, node, inner, wants_any)


def _any_of(place: Place, node: ast.AST, inner: ast.AST, wants_any: bool = True) -> Optional[Refused]:
    """A mask that is true for what is wrong; `wants_any` is False: for what is right."""
    expression = _inlined(place, inner)
    mask = place.value(expression)
    if not scope.is_tensor(mask) or str(mask.dtype) not in ("torch.bool", "torch.uint8"):
        return None
    mask = mask.bool()
    bad = mask if wants_any else ~mask
    try:
        unknown = _looked_up(place, node, expression, wants_any)
    except Unknown:
        unknown = None
    if unknown is not None:
        return unknown
    leaves = _leaves(place, expression)
    alike = [leaf for leaf in leaves if place.value(leaf).shape == bad.shape]
    if len(alike) != 1 and len(leaves) != 1:
        return None
    leaf = alike[0] if len(alike) == 1 else leaves[0]
    content = place.value(leaf)
    if not alike:  # whole rows: boxes[:, 2:] >= boxes[:, :2]
        if not bad.dim() or not content.dim() or bad.shape[0] != content.shape[0]:
            return None
        rows = bad.reshape(bad.shape[0], -1).any(1)
        bad = rows.reshape(-1, *[1] * (content.dim() - 1)).expand(content.shape)
    found = Refused("value" if alike else "rows", node)
    _trace(place, leaf, content, bad, found)
    if alike:
        _bounds_of_mask(place, expression, leaf, not wants_any, found.bounds)
    return _with_nan(found)


def _looked_up(place: Place, node: ast.AST, expression: ast.AST, wants_any: bool) -> Optional[Refused]:
    """Values that a table has no place for: `(found == -1).any()`, found being `table[ids]`."""
    if not isinstance(expression, ast.Compare) or len(expression.ops) != 1:
        return None
    side, kept = expression.left, None
    if isinstance(side, ast.Subscript):
        kept = place.value(side.slice)
        if not scope.is_tensor(kept) or str(kept.dtype) != "torch.bool":
            return None
        side = side.value
    result = place.value(side)
    look_up = _inlined(place, side)
    if not isinstance(look_up, ast.Subscript) or not scope.is_tensor(result):
        return None
    ids = place.value(look_up.slice)
    if not scope.is_tensor(ids) or ids.dtype.is_floating_point or str(ids.dtype) == "torch.bool":
        return None
    wrong = OPERATORS[type(expression.ops[0])](result, place.value(expression.comparators[0]))
    wrong = wrong if wants_any else ~wrong
    if wrong.shape != ids.shape or (kept is not None and kept.shape != ids.shape):
        return None
    found = Refused("unknown", node)
    _trace(place, look_up.slice, ids, wrong if kept is None else wrong & kept, found)
    return found


def _leaves(place: Place, node: ast.AST) -> list[ast.AST]:
    """The tensors of an expression whose elements it looks at, each once."""
    found: dict[int, ast.AST] = {}

    def walk(part: ast.AST) -> None:
        if isinstance(part, ast.Attribute) and part.attr in _SIZES:
            return
        if isinstance(part, ast.Call) and called(part) in _SIZE_CALLS:
            return
        try:
            value = place.stored(part)
        except Unknown:
            value = None
        if value is not None and (scope.is_tensor(value) or type(value).__name__ == "ndarray"):
            if scope.is_tensor(place.value(part)) and place.value(part).dim():
                found.setdefault(id(value), part)
            return
        for child in ast.iter_child_nodes(part):
            walk(child)

    walk(node)
    return list(found.values())


def _bounds_of_mask(place: Place, node: ast.AST, leaf: ast.AST, good: bool, bounds: Bounds) -> None:
    """The bounds that (x < 0) | (x >= n) says; `good`: the mask holds for right elements."""
    joins = ast.BitAnd if good else ast.BitOr
    parts, waiting = [], [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.BinOp) and isinstance(part.op, joins):
            waiting += [part.left, part.right]
        else:
            parts.append(part)
    if len(parts) == 1 and not isinstance(parts[0], ast.Compare):
        _allowed(place, node, leaf, good, bounds)
        return
    for part in parts:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1:
            continue
        op = type(part.ops[0])
        left, right = part.left, part.comparators[0]
        if ast.dump(right) == ast.dump(leaf):
            left, right, op = right, left, _SWAPPED.get(op, op)
        if ast.dump(left) == ast.dump(leaf) and op in _SWAPPED:
            _bound(bounds, OPPOSITE[op] if good else op, place.value(right), place.text(right))


def _allowed(place: Place, node: ast.AST, leaf: ast.AST, good: bool, bounds: Bounds) -> None:
    """The values that (x != 0) & (x != 1) leaves."""
    joins, compares = (ast.BitOr, ast.Eq) if good else (ast.BitAnd, ast.NotEq)
    waiting, found = [node], []
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.BinOp) and isinstance(part.op, joins):
            waiting += [part.left, part.right]
            continue
        if not isinstance(part, ast.Compare) or type(part.ops[0]) is not compares:
            return
        value = place.value(part.comparators[0])
        if ast.dump(part.left) != ast.dump(leaf) or type(value) not in (int, float):
            return
        found.append(value)
    bounds.allowed = sorted(found)


def _trace(place: Place, node: ast.AST, content: Any, bad: Any, found: Refused) -> None:
    """From what was computed with to the tensor that it was made of without changing a value: its elements
    that are as bad. Raises Unknown."""
    if not scope.is_tensor(content) or not scope.is_tensor(bad) or not bool(bad.any()):
        raise Unknown("nothing is bad")
    kept: Any = None
    wrong = content[bad].unique() if content.shape == bad.shape else None
    for _ in range(8):
        expression = _behind(place, node)
        inner = _made_of(place, expression)
        if inner is None:
            break
        if wrong is None:
            raise Unknown("rows")
        if isinstance(expression, ast.Subscript) and kept is None:
            mask = place.value(expression.slice)
            kept = mask if scope.is_tensor(mask) and mask.shape == place.value(inner).shape else None
        node = inner
    else:
        raise Unknown("too far")
    found.tensor, found.name = place.stored(node), place.text(node)
    if type(found.tensor) in (list, tuple):
        found.tensor = found.content = content
        found.bad = bad
        return
    found.content = place.value(node)
    if found.content is content:
        found.bad = bad
        return
    if wrong is None or wrong.numel() > _MAX_VALUES:
        raise Unknown("too many")
    import torch

    found.bad = torch.isin(found.content, wrong.to(found.content.dtype))
    if kept is not None and kept.shape == found.bad.shape:
        found.bad = found.bad & kept
    if not bool(found.bad.any()):
        raise Unknown("not the same values")


def _behind(place: Place, node: ast.AST) -> ast.AST:
    """The expression that a local variable was made by, where that takes the values of another tensor."""
    expression = place.assigned(node.id) if isinstance(node, ast.Name) else None
    if expression is None or _made_of(place, expression) is None:
        return node
    return expression if place.same(node.id, expression) else node  # type: ignore[attr-defined]


def _made_of(place: Place, node: ast.AST) -> Optional[ast.AST]:
    """What the expression takes its values from, unchanged; None: from nothing of that kind."""
    if isinstance(node, ast.Call) and called(node) in KEEPS_VALUES:
        if isinstance(node.func, ast.Attribute) and not place.is_module(node.func.value):
            return node.func.value
        return node.args[0] if node.args else None
    if isinstance(node, ast.Subscript):
        try:
            place.stored(node)
        except Unknown:
            return node.value
    return None


def _with_nan(found: Refused) -> Refused:
    """A NaN among the wrong elements, or in each wrong row, is what there is to say."""
    if not found.content.dtype.is_floating_point:
        return found
    broken = ~found.content.isfinite()
    if found.kind == "rows":
        rows = broken.reshape(broken.shape[0], -1).any(1)
        if bool(rows[found.bad.reshape(broken.shape[0], -1).any(1)].all()):
            found.kind, found.bad = "nan", broken & found.bad
    elif bool(broken[found.bad].all()) and bool(found.content[found.bad].isnan().any()):
        found.kind = "nan"
    return found


def _sizes(place: Place, node: ast.Compare) -> Optional[Refused]:
    """Sizes of tensors that do not agree."""
    found = Refused("shape", node)
    seen = set()
    sides = [_inlined(place, node.left), _inlined(place, node.comparators[0])]
    parts = [inner for side in sides for inner in ast.walk(side)]
    behind = [_inlined(place, part) for part in parts if isinstance(part, ast.Name)]
    parts += [inner for expression in behind for inner in ast.walk(expression)]
    for part in parts:
        holder = None
        if isinstance(part, ast.Attribute) and part.attr in _SIZES:
            holder = part.value
        elif isinstance(part, ast.Call) and called(part) in _SIZE_CALLS:
            holder = part.args[0] if isinstance(part.func, ast.Name) and part.args else None
            if isinstance(part.func, ast.Attribute):
                holder = part.func.value
        if holder is None or not scope.is_tensor(place.value(holder)):
            continue
        tensor = place.stored(holder)
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found.tensors.append((place.text(holder), tensor))
    for side in (node.left, node.comparators[0]):
        value = place.value(side)
        if isinstance(value, tuple) or type(value) in (int, float):
            found.sides.append((place.text(side), value))
    return found if len(found.sides) == 2 else None


def is_whole(number: Any) -> bool:
    """An integer, also as a float."""
    return type(number) is int or (type(number) is float and math.isfinite(number) and number == int(number))
