"""What computed the numbers of a variable, as the source says it: `bucket = torch.bucketize(age, edges)`.

Numbers that a program reads may be counted from 1; those that it computes are not, and the computation is
what to look at. Said only where the last assignment before the line is a computation beyond doubt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import (
    before,
    branches,
    calls,
    frames,
    holders,
    operands,
    places,
    scope,
    sizes,
    texts,
)
from trapline._fault.program.functions import ACROSS, CUTS, DRAWS, KEEPS, MAKES, PAIRS, SEARCHES
from trapline._fault.program.texts import WRAPS, called

Facts = dict[str, Any]
_MAX_TEXT = 100
_DEPTH = 5
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div, ast.Pow)


def computed_facts(variable: str, given: Any, first: int = -1) -> Optional[Facts]:
    """`name`, `text` and `line` of the assignment, and `by`, the function; of a search also `edges`, how many
    it has, and `drawn` where chance made them. `variable`: the user's name of the bad numbers, `given`: the
    tensor itself, of which element `first` is the first bad one: what that was before a cast, or the `parts`
    that it was computed of, are told, too."""
    for frame, name, node, line in _statements(variable, given):
        if node is not None:
            return _described(frame, name, node, line) | _before(frame, node, line, given, first)
        made = _by_function(frame, name)
        if made is not None:
            return made
    return None


def operands_of(variable: str, given: Any, first: int) -> list[operands.Operand]:
    """The tensors that element `first` of `given` was computed of by the statement's own arithmetic."""
    for frame, name, node, _ in _statements(variable, given):
        if node is not None:
            return operands.operands(frame, node, given, first)
        if _by_function(frame, name) is not None:
            return []
    return []


def takes(value: Any, given: Any) -> bool:
    """The statement that computes these numbers has a variable with that value: `cell = bins_of(points)`."""
    return any(
        isinstance(part, ast.Name) and frame.f_locals.get(part.id) is value
        for frame, _, node, _ in _statements("", given)
        if node is not None
        for part in ast.walk(node)
    )


def _statements(variable: str, given: Any) -> Iterator[tuple[FrameType, str, Optional[ast.expr], int]]:
    """Each frame, innermost first, and the computation that it gave the numbers by; None where its variable
    was given something else."""
    own = variable.isidentifier()  # the innermost function that has it means it, outer ones another one
    given_on = True  # so far each function was given it by the next
    called_as: Optional[tuple[str, int]] = None  # the parameter of the function inside, and its place
    for frame in holders.user_frames():
        names = [variable] if own and variable in frame.f_locals else []
        own = own and not names
        names += [name for name, value in scope.variables(frame) if value is given and name not in names]
        for name in names:
            node, line = _assigned(frame, name, scope.line_of(frame), _DEPTH) or (None, 0)
            yield frame, name, node, line
        if not names and given_on:
            expression = _in_call(frame, called_as)
            if expression is not None:
                yield frame, "", *expression
        called_as = parameter_of(frame, names)
        given_on = given_on and called_as is not None


def _before(frame: FrameType, node: ast.expr, line: int, given: Any, first: int) -> Facts:
    facts = before.before_cast(frame, node, given, first)
    parts = [] if "source" in facts else operands.operands(frame, node, given, first)
    if parts:
        facts["parts"] = [{"name": part.name, "index": part.index, "value": part.value} for part in parts]
    source = facts.get("source")
    made = (
        binding(frame, source["name"], line) if source is not None and source["name"].isidentifier() else None
    )
    if source is not None and made is not None and isinstance(made[0], (ast.Call, ast.BinOp)):
        text = text_of(made[0])
        if len(text) == _MAX_TEXT and isinstance(made[0], ast.Call):
            text = f"{ast.unparse(made[0].func)}(...)"
        source.update({"text": text, "line": made[1]})
    return facts


