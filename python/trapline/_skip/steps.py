"""Leaves out an optimizer's step when a fault was healed since its last one (``--on-fault skip``).

The ``step`` of every ``torch.optim.Optimizer`` is wrapped where its class defines it, below the wrappers that
learning rate schedulers put on instances. A step that is left out drops the gradients (``zero_grad``), so
that those of a tainted micro-batch go with the others that were accumulated. Between ranks one flag is agreed
on for each step, over a gloo group of its own: either all ranks step or none does.
"""

from __future__ import annotations

import copy
import functools
import sys
import threading
import types
import weakref
from collections import defaultdict
from typing import Any, Callable

from trapline._guard import waits
from trapline._skip import ledger


class _Abandoned(BaseException):
    """Thrown out of a closure, through the optimizer's step that called it."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss


class _ThreadState(threading.local):
    inside = 0  # in a step that was decided on: the optimizer inside a wrapping one is not asked again


_state = _ThreadState()
_undo: list[Callable[[], None]] = []
_seen: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_several: set[type] = set()  # classes whose step evaluates its closure more than once
_exists = False
# Of the default process group: ours over the same ranks. Only torch may keep them alive, so that
# destroy_process_group() ends their threads: one that wants the GIL while the interpreter ends aborts it.
_groups: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()


def install() -> None:
    """Wrap the optimizers that exist and those that will."""
    global _exists
    if _undo:
        return
    import torch
    from torch.optim import Optimizer

    original = Optimizer._patch_step_function

    @functools.wraps(original)
    def _patch_step_function(self: Any) -> None:
        global _exists
        original(self)
        _exists = True
        _wrap_step_of(type(self))
        _seen[self] = ledger.taints()

    _replace(Optimizer, "_patch_step_function", _patch_step_function)
    for kind in _subclasses(Optimizer):
        if getattr(kind.step, "hooked", False):  # made before the guard came in
            _exists = True
            _wrap_step_of(kind)
    _several.add(torch.optim.LBFGS)
    _wrap_scaler(torch.amp.GradScaler)


def uninstall() -> None:
    """Put everything back."""
    global _exists
    while _undo:
        _undo.pop()()
    _seen.clear()
    _groups.clear()
    _exists = False


def optimizer_exists() -> bool:
    """True once the process has made an optimizer: there is a step to leave out."""
    return _exists


def _subclasses(kind: type) -> list[type]:
    found: list[type] = []
    for below in kind.__subclasses__():
        found += [below, *_subclasses(below)]
    return found


def _replace(owner: Any, name: str, value: Any) -> None:
    before = owner.__dict__[name]
    setattr(owner, name, value)

    def undo() -> None:
        if owner.__dict__.get(name) is value:
            setattr(owner, name, before)

    _undo.append(undo)


def _wrap_step_of(kind: type) -> None:
    owner = next((base for base in kind.__mro__ if "step" in base.__dict__), None)
    original = None if owner is None else owner.__dict__["step"]
    if not isinstance(original, types.FunctionType):
        return
    mark = getattr(original, "_trapline", None)
    if mark is not None and mark() is original:
        return

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _state.inside:
            return original(self, *args, **kwargs)
        closure = args[0] if args else kwargs.get("closure")
        if callable(closure):
            return _step_with_closure(self, original, closure, args, kwargs)
        if _tainted(self):
            return _drop(self)
        _state.inside += 1  # without _Inside(): every step of the program comes by here
        try:
            result = original(self, *args, **kwargs)
        finally:
            _state.inside -= 1
        ledger.count_step(False)
        return result

    step._trapline = weakref.ref(step)  # type: ignore[attr-defined]  # wraps() copies it, the identity differs
    _replace(owner, "step", step)


class _Inside:
    def __enter__(self) -> None:
        _state.inside += 1

    def __exit__(self, *_: object) -> None:
        _state.inside -= 1


def _tainted(optimizer: Any) -> bool:
    """True when no rank, this one included, may take this step."""
    waits.before_step()
    now = ledger.taints()
    own = now > 0 and now > _seen.get(optimizer, 0)
    if own:
        _seen[optimizer] = now
    return _agreed(own)


def _drop(optimizer: Any) -> None:
    """Leave the step out: the gradients go, parameters and the optimizer's state stay."""
    optimizer.zero_grad()
    error = ledger.count_step(True)
    if error is not None:
        raise error


