"""A call of an outermost module, and how it runs again: nothing of it is left in the results.

Buffers, what modules hold and random generators are put back. What holds collectives is not run again.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable
from contextlib import ExitStack
from operator import itemgetter
from typing import Any, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from trapline._fault.data import fetched
from trapline._fault.data.without import Without
from trapline._fault.replay.rewrite import CannotRun
from trapline._library import aside
from trapline._watch import suspect

# Of outermost modules whose arguments are kept, until the step is over: kCalls in src/kernel/watch.cpp.
MAX_CALLS = 16
_DEPTH = 3
_COLLECTIVE = ("SyncBatchNorm", "FullyShardedDataParallel", "FSDPModule")


class Call(list):  # type: ignore[type-arg]
    """One call of an outermost module. A list, since that is made without a call of Python's."""

    __slots__ = ()

    module = property(itemgetter(0))  # a weak reference
    args = property(itemgetter(1))
    kwargs = property(itemgetter(2))
    step = property(itemgetter(3))  # how many steps were taken before it
    autocast = property(itemgetter(4))  # the dtype, where autocast is on
    random = property(itemgetter(5))  # the state of PyTorch's generator, where the module draws

    arrived = property(itemgetter(6))  # at its outputs, in backward; None: not noted

    def drew(self, state: Any) -> None:
        self[5] = state

    def watches(self, arrived: Any) -> None:
        self[6] = arrived

    def has_one_of(self, owned: set[int]) -> bool:
        module = self.module()
        return module is None or any(id(parameter) in owned for parameter in module.parameters())


def weights_of(calls: list[Call]) -> list[Any]:
    modules = [module for module in (call.module() for call in calls) if module is not None]
    return [parameter for module in modules for parameter in module.parameters()]


def is_plain(tensor: Any) -> bool:
    """A tensor that holds its own numbers: also of a class that only Python knows (MONAI's, fastai's)."""
    if type(tensor) in (torch.Tensor, torch.nn.Parameter):
        return True
    return (
        isinstance(tensor, torch.Tensor)
        and type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
        and not refuses(tensor)
    )


def norm_of(tensors: Iterable[Any]) -> Optional[float]:
    """The norm of all gradients, or weights, in host memory; None where there are none, or not plain ones."""
    gradients = []
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor) or not (tensor.layout is torch.strided or tensor.is_sparse):
            continue
        gradient = tensor if tensor.layout is torch.strided else tensor._values()
        if gradient.is_cpu and gradient.numel():
            if not is_plain(gradient):
                return None
            gradients.append(gradient.as_subclass(torch.Tensor))
    if not gradients:
        return None
    with torch.no_grad():
        norms = torch._foreach_norm(gradients)
        # By Python's numbers: half the time of two more operations, and nothing overflows.
        if any(part.dtype is not norms[0].dtype for part in norms):
            return math.hypot(*[part.item() for part in norms])
        return math.hypot(*torch.stack(norms).tolist())


_refusing: dict[type, bool] = {}


def refuses(tensor: Any) -> bool:
    """A class of tensors that only stands for another one, and raises where it is asked for its numbers
    (hypll's parameters)."""
    kind = type(tensor)
    if kind not in _refusing:
        try:
            torch.Tensor.numel(tensor)
            _refusing[kind] = False
        except Exception:
            _refusing[kind] = True
    return _refusing[kind]


def plain(value: Any) -> Any:
    """Such a tensor as one of torch's own class."""
    return value.as_subclass(torch.Tensor) if isinstance(value, torch.Tensor) and is_plain(value) else value


def inner_of(call: Call) -> Any:
    """What computes: below DistributedDataParallel and torch.compile, which are not run again."""
    module = call.module()
    for _ in range(4):
        kind = type(module).__name__
        if kind == "OptimizedModule":
            module = module._orig_mod
        elif kind in ("DistributedDataParallel", "DataParallel"):
            module = module.module
    return module


def has_collectives(call: Call) -> bool:
    return any(
        base.__name__ in _COLLECTIVE for module in inner_of(call).modules() for base in type(module).__mro__
    )


def autocast_of(call: Call) -> Any:
    stack = ExitStack()
    if call.autocast is not None or torch.is_autocast_enabled("cpu"):
        on = call.autocast is not None
        stack.enter_context(torch.autocast("cpu", dtype=call.autocast, enabled=on, cache_enabled=False))
    return stack


def draw_again(call: Call) -> None:
    """The numbers that dropout drew the first time."""
    if call.random is not None:
        torch.set_rng_state(call.random)


