"""What the user's program calls an object: a variable of a live frame or of its module, or one step below it.

Frames are asked from the outermost inwards: `val_loader` of main() says more than `loader` of run_epoch().
Nothing of the user's is called: instance dictionaries and plain containers only.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Callable, Optional

from trapline._fault.program import places, scope

_MAX_VARIABLES = 512  # of one frame
_MAX_PARTS = 64  # of one object
_NO_HOLDERS = (ModuleType, type, FunctionType, BuiltinFunctionType, MethodType, str, bytes, int, float)


class Names:
    """The names that the user's live frames have at this moment."""

    def __init__(self) -> None:
        self._variables = list(variables())

    def of(self, wanted: Callable[[Any], bool]) -> str:
        """The expression for the first object that is wanted; "" when there is none within one step."""
        for name, value in self._variables:
            if name != "self" and wanted(value):
                return name
            if type(value) is dict:  # loaders["val"] says as much as val_loader
                for step, part in parts(value):
                    if step[1] in "'\"" and wanted(part):
                        return name + step
        for name, value in self._variables:
            for step, part in parts(value):
                if wanted(part):
                    return name + step
        return ""


def variables() -> Iterator[tuple[str, Any]]:
    frames = [frame for frame in reversed(scope.live_frames()) if places.is_user(frame.f_code)]
    scopes: list[dict[str, Any]] = [frame.f_locals for frame in frames]
    scopes += [frame.f_globals for frame in frames]
    main = sys.modules.get("__main__")  # in a worker the program's frames are gone, its variables are not
    scopes.append(getattr(main, "__dict__", {}))
    seen: set[int] = set()
    for held in scopes:
        if id(held) in seen:
            continue
        seen.add(id(held))
        for name, value in list(held.items())[:_MAX_VARIABLES]:
            if isinstance(name, str) and name.isidentifier() and not name.startswith("_"):
                yield name, value


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Attributes of an object, items of a plain container, with what reaches them."""
    kind = type(value)
    if kind is dict:
        for key, item in list(value.items())[:_MAX_PARTS]:
            if type(key) in (str, int):
                yield f"[{key!r}]", item
    elif kind in (list, tuple):
        for position, item in enumerate(value[:_MAX_PARTS]):
            yield f"[{position}]", item
    elif not issubclass(kind, _NO_HOLDERS) and not scope.is_tensor(value):
        for name, item in list(scope.members(value).items())[:_MAX_PARTS]:
            if isinstance(name, str) and (not name.startswith("_") or _is_shown(kind, name[1:])):
                yield f".{name.lstrip('_')}", item


def _is_shown(kind: type, name: str) -> bool:
    """A property of that name, which shows the member `_name`, as such classes are written."""
    return bool(name) and name[0] != "_" and isinstance(inspect.getattr_static(kind, name, None), property)


def lists(most: int) -> Iterator[tuple[str, Any]]:
    """Lists and tuples of 1 to `most` entries: variables, and one step inside of what is no list."""
    for name, value in variables():
        inside = () if type(value) in (list, tuple) else parts(value)
        for path, held in [(name, value), *((name + step, part) for step, part in inside)]:
            if type(held) in (list, tuple) and 0 < len(held) <= most:
                yield path, held


def length(data_set: Any) -> Optional[int]:
    """Its len(); None for a stream."""
    try:
        return len(data_set)
    except Exception:
        return None