# Closures -----------------------------------------------------------------------------------------


def _step_with_closure(
    optimizer: Any, original: Any, closure: Callable[[], Any], args: tuple, kwargs: dict[str, Any]
) -> Any:
    """The loss is computed inside the step. A fault in it abandons the step and undoes what it had begun."""
    kind = type(optimizer)
    before = _Before(optimizer) if any(base in _several for base in kind.__mro__) else None
    evaluations = 0

    @functools.wraps(closure)
    def watched(*more: Any, **others: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        if evaluations == 2:
            _several.add(kind)  # its parameters may have moved: from the next step on they can be put back
        loss = closure(*more, **others)
        if _tainted(optimizer):
            raise _Abandoned(loss)
        return loss

    if args:
        args = (watched, *args[1:])
    else:
        kwargs = {**kwargs, "closure": watched}
    try:
        with _Inside():
            result = original(optimizer, *args, **kwargs)
    except _Abandoned as abandoned:
        if before is not None and evaluations > 1:
            before.put_back()
        _drop(optimizer)
        return abandoned.loss
    ledger.count_step(False)
    return result


class _Before:
    """Parameters and state of an optimizer as they are now."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.values = [(p, p.detach().clone()) for group in optimizer.param_groups for p in group["params"]]
        self.state = [(p, copy.deepcopy(value)) for p, value in optimizer.state.items()]

    def put_back(self) -> None:
        import torch

        with torch.no_grad():
            for parameter, value in self.values:
                parameter.copy_(value)
        self.optimizer.state.clear()
        self.optimizer.state.update(self.state)


# GradScaler ---------------------------------------------------------------------------------------


def _wrap_scaler(kind: Any) -> None:
    """A tainted step neither unscales nor looks for infinities: they would change the scale for nothing."""
    from torch.amp.grad_scaler import OptState, _refresh_per_optimizer_state

    original = kind.step

    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._enabled or _state.inside:
            return original(self, optimizer, *args, **kwargs)
        if _tainted(optimizer):
            state = self._per_optimizer_states[id(optimizer)]
            state["stage"] = OptState.STEPPED
            state["found_inf_per_device"] = {}  # of unscale_(), if it was called
            optimizer._opt_called = True  # a scheduler warns when nobody called step()
            self.update = types.MethodType(update_once, self)
            return _drop(optimizer)
        with _Inside():
            result = original(self, optimizer, *args, **kwargs)
        ledger.count_step(False)
        return result

    def update_once(self: Any, new_scale: Any = None) -> None:
        """The update() after a step that was left out."""
        self.__dict__.pop("update", None)
        if new_scale is None and not any(
            state["found_inf_per_device"] for state in self._per_optimizer_states.values()
        ):
            self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)
        else:
            self.update(new_scale)

    _replace(kind, "step", step)


# Ranks --------------------------------------------------------------------------------------------


def _agreed(own: bool) -> bool:
    """True when any rank's step is tainted. Every rank must come by equally often."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return own
    if distributed.get_world_size() == 1:
        return own
    import torch

    flag = torch.tensor([int(own)], dtype=torch.int32)
    distributed.all_reduce(flag, op=distributed.ReduceOp.MAX, group=_own_group(distributed))
    return bool(flag.item())


def _own_group(distributed: Any) -> Any:
    """A gloo group of all ranks: no wait for a GPU, no place in the order of the program's collectives."""
    default = distributed.distributed_c10d._get_default_group()
    made = _groups.get(default)
    own = None if made is None else made()
    if own is None:
        own = distributed.new_group(backend="gloo")
        _groups[default] = weakref.ref(own)
    return own
