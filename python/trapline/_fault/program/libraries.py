"""The libraries between the user's line and a fault: what made the layer, and what made the call.

Only types and names are read: no attribute of a foreign object, nothing of the user's runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, Optional

from trapline._fault.program import made, owners, places, scope, texts

_MAX_NAMES = 64
_MAX_SETTINGS = 512
# What a model keeps its settings in.
_SETTINGS = ("config", "cfg", "hparams", "args", "params", "_internal_dict")
# What counts rows or classes, and no width of a layer.
_COUNTS = re.compile(
    r"vocab|class|label|categor|token|species|atom|\bmax_z\b|\bntoken|"
    r"(?:^|_)(?:n|num|nb|number_of)_(?:embed(?:ding|s\b)|node|entit|relation|item|user|output|out\b|target|tag"
    r"|type|state|action|bin|code|element|symbol|speaker|word|char|id)",
    re.IGNORECASE,
)
_NO_COUNTS = re.compile(
    r"_(?:id|ids|index|idx|token)$|^max_(?!z\b)|dim|width|hidden|channel|weight|_per_|position|length|_len\b"
)
_SILENT = ("torch", "builtins", "typing", "abc", "collections", "enum")  # packages that no row is about


def library_facts(layer: Optional[dict[str, Any]], called: Optional[list[CodeType]] = None) -> dict[str, Any]:
    """Packages and classes for the table of knobs; a package is left out where the code is the user's.
    `called`: the code that called, innermost first, of a call that is over: what runs now is another."""
    around = around_layer(layer)
    facts = facts_of(around, scope.live_frames() if called is None else [])
    if called:
        facts |= _callers_in(called)
    size = (layer or {}).get("value")
    attribute = str((layer or {}).get("name") or "").rpartition(".")[2]
    package = facts.get("owner", "")
    setting = setting_of(around, package, size, attribute) if type(size) is int else None
    names = made_of(around, package, attribute) if package else None
    return {
        **facts,
        **({"setting": setting} if setting else {}),
        **({} if names is None else {"made_of": names}),
    }


def facts_of(around: list[Any], innermost_first: list[FrameType]) -> dict[str, Any]:
    """The same for modules, innermost first, and frames."""
    makers = [type(module) for module in around if _package(type(module).__module__) != "torch"]
    facts: dict[str, Any] = {}
    if makers and not _is_user(makers[0]):
        package = _package(makers[0].__module__)
        own = [kind for kind in makers if _package(kind.__module__) == package]
        facts["owner"] = package
        facts["maker"] = _created(own).__name__
        facts["owners"] = list(_names(makers))[:_MAX_NAMES]
    between = _between(innermost_first)
    if between:
        facts["caller"] = _package(_module_of(between[0]))
        facts["callers"] = list(_callers(between))[:_MAX_NAMES]
    holders = [module for module in around if not _is_user(type(module))]
    holders += [frame.f_locals["self"] for frame in between if "self" in frame.f_locals]
    settings = settings_of(holders[:_MAX_NAMES])
    return {**facts, "settings": settings} if settings else facts


def _created(kinds: list[type]) -> type:
    """What the program creates itself: the innermost of these that its text calls, else the outermost."""
    called = (kind for kind in kinds if next(texts.calls_of(kind.__name__), None) is not None)
    return next(called, kinds[-1])


def settings_of(holders: list[Any]) -> dict[str, list[int]]:
    """The whole numbers that these objects, and the settings that they were given, hold by name."""
    found: dict[str, list[int]] = {}
    for holder in holders:
        held = scope.members(holder)
        given = [held.get(name) for name in _SETTINGS]
        for members in [held, *(item if type(item) is dict else scope.members(item) for item in given)]:
            labels = members.get("id2label")  # transformers: num_labels is its length
            numbers = {"num_labels": len(labels)} if type(labels) is dict else {}
            for name, value in [*members.items(), *numbers.items()]:
                if type(value) is not int or not isinstance(name, str) or len(found) >= _MAX_SETTINGS:
                    continue
                values = found.setdefault(name.lstrip("_"), [])
                if value not in values:
                    values.append(value)
    return found


def made_of(around: list[Any], package: str, attribute: str) -> Optional[list[str]]:
    """What the source makes the layer's size of, in names that the user gives: members of the settings, or
    arguments of the package's outermost module. Empty: of a number that stands there; None: not known."""
    inside = [module for module in around if _package(type(module).__module__) == package]
    if not inside or around[0] is not inside[0]:
        return None
    return made.names_of(around[0], attribute, own=inside[0] is inside[-1])


