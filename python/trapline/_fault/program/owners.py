"""Which module owns a parameter, and its qualified name as the user would write it."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.program import holders, places, scope

_MAX_VARIABLES = 256

# Wrappers that put themselves between a model and its parameters' names.
_WRAPPERS = re.compile(
    r"(?:^|(?<=\.))"
    r"(?:module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module|_torch_params)(?:\.|$)"
)


class Owner:
    """A module, its parameter's name, and the module's qualified name; a root goes by its variable."""

    def __init__(self, module: Any, parameter: str, path: str, variable: str = "") -> None:
        self.module = module
        self.parameter = parameter
        self.path = path
        self.name = written(variable, path)

    @property
    def type(self) -> str:
        """The module's class name."""
        return type(self.module).__name__


def clean_name(name: str) -> str:
    """A qualified name without the wrappers' parts: of DDP, torch.compile, Keras."""
    return _WRAPPERS.sub("", name).rstrip(".")


def written(variable: str, path: str) -> str:
    """A qualified name as the program writes it: `fc.5`, but `model[2]` where the root is a Sequential."""
    if variable == "self" or not path:
        return path or ("" if variable == "self" else variable)
    leading = re.match(r"\d+(?:\.\d+)*(?=\.|$)", path)
    if not variable or leading is None:
        return path
    return variable + "".join(f"[{n}]" for n in leading[0].split(".")) + path[leading.end() :]


def is_module(value: Any) -> bool:
    """True for an nn.Module that is one already: before its __init__ has called PyTorch's it has no parts.
    Asks the type and its own dictionary only: attributes of foreign objects can have side effects."""
    import torch

    return issubclass(type(value), torch.nn.Module) and "_modules" in scope.members(value)


def roots() -> list[tuple[str, Any]]:
    """(variable name, module) of the live frames, outermost frame first, `self` first within a frame."""
    found: list[tuple[str, Any]] = []
    seen = set()
    for frame in reversed(scope.live_frames()):
        for name, value in scope.variables(frame):
            if is_module(value) and id(value) not in seen:
                seen.add(id(value))
                found.append((name, value))
        if places.is_user(frame.f_code):  # `learn.model`, `trainer.model`
            for name, value in list(scope.variables(frame))[:_MAX_VARIABLES]:
                for attribute, part in (
                    list(holders.attributes(value).items()) if not is_module(value) else ()
                ):
                    if is_module(part) and id(part) not in seen:
                        seen.add(id(part))
                        found.append((f"{name}.{attribute}", part))
    # `head = model.head` beside `model`: the name is wanted as seen from `model`
    inner = {id(part) for _, module in found for part in module.modules() if part is not module}
    return [(name, module) for name, module in found if id(module) not in inner]


def _heap_roots(wanted: list[Any]) -> list[tuple[str, Any]]:
    """Modules anywhere in the process that contain one of `wanted` and are inside no other such module."""
    targets = {id(module) for module in wanted}
    containing = []
    for candidate in gc.get_objects():
        if is_module(candidate) and any(id(part) in targets for part in candidate.modules()):
            containing.append(candidate)
    children = {id(part) for module in containing for part in module.modules() if part is not module}
    return [("", module) for module in containing if id(module) not in children]


def _path_on_heap(module: Any) -> str:
    """Qualified name of a module that no live frame leads to."""
    for _, root in _heap_roots([module]):
        for name, part in root.named_modules():
            if part is module:
                return clean_name(name)
    return ""


def _parameters_of(module: Any) -> Iterator[tuple[str, Any]]:
    for name, value in list(module._parameters.items()):
        if value is not None:
            yield name, value


def _same(parameter: Any, tensor: Any, pointer: int) -> bool:
    if parameter is tensor:
        return True
    if not pointer:
        return False
    try:
        return parameter.data_ptr() == pointer
    except (
        RuntimeError,
        ValueError,
        NotImplementedError,
    ):  # functional, fake and lazy tensors have no storage
        return False


def data_pointer(tensor: Any) -> int:
    """Address of a tensor's first element; 0 when it has none."""
    try:
        return int(tensor.data_ptr())
    except (RuntimeError, ValueError, NotImplementedError):
        return 0


def owners_of(tensor: Any) -> list[Owner]:
    """Every module whose own parameter is this tensor or starts at its address; several when tied."""
    pointer = data_pointer(tensor)
    known = roots()
    found: dict[int, Owner] = {}
    visited = set()
    for variable, root in known:
        for name, module in root.named_modules():
            if id(module) in visited:
                continue
            visited.add(id(module))
            for parameter_name, parameter in _parameters_of(module):
                if _same(parameter, tensor, pointer):
                    owner = Owner(module, parameter_name, clean_name(name), variable)
                    found.setdefault(id(module), owner)
    if found or not _may_be_owned(tensor):
        return list(found.values())
    holders = []
    for candidate in gc.get_objects():
        if not is_module(candidate):
            continue
        for parameter_name, parameter in _parameters_of(candidate):
            if _same(parameter, tensor, pointer):
                holders.append((candidate, parameter_name))
    return [Owner(module, name, _path_on_heap(module)) for module, name in holders]


def _may_be_owned(tensor: Any) -> bool:
    """A walk over the heap takes a second in a large program: only for what can be a parameter."""
    import torch

    return bool(tensor.requires_grad) or isinstance(tensor, torch.nn.Parameter)


def variable_of(tensor: Any) -> Optional[str]:
    """The local variable or the attribute of `self` that holds a tensor which no module owns."""
    pointer = data_pointer(tensor)
    for frame in scope.live_frames():
        for name, value in scope.variables(frame):
            if scope.is_tensor(value) and _same(value, tensor, pointer):
                return name
            if name == "self":
                for attribute, held in list(scope.members(value).items()):
                    if scope.is_tensor(held) and _same(held, tensor, pointer):
                        return f"self.{attribute}"
    return None


def unparametrized(owner: Owner) -> Owner:
    """The module that the user made, for a weight held by torch.nn.utils.parametrizations."""
    match = re.match(r"^(.*?)\.?parametrizations\.(\w+)$", owner.path)
    if not match:
        return owner
    for variable, root in roots():
        for name, module in root.named_modules():
            if clean_name(name) == match.group(1):
                return Owner(module, match.group(2), match.group(1), variable)
    return owner
