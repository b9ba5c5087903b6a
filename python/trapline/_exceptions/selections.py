"""How many were asked for, of how many: topk and kthvalue, whose message says neither."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Optional

from trapline._exceptions.conditions import Place, Unknown, call_at, called
from trapline._fault.data import values
from trapline._fault.program import frames, holders, places, scope

Facts = dict[str, Any]
_NAMES = ("topk", "kthvalue")
_MAX_TEXT = 60


def selection_facts(trace: list[tuple[FrameType, int]], user: FrameType) -> Optional[Facts]:
    """`k` and the tensor of the call that raised; None where the call is not one of these. Of both what is
    not certain is left out."""
    frame, lasti = trace[-1]
    place = Place(frame, frames.line_of(frame.f_code, lasti))
    call = call_at(place, lasti, _NAMES)
    if call is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    arguments = list(call.args)
    if isinstance(call.func, ast.Attribute) and not place.is_module(call.func.value):
        arguments.insert(0, call.func.value)
    given = dict(zip(("input", "k", "dim"), arguments))
    given.update({word.arg: word.value for word in call.keywords if word.arg})
    facts: Facts = {"op": called(call), "user": places.is_user(frame.f_code)}
    k, dim = _number(place, given.get("k")), _number(place, given.get("dim"))
    if k is not None:
        facts["k"] = k
        facts["text"] = place.text(given["k"])[:_MAX_TEXT]
    try:
        content = place.value(given["input"])
    except (KeyError, Unknown):
        return facts if k is not None else None
    if not scope.is_tensor(content):
        return facts if k is not None else None
    facts["tensor"] = values.describe(content)
    facts["name"] = _name(place, given["input"], user)
    if "dim" not in given or dim is not None:
        facts["dim"] = -1 if dim is None else dim
    return facts


def _number(place: Place, node: Optional[ast.AST]) -> Optional[int]:
    try:
        value = None if node is None else place.value(node)
    except Unknown:
        return None
    return value if type(value) is int else None


def _name(place: Place, node: ast.AST, user: FrameType) -> str:
    """The user's own name of the tensor, where the user has it; else the words of the call."""
    try:
        tensor = place.stored(node)
    except Unknown:
        tensor = None
    for name, value in holders.held_by(user) if tensor is not None else ():
        if value is tensor:
            return name
    return place.text(node)[:_MAX_TEXT]
