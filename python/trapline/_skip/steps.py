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
from typing import Any, Callable, Optional

from trapline._guard import waits
from trapline._skip import ledger, watched
from trapline._skip.watched import Says


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
        verdict, doubt = _verdict_on(self, original)
        if verdict > Says.ON_TRIAL:
            return _drop(self)
        if verdict == Says.ON_TRIAL:
            return _on_trial(self, original, doubt, args, kwargs)
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


def _verdict_on(
    optimizer: Any, original: Any, in_closure: bool = False, asks: bool = True
) -> tuple[int, Optional[watched.Doubt]]:
    """What all ranks, this one included, do about this step (:mod:`trapline._skip.watched`)."""
    waits.before_step()
    now = ledger.taints()
    if now > 0 and now > _seen.get(optimizer, 0):
        _seen[optimizer] = now
        return _agreed(Says.HEALED), None
    doubt = watched.doubt_of(optimizer, original, in_closure) if asks else None
    if doubt is None:
        return _agreed(Says.FINE), None
    verdict = _agreed(doubt.says)
    if doubt.is_told(verdict):
        doubt.tell()
        _seen[optimizer] = ledger.taints()
    return verdict, doubt


def _drop(optimizer: Any) -> None:
    """Leave the step out: the gradients go, parameters and the optimizer's state stay."""
    watched.left_out(optimizer)
    _count_as_skipped(optimizer)


def _count_as_skipped(optimizer: Any) -> None:
    optimizer.zero_grad()
    error = ledger.count_step(True)
    if error is not None:
        raise error


def _on_trial(
    optimizer: Any, original: Any, doubt: Optional[watched.Doubt], args: tuple, kwargs: dict[str, Any]
) -> Any:
    """The optimizer, or a hook before its step, may mend what some rank saw: that is known after the step."""
    before = _Before(optimizer)
    with _Inside():
        result = original(optimizer, *args, **kwargs)
    own = Says.FINE if doubt is None else doubt.of_trial(before.is_spoilt())
    verdict = _agreed(own)
    if verdict == Says.FINE:
        ledger.count_step(False)
        return result
    before.put_back()
    watched.undone()
    if doubt is not None and own != Says.FINE and doubt.is_told(verdict):
        doubt.tell(taken=True)
        _seen[optimizer] = ledger.taints()
    _count_as_skipped(optimizer)
    return result


# Closures -----------------------------------------------------------------------------------------


def _step_with_closure(
    optimizer: Any, original: Any, closure: Callable[[], Any], args: tuple, kwargs: dict[str, Any]
) -> Any:
    """The loss is computed inside the step. A fault in it abandons the step and undoes what it had begun."""
    kind = type(optimizer)
    before = _Before(optimizer) if any(base in _several for base in kind.__mro__) else None
    evaluations = 0

    @functools.wraps(closure)
    def evaluate(*more: Any, **others: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        if evaluations == 2:
            _several.add(kind)  # its parameters may have moved: from the next step on they can be put back
        loss = closure(*more, **others)
        if _verdict_on(optimizer, original, in_closure=True, asks=evaluations == 1)[0] > Says.ON_TRIAL:
            raise _Abandoned(loss)
        return loss

    if args:
        args = (evaluate, *args[1:])
    else:
        kwargs = {**kwargs, "closure": evaluate}
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
    """Parameters and state of an optimizer, and of one that it holds, as they are now."""

    def __init__(self, optimizer: Any, outer: bool = True) -> None:
        from torch.optim import Optimizer

        self.optimizer = optimizer
        self.values = [(p, p.detach().clone()) for group in optimizer.param_groups for p in group["params"]]
        self.state = [(p, copy.deepcopy(value)) for p, value in optimizer.state.items()]
        self.groups = [_settings_of(group) for group in optimizer.param_groups]
        held = [value for value in vars(optimizer).values() if isinstance(value, Optimizer)] if outer else []
        self.inner = [_Before(value, outer=False) for value in held]

    def is_spoilt(self) -> bool:
        """State is not finite now that was: the next updates will be made of it."""
        was = {id(p): _count_bad(value) for p, value in self.state}
        mine = any(_count_bad(value) > was.get(id(p), 0) for p, value in self.optimizer.state.items())
        return mine or any(inner.is_spoilt() for inner in self.inner)

    def put_back(self) -> None:
        import torch

        with torch.no_grad():
            for parameter, value in self.values:
                parameter.copy_(value)
        self.optimizer.state.clear()
        self.optimizer.state.update(self.state)
        for group, settings in zip(self.optimizer.param_groups, self.groups):
            group.update(settings)
        for inner in self.inner:
            inner.put_back()


def _settings_of(group: dict[str, Any]) -> dict[str, Any]:
    """What a step may count there; tensors, such as a rate, are somebody else's to change."""
    return {
        name: copy.deepcopy(value)
        for name, value in group.items()
        if name != "params" and not hasattr(value, "copy_")
    }


def _count_bad(state: Any) -> int:
    """Elements that are not finite, of the state of one parameter."""
    import torch

    values = state.values() if isinstance(state, dict) else ()
    tensors = [v.detach() for v in values if isinstance(v, torch.Tensor) and v.layout is torch.strided]
    return sum(int((~tensor.isfinite()).sum()) for tensor in tensors)


# GradScaler ---------------------------------------------------------------------------------------


def _wrap_scaler(kind: Any) -> None:
    """A tainted step neither unscales nor looks for infinities: they would change the scale for nothing."""
    from torch.amp.grad_scaler import OptState, _refresh_per_optimizer_state

    original = kind.step

    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._enabled or _state.inside:
            return original(self, optimizer, *args, **kwargs)
        if _verdict_on(optimizer, original, asks=False)[0] > Says.ON_TRIAL:  # it looks itself
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


def _agreed(own: int) -> int:
    """The highest of what the ranks say of their steps. Every rank must come by equally often."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return own
    if distributed.get_world_size() == 1:
        return own
    import torch

    flag = torch.tensor([own], dtype=torch.int32)
    distributed.all_reduce(flag, op=distributed.ReduceOp.MAX, group=_own_group(distributed))
    return int(flag.item())


def _own_group(distributed: Any) -> Any:
    """A gloo group of all ranks: no wait for a GPU, no place in the order of the program's collectives."""
    default = distributed.distributed_c10d._get_default_group()
    made = _groups.get(default)
    own = None if made is None else made()
    if own is None:
        own = distributed.new_group(backend="gloo")
        _groups[default] = weakref.ref(own)
    return own