def setting_of(around: list[Any], package: str, size: int, attribute: str = "") -> Optional[str]:
    """The setting of the package's outermost module that is this size: the one that the source makes the
    layer of; else the only one that is a count of this size, an argument that its constructor took and the
    module kept, or a member of the settings object that it was given."""
    inside = [module for module in around if _package(type(module).__module__) == package]
    if not package or not inside or size < 2:
        return None
    created = _created([type(module) for module in inside])
    outermost = next((module for module in inside if type(module) is created), inside[-1])
    holder = around[0]
    source = made.argument_of(holder, attribute)
    if source is not None:
        own = source[0] if holder is outermost and not source[1] else ""
        return made.setting(holder, attribute, size) or own or None
    held = scope.members(outermost)
    code = getattr(type(outermost).__init__, "__code__", None)
    taken = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
    found = {n for n in taken if _is_count(n, held.get(n, held.get(f"_{n}")), size)}
    for name in _SETTINGS:
        given = held.get(name)
        members = given if type(given) is dict else scope.members(given)
        found |= {
            key for key, value in members.items() if isinstance(key, str) and _is_count(key, value, size)
        }
    return next(iter(found)) if len(found) == 1 else None


def _is_count(name: str, value: Any, size: int) -> bool:
    """Whether a setting of this value is that count, by its name."""
    counts = _COUNTS.search(name) is not None and _NO_COUNTS.search(name) is None
    return counts and type(value) is int and value == size


def around_layer(layer: Optional[dict[str, Any]]) -> list[Any]:
    """The modules that contain the layer, innermost first; empty when no live model leads to it. Of models
    that have a layer of that name the one that runs."""
    found = list(_around(str((layer or {}).get("name") or "")))
    running = [frame.f_locals.get("self") for frame in scope.live_frames()]
    runs = (chain for chain in found if any(module is one for module in chain for one in running))
    return next(runs, found[0] if found else [])


def _around(name: str) -> Iterator[list[Any]]:
    for variable, root in owners.roots():
        # `model.head` is the head of the variable, or of a part that has the variable's name.
        below = [name] + ([name[len(variable) + 1 :]] if name.startswith(f"{variable}.") else [])
        for wanted in filter(None, below):
            for path, module in root.named_modules():
                clean = owners.clean_name(path)
                holds = wanted.rpartition(".")[0] == clean and wanted.rpartition(".")[2] in module._parameters
                if clean == wanted or holds:
                    yield list(_chain(root, path if clean == wanted else f"{path}.x"))


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


def _callers_in(called: list[CodeType]) -> dict[str, Any]:
    """The same by the code alone: of a method the class that defines it, and its bases."""
    modules = {getattr(module, "__file__", None): name for name, module in list(sys.modules.items())}
    found = []
    for code in called:
        if places.is_user(code):
            break
        module = modules.get(code.co_filename, "")
        if module and _package(module) not in _SILENT:
            found.append((module, getattr(code, "co_qualname", code.co_name)))  # co_qualname: Python 3.11
    if not found:
        return {}
    callers: list[str] = []
    for module, name in found:
        callers.append(f"{module}.{name}")
        kind = vars(sys.modules[module]).get(name.partition(".")[0])
        callers += _names([kind]) if isinstance(kind, type) and "." in name else []
    return {"caller": _package(found[0][0]), "callers": list(dict.fromkeys(callers))[:_MAX_NAMES]}


def _callers(frames: list[FrameType]) -> Iterator[str]:
    for frame in frames:
        holder = frame.f_locals.get("self")
        if holder is not None and not isinstance(holder, type):
            yield from _method(type(holder), frame)
            yield from _names([type(holder)])
        else:
            yield f"{_module_of(frame)}.{frame.f_code.co_name}"


def _method(kind: type, frame: FrameType) -> Iterator[str]:
    """ "module.Class.method" of the class that defines it, where the frame runs one of this object's."""
    name = frame.f_code.co_name
    for base in kind.__mro__:
        function = base.__dict__.get(name)
        if getattr(function, "__code__", None) is frame.f_code:
            yield f"{base.__module__}.{base.__qualname__}.{name}"
            return


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