def passed_as(given: Any, variable: str = "") -> Optional[Facts]:
    """`name`, `file` and `line` of the user's variable that the functions between were given the numbers as:
    where it is no parameter any more. `variable`: the innermost name of what they were made of."""
    innermost = next(iter(holders.user_frames()), None)
    held = innermost.f_locals.get(variable) if innermost is not None else None
    given = held if scope.is_tensor(held) else given
    for depth, frame in enumerate(holders.user_frames()):
        names = [name for name, value in scope.variables(frame) if value is given]
        if not names:
            return None
        own = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        if any(_changes(frame, name) for name in names):
            return None  # it is no more what it was given
        made = next((name for name in names if name not in own), None)
        if made is not None and not depth:
            return None  # the line itself has it
        if made is not None:
            return {"name": made, "file": frame.f_code.co_filename, "line": scope.line_of(frame)}
    return None


def _changes(frame: FrameType, name: str) -> bool:
    """`index += 1`, above the line: what the caller has is changed with it."""
    tree = calls.tree_of(frame.f_code)
    here = scope.line_of(frame) - calls.first_line(frame.f_code) + 1
    return any(
        isinstance(node, ast.AugAssign) and _holds(node.target, name) and node.lineno < here
        for node in (texts.nodes_of(tree) if tree is not None else ())
    )


def _by_function(frame: FrameType, name: str) -> Optional[Facts]:
    """Of `a, b = self.decode(x)` what the program's own function returns there, where it computes that."""
    tree = calls.tree_of(frame.f_code)
    before = scope.line_of(frame) - calls.first_line(frame.f_code) + 1
    bound = [] if tree is None else [node for node, _ in _bindings(tree, name) if node.lineno < before]
    node = max(bound, key=lambda one: one.lineno, default=None)
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return None
    if not branches.ran(frame, tree, node, before):
        return None
    target = node.targets[0]
    place = None
    if isinstance(target, ast.Tuple):
        named = [part.id if isinstance(part, ast.Name) else "" for part in target.elts]
        place = named.index(name) if name in named else None
        if place is None:
            return None
    found = texts.returned_by(called(node.value), place)
    if found is None or not _computes(found.node):
        return None
    call = next((p for p in ast.walk(found.node) if isinstance(p, ast.Call) and called(p) in MAKES), None)
    facts: Facts = {"name": found.name, "text": text_of(found.node), "line": found.node.lineno}
    facts["file"] = found.file
    if call is not None:
        facts["by"] = called(call)
    if any(isinstance(part, ast.Call) and called(part) in DRAWS for part in ast.walk(found.node)):
        facts["drawn"] = True
    return facts


def computed_entry(variable: str) -> Optional[Facts]:
    """Of `batch["state"]` or `batch.state` the one place of the program that computes what it is called."""
    parts = re.fullmatch(r"\w+(?:\[[\"'](\w+)[\"']\]|\.(\w+))", variable)
    key = parts and (parts[1] or parts[2])
    found = texts.entries(key) if key and not variable.startswith("self.") else []
    made = [facts for facts in map(as_written, found) if facts is not None]
    return {**made[0], "name": key} if len(made) == 1 else None


def as_written(at: texts.Returned, depth: int = _DEPTH) -> Optional[Facts]:
    """What an expression of the program's text computes, or the function of the program's that it calls; None
    where it hands on what it is given."""
    node = at.node
    while isinstance(node, ast.Call) and called(node) in WRAPS and node.args:
        node = node.args[0]  # torch.tensor(rating - 1)
    if not _computes(node):
        called_in = texts.returned_by(called(node), None) if depth and isinstance(node, ast.Call) else None
        return None if called_in is None else as_written(called_in, depth - 1)
    return {"name": at.name, "text": text_of(node), "line": node.lineno, "file": at.file}


def _computes(node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and called(node) in KEEPS and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if isinstance(node, ast.Subscript):
        node = node.value
    made = isinstance(node, ast.Call) and called(node) in MAKES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CUTS and node.args:
        return _computes(node.args[0])  # int(angle / width)
    return made or (isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC))


