"""An optimizer's step that broke weights runs again, on copies: which operation of it made such numbers.

What a broken weight was before the step is gone. Two numbers take its place in turn, and only what makes
such numbers of both is told. Counters go back by what a step adds to them. Nothing of the program's own is
written: what the step would write besides the copies makes it refuse.
"""

from __future__ import annotations

import copy
import dis
import inspect
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, Optional

import torch

from trapline._fault.data import fetched
from trapline._fault.replay.rewrite import CannotRun
from trapline._fault.replay.session import Writes, is_generator
from trapline._library import aside
from trapline._library.say import debug
from trapline._watch.flow import Flow, Made
from trapline._watch.forward import named
from trapline._watch.suspect import PLAIN

_INSTEAD = (0.0, 0.5)
_MAX_COPIED = 1 << 26  # elements
_MAX_CODES = 64
_DEPTH = 4
_Counted = dict[tuple[int, Any], int]
# By name: what a step may do besides its numbers.
_EFFECTS = {
    *("print", "open", "write", "logger", "logging", "wandb", "writer", "add_scalar", "save", "dump"),
    *("system", "popen", "run", "input", "send", "put", "setattr", "delattr", "exec", "eval", "globals"),
    *("all_reduce", "all_gather", "broadcast", "reduce_scatter", "barrier"),
    *("backward", "seed", "manual_seed"),
    *("register_hook", "remove", "warn", "request", "post", "urlopen"),
}
_VALUES = (type(None), bool, int, float, complex, str, bytes, type, torch.dtype, torch.device, torch.Size)
_VALUES += (FunctionType, BuiltinFunctionType, range, slice)


def of_step(optimizer: Any, bad: list[Any], loss: Optional[float] = None) -> dict[str, Any]:
    """Facts of the operation: `op`, `origin`, `finite_before`; {} where that cannot be seen. `bad`: the
    weights that the step broke, with gradients that were finite. `loss`: what a closure that the step asks
    for gave; its gradients are there."""
    try:
        counted = _counted(optimizer, loss)
        made = [_made(optimizer, bad, number, counted, loss) for number in _INSTEAD]
    except Exception as error:
        debug(f"watch: the step does not run again: {error!r}")
        return {}
    first = made[0]
    if first is None or any(one is None or _place(one) != _place(first) for one in made):
        return {}
    facts = named(first, torch.nn.Module())
    kept = {key: facts[key] for key in ("op", "origin") if key in facts}
    if any(one is not None and one.only_inf for one in made):  # the NaN came of that
        kept["what"] = "inf"
    return {**kept, "finite_before": all(one is not None and one.finite for one in made)}


def _place(made: Made) -> tuple[Any, ...]:
    frame = made.frame or {}
    return made.op, frame.get("file"), frame.get("line")


def _made(
    optimizer: Any, bad: list[Any], number: float, counted: _Counted, loss: Optional[float]
) -> Optional[Made]:
    copies, flow = _Copies(number, counted), Flow()
    _steps(optimizer, copies, flow, loss)
    made = flow.origin_of([copies.of(parameter) for parameter in bad])
    first = made if made is None else made.infinite or made
    if first is None or first.given is not None:
        return None
    return first._replace(only_inf=made is not first)


def _steps(optimizer: Any, copies: _Copies, mode: Any, loss: Optional[float]) -> None:
    function = inspect.unwrap(type(optimizer).step)
    if not type(optimizer).__module__.startswith("torch.optim."):
        _asks(function, type(optimizer))
    shadow = copies.of(optimizer)
    for group in shadow.param_groups:  # one tensor after the other
        group.update({key: False for key in ("foreach", "fused") if key in group})
    writes = Writes()
    writes.allows(copies.tensors())
    with aside.running(), fetched.RandomState(), torch.no_grad(), writes, mode:
        function(shadow, *_closure(function, loss))


def _closure(function: Any, loss: Optional[float]) -> list[Any]:
    """For a step that cannot do without one: the loss alone, as no gradient is made anew."""
    asked = list(inspect.signature(function).parameters.values())[1:]
    if len(asked) != 1 or asked[0].name != "closure" or asked[0].default is not inspect.Parameter.empty:
        return []
    if loss is None:
        raise CannotRun("the loss of its closure is not known")
    return [lambda: torch.tensor(loss)]


def _counted(optimizer: Any, loss: Optional[float]) -> _Counted:
    """Whole numbers as they were before the last step, by what one step adds to them."""
    copies = _Copies(_INSTEAD[0], {})
    _steps(optimizer, copies, nullcontext(), loss)
    return {
        (id(holder), key): 2 * value - later
        for holder, made in copies.holders()
        for key, value in holder.items()
        if type(value) is int and type(later := made.get(key)) is int and later != value
    }


