"""Which operation made the NaN or Inf that reaches a model's output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from torch.utils._python_dispatch import TorchDispatchMode

from trapline._fault.program import frames, places

_DEPTH = 3
# What makes an infinity on purpose, or hands on one that was made on purpose.
_MASKS = (
    "masked_fill",
    "where",
    "full",
    "fill",
    "triu",
    "tril",
    "scalar_tensor",
    "lift",
    "copy",
    "clone",
    "neg",
    "_to_copy",
    "empty",
    "new_",
    "index_put",
    "scatter",
    "cat",
    "add",
    "mul",
    "sub",
)


def tensors(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """The floating tensors in tuples, lists and dicts."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point and value.layout is torch.strided and value.device.type != "meta":
            yield value.detach()
    elif depth > 0 and isinstance(value, dict):
        for item in value.values():
            yield from tensors(item, depth - 1)
    elif depth > 0 and isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item, depth - 1)


class Made(NamedTuple):
    """An operation; or, with `given`, what was so before: ("input", type), ("weights", name)."""

    op: str = ""
    module: Any = None
    frame: Any = None
    infinite: Optional[Made] = None  # what made the infinity that became NaN
    given: Optional[tuple[str, str]] = None


class Flow(TorchDispatchMode):
    """Follows NaN and infinities by the storage that holds them."""

    def __init__(self) -> None:
        super().__init__()
        self._nan: dict[int, Made] = {}
        self._inf: dict[int, Made] = {}
        self._alive: list[Any] = []  # or another tensor would take the address of one that is gone
        self._given: list[tuple[list[Any], tuple[str, str]]] = []

    def names(self, given: list[Any], what: tuple[str, str]) -> None:
        """What goes in; told by its values, as copies of it go in."""
        self._given.append(([t for t in given if not bool(t.isfinite().all())], what))

    def origin_of(self, output: Any) -> Optional[Made]:
        """What made the NaN, or else the Inf, in `output`."""
        made = list(tensors(output))
        for tensor in made:
            if bool(tensor.isnan().any()):
                origin = self._nan.get(_address(tensor)) or self._from_outside(tensor)
                if origin is not None:
                    return origin
        for tensor in made:
            if bool(tensor.isinf().any()):
                origin = self._inf.get(_address(tensor)) or self._from_outside(tensor)
                if origin is not None:
                    return origin
        return None

    def _from_outside(self, tensor: Any) -> Optional[Made]:
        for given, what in self._given:
            for known in given:
                same = known.shape == tensor.shape and known.dtype == tensor.dtype
                if _address(known) == _address(tensor) or (same and _are_equal(known, tensor)):
                    return Made(given=what)
        return None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = list(tensors([args, kwargs]))
        had_nan = next((t for t in given if bool(t.isnan().any())), None)
        had_inf = next((t for t in given if bool(t.isinf().any())), None)
        nan_of = None if had_nan is None else self._nan.get(_address(had_nan)) or self._from_outside(had_nan)
        inf_of = None if had_inf is None else self._inf.get(_address(had_inf)) or self._from_outside(had_inf)
        output = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[-1]
        if name.startswith(("empty", "new_empty")):
            return output
        for tensor in tensors(output):
            if bool(tensor.isnan().any()):
                if had_nan is None:
                    # Inf that was given (data, weights) is told as what it is.
                    nan_of = inf_of if inf_of is not None and inf_of.given else Made(name, *_here(), inf_of)
                if nan_of is not None:
                    self._keep(self._nan, tensor, nan_of)
            if bool(tensor.isinf().any()):
                if had_inf is None and not name.startswith(_MASKS):
                    inf_of = Made(name, *_here())
                if inf_of is not None:
                    self._keep(self._inf, tensor, inf_of)
        return output

    def _keep(self, origins: dict[int, Made], tensor: Any, made: Made) -> None:
        self._alive.append(tensor)
        origins[_address(tensor)] = made


def _address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _are_equal(one: Any, other: Any) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _here() -> tuple[Any, Any]:
    """The innermost module that is running, and the user's line."""
    import torch

    module = origin = None
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if origin is None and places.is_user(code) and not places.is_own(code.co_filename):
            origin = frames.make_frame((code, frame.f_lasti))
        if module is None and code.co_name == "forward":
            candidate = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            module = candidate if isinstance(candidate, torch.nn.Module) else None
        frame = frame.f_back  # type: ignore[assignment]
    return module, origin
