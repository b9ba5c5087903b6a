"""What an error about devices needs besides its tensors: who keeps each of them, where the model is, and
which GPU was asked for.

As in `host_facts`, nothing of the user's is called: frames, instance dictionaries and plain containers only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, Optional

from trapline._exceptions import roles
from trapline._fault.program import names, owners, places, scope
from trapline._library import options

Facts = dict[str, Any]
_MAX_MODULES = 20000
_MAX_ITEMS = 256
_INDEXED = re.compile(r"^(?:cuda|gpu):(\d+)$")
_TAKES_INDEX = re.compile(r"\b(?:cuda|set_device|device)\(")


def describe(frames: list[FrameType], operands: list[Facts], tensors: list[Any]) -> Facts:
    """The fact `model`; the operands get `held`, where their devices differ. Outermost frame first; the names
    are those of the frames that `scope.frames_of` has set."""
    if len({operand["device"] for operand in operands}) < 2:
        return {}
    running: list[Any] = []
    for frame in frames:
        module = frame.f_locals.get("self")
        if owners.is_module(module) and not any(module is known for known in running):
            running.append(module)
    known = names.Names()
    model = next((module for module in running if _devices(module)), None)
    for operand, tensor in zip(operands, tensors):
        held = _held(tensor, running, model, known)
        if held is not None:
            operand["held"] = held
    if model is None:
        return {}
    devices = _devices(model)
    facts = {"type": type(model).__name__, "name": known.of(lambda value: value is model)}
    return {"model": {**facts, "device": devices[0]} if len(devices) == 1 else facts}


def _walk(root: Any) -> Iterator[tuple[str, Any]]:
    """(path, module) of a module and all that is registered in it."""
    waiting, seen = [("", root)], set()
    while waiting and len(seen) < _MAX_MODULES:
        path, module = waiting.pop()
        if module is None or id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        parts = scope.members(module).get("_modules")
        for name, part in parts.items() if isinstance(parts, dict) else ():
            waiting.append((f"{path}.{name}" if path else name, part))


def _devices(module: Any) -> list[str]:
    """Where the parameters are, each device once; none where there is no parameter."""
    found: dict[str, None] = {}
    for _, part in _walk(module):
        for parameter in (scope.members(part).get("_parameters") or {}).values():
            if parameter is not None:
                found[str(parameter.device)] = None
    return list(found)


def _held(tensor: Any, running: list[Any], model: Any, known: names.Names) -> Optional[Facts]:
    """The module that keeps a tensor: its name, the attribute, and whether the model reaches it."""
    for holder in reversed(running):
        for path, module in _walk(holder):
            kind, attribute = _kept(module, tensor)
            if kind:
                # the outermost of the modules that ran through which the holder is reached
                top, way = _top(module, running) or (holder, path)
                facts = _placed(top, model, known)
                parts = [facts["top"] if top is not model else "", owners.clean_name(way)]
                facts["name"] = ".".join(part for part in parts if part)
                user = not _of_library(type(module))
                held = {"attribute": attribute, "kind": kind, "own": user, "type": type(module).__name__}
                return {**held, **facts}
    return None


def _of_library(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(file, str) and places.is_library_file(file)


def _kept(module: Any, tensor: Any) -> tuple[str, str]:
    held = scope.members(module)
    for kind, group in (
        ("parameter", held.get("_parameters")),
        ("buffer", held.get("_buffers")),
        ("plain", held),
    ):
        for name, value in group.items() if isinstance(group, dict) else ():
            if value is tensor:
                return kind, str(name)
    return "", ""


def _top(wanted: Any, running: list[Any]) -> Optional[tuple[Any, str]]:
    for module in running:
        for path, part in _walk(module):
            if part is wanted:
                return module, path
    return None


def _placed(top: Any, model: Any, known: names.Names) -> Facts:
    """Whether what holds the tensor is a part of the model, and if not, what it sits in."""
    facts: Facts = {"top": known.of(lambda value: value is top), "trains": bool(_devices(top))}
    if model is None or top is model:
        facts["part"] = top is model
        return facts
    facts["part"] = False  # else the model would be the outermost
    for _, module in _walk(model):
        for name, value in scope.members(module).items():
            if name.startswith("_") or type(value) not in (list, tuple, dict):
                continue
            items = value.values() if type(value) is dict else value
            if any(item is top for item in list(items)[:_MAX_ITEMS]):
                facts["container"] = {
                    "name": f"self.{name}",
                    "type": type(value).__name__,
                    "of": type(module).__name__,
                }
                return facts
    return facts


def sources(operands: list[Facts], tensors: list[Any], given: Iterable[tuple[str, str, Any]]) -> None:
    """Names the user's own argument from which a library's tensor was made, where that is certain: the same
    memory; or the only one of its name, size and device. `given`: the words, the parameter, the tensor."""
    passed = list(given)
    for operand, tensor in zip(operands, tensors):
        if operand["user"] or "held" in operand:
            continue
        here = [entry for entry in passed if str(entry[2].device) == operand["device"]]
        same = [words for words, _, value in here if roles.storage(value) == roles.storage(tensor)]
        role = str(operand["name"]).rpartition(".")[2]
        alike = [
            words
            for words, parameter, value in here
            if parameter == role and value.numel() == tensor.numel() > 1
        ]
        if same or len(alike) == 1:
            operand["from"] = (same or alike)[0]


def asked(calls: Iterable[tuple[FrameType, str]]) -> Facts:
    """A GPU that a call names and that is not there: `index`, and the `count` of those that are. `calls`: the
    frames and the text of their calls, innermost first."""
    import torch

    count = torch.cuda.device_count()
    facts = {"count": count}
    if options.wants_cpu():
        facts["stand_ins"] = count
    for frame, text in calls:
        for index in _indices(frame, text):
            if index >= count:
                return {"index": index, **facts}
    return facts


def _indices(frame: FrameType, text: str) -> Iterator[int]:
    """The indices of GPUs that an expression names, through constants and variables."""
    import torch

    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        value: Any = None
        if isinstance(node, ast.Constant):
            value = node.value
        elif isinstance(node, ast.Name):
            value = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = node.value.id
            value = scope.members(frame.f_locals.get(name, frame.f_globals.get(name))).get(node.attr)
        if type(value) is torch.device and value.type == "cuda" and value.index is not None:
            yield int(value.index)
        elif type(value) is str and _INDEXED.match(value):
            yield int(_INDEXED.match(value)[1])  # type: ignore[index]
        elif type(value) is int and _TAKES_INDEX.search(text):
            yield value
