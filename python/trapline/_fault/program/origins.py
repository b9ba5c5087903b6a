"""The statement that made what an expression of the program's text stands for: `self.images = pixels / 15.0`,
of `self.images[i].flatten()`.

By the text alone, from function to function: variables, members of the object, lists that are appended to,
columns of a table, parameters. Followed only while one statement alone can have given what is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Union

from trapline._fault.program import computed, creations, entering, texts
from trapline._fault.program.creations import At
from trapline._fault.program.functions import EMPTY, GATHERS, KEEPS
from trapline._fault.program.texts import FUNCTION, WRAPS, called

Key = entering.Key
Path = tuple[Key, ...]
_STEPS = 16
_FORMS = (*KEEPS, "float", "double", "half", "tolist", "to_numpy", "item", "values", "fillna", "reset_index")
_ALIKE = ("int", "float", "list", "tuple", "sorted", "array", "ascontiguousarray")
_MEMBERS = ("values", "array", "T", "data", "iloc", "loc", "at", "iat")
_EMPTY = (*EMPTY, "full", "full_like", "list")
# A whole table: which of its columns it was is not said.
_TABLES = ("DataFrame", "read_", "merge", "Table", "from_dict", "from_pandas")


class Records(NamedTuple):
    """The expression is a place in the records that a collate function is given."""

    path: Path


class _Step(NamedTuple):
    at: At
    path: Path


class _Event(NamedTuple):
    """A statement that gives a variable something: `value`, or the part of it at `path`; `each`, where it is
    one of what the value holds. `name`: what is written to."""

    line: int
    value: Any  # an expression; of `x += y` the statement
    path: Path
    name: str
    each: bool = False


def origin(
    at: At, path: Path = (), collate: Any = None, members: Optional[list[str]] = None
) -> Union[At, Records, None]:
    """`path`: the places in what the expression gives. `collate`: the function whose first parameter is the
    records of a batch. `members` gets the names of the object's own members that the numbers went through,
    the first of them as the last they were in."""
    step: Union[_Step, At, Records, None] = _Step(at, path)
    quoted: Optional[At] = None
    each: dict[int, At] = {}  # the comprehension around what it makes
    whole: Optional[At] = None  # what the last variable was given
    for _ in range(_STEPS):
        if not isinstance(step, _Step):
            break
        if isinstance(step.at.node, (ast.ListComp, ast.GeneratorExp)):
            each[id(step.at.node.elt)] = step.at
        if step.at.name and (whole is None or step.at.name != whole.name):
            whole = step.at
        if members is not None and not step.path and _is_own(step.at.node):
            members.append(step.at.node.attr)
        if not step.path and (_is_column(step.at.node) or (quoted is None and _is_looked_up(step.at))):
            quoted = step.at
        step = _further(step, collate)
    if isinstance(step, Records):
        return step
    if not isinstance(step, At):
        return quoted
    found = each.get(id(step.node), step)
    inside = whole is not None and any(part is found.node for part in ast.walk(whole.node))
    return whole if whole is not None and inside else found


def facts_of(at: At) -> dict[str, Any]:
    """Of what a function of the program's computes, its own statement."""
    inside = computed.as_written(texts.Returned(at.node, at.name, at.file))
    if inside is not None and (inside["file"] != at.file or not _stands_in(at.node, inside["line"])):
        return inside
    return {"name": at.name, "text": computed.text_of(at.node), "file": at.file, "line": at.node.lineno}


def _stands_in(node: Any, line: int) -> bool:
    return bool(node.lineno <= line <= (node.end_lineno or line))


def _further(step: _Step, collate: Any) -> Union[_Step, At, Records, None]:
    at, path = step
    node = at.node
    if isinstance(node, (ast.Tuple, ast.List)) and path:
        key = path[0]
        if type(key) is not int or not -len(node.elts) <= key < len(node.elts):
            return None
        return _Step(at._replace(node=node.elts[key], name=""), path[1:])
    if isinstance(node, ast.Dict) and path:
        found = [v for k, v in zip(node.keys, node.values) if getattr(k, "value", None) == path[0]]
        return _Step(at._replace(node=found[0], name=""), path[1:]) if len(found) == 1 else None
    if isinstance(node, ast.Name):
        return _variable(at, node.id, path, collate)
    if isinstance(node, ast.Attribute):
        return _member(at, node, path)
    if isinstance(node, ast.Subscript):
        return _entry(at, node, path, collate)
    if isinstance(node, ast.Call):
        return _call(at, node, path)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _Step(at._replace(node=node.elt), path)
    return at if isinstance(node, (ast.BinOp, ast.AugAssign)) and not path else None


