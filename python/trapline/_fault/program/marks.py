"""The one place of the program that writes a number which stands for nothing: `IGNORE = -1`,
`lut = np.full(256, -1)`, `classes.get(name, -1)`, `letters.find(c)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, Optional

from trapline._fault.program import texts

NOTHING, FILL, NAME = "nothing", "fill", "name"
_MAX_TEXT = 80
_MAX_FILES = 256
# Calls that put a number into an array, and where it stands among the arguments.
_FILLS = {
    "full": 1,
    "full_like": 1,
    "new_full": 1,
    "fill": 0,
    "fill_": 0,
    "fillna": 0,
    "masked_fill": 1,
    "masked_fill_": 1,
    "append": 0,
}
_FILL_NAMES = {"fill_value", "padding_value", "constant_values", "fillvalue"}
# Calls that answer with it for what is not there.
_ASKS = {"get": 1, "pop": 1, "getattr": 2, "next": 1}
_ASK_NAMES = {"unknown_value", "default", "default_value"}
_OPTIONS = ("add_argument", "option")  # their default is that of a setting
_LEAST_NINES = 99
_LEAST_ONES = 255
_ONES = ("ones", "ones_like", "new_ones")
_FINDS = ("find", "rfind")


class _At(NamedTuple):
    node: Any
    file: str
    of: str


def is_usual(number: int) -> bool:
    """99, 999, ..., 65535 and the like stand for nothing, as a rule; others are numbers of something."""
    nines = number >= _LEAST_NINES and set(str(number)) == {"9"}
    ones = number >= _LEAST_ONES and number & (number + 1) == 0
    return nines or ones


def only_writer(number: int) -> Optional[dict[str, Any]]:
    """`text`, `file`, `line`, and `of`: "nothing" (the answer to what is not there), "fill" (what stands
    in the place of something else) or "name" (a constant that is stored); None where there are several.
    A constant is one place, however often it is stored."""
    trees = dict(texts.user_trees())
    found = {
        (at.file, at.node.lineno, at.node.col_offset): at
        for file, tree in trees.items()
        for at in _writers(tree, file, number)
    }
    if number == -1:
        found.update({(at.file, at.node.lineno, at.node.col_offset): at for at in _finds(trees)})
    if len(found) != 1:
        return None
    at = next(iter(found.values()))
    text = _text(at, trees[at.file])
    return {"text": text, "file": at.file, "line": at.node.lineno, "of": at.of} if text else None


@lru_cache(maxsize=_MAX_FILES)  # a program may meet many faults, and its files stay what they are
def _writers(tree: Any, file: str, number: int) -> tuple[_At, ...]:
    constants, found = _constants(tree, number), []
    for around in texts.nodes_of(tree):
        for node, value, of in _stored(around):
            named = constants.get(value.id) if isinstance(value, ast.Name) else None
            if named is not None:
                found.append(_At(named, file, NAME))
            elif _is(value, number):
                found.append(_At(node, file, of))
    return tuple(found)


def _finds(trees: dict[str, Any]) -> list[_At]:
    """Searches for a letter in what some size of the program is the length of: `letters.find(c)` beside
    `len(letters)`. One of a constant looks for a part of a text, a tag of XML."""
    calls = [
        (file, node)
        for file, tree in trees.items()
        for node in texts.nodes_of(tree)
        if isinstance(node, ast.Call)
    ]
    sized = {ast.unparse(call.args[0]) for _, call in calls if texts.called(call) == "len" and call.args}
    return [
        _At(call, file, NOTHING)
        for file, call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in _FINDS
        and len(call.args) == 1
        and not call.keywords
        and not isinstance(call.args[0], ast.Constant)
        and ast.unparse(call.func.value) in sized
    ]


def _text(at: _At, tree: Any) -> str:
    """With the name that it is given, where the line is short."""
    whole = (one for one in texts.nodes_of(tree) if isinstance(one, ast.Assign) and one.value is at.node)
    lines = map(ast.unparse, (*whole, at.node))
    return next((line for line in lines if len(line) <= _MAX_TEXT), "")


def _constants(tree: Any, number: int) -> dict[str, ast.stmt]:
    """The names of a file, and of its classes, that are given the number once and nothing else."""
    given: dict[str, list[ast.stmt]] = {}
    bodies = [tree.body] + [node.body for node in texts.nodes_of(tree) if isinstance(node, ast.ClassDef)]
    for statement in (one for body in bodies for one in body):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target: Any = statement.targets[0]
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target = statement.target
        else:
            continue
        if isinstance(target, ast.Name):
            given.setdefault(target.id, []).append(statement)
    return {
        name: places[0]
        for name, places in given.items()
        if len(places) == 1 and _is(places[0].value, number)  # type: ignore[attr-defined]
    }


def _is(node: ast.expr, number: int) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = node.operand
        if isinstance(inner, ast.Call) and texts.called(inner) in _ONES:
            return number == -1
        return (
            isinstance(inner, ast.Constant) and type(inner.value) in (int, float) and -inner.value == number
        )
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == number


def _stored(node: Any) -> Iterator[tuple[Any, Any, str]]:
    """(what does so, the value, what it is stored as) of what a node stores, returns or answers with."""
    if isinstance(node, ast.Call):
        yield from ((node, value, of) for value, of in _given(node))
    elif isinstance(node, ast.Assign):
        negated = isinstance(node.value, ast.UnaryOp) and isinstance(node.value.operand, ast.Call)
        if negated or any(isinstance(target, ast.Subscript) for target in node.targets):
            yield node, node.value, FILL  # y = -np.ones(n); y[far] = -1
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        if len(node.left.elts) == 1:
            yield node, node.left.elts[0], FILL  # [-1] * n
    elif isinstance(node, ast.IfExp):
        for value, other in ((node.body, node.orelse), (node.orelse, node.body)):
            if not _is_number(other):  # 1 if up else -1: a sign
                yield node, value, FILL
    elif isinstance(node, texts.FUNCTION):
        returns = [
            one for one in texts.own_nodes(node) if isinstance(one, ast.Return) and one.value is not None
        ]
        if not all(_is_number(one.value) for one in returns):  # else what compares, or a status
            yield from ((one, one.value, FILL) for one in returns)


def _given(call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    name = texts.called(call)
    for table, of in ((_FILLS, FILL), (_ASKS, NOTHING)):
        place = table.get(name)
        if place is not None and place < len(call.args):
            yield call.args[place], of
    if name == "where":
        yield from ((value, FILL) for value in call.args[1:3])
    if name == "defaultdict" and call.args and isinstance(call.args[0], ast.Lambda):
        yield call.args[0].body, NOTHING
    for keyword in call.keywords:
        if keyword.arg in _FILL_NAMES:
            yield keyword.value, FILL
        elif keyword.arg in _ASK_NAMES and name not in _OPTIONS:
            yield keyword.value, NOTHING


def _is_number(node: Any) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
