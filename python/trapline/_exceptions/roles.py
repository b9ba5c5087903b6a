"""Which operand of a failing call plays which part: by the expression that raised, and by identity."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any

from trapline._fault.data import values

Facts = dict[str, Any]
_INTEGERS = re.compile(r"\b(?:Long|Int|int64|int32|index|indices|integer)")
_MAX = 1 << 22  # elements that are looked at


def storage(tensor: Any) -> Any:
    """What two views of one memory have in common."""
    try:
        return tensor.untyped_storage()._cdata
    except Exception:  # sparse, or a subclass without one
        return id(tensor)


def indices(text: str) -> tuple[set[str], set[str]]:
    """Of an expression ``x[...]``, or of an assignment to one: the names in its brackets, and those of what
    is indexed. Empty for any other."""
    try:
        statement = ast.parse(text.strip()).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return set(), set()
    if isinstance(statement, ast.Assign):
        node: Any = statement.targets[0]
    else:
        node = getattr(statement, "value", None)
    if not isinstance(node, ast.Subscript):
        return set(), set()
    inside = {ast.unparse(part) for part in _chains(node.slice)}
    return inside, {ast.unparse(part) for part in _chains(node.value)} - inside


def _chains(node: ast.AST) -> Iterator[ast.AST]:
    return (part for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute)))


def refused_parameter(frame: FrameType) -> tuple[str, Any]:
    """The parameter that a distribution refuses, by name, and its value; ("", None) in another frame."""
    if not frame.f_code.co_filename.replace("\\", "/").endswith("torch/distributions/distribution.py"):
        return "", None
    name, value = frame.f_locals.get("param"), frame.f_locals.get("value")
    return (name, value) if isinstance(name, str) and values.is_tensor(value) else ("", None)


def mark(operands: list[Facts], tensors: list[Any], wanted: Any, role: str) -> None:
    """Write ``as`` into the operand that is ``wanted``, or a view of the same memory."""
    for operand, tensor in zip(operands, tensors):
        if tensor is wanted or storage(tensor) == storage(wanted):
            operand["as"] = role


def wholes(message: str, operands: list[Facts], tensors: list[Any]) -> None:
    """Write ``whole`` into floats where a message asks for integers: ids that came as floats are whole."""
    if not _INTEGERS.search(message):
        return
    for operand, tensor in zip(operands, tensors):
        if not _is_strided(tensor):  # a sparse one compares with none
            continue
        if tensor.dtype.is_floating_point and tensor.device.type != "meta" and tensor.numel() <= _MAX:
            content = tensor.detach()
            operand["whole"] = bool((content == content.floor()).all())


def _is_strided(tensor: Any) -> bool:
    import torch

    return tensor.layout is torch.strided


def unmark(operands: list[Facts], role: str) -> None:
    """Forget which operand played that part."""
    for operand in operands:
        if operand.get("as") == role:
            del operand["as"]