def counts_across(given: Any) -> bool:
    """A sum or an order over several rows has made these numbers: no row of them is one sample's alone."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            found = binding(frame, name, scope.line_of(frame)) if value is given else None
            if found is not None:
                names = (called(part) for part in ast.walk(found[0]) if isinstance(part, ast.Call))
                return any(function in ACROSS for function in names)
    return False


def parts_of(given: Any) -> list[Any]:
    """The tensors that a tensor was computed of, element by element: the arithmetic of its assignment has no
    call in it, and so keeps the places."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            if value is not given:
                continue
            found = _assigned(frame, name, scope.line_of(frame), _DEPTH)
            if found is None or any(isinstance(part, ast.Call) for part in ast.walk(found[0])):
                return []
            held = [_value(frame, part) for part in ast.walk(found[0]) if isinstance(part, ast.expr)]
            return [value for value in held if scope.is_tensor(value)]
    return []


def selections(before: bool = False) -> Iterator[tuple[str, Any, Any]]:
    """(source, tensor, what it is indexed by) of each `x[mask]` in the lines that run; with `before` also in
    those above them in their functions."""
    for frame in holders.user_frames():
        tree = calls.tree_of(frame.f_code)
        line = scope.line_of(frame) - calls.first_line(frame.f_code) + 1
        for node in texts.nodes_of(tree) if tree is not None else ():
            runs = getattr(node, "lineno", line + 1) <= line <= (line if before else node.end_lineno or 0)
            if isinstance(node, ast.Subscript) and runs:
                whole, by = _value(frame, node.value), _value(frame, node.slice)
                if scope.is_tensor(whole) and scope.is_tensor(by):
                    yield ast.unparse(node.value), whole, by


def _value(frame: FrameType, node: ast.expr) -> Any:
    """What a name, or an entry of a dictionary, holds; None for anything else."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        held = _value(frame, node.value)
        return held.get(node.slice.value) if type(held) is dict else None
    return None


def _described(frame: FrameType, name: str, node: ast.expr, line: int) -> Optional[Facts]:
    facts: Facts = {"name": _target(frame, node) or name, "text": text_of(node), "line": line}
    makes = (*MAKES, *PAIRS) if isinstance(node, ast.Call) and called(node) in PAIRS else MAKES
    call = next(
        (part for part in ast.walk(node) if isinstance(part, ast.Call) and called(part) in makes), None
    )
    if call is not None:
        facts["by"] = called(call)
        edges = _edges(frame, call)
        if edges is not None and node is call:
            facts["edges"] = edges
    if any(isinstance(part, ast.Call) and called(part) in DRAWS for part in ast.walk(node)):
        facts["drawn"] = True
    if facts.get("by") == "arange" and sizes.are_alone(frame, node):
        facts["of_sizes"] = True
    return facts


def _target(frame: FrameType, node: ast.expr) -> Optional[str]:
    """`rank[order]`, where a statement writes what it computes into a part of its variable; `scaled`, where
    the variable is made of another one that was computed."""
    tree = calls.tree_of(frame.f_code)
    for one in texts.nodes_of(tree) if tree is not None else ():
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and _is_same(one.value, node):
            return one.targets[0].id
        if (
            isinstance(one, ast.Assign)
            and isinstance(one.targets[0], ast.Subscript)
            and one.value.lineno == node.lineno
        ):
            return ast.unparse(one.targets[0])
    return None


def _is_same(one: ast.expr, node: ast.expr) -> bool:
    return one.lineno == node.lineno and ast.dump(one) == ast.dump(node)


def _assigned(frame: FrameType, name: str, line: int, depth: int) -> Optional[tuple[ast.expr, int]]:
    """The computation that a variable's last assignment before a line is."""
    found = binding(frame, name, line) if depth else None
    return None if found is None else _computation(frame, *found, depth - 1)


def binding(frame: FrameType, name: str, line: int, one_of: bool = False) -> Optional[tuple[ast.expr, int]]:
    """What a variable's last assignment before a line gives it, and the line of that; None where the source
    leaves that open. `one_of`: or the call of which it is one of several results."""
    tree = calls.tree_of(frame.f_code)
    if tree is None:
        return None
    before = line - calls.first_line(frame.f_code) + 1
    bound = [(node, value) for node, value in _bindings(tree, name, one_of) if node.lineno < before]
    bound = [(node, value) for node, value in bound if branches.ran(frame, tree, node, before) is not False]
    if not bound:
        return None
    node, value = max(bound, key=lambda pair: pair[0].lineno)
    if (
        value is None
        or not branches.ran(frame, tree, node, before)
        or _comes_around(tree, name, node, before)
    ):
        return None
    return value, node.lineno + calls.first_line(frame.f_code) - 1


