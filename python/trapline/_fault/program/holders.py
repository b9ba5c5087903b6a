"""What the frames of the user's code hold: tensors, arrays, lists of integers, and the names that lead there.

Only types are asked and only the built-in containers' own methods are called: no property, no `__getattr__`
and no `__iter__` of the program's own runs.
"""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

from trapline._fault.program import places, scope

_MAX_FRAMES = 12
_MAX_VARIABLES = 256
_MAX_ITEMS = 64
_MAX_LIST = 1 << 16  # integers of a list that are looked at

_PLAIN = (type, ModuleType, FunctionType, str, bytes, int, float, type(None))

Held = tuple[str, Any]


def user_frames() -> list[FrameType]:
    """Live frames of the user's code, innermost first."""
    return [frame for frame in scope.live_frames() if places.is_user(frame.f_code)][:_MAX_FRAMES]


def held_by(frame: FrameType) -> Iterator[Held]:
    """(name, value) of what a frame's variables hold, each in a form that as_tensor takes; tensors first."""
    inside: list[Held] = []
    for name, value in list(scope.variables(frame))[:_MAX_VARIABLES]:
        if (
            name.startswith("__") or not name.isidentifier()
        ):  # `.0` of a comprehension, pytest's `@py_assert1`
            continue
        if is_array(value):
            yield name, value
        elif not issubclass(type(value), _PLAIN):
            inside.append((name, value))
    for name, value in inside:
        if _is_integers(value):
            yield name, value
        else:
            yield from _parts(name, value)


def _parts(name: str, value: Any) -> Iterator[Held]:
    """One level into a container or an object."""
    for part, item in items(name, value)[:_MAX_ITEMS]:
        if is_array(item) or _is_integers(item):
            yield part, item


def items(name: str, value: Any) -> list[Held]:
    """What a container or an object holds, each with the name that leads there."""
    if issubclass(type(value), dict):
        return _keyed(name, value)
    if issubclass(type(value), (list, tuple)):
        own = list if issubclass(type(value), list) else tuple
        fields = getattr(type(value), "_fields", None)  # a namedtuple
        return [
            (
                f"{name}.{fields[at]}" if isinstance(fields, tuple) and at < len(fields) else f"{name}[{at}]",
                item,
            )
            for at, item in enumerate(own.__getitem__(value, slice(0, _MAX_ITEMS)))
        ]
    held = attributes(value)
    if issubclass(type(value), UserDict) and type(held.get("data")) is dict:  # Hugging Face's BatchEncoding
        return _keyed(name, held["data"])
    store = attributes(held.get("_store")).get("_mapping")  # the Data of PyTorch Geometric
    if type(store) is dict:
        held = store
    elif type(held.get("_buffers")) is dict:  # nn.Module
        held = {**held, **held["_buffers"]}
    return [(f"{name}.{key}", item) for key, item in list(held.items()) if isinstance(key, str)]


def _keyed(name: str, value: Any) -> list[Held]:
    items = list(dict.items(value))[:_MAX_ITEMS]
    return [
        (f'{name}["{key}"]' if type(key) is str else f"{name}[{key}]", item)
        for key, item in items
        if type(key) in (str, int)
    ]


def attributes(value: Any) -> dict[str, Any]:
    """What an object's own ``__dict__`` holds; nothing of modules, classes and functions."""
    if issubclass(type(value), (ModuleType, type, FunctionType)):
        return {}
    return scope.members(value)


def is_array(value: Any) -> bool:
    """A tensor or an array of NumPy's."""
    if scope.is_tensor(value):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is getattr(numpy, "ndarray", None)


def _is_integers(value: Any) -> bool:
    return type(value) is list and 0 < len(value) <= _MAX_LIST and all(type(item) is int for item in value)


def as_tensor(value: Any, most: int) -> Any:
    """A held value as a plain tensor of at most `most` elements on the host; None for anything else."""
    import torch

    try:
        if scope.is_tensor(value):
            plain = value.layout is torch.strided and not value.is_complex() and value.device.type != "meta"
            if not plain or not 0 < value.numel() <= most or value.is_quantized:
                return None
            return value.detach().cpu()
        if type(value) is list:
            return torch.tensor(value)
        if not 0 < value.size <= most or value.dtype.kind not in "iuf":
            return None
        return torch.from_numpy(value.copy())
    except (TypeError, ValueError, RuntimeError, OverflowError, NotImplementedError):
        return None
