"""Calls of a model in the user's source: which variables went into it, as the text of the function says.

By the time a sampled NaN is found the model has returned: what it was given is no longer on the stack, but
the line that called it is in the function, and its variables are still there.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from trapline._fault.program import holders, owners, source, texts

_MAX_LINES = 3000
_MAX_TREES = 256
_MAX_CLOSING = 4  # lines behind the last one that has code
MISSING = object()


def model_inputs(frame: FrameType) -> Iterator[tuple[str, str, Any]]:
    """(model, variable, value) of each call of a module in a frame's function, in the order of the source.

    A variable that some call of a module was assigned to is left out: it may be the output by now.
    """
    tree = tree_of(frame.f_code)
    if tree is None:
        return
    calls = [(node, model) for node in _in_order(tree) for model in [_model(node, frame)] if model]
    models = {id(node) for node, _ in calls}
    outputs = _assigned(tree, models)
    for node, model in calls:
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            sizes = {id(part) for one in ast.walk(argument) for part in _only_its_size(one)}
            # Of `criterion(model(x), y)` the x goes into `model`.
            sizes |= {id(part) for one in ast.walk(argument) if id(one) in models for part in ast.walk(one)}
            for name in ast.walk(argument):
                if isinstance(name, ast.Name) and name.id not in outputs and id(name) not in sizes:
                    value = resolve(name, frame)
                    if value is not MISSING and not owners.is_module(value):
                        yield model, name.id, value


def _only_its_size(node: ast.AST) -> list[ast.expr]:
    """`x` of `torch.randn_like(x)` and of `x.shape`: nothing of its content."""
    if isinstance(node, ast.Call):
        return node.args[:1] if texts.called(node).endswith("_like") else []
    sized = isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "device", "dtype")
    return [node.value] if sized else []  # type: ignore[attr-defined]


def tree_of(code: CodeType) -> Any:
    """The source of a function or module, parsed; its lines count from first_line(). Nobody changes it: it is
    everybody's."""
    return _tree_of(code.co_filename, code)


# Code is equal to code of another file that is written in the same way.
@lru_cache(maxsize=_MAX_TREES)
def _tree_of(_file: str, code: CodeType) -> Any:
    return parsed(code)


def parsed(code: CodeType) -> Any:
    """The same for one that changes it."""
    lines = [number for _, _, number in code.co_lines() if number] if hasattr(code, "co_lines") else []
    first = first_line(code)
    last = max(lines, default=first)
    if last - first > _MAX_LINES:
        return None
    text = "\n".join(source.line_text(code.co_filename, number) for number in range(first, last + 1))
    for more in range(last + 1, last + 2 + _MAX_CLOSING):
        for end in ("", "\n    pass"):  # the last line may open a block that has no line of its own
            try:
                return ast.parse(textwrap.dedent(text) + end)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        text += "\n" + source.line_text(code.co_filename, more)  # closing brackets have no code
    return None


def first_line(code: CodeType) -> int:
    return 1 if code.co_name == "<module>" else code.co_firstlineno


def _in_order(tree: Any) -> list[Any]:
    calls = [node for node in texts.nodes_of(tree) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda node: (node.lineno, node.col_offset))


def _model(call: Any, frame: FrameType) -> str:
    """`policy` for policy(obs) and for policy.act(obs); "" for the call of anything else."""
    if owners.is_module(resolve(call.func, frame)):
        return ast.unparse(call.func)
    if isinstance(call.func, ast.Attribute) and owners.is_module(resolve(call.func.value, frame)):
        return ast.unparse(call.func.value)
    return ""


def resolve(node: Any, frame: FrameType) -> Any:
    """What a name, its attribute, or an entry of its dictionary stands for; no code of the program's runs."""
    if isinstance(node, ast.Name):
        local = frame.f_locals
        return local[node.id] if node.id in local else frame.f_globals.get(node.id, MISSING)
    if isinstance(node, ast.Attribute):
        held = holders.attributes(resolve(node.value, frame))
        for inside in (held, held.get("_modules"), held.get("_buffers")):
            if type(inside) is dict and node.attr in inside:
                return inside[node.attr]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        around = resolve(node.value, frame)
        if type(around) is dict:
            return around.get(node.slice.value, MISSING)
    return MISSING


def _assigned(tree: Any, calls: set[int]) -> set[str]:
    names: set[str] = set()
    for node in texts.nodes_of(tree):
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) or not node.value:
            continue
        if any(id(part) in calls for part in ast.walk(node.value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return names
