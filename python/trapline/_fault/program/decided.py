"""What else a number decides that a layer is made by: where texts are cut, what a tokenizer learns; and what
only stands for it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from trapline._fault.program import scope, texts

_LEARNS = re.compile("tokenizer|trainer|train_from|train_new", re.IGNORECASE)
_CUTS = re.compile("chunk|batched|window|unfold|sliced|split|cut$|cut_", re.IGNORECASE)


_COUNTS_TO = ("range", "arange", "randint", "randrange", "integers", "linspace")


def by_it(names: Iterable[str], made: set[tuple[str, int]], function: Any = None) -> dict[str, Any]:
    """`read`: `file` and `line` of another expression that reads one of the names, and changes with it.
    `made`: the lines that make the layer. `function`: that the names stand in; its own variables are read
    there alone."""
    known = {name for name in names if name.isidentifier()}
    inside = list(ast.walk(function)) if function is not None else []
    own = {node.arg for node in inside if isinstance(node, ast.arg)}
    own |= {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    there = {id(node) for node in inside}
    for file, tree in texts.user_trees():
        within = _functions(tree)
        for node in texts.nodes_of(tree):
            for part in _decides(node):
                if _leaf(part) not in known or (file, node.lineno) in made:
                    continue
                is_name = isinstance(part, ast.Name)
                hidden = is_name and part.id in own and id(node) not in there
                around = within.get(id(node))
                other = is_name and around is not function and _is_given_another(part.id, around, known)
                if not hidden and not other and not (is_name and _is_another(part.id, around, known)):
                    return {"read": {"file": file, "line": node.lineno}}
    return {}


def _functions(tree: Any) -> dict[int, Any]:
    """The innermost function of each node in one."""
    every = (node for node in texts.nodes_of(tree) if isinstance(node, texts.FUNCTION))
    return {id(part): function for function in every for part in ast.walk(function)}


def _is_another(name: str, function: Any, known: set[str]) -> bool:
    """A variable of the function that only has the name: what it is given is made of none of `known`."""
    given = [
        node.value
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
    return bool(given) and not any(_leaf(part) in known for value in given for part in ast.walk(value))


def _is_given_another(name: str, function: Any, known: set[str]) -> bool:
    """A parameter of the function that no call of it gives any of `known`."""
    spec = getattr(function, "args", None)
    if spec is None or name not in {one.arg for one in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}:
        return False
    called = getattr(function, "name", "")
    if called in ("__init__", "forward"):  # called by another name
        return False
    given = [
        part
        for _, _, _, call in texts.calls_of(called)
        for one in (*call.args, *(keyword.value for keyword in call.keywords))
        for part in ast.walk(one)
    ]
    return not any(_leaf(part) in known for part in given)


def _decides(node: Any) -> Iterator[Any]:
    """`tokens[:MAX_LEN]`; `hash(word) % BUCKETS`, `int(share * PARTS)`; `BpeTrainer(vocab_size=...)`;
    `range(n_max + 1)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Mult)):
        yield from (node.left, node.right)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        yield node.slice.upper
    elif isinstance(node, ast.Call) and _LEARNS.search(texts.called(node)):
        yield from (given.value for given in node.keywords)
    elif isinstance(node, ast.Call) and (
        _CUTS.search(texts.called(node)) or texts.called(node) in _COUNTS_TO
    ):
        yield from (part for one in node.args for part in ast.walk(one))


def _leaf(node: Any) -> str:
    key = getattr(getattr(node, "slice", None), "value", None) if isinstance(node, ast.Subscript) else None
    return str(getattr(node, "attr", getattr(node, "id", key)))


def is_placeholder(node: ast.expr, file: str) -> bool:
    """`gin.REQUIRED`: what stands for a number that a file of settings gives."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    every = list(sys.modules.values())
    module = next((one for one in every if getattr(one, "__file__", None) == file), None)
    holder = scope.members(module).get(node.value.id)
    return isinstance(holder, ModuleType) and type(getattr(holder, node.attr, 0)) is not int
