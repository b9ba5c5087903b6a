"""The libraries between the user's line and a fault: what made the layer, and what made the call.

Only types and names are read: no attribute of a foreign object, nothing of the user's runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import owners, places, scope

_MAX_NAMES = 64
_SILENT = ("torch", "builtins", "typing", "abc", "collections", "enum")  # packages that no row is about


def library_facts(layer: Optional[dict[str, Any]]) -> dict[str, Any]:
    """Packages and classes for the table of knobs; a package is left out where the code is the user's."""
    return facts_of(_around(layer), scope.live_frames())


def facts_of(around: list[Any], innermost_first: list[FrameType]) -> dict[str, Any]:
    """The same for modules, innermost first, and frames."""
    makers = [type(module) for module in around if _package(type(module).__module__) != "torch"]
    facts: dict[str, Any] = {}
    if makers and not _is_user(makers[0]):
        package = _package(makers[0].__module__)
        own = [kind for kind in makers if _package(kind.__module__) == package]
        facts["owner"] = package
        facts["maker"] = own[-1].__name__  # the outermost: what the user creates
        facts["owners"] = list(_names(makers))[:_MAX_NAMES]
    between = _between(innermost_first)
    if between:
        facts["caller"] = _package(_module_of(between[0]))
        facts["callers"] = list(_callers(between))[:_MAX_NAMES]
    return facts


def _around(layer: Optional[dict[str, Any]]) -> list[Any]:
    """The modules that contain the layer, innermost first; empty when no live model leads to it."""
    name = (layer or {}).get("name") or ""
    for variable, root in owners.roots():
        # `model.head` is the head of the variable, or of a part that has the variable's name.
        below = [name] + ([name[len(variable) + 1 :]] if name.startswith(f"{variable}.") else [])
        for wanted in filter(None, below):
            for path, module in root.named_modules():
                clean = owners.clean_name(path)
                holds = wanted.rpartition(".")[0] == clean and wanted.rpartition(".")[2] in module._parameters
                if clean == wanted or holds:
                    return list(_chain(root, path if clean == wanted else f"{path}.x"))
    return []


def _chain(root: Any, path: str) -> Iterator[Any]:
    modules = dict(root.named_modules())  # a ScriptModule has no get_submodule
    parts = path.split(".")[:-1]
    for length in range(len(parts), -1, -1):
        yield modules[".".join(parts[:length])]


def _between(innermost_first: list[FrameType]) -> list[FrameType]:
    """The frames of libraries that called the operation, innermost first, up to the user's."""
    found = []
    for frame in innermost_first:
        if places.is_user(frame.f_code):
            break
        if _package(_module_of(frame)) not in _SILENT:
            found.append(frame)
    return found


def _callers(frames: list[FrameType]) -> Iterator[str]:
    for frame in frames:
        holder = frame.f_locals.get("self")
        if holder is not None and not isinstance(holder, type):
            yield from _names([type(holder)])
        else:
            yield f"{_module_of(frame)}.{frame.f_code.co_name}"


def _names(kinds: list[type]) -> Iterator[str]:
    """Dotted names of classes and their bases, once each."""
    seen = set()
    for kind in kinds:
        for base in kind.__mro__:
            name = f"{base.__module__}.{base.__qualname__}"
            if name not in seen and _package(base.__module__) not in _SILENT:
                seen.add(name)
                yield name


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__") or "")


def _package(module: str) -> str:
    return module.partition(".")[0]


def _is_user(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return file is None or not places.is_library_file(file)