def _call(at: At, node: ast.Call, path: Path) -> Union[_Step, At, None]:
    name = called(node)
    of_method = isinstance(node.func, ast.Attribute)
    several = node.args and isinstance(node.args[0], (ast.List, ast.Tuple)) and len(node.args[0].elts) > 1
    if name in GATHERS and several and not path:
        return at  # torch.cat([kind, kind + n])
    if name in (*WRAPS, *_ALIKE, *GATHERS) and node.args:
        return _Step(at._replace(node=node.args[0]), path)
    if of_method and name in _FORMS and not _is_module(node.func.value):  # type: ignore[attr-defined]
        return _Step(at._replace(node=node.func.value), path)  # type: ignore[attr-defined]
    if path:
        return _of_several(at, node, path)
    return None if name in _EMPTY or (name.startswith(_TABLES) and not texts.defined(name)) else at


def _of_several(at: At, node: ast.Call, path: Path) -> Union[_Step, At, None]:
    """One of the things that a call gives: of a function of the program's what its one `return` has there."""
    name = called(node)
    if name == "DataLoader" and node.args:
        return _Step(at._replace(node=node.args[0]), path)
    if name == "TensorDataset" and type(path[0]) is int and path[0] < len(node.args):
        return _Step(at._replace(node=node.args[path[0]]), path[1:])
    if name[:1].isupper():  # a class: what it gives out its methods say
        return None
    defined = texts.defined(name)
    if not defined and type(path[0]) is int and name not in _EMPTY:
        return at._replace(name="")
    if len(defined) != 1:
        return None
    file, function, kind = defined[0]
    returns = [one.value for one in texts.own_nodes(function) if isinstance(one, ast.Return)]
    value = returns[0] if len(returns) == 1 else None
    return None if value is None else _Step(At(value, file, function, kind), path)


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "np", "numpy", "F")


def _entry(at: At, node: ast.Subscript, path: Path, collate: Any) -> Union[_Step, At, None]:
    key: Any = node.slice
    last = key.elts[-1] if isinstance(key, ast.Tuple) and key.elts else None
    if isinstance(last, ast.Constant) and type(last.value) is str:  # df.loc[i, "label"]
        key = last
    if isinstance(key, ast.Constant) and type(key.value) is str and at.function is not collate:
        return _column(at, key.value, path)
    if isinstance(key, ast.Constant) and type(key.value) in (int, str):
        return _Step(at._replace(node=node.value), (key.value, *path))
    cut = any(isinstance(part, (ast.Slice, ast.UnaryOp)) for part in getattr(key, "elts", [key]))
    if cut and isinstance(node.value, ast.Attribute) and node.value.attr == "iloc":
        return at if not path else None  # df.iloc[:, -1]: a column by its place
    return _Step(at._replace(node=node.value), path)  # one of it, or some


def _member(at: At, node: ast.Attribute, path: Path) -> Union[_Step, At, None]:
    if _is_own(node):
        return None if at.kind is None else _own(at, node.attr, path)
    if node.attr in _MEMBERS:
        return _Step(at._replace(node=node.value), path)
    return _column(at, node.attr, path)


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"


def _is_column(node: ast.expr) -> bool:
    """`row["label"]`, `frame.label`: it says at least which one is read."""
    if isinstance(node, ast.Subscript):
        key: Any = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
        return isinstance(key, ast.Constant) and type(key.value) is str
    return isinstance(node, ast.Attribute) and not _is_own(node) and node.attr not in _MEMBERS


def _is_looked_up(at: At) -> bool:
    """`order[labels[keep]]`: what the one tensor has at the places that another says; of
    `self.rows[self.order[i]]` in __getitem__ it is the record."""
    node = at.node
    if not isinstance(node, ast.Subscript) or isinstance(node.value, ast.Call):
        return False
    given = creations.parameters(at.function) if at.function is not None else []
    if any(
        isinstance(part, ast.Name) and part.id in given and part.id != "self" for part in ast.walk(node.slice)
    ):
        return False
    return isinstance(node.slice, ast.Subscript) or (
        isinstance(node.slice, (ast.Attribute, ast.Call)) and not _is_own(node.value)
    )