def copies(value: Any, depth: int = _DEPTH, trained: bool = False, without: Optional[Without] = None) -> Any:
    """What a forward that changes its arguments may change; `trained`: those that had a gradient have one."""
    if is_plain(value):
        made = value.detach().clone()
        made = made if without is None else without.cut(made)
        return made.requires_grad_(trained and value.requires_grad)
    if depth > 0 and type(value) is dict:
        return {key: copies(item, depth - 1, trained, without) for key, item in value.items()}
    if depth > 0 and type(value) in (tuple, list):
        kept = value if without is None or type(value) is tuple else without.items(value)
        return type(value)(copies(item, depth - 1, trained, without) for item in kept)
    return value


class Kept:
    """Puts back what a forward pass changes. Buffers are others meanwhile: a graph may have saved them, and
    their versions count changes. Into weights nothing is written: that raises CannotRun, by a mode of its own
    unless the caller has one that refuses it (`refuses`). `mends`: 1 stands for what is not finite in them.
    """

    def __init__(self, module: Any, refuses: bool = False, mends: bool = False) -> None:
        self.module, self._mends = module, mends
        self._guard = None if refuses else _Refuses(module)

    def __enter__(self) -> None:
        self._aside = aside.running()
        self._aside.__enter__()
        self._random = fetched.RandomState()
        self._random.__enter__()
        self._buffers = [(b, b.detach().clone()) for b in self.module.buffers() if not is_lazy(b)]
        self._members: list[tuple[Any, Any]] = []
        for module in self.module.modules():
            members = vars(module)
            self._members.append((members, dict(members)))
            # One level of what a forward appends to; also the tables of buffers, which it may bind anew.
            self._members += [
                (held, copy.copy(held))
                for held in members.values()
                if type(held) in (list, dict, set, deque) and held
            ]
        self._exchanges_buffers()
        _forget_statistics(self.module)
        if self._guard is not None:
            self._guard.__enter__()

    def _exchanges_buffers(self) -> None:
        copies = {id(buffer): value.clone() for buffer, value in self._buffers}
        for value in copies.values() if self._mends else ():
            if value.is_floating_point():
                value[~value.isfinite()] = 1.0
        for module in self.module.modules():
            for name, buffer in list(module._buffers.items()):
                if id(buffer) in copies:
                    module._buffers[name] = copies[id(buffer)]

    def __exit__(self, *error: Any) -> None:
        if self._guard is not None:
            self._guard.__exit__(*error)
        self._aside.__exit__(None, None, None)
        self._random.__exit__()
        for held, kept in reversed(self._members):
            if type(held) is list:
                held[:] = kept
            elif len(held) != len(kept) or type(held) is not dict or _differ(held, kept):
                held.clear()
                (held.extend if type(held) is deque else held.update)(kept)
        with torch.no_grad():
            for buffer, value in self._buffers:  # which the forward may have reached by another name
                buffer.data.copy_(value)


class _Refuses(TorchDispatchMode):
    """What is written into the weights of a module."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        plain = (
            p for p in module.parameters() if is_plain(p) and not is_lazy(p) and p.layout is torch.strided
        )
        self._storages = {int(p.untyped_storage().data_ptr()) for p in plain if p.layout is torch.strided} - {
            0
        }

    def __enter__(self) -> Any:
        suspect.guards += 1
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        suspect.guards -= 1
        super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        schema = func._schema
        for at, argument in enumerate(schema.arguments) if schema.is_mutable else ():
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = args[at] if at < len(args) else (kwargs or {}).get(argument.name)
                for tensor in given if isinstance(given, (list, tuple)) else [given]:
                    known = isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided
                    if known and int(tensor.untyped_storage().data_ptr()) in self._storages:
                        raise CannotRun("it writes into its weights")
        return func(*args, **(kwargs or {}))


def is_lazy(tensor: Any) -> bool:
    return bool(torch.nn.parameter.is_lazy(tensor))


def _forget_statistics(module: Any) -> None:
    """Of modules in training, which only write them: the call has spoilt them the first time."""
    for part in module.modules():
        mean, var = getattr(part, "running_mean", None), getattr(part, "running_var", None)
        kept = part.training and isinstance(mean, torch.Tensor) and isinstance(var, torch.Tensor)
        if kept and not bool(mean.isfinite().all() & var.isfinite().all()):
            mean.data.zero_()
            var.data.fill_(1.0)


def _differ(held: dict[Any, Any], kept: dict[Any, Any]) -> bool:
    return any(key not in kept or kept[key] is not value for key, value in held.items())
