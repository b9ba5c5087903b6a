"""What an installed package stumbled over where no comparison of its own is about it: a label beyond the
classes that made a result too large, a NaN that let a step of a computation come to nothing."""

from __future__ import annotations

import ast
import re
from types import FrameType
from typing import Any, Optional

from trapline._exceptions.conditions import Place, Unknown
from trapline._exceptions.refused import Atom, Refused
from trapline._fault.data import values
from trapline._fault.program import frames, places, scope

Pair = tuple[FrameType, int]
_RESHAPED = re.compile(r"shape '\[([-\d, ]+)\]' is invalid for input of size \d+")
_COUNTS = ("num_classes", "num_labels", "n_classes", "nclasses")
_LABELS = re.compile(r"target|label|^y(?:_|$)|truth|^preds?(?:_|$)|predictions")


def beyond_classes(trace: list[Pair], at: int, message: str) -> Optional[tuple[Refused, Atom, Pair]]:
    """Labels that are no classes, where a result that has a place for each class turned out larger."""
    asked = _RESHAPED.search(message)
    sizes = [int(size) for size in asked.group(1).split(",")] if asked else []
    while sizes and at >= 0 and not places.is_user(trace[at][0].f_code):
        frame, lasti = trace[at]
        held = frame.f_locals
        classes = next((name for name in _COUNTS if type(held.get(name)) is int), "")
        for name, value in list(held.items()) if classes and held[classes] in sizes else ():
            found = _labels(name, value, held[classes], held.get("ignore_index"))
            if found is not None:
                found.bounds.text = classes
                place = Place(frame, frames.line_of(frame.f_code, lasti))
                return found, (place, found.node, False), (frame, lasti)
        at -= 1
    return None


def _labels(name: str, value: Any, classes: int, ignored: Any) -> Optional[Refused]:
    if not _LABELS.search(name) or not scope.is_tensor(value) or str(value.layout) != "torch.strided":
        return None
    if (
        value.dtype.is_floating_point
        or value.dtype.is_complex
        or not 0 < value.numel() <= values.MAX_ELEMENTS
    ):
        return None
    content = value.detach().cpu().long()
    bad = content >= classes
    if type(ignored) is int:
        bad &= content != ignored
    if not bool(bad.any()):
        return None
    found = Refused("value", ast.parse(f"{name} < num_classes", mode="eval").body)
    found.tensor, found.name, found.content, found.bad = value, name, content, bad
    found.bounds.lower, found.bounds.upper = 0, classes
    return found


def spoiled(atom: Atom) -> Optional[Refused]:
    """A comparison of single floating numbers that the package computed, while a tensor beside them, in the
    same function, is NaN: a solver's step of size 0."""
    place, node, _ = atom
    if not isinstance(node, ast.Compare):
        return None
    parameters = place.frame.f_code.co_varnames[: place.frame.f_code.co_argcount]
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    if not names or any(name in parameters or not _is_number(place, name) for name in names):
        return None
    for name, value in list(place.frame.f_locals.items()):
        if not scope.is_tensor(value) or value.numel() < 2 or not value.dtype.is_floating_point:
            continue
        try:
            content = place.value(ast.Name(id=name, ctx=ast.Load()))
        except Unknown:
            continue
        if bool(content.isnan().any()):
            found = Refused("nan", node)
            found.tensor, found.name = value, name
            found.content, found.bad = content, ~content.isfinite()
            return found
    return None


def _is_number(place: Place, name: str) -> bool:
    try:
        value = place.value(ast.Name(id=name, ctx=ast.Load()))
    except Unknown:
        return False
    return type(value) is float or (
        scope.is_tensor(value) and value.numel() == 1 and value.dtype.is_floating_point
    )