def _comes_around(tree: ast.AST, name: str, node: ast.AST, line: int) -> bool:
    """A loop around the line gives the variable another value below it, and not again above it."""
    for loop in texts.nodes_of(tree):
        if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) and loop.lineno <= line <= (
            loop.end_lineno or 0
        ):
            inside = set(ast.walk(loop))
            later = any(one in inside and one.lineno >= line for one, _ in _bindings(tree, name))
            if later and node not in inside:
                return True
    return False


def last_bound(frame: FrameType, name: str, line: int) -> Optional[int]:
    """The last line before this one that gives a variable a value, whether it has run or not."""
    tree = calls.tree_of(frame.f_code)
    first = calls.first_line(frame.f_code) - 1
    lines = [] if tree is None else [node.lineno + first for node, _ in _bindings(tree, name)]
    return max((at for at in lines if at < line), default=None)


def kept_name(node: ast.expr) -> Optional[str]:
    """The variable whose numbers an expression hands on: `w.to(device)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and called(node) in KEEPS:
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else None


def text_of(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."


def _bindings(tree: ast.AST, name: str, one_of: bool = False) -> list[tuple[Any, Optional[ast.expr]]]:
    """Statements that give the variable a value, and that; None where it is not written there."""
    found: list[tuple[Any, Optional[ast.expr]]] = []
    for node in _of_function(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    found.append((node, node.value))
                elif isinstance(target, ast.Tuple) and _beside(target, node.value, name) is not None:
                    found.append((node, _beside(target, node.value, name)))  # low, high = x.floor(), x.ceil()
                elif _holds(target, name):
                    call = isinstance(node.value, ast.Call) and (one_of or called(node.value) in MAKES)
                    made = node.value if call else _second(target, node.value, name)
                    found.append((node, made))  # values, index = x.topk(3)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and _holds(node.target, name):
            found.append((node, node.value))
        elif isinstance(node, ast.AugAssign) and _holds(node.target, name):
            if isinstance(node.target, ast.Name):
                found.append((node, ast.BinOp(node.target, node.op, node.value)))
            else:
                found.append((node, None))  # elements were written
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and _holds(node.target, name):
            found.append((node if hasattr(node, "lineno") else node.target, None))
        elif isinstance(node, ast.withitem) and node.optional_vars and _holds(node.optional_vars, name):
            found.append((node.optional_vars, None))
    return found


def _second(target: ast.expr, value: ast.expr, name: str) -> Optional[ast.expr]:
    """`x.max(dim=1).indices`, of `values, index = x.max(dim=1)`."""
    parts = target.elts if isinstance(target, ast.Tuple) else []
    second = len(parts) == 2 and isinstance(parts[1], ast.Name) and parts[1].id == name
    if not second or not isinstance(value, ast.Call) or called(value) not in PAIRS:
        return None
    return ast.copy_location(ast.Attribute(value, "indices", ast.Load()), value)


def _beside(target: ast.Tuple, value: ast.expr, name: str) -> Optional[ast.expr]:
    if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
        return None
    pairs = zip(target.elts, value.elts)
    return next((one for at, one in pairs if isinstance(at, ast.Name) and at.id == name), None)


def _of_function(tree: ast.AST) -> Iterator[ast.AST]:
    """Its parts without the functions and classes in it, whose variables are others."""
    body = tree.body if isinstance(tree, ast.Module) else [tree]
    if len(body) == 1 and isinstance(body[0], _FUNCTIONS):  # the text of one function
        body = list(ast.iter_child_nodes(body[0]))
    queue: list[ast.AST] = list(body)
    while queue:
        node = queue.pop(0)
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            queue.extend(ast.iter_child_nodes(node))


def _holds(target: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


def _computation(frame: FrameType, node: ast.expr, line: int, depth: int) -> Optional[tuple[ast.expr, int]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return node, line
    if isinstance(node, ast.Name):
        return _assigned(frame, node.id, line, depth)
    if isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Name, ast.Call, ast.BinOp)):
        return _computation(frame, node.value, line, depth) if depth else None
    if isinstance(node, ast.Attribute) and node.attr == "indices":  # x.topk(3).indices
        if isinstance(node.value, ast.Call) and called(node.value) in PAIRS:
            return node.value, line
        return _computation(frame, node.value, line, depth) if depth else None
    if not isinstance(node, ast.Call) or not depth:
        return None
    name = called(node)
    if name in MAKES:
        return node, line
    if name in KEEPS and isinstance(node.func, ast.Attribute):
        inner = _computation(frame, node.func.value, line, depth - 1)
        return inner and ((node, line) if inner[1] == line else inner)
    if name in WRAPS and node.args:
        return _computation(frame, node.args[0], line, depth - 1)
    return None


def parameter_of(frame: FrameType, names: list[str]) -> Optional[tuple[str, int]]:
    """Which of a function's parameters these variables are one of; what it made itself nobody gave it."""
    code = frame.f_code
    own = [name for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if name != "self"]
    return next(((name, own.index(name)) for name in names if name in own), None)


