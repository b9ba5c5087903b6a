"""What made a table or a layer so large: the argument, by the source of the class that keeps it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import lru_cache
from typing import Any, Optional

from trapline._fault.program import scope

_MAX_SOURCE = 200_000
_SIZES = {
    "Embedding": ("num_embeddings", 0),
    "EmbeddingBag": ("num_embeddings", 0),
    "Linear": ("out_features", 1),
}
_OTHER = ast.Constant(value=None)  # what no caller gives
_SETTINGS = ("config", "cfg", "hparams", "args", "params", "configs")


def argument_of(holder: Any, attribute: str) -> Optional[tuple[str, bool]]:
    """(name, in_settings) of what the class of `holder` makes `self.attribute` of: an argument of its own
    constructor, or a member of the settings object that this was given; ("", False) where it is something
    else, None where the source does not say it."""
    expression = _expressions(type(holder)).get(attribute)
    if isinstance(expression, ast.Name):
        return expression.id, False
    if isinstance(expression, ast.Attribute):
        around = expression.value
        if isinstance(around, ast.Name) and around.id == "self" and expression.attr in _taken(type(holder)):
            return expression.attr, False
        if isinstance(around, ast.Attribute) and isinstance(around.value, ast.Name):
            around = ast.Name(id=around.attr) if around.value.id == "self" else around
        if isinstance(around, ast.Name) and around.id in _SETTINGS:
            return expression.attr, True
    return None if expression is None else ("", False)


def setting(holder: Any, attribute: str, size: int) -> Optional[str]:
    """The member of the settings that made it, where it says this size."""
    name, in_settings = argument_of(holder, attribute) or ("", False)
    held = scope.members(holder)
    for key in _SETTINGS if in_settings else ():
        given = held.get(key)
        members = given if type(given) is dict else scope.members(given)
        if type(members.get(name)) is int and members[name] == size:
            return name
    return None


def names_of(holder: Any, attribute: str, own: bool) -> Optional[list[str]]:
    """Members of the settings, and with `own` arguments of the constructor, in the expression of the size;
    empty for a plain number, None where another name is in it or the source does not say it."""
    expression = _expressions(type(holder)).get(attribute)
    if expression is None or expression is _OTHER:
        return None
    found = []
    for node in ast.walk(expression):
        if isinstance(node, ast.Attribute):
            around = node.value
            inner = around.attr if isinstance(around, ast.Attribute) else getattr(around, "id", "")
            if inner in _SETTINGS:
                found.append(node.attr)
            elif inner != "self" or node.attr not in _SETTINGS:
                return None
        elif isinstance(node, ast.Name) and node.id not in ("self", *_SETTINGS):
            if not own or node.id not in _taken(type(holder)):
                return None
            found.append(node.id)
        elif isinstance(node, (ast.Call, ast.Subscript)):
            return None
    return found


def _taken(kind: type) -> tuple[str, ...]:
    code = getattr(kind.__init__, "__code__", None)
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount] if code is not None else ()


@lru_cache(maxsize=64)
def _expressions(kind: type) -> dict[str, ast.expr]:
    """Of each layer that the constructors make: the expression of its size. Base classes count as well."""
    found: dict[str, ast.expr] = {}
    for base in reversed(kind.__mro__):
        made = base.__dict__.get("__init__")
        if base.__module__.partition(".")[0] in ("torch", "builtins") or not inspect.isfunction(made):
            continue
        try:
            text = inspect.getsource(made)
            tree = ast.parse(textwrap.dedent(text)) if len(text) < _MAX_SOURCE else None
        except (OSError, TypeError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        changed = set(_stored(tree)) if tree is not None else set()
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                # `nn.Linear(width, config.num_labels) if config.num_labels > 0 else nn.Identity()`
                made_by = node.value.body if isinstance(node.value, ast.IfExp) else node.value
                if not isinstance(made_by, ast.Call):
                    continue
                target, size = node.targets[0], _size(made_by)
                own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
                if own and target.value.id == "self":  # type: ignore[attr-defined]
                    found.pop(target.attr, None)  # type: ignore[attr-defined]
                    if size is not None:
                        own_value = isinstance(size, ast.Name) and size.id in changed
                        found[target.attr] = _OTHER if own_value else size  # type: ignore[attr-defined]
    return found


def _size(call: ast.Call) -> Optional[ast.expr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    keyword, at = _SIZES.get(str(name), ("", -1))
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    return call.args[at] if 0 <= at < len(call.args) else None


def _stored(tree: ast.AST) -> list[str]:
    """Local variables: a parameter that is given another value is none that the caller turns."""
    return [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