def _column(at: At, key: str, path: Path) -> Union[_Step, At, None]:
    """The one place of the program that gives a column, an entry of a record, or a field that name."""
    if path:
        return None
    found: list[tuple[Any, Any, str, ast.expr, str]] = []
    for file, tree in texts.user_trees():
        for function, kind in texts.functions(tree):
            for node in texts.own_nodes(function if function is not None else tree):
                for value, name in _named(node, key):
                    found.append((function, kind, file, value, name))
    if len(found) != 1:
        return None
    function, kind, file, value, name = found[0]
    return _Step(At(value, file, function, kind, name), ())


def _named(node: Any, key: str) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.Dict):
        for k, value in zip(node.keys, node.values):
            if isinstance(k, ast.Constant) and k.value == key:
                yield value, ""
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        last = target.slice if isinstance(target, ast.Subscript) else None
        last = last.elts[-1] if isinstance(last, ast.Tuple) and last.elts else last
        if isinstance(last, ast.Constant) and last.value == key:
            yield node.value, ast.unparse(target)
    elif isinstance(node, ast.Call) and called(node) in ("assign", "dict", "DataFrame"):
        for word in node.keywords:
            if word.arg == key:
                yield word.value, ""


def _variable(at: At, name: str, path: Path, collate: Any) -> Union[_Step, At, Records, None]:
    around = _comprehended(at, name)
    if around is not None:
        place, over = around
        return _Step(at._replace(node=over, name=""), (*place, *path))
    inside = at.function if at.function is not None else texts.tree_of(at.file)
    found = _events(inside, name, at.node.lineno) if inside is not None else []
    if found:
        return _by_event(at, found, path)
    if at.function is None:
        return None
    if name in creations.parameters(at.function):
        if at.function is collate:
            own = [one for one in creations.parameters(collate) if one != "self"]
            return Records(path) if name == own[0] else None
        return _argument(at, name, path)
    whole = texts.tree_of(at.file)
    found = _events(whole, name, None) if whole is not None else []
    return _by_event(at._replace(function=None, kind=None), found, path) if found else None


def _argument(at: At, name: str, path: Path) -> Optional[_Step]:
    """What the program's one call of the function gives it, `Data(x, *columns(frame))` as well."""
    given = list(creations.arguments(at, name))
    if len(given) == 1 and not isinstance(given[0].node, ast.Starred):
        return _Step(given[0], path)
    maker = at.kind.name if at.kind is not None and at.function.name == "__init__" else at.function.name
    made = list(texts.calls_of(maker))
    if len(made) != 1:
        return None
    file, function, kind, call = made[0]
    place = creations.parameters(at.function).index(name) - (1 if at.kind is not None else 0)
    spread = [number for number, one in enumerate(call.args) if isinstance(one, ast.Starred)]
    if spread != [len(call.args) - 1] or place < spread[0]:
        return None
    return _Step(At(call.args[-1].value, file, function, kind), (place - spread[0], *path))


def _comprehended(at: At, name: str) -> Optional[tuple[Path, ast.expr]]:
    """Of `[label for _, label in rows]` the place in what it goes over, and that."""
    inside = at.function if at.function is not None else texts.tree_of(at.file)
    for node in texts.own_nodes(inside) if inside is not None else ():
        if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            continue
        if not any(part is at.node for part in ast.walk(node.elt)):
            continue
        for loop in node.generators:
            place = entering.place_of(loop.target, name)
            if place is not None:
                return _gone_over(loop.iter, place)
    return None


def _gone_over(over: ast.expr, place: Path) -> Optional[tuple[Path, ast.expr]]:
    """enumerate() and zip() put something around what is gone over."""
    if not isinstance(over, ast.Call) or called(over) not in ("enumerate", "zip", "tqdm", "items"):
        return place, over
    if called(over) == "tqdm" and over.args:
        return place, over.args[0]
    key = place[0] if place else None
    if called(over) == "items":
        held = over.func.value if isinstance(over.func, ast.Attribute) else None
        return None if held is None or key != 1 else (place[1:], held)
    if called(over) == "enumerate" and key == 1 and over.args:
        return place[1:], over.args[0]
    if called(over) == "zip" and type(key) is int and key < len(over.args):
        part = over.args[key]
        return None if isinstance(part, ast.Starred) else (place[1:], part)
    return None