def _in_call(frame: FrameType, parameter: Optional[tuple[str, int]]) -> Optional[tuple[ast.expr, int]]:
    """The one computation among the arguments of the failing call: table(x.argmax(1) + 1)."""
    found = argument(frame, parameter)
    return _computation(frame, *found, _DEPTH) if found is not None else None


def argument(
    frame: FrameType, parameter: Optional[tuple[str, int]], alone: bool = False
) -> Optional[tuple[ast.expr, int]]:
    """The one expression among the arguments of the call that runs, which is no variable, and its line; of a
    function of the user's that is called, the one that this parameter was given. `alone`: beside no other."""
    line, end, column, end_column = frames.position(frame.f_code, frame.f_lasti)
    tree = calls.tree_of(frame.f_code)
    if tree is None or end is None:
        return None
    before = line - calls.first_line(frame.f_code) + 1
    here = [
        node
        for node in texts.nodes_of(tree)
        if isinstance(node, (ast.Call, ast.Subscript)) and node.lineno == before and node.end_lineno == before
    ]
    if not here or not places.is_user(frame.f_code):
        return None
    width = (end_column or 0) - (column or 0)
    here = [node for node in here if (node.end_col_offset or 0) - node.col_offset == width]
    if len(here) != 1:
        return None
    node = here[0]
    given = (
        [node.slice]
        if isinstance(node, ast.Subscript)
        else [*node.args, *(word.value for word in node.keywords)]
    )
    if parameter is not None and isinstance(node, ast.Call):
        name, place = parameter
        words = [word.value for word in node.keywords if word.arg == name]
        given = words or [one for at, one in enumerate(node.args) if at == place]
    written = [one for one in given if isinstance(getattr(one, "value", one), (ast.BinOp, ast.Call))]
    return (written[0], line) if len(written) == 1 and not (alone and len(given) > 1) else None


def _edges(frame: FrameType, call: ast.Call) -> Optional[int]:
    """How many edges a search among buckets has, where they are a variable."""
    name = called(call)
    if name not in SEARCHES:
        return None
    at = 0 if name == "searchsorted" else 1
    words = {word.arg: word.value for word in call.keywords}
    node = words.get("boundaries") or words.get("bins") or words.get("sorted_sequence")
    if node is None and isinstance(call.func, ast.Attribute) and at < len(call.args):
        node = call.args[at]
    value = frame.f_locals.get(node.id, frame.f_globals.get(node.id)) if isinstance(node, ast.Name) else None
    if type(value) is list:
        return len(value)
    shape = (
        getattr(value, "shape", None) if scope.is_tensor(value) or type(value).__module__ == "numpy" else None
    )
    return int(shape[0]) if isinstance(shape, tuple) and len(shape) == 1 else None