class _Copies:
    """Of an optimizer and all that it holds. `number` stands for what is not finite; `counted`: whole numbers
    that are others, by the mapping that holds them and their key."""

    def __init__(self, number: float, counted: _Counted) -> None:
        self._number, self._counted = number, counted
        self._made: dict[int, tuple[Any, Any]] = {}  # (what was copied, its copy)
        self._elements = 0

    def tensors(self) -> list[Any]:
        made = [one for _, one in self._made.values() if isinstance(one, torch.Tensor)]
        return [*made, *(one.grad for one in made if one.is_leaf and one.grad is not None)]

    def holders(self) -> Iterator[tuple[dict[Any, Any], dict[Any, Any]]]:
        """Mappings, and the members of optimizers, with their copies."""
        for value, made in self._made.values():
            if isinstance(value, dict):
                yield value, made
            elif isinstance(value, torch.optim.Optimizer):
                yield vars(value), vars(made)

    def _items(self, holder: dict[Any, Any], depth: int) -> dict[Any, Any]:
        return {
            self.of(key, depth): self._counted.get((id(holder), key), self.of(item, depth))
            for key, item in holder.items()
        }

    def of(self, value: Any, depth: int = _DEPTH) -> Any:
        if isinstance(value, _VALUES):
            return value
        known = self._made.get(id(value))
        if known is None:
            known = self._made[id(value)] = (value, self._copy(value, depth))
        return known[1]

    def _copy(self, value: Any, depth: int) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.optim.Optimizer):
            return self._optimizer(value, depth)
        if is_generator(value):
            return value.clone_state() if isinstance(value, torch.Generator) else copy.deepcopy(value)
        if isinstance(value, MethodType):
            return MethodType(value.__func__, self.of(value.__self__, depth - 1))
        if depth > 0 and isinstance(value, dict):
            made = copy.copy(value)  # a defaultdict keeps what it makes
            made.clear()
            made.update(self._items(value, depth - 1))
            return made
        if depth > 0 and type(value) in (list, tuple, set, deque):
            return type(value)(self.of(item, depth - 1) for item in value)
        if type(value).__module__.startswith(("torch.optim", "torch.nn", "functools", "weakref")):
            return value  # what is written into its tensors is refused
        raise CannotRun(f"the optimizer holds a {type(value).__name__}")

    def _optimizer(self, value: Any, depth: int) -> Any:
        made = object.__new__(type(value))
        self._made[id(value)] = (value, made)  # it may be held by what it holds
        made.__dict__ = {
            name: {}
            if name.endswith("_hooks")
            else self._counted.get((id(vars(value)), name), self.of(item, depth))
            for name, item in vars(value).items()
            if name != "step"  # what a scheduler puts around it
        }
        return made

    def _tensor(self, value: Any) -> Any:
        if type(value) not in PLAIN or not value.is_cpu or value.layout is not torch.strided:
            raise CannotRun("a device, or a tensor of another kind")
        self._elements += value.numel()
        if self._elements > _MAX_COPIED:
            raise CannotRun("too large")
        made = value.detach().clone()
        if made.is_floating_point():
            made[~made.isfinite()] = self._number
        if isinstance(value, torch.nn.Parameter):
            made = torch.nn.Parameter(made, requires_grad=value.requires_grad)
        if value.is_leaf and value.grad is not None:
            made.requires_grad_(value.requires_grad)
            made.grad = self._tensor(value.grad)
        for name, held in vars(value).items():  # what a library keeps beside a weight: a curvature
            if type(held) is torch.Tensor and held.is_cpu:
                setattr(made, name, self.of(held))
        return made


def _asks(function: Any, kind: type) -> None:
    """Whether a step of the program's own, or a library's, leaves nothing behind but its numbers."""
    for code, around in _codes(function, kind):
        names = set(code.co_names)
        if names & _EFFECTS:
            raise CannotRun(sorted(names & _EFFECTS)[0])
        if any(one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") for one in dis.get_instructions(code)):
            raise CannotRun("it writes a global variable")
        if any(isinstance(around.get(name), (list, dict, set, deque)) for name in names):
            raise CannotRun("it knows a global container")


def _codes(function: Any, kind: type) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """Of the step and of what it calls by name: functions beside it, and other methods of its class."""
    queue, seen = [function], set()
    while queue and len(seen) < _MAX_CODES:
        one = queue.pop()
        one = getattr(one, "__func__", one)
        with suppress(ValueError):
            one = inspect.unwrap(one)
        code = getattr(one, "__code__", None)
        if code is None or code in seen or one.__module__.startswith("torch."):
            continue
        seen.add(code)
        inner = [code, *(part for part in code.co_consts if isinstance(part, CodeType))]
        for part in inner:
            yield part, one.__globals__
            for name in part.co_names:
                queue += [one.__globals__.get(name), inspect.getattr_static(kind, name, None)]