def _own(at: At, attribute: str, path: Path) -> Union[_Step, At, None]:
    """What the class gives its member, in the one function that does."""
    name = f"self.{attribute}"
    for function in (part for part in at.kind.body if isinstance(part, FUNCTION)):
        before = at.node.lineno if function is at.function else None
        found = _events(function, name, before)
        if found:
            others = [
                one
                for other in at.kind.body
                if isinstance(other, FUNCTION) and other is not function
                for one in _events(other, name, None)
            ]
            if others:
                return None
            return _by_event(at._replace(function=function), found, path)
    return None


def _by_event(at: At, found: list[_Event], path: Path) -> Union[_Step, At, None]:
    """What was given last; into what was made empty, the one thing that is put there."""
    filled = [one for one in found if one.each]
    if filled:
        if len(found) > 1:  # it had numbers of its own, or has them of several
            return None
        last = filled[0]
        if not last.path and isinstance(last.value, (ast.BinOp, ast.Call)) and "[" in last.name:
            return at._replace(node=last.value, name=last.name)
    else:
        last = found[-1]
    if last.value is None:
        return None
    return _Step(at._replace(node=last.value, name=last.name), (*last.path, *path))


def _events(inside: Any, name: str, before: Optional[int]) -> list[_Event]:
    """In the order of the text; none where an `if` may have passed by the last of them, unless that adds to
    what there is: it is what to look at first."""
    found: list[tuple[Any, _Event]] = []
    for node in texts.own_nodes(inside):
        line = getattr(node, "lineno", 0)
        if before is not None and line > before:
            continue
        found += [(node, one) for one in _given(node, name) if before is None or line < before or one.each]
    found.sort(key=lambda one: one[1].line)
    if not found:
        return []
    node, last = found[-1]
    if _is_conditional(inside, node, before) and not _changes(last.value, name):
        return []
    return [one for _, one in found]


def _changes(value: Any, name: str) -> bool:
    """`label = label + 12 * speed`"""
    if isinstance(value, ast.AugAssign):
        return True
    return isinstance(value, ast.BinOp) and any(ast.unparse(part) == name for part in ast.walk(value))


def _is_conditional(inside: Any, node: Any, before: Optional[int]) -> bool:
    return any(
        isinstance(branch, (ast.If, ast.Try))
        and branch.lineno <= node.lineno <= (branch.end_lineno or 0)
        and not (before is not None and branch.lineno <= before <= (branch.end_lineno or 0))
        for branch in texts.own_nodes(inside)
    )


def _given(node: Any, name: str) -> Iterator[_Event]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _assigned(target, node.value, name, node.lineno)
    elif isinstance(node, ast.AnnAssign) and node.value is not None and ast.unparse(node.target) == name:
        yield _Event(node.lineno, node.value, (), name)
    elif isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name:
        yield _Event(node.lineno, node, (), "")
    elif isinstance(node, ast.For):
        place = entering.place_of(node.target, name)
        gone = None if place is None else _gone_over(node.iter, place)
        if place is not None:
            yield _Event(node.lineno, gone[1] if gone else None, gone[0] if gone else (), "")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        to = call.func.value if isinstance(call.func, ast.Attribute) else None
        if to is not None and called(call) in ("append", "extend") and call.args and ast.unparse(to) == name:
            yield _Event(node.lineno, call.args[0], (), "", each=True)


def _assigned(target: ast.expr, value: ast.expr, name: str, line: int) -> Iterator[_Event]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for place, part in enumerate(target.elts):
            beside = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            if beside:
                yield from _assigned(part, value.elts[place], name, line)  # type: ignore[attr-defined]
            elif ast.unparse(part) == name:
                whole = ast.unparse(value)
                records = whole.startswith("zip(*") and isinstance(value, ast.Call)
                inner = value.args[0].value if records else value  # type: ignore[attr-defined]
                yield _Event(line, inner, (place,), "" if records else ast.unparse(target).strip("()"))
    elif isinstance(target, ast.Subscript):
        if ast.unparse(target.value) == name and not isinstance(target.slice, ast.Constant):
            yield _Event(line, value, (), ast.unparse(target), each=True)
    elif ast.unparse(target) == name and not _is_empty(value):
        yield _Event(line, value, (), name)


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return called(value) in _EMPTY
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return isinstance(value.left, ast.List)  # [0] * n
    return isinstance(value, (ast.List, ast.Tuple)) and not value.elts
